"""`gpcert radius`: how far each point may move before the decision changes."""

from __future__ import annotations

import math
from typing import Annotated

import typer
from rich.console import RenderableType

from gpcert.api import certified_radius_many
from gpcert.certificates import Radius
from gpcert.cli import options
from gpcert.cli.exits import settled
from gpcert.cli.results import Files
from gpcert.cli.terminal import above, below, cells
from gpcert.search import StopReason

EXAMPLES = """Examples:

gpcert radius model.npz points.csv

gpcert radius digits.joblib images.csv --domain 0,1 --rtol 0.05 --seconds 20 --output radii.json

Exit code: 0 all radii within the tolerance; 2 some not (their bounds hold all the same); 3 bad
input; 4 a defect."""

COLUMNS = ["decision", "proved up to", "refuted at", "ratio", "boxes", "ms"]


@options.grouped
def radius(
    inputs: options.Inputs,
    ball: options.Ball,
    decision: options.Decision,
    max_radius: Annotated[
        float | None,
        typer.Option(help="radius at which the search for a counter-example ends"),
    ] = None,
    rtol: Annotated[float, typer.Option(help="relative accuracy at which the search ends")] = 0.01,
    *,
    search: options.Search,
    files: Files,
) -> None:
    """Bracket the radius up to which the decision at each point is proved robust."""
    choices = search.arguments()
    model, points = inputs.read()
    found = certified_radius_many(
        model,
        points.X,
        **ball.arguments(model),
        **decision.arguments(model),
        rtol=rtol,
        max_radius=max_radius,
        **choices,
        n_jobs=search.jobs,
    )
    result = points.named(found)
    met = sum(item.reason is StopReason.CONVERGED for item in result)
    summary = f"{len(result)} radii: {met} within the tolerance {rtol:g}, {len(result) - met} wider"
    files.report(result, f"Certified radii, l_{ball.norm}", COLUMNS, radius_cells, summary)
    raise typer.Exit(settled(result))


def radius_cells(item: Radius) -> list[RenderableType]:
    """Proved radius, distance of the known counter-example, their ratio, cost."""
    return [
        *cells(item, "decision"),
        below(item.lower),
        above(item.upper) if item.counterexample is not None else "none found",
        below(item.lower / item.upper) if 0 < item.upper < math.inf else "",
        *cells(item, "boxes ms"),
    ]
