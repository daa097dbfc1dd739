"""`gpcert accuracy`: the share of a test set that is right and proved robust."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from gpcert.analyses import certified_accuracy
from gpcert.analyses.accuracy import TestPoint
from gpcert.cli import options
from gpcert.cli.exits import settled
from gpcert.cli.options import named
from gpcert.cli.pictures import Picture, radii_of
from gpcert.cli.results import Files
from gpcert.cli.terminal import above, below, cells
from gpcert.committee import Committee, Model
from gpcert.errors import InputError

EXAMPLES = """Examples:

gpcert accuracy model.npz points.csv --labels labels.csv --radii 0:0.5:11 --plot accuracy.png

gpcert accuracy digits.joblib images.csv --labels digits.csv --radii 0.05,0.1 --domain 0,1 --jobs 2

Exit code: 0 all radii within the tolerance; 2 some not (their bounds hold all the same); 3 bad
input; 4 a defect."""

COLUMNS = ["label", "decision", "right", "proved up to", "refuted at", "boxes", "ms"]


@options.grouped
def accuracy(
    inputs: options.Inputs,
    radii: Annotated[
        str, typer.Option(help="radii, as in 0.1,0.2 or first:last:count as in 0:0.5:11")
    ],
    ball: options.Ball,
    decision: options.Decision,
    labels: Annotated[
        Path | None,
        typer.Option(help="a file with one label a line (regression: the target, may be left out)"),
    ] = None,
    rtol: Annotated[float, typer.Option(help="relative accuracy of the radii")] = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Find the share of the points that are right and proved robust, for every radius."""
    choices = search.arguments()
    model, points = inputs.read()
    found = certified_accuracy(
        model,
        points.X,
        None if labels is None else _labels(labels, model, len(points.X)),
        radii_of(radii),
        **ball.arguments(model),
        **decision.arguments(model),
        rtol=rtol,
        n_jobs=search.jobs,
        **choices,
    )
    result = points.named(found)
    picture.draw(result)
    shares = zip(result.radii, result.certified(), result.attacked(), strict=True)
    summary = f"{result.accuracy:.4g} right; right and robust: " + "; ".join(
        f"{below(low)} to {above(high)} at {radius:g}" for radius, low, high in shares
    )
    files.report(result, f"Certified accuracy, l_{ball.norm}", COLUMNS, _cells, summary)
    raise typer.Exit(settled(result))


def _labels(path: Path, model: Model, count: int) -> list[Any]:
    """One label a line; one line more is a header."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected text in UTF-8 ({error})") from error
    lines = [line.strip().strip('"') for line in lines if line.strip()]
    if len(lines) == count + 1:
        lines = lines[1:]
    if len(lines) != count:
        raise InputError(f"{path}: expected {count} labels, one for each point, got {len(lines)}")
    if not isinstance(model, Committee) and not model.likelihood.classifies:
        try:
            return [float(line) for line in lines]
        except ValueError as error:
            raise InputError(f"{path}: expected numbers, one a line ({error})") from error
    known = model.classes if isinstance(model, Committee) else model.labels
    return [named("--labels", line, known) for line in lines]


def _cells(row: TestPoint) -> list[RenderableType]:
    radius = [below(row.lower), above(row.upper)] if row.right else ["", ""]
    right = "yes" if row.right else "no"
    return [*cells(row, "label decision"), right, *radius, *cells(row, "boxes ms")]
