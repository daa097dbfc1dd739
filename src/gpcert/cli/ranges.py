"""`gpcert range`: the smallest and the largest prediction around each point."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from gpcert.api import prediction_range, prediction_ranges
from gpcert.api.questions import range_question
from gpcert.certificates import PredictionRange
from gpcert.cli import options
from gpcert.cli.exits import ExitCode
from gpcert.cli.models import load_model
from gpcert.cli.points import read_points
from gpcert.cli.records import save_ranges
from gpcert.cli.terminal import above, below, console, say, say_written, table
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.regions import Ball
from gpcert.search import Budget, StopReason

__all__ = ["ranges", "EXAMPLES"]

EXAMPLES = """Examples:

gpcert range model.npz points.csv --radius 0.1

gpcert range model.npz points.csv --radius 0.1 --quantity variance --tol 0.001

gpcert range digits.joblib images.csv --radius 0.05 --domain 0,1 --class 8

Exit code: 0 all ranges within the tolerance; 2 some not (their bounds hold all the same); 3 bad
input; 4 a defect."""


COLUMNS = [
    "point",
    "output",
    "quantity",
    "minimum ≥",
    "attained",
    "attained",
    "maximum ≤",
    "boxes",
    "ms",
]


class Quantity(StrEnum):
    """What a range is of."""

    probability = "probability"
    mean = "mean"
    variance = "variance"


def ranges(
    model: options.ModelFile,
    points: options.PointsFile,
    *,
    radius: options.Radius,
    norm: options.Norm = "inf",
    features: options.Features = None,
    domain: options.Domain = None,
    quantity: Annotated[
        Quantity | None, typer.Option(help="by default the probability; regression: the mean")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="LABEL",
            help="only the class of this label (regression: the target, counted from 0); all by "
            "default",
        ),
    ] = None,
    tol: Annotated[float, typer.Option(help="accuracy at which the search ends")] = 0.01,
    seconds: options.Seconds = 60.0,
    backend: options.Backend = "numpy",
    method: options.Method = options.MethodChoice.taylor,
    variance: options.Variance = None,
    header: options.Header = None,
    output: options.Output = None,
) -> None:
    """Bound the smallest and the largest prediction in a ball around each point."""
    region = options.region_options(norm, features, domain)
    options.check_output(output)
    posterior, X = load_model(model), read_points(points, header)
    found: list[PredictionRange] = []
    rows = table(f"Prediction ranges, l_{norm} radius {radius:g}", COLUMNS)
    choices = {
        "tol": tol,
        "quantity": None if quantity is None else quantity.value,
        "budget": Budget(seconds=seconds),
        "backend": backend,
        **options.method_options(method, variance),
    }
    for index, x in enumerate(posterior.check_inputs(X)):
        items = _found(posterior, Ball(x, radius, **region), label, choices)
        found.extend(items)
        for item in items:
            rows.add_row(*_cells(index, item))
        if items[0].reason is StopReason.INTERRUPTED:
            break
    console().print(rows)
    met = sum(item.converged for item in found)
    say(f"{len(found)} ranges: {met} within the tolerance {tol:g}, {len(found) - met} wider")
    if output is not None:
        save_ranges(output, found)
    say_written(output)
    raise typer.Exit(ExitCode.PROVED if met == len(found) else ExitCode.UNDECIDED)


def _found(
    model: Model, ball: Ball, text: str | None, choices: dict[str, Any]
) -> tuple[PredictionRange, ...]:
    """The ranges of all outputs, or of the one whose label prints as this text."""
    if text is None:
        return prediction_ranges(model, ball, **choices)
    # None is the one latent function of two classes, which no label means
    labels = [k for k in range_question(model, choices["quantity"]).labels if k is not None]
    same = [label for label in labels if str(label) == text]
    if len(same) != 1:
        names = f"one of {', '.join(map(str, labels))}" if labels else "none"
        raise InputError(f"--class: expected {names}; got {text!r}")
    return (prediction_range(model, ball, output=same[0], **choices),)


def _cells(index: int, item: PredictionRange) -> list[str]:
    return [
        str(index),
        "" if item.output is None else str(item.output),
        item.quantity,
        below(item.minimum.lower),
        above(item.minimum.upper),
        below(item.maximum.lower),
        above(item.maximum.upper),
        str(item.boxes),
        f"{1e3 * item.seconds:.1f}",
    ]
