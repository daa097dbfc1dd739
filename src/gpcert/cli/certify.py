"""`gpcert certify`: is the decision at each point the same in a ball around it?"""

from __future__ import annotations

import typer
from rich.console import RenderableType

from gpcert.api import certify_many
from gpcert.certificates import Certificate, Status
from gpcert.cli import options
from gpcert.cli.exits import exit_code
from gpcert.cli.options import radius_of
from gpcert.cli.results import Files
from gpcert.cli.terminal import cells

EXAMPLES = """Examples:

gpcert certify model.npz points.csv --radius 0.1

gpcert certify digits.joblib images.csv --radius 0.05 --domain 0,1 --jobs 4 --output results.json

gpcert certify model.npz points.csv --radius 0.2 --norm 2 --features age,bmi --threshold 0.9

gpcert certify regressor.npz - --radius 0.1 --delta 0.5 --csv - < points.csv

Exit code: 0 all proved; 1 some refuted; 2 none refuted, some undecided; 3 bad input; 4 a defect."""

COLUMNS = ["decision", "status", "margin >=", "margin <=", "moved by", "boxes", "ms"]


@options.grouped
def certify(
    inputs: options.Inputs,
    radius: options.Radius,
    ball: options.Ball,
    decision: options.Decision,
    search: options.Search,
    files: Files,
) -> None:
    """Prove or refute that the decision at each point holds in a whole ball around it."""
    choices = search.arguments()
    model, points = inputs.read()
    found = certify_many(
        model,
        points.X,
        radius_of(radius, model),
        **ball.arguments(model),
        **decision.arguments(model),
        **choices,
        n_jobs=search.jobs,
    )
    result = points.named(found)
    counts = [f"{result.count(status)} {status.name}" for status in Status]
    title = f"Certificates, l_{ball.norm} radius {radius}"
    summary = f"{len(result)} points: {', '.join(counts)}"
    files.report(result, title, COLUMNS, _cells, summary)
    raise typer.Exit(exit_code(result))


def _cells(c: Certificate) -> list[RenderableType]:
    moved = "" if c.counterexample is None else f"{c.counterexample_distance:.4g}"
    return [*cells(c, "decision status margin"), moved, *cells(c, "boxes ms")]
