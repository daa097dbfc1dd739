"""`gpcert range`: the smallest and the largest prediction around each point."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from gpcert.api import prediction_range_many
from gpcert.cli import options
from gpcert.cli.exits import settled
from gpcert.cli.options import label_of, radius_of
from gpcert.cli.results import Files
from gpcert.committee import Model

EXAMPLES = """Examples:

gpcert range model.npz points.csv --radius 0.1

gpcert range model.npz points.csv --radius 0.1 --quantity variance --tol 0.001

gpcert range regressor.npz points.csv --radius 0.1 --quantity band --beta 2

gpcert range digits.joblib images.csv --radius 0.05 --domain 0,1 --class 8 --csv ranges.csv

Exit code: 0 all ranges within the tolerance; 2 some not (their bounds hold all the same); 3 bad
input; 4 a defect."""


COLUMNS = [
    "output",
    "quantity",
    "minimum >=",
    "attained",
    "attained",
    "maximum <=",
    "boxes",
    "ms",
]


class Sides(StrEnum):
    """Which ends of a range are searched for."""

    both = "both"
    minimum = "minimum"
    maximum = "maximum"


@options.grouped
def ranges(
    inputs: options.Inputs,
    radius: options.Radius,
    ball: options.Ball,
    quantity: Annotated[
        options.Quantity | None,
        typer.Option(help="by default the probability; regression: the mean"),
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="standard deviations that a band reaches; 2 by default")
    ] = None,
    label: options.Label = None,
    sides: Annotated[
        Sides, typer.Option(help="search for one end only (with one output, or --class)")
    ] = Sides.both,
    tol: Annotated[float, typer.Option(help="accuracy at which the search ends")] = 0.01,
    *,
    search: options.Search,
    files: Files,
) -> None:
    """Bound the smallest and the largest prediction in a ball around each point."""
    choices = search.arguments()
    model, points = inputs.read()
    asked = None if quantity is None else quantity.value
    found = prediction_range_many(
        model,
        points.X,
        radius_of(radius, model),
        **ball.arguments(model),
        tol=tol,
        quantity=asked,
        beta=beta,
        **_output(model, asked, label, sides),
        **choices,
        n_jobs=search.jobs,
    )
    result = points.named(found)
    met = sum(item.converged for item in result)
    summary = f"{len(result)} ranges: {met} within the tolerance {tol:g}, {len(result) - met} wider"
    title = f"Prediction ranges, l_{ball.norm} radius {radius}"
    files.report(result, title, COLUMNS, "output quantity minimum maximum boxes ms", summary)
    raise typer.Exit(settled(result))


def _output(model: Model, quantity: Any, text: str | None, sides: Sides) -> dict[str, Any]:
    """`output` and `sides` where one output is asked for, else all of them."""
    if text is None:
        return {"all_outputs": True} if sides is Sides.both else {"sides": sides.value}
    return {"output": label_of(text, model, quantity), "sides": sides.value}
