"""`gpcert radius`: how far each point may move before the decision changes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import RenderableType

from gpcert.api import certified_radius_many
from gpcert.certificates import Radius
from gpcert.cli import options
from gpcert.cli.exits import ExitCode
from gpcert.cli.results import Files
from gpcert.cli.terminal import above, below
from gpcert.search import StopReason

__all__ = ["COLUMNS", "EXAMPLES", "radius", "radius_cells"]

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
    files.check()
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
    # an interrupted table says by its own labels which rows were finished
    result = replace(found, labels=tuple(points.labels[row] for row in found.labels))
    met = sum(item.reason is StopReason.CONVERGED for item in result)
    summary = f"{len(result)} radii: {met} within the tolerance {rtol:g}, {len(result) - met} wider"
    files.report(result, f"Certified radii, l_{ball.norm}", COLUMNS, radius_cells, summary)
    raise typer.Exit(
        ExitCode.PROVED if result.complete and met == len(result) else ExitCode.UNDECIDED
    )


def radius_cells(item: Radius) -> list[RenderableType]:
    """Proved radius, distance of the known counter-example, their ratio, cost."""
    return [
        "" if item.decision is None else str(item.decision),
        below(item.lower),
        above(item.upper) if item.counterexample is not None else "none found",
        below(item.lower / item.upper) if 0 < item.upper < math.inf else "",
        str(item.boxes),
        f"{1e3 * item.seconds:.1f}",
    ]
