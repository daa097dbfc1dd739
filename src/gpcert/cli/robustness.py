"""`gpcert robustness`: how far the prediction moves around each point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gpcert.analyses import robustness as robustness_of
from gpcert.cli import options
from gpcert.cli.exits import settled
from gpcert.cli.models import load_model
from gpcert.cli.options import label_of, radius_of
from gpcert.cli.pictures import Picture, radii_of
from gpcert.cli.results import Files
from gpcert.cli.terminal import above

EXAMPLES = """Examples:

gpcert robustness model.npz points.csv --radius 0.1 --csv deltas.csv

gpcert robustness laplace.npz points.csv --compare ep.npz --radii 0.05,0.1 --plot boxes.png

Exit code: 0 all ranges within the tolerance; 2 some not (they hold all the same); 3 bad input; 4 a
defect."""

COLUMNS = ["model", "radius", "delta >=", "delta <=", "boxes", "ms"]


@options.grouped
def robustness(
    inputs: options.Inputs,
    ball: options.Ball,
    radius: options.OptionalRadius = None,
    radii: Annotated[
        str | None,
        typer.Option(help="several radii, as in 0.1,0.2 or first:last:count as in 0:0.5:11"),
    ] = None,
    label: options.Label = None,
    compare: Annotated[
        list[Path] | None, typer.Option(help="another model file to compare with; may be repeated")
    ] = None,
    tol: Annotated[float, typer.Option(help="accuracy at which a search ends")] = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Bound how far the prediction can move in a ball around each point."""
    choices = search.arguments()
    model, points = inputs.read()
    others = {path.stem: load_model(path) for path in compare or []}
    found = robustness_of(
        None if others else model,
        points.X,
        None if radius is None else radius_of(radius, model),
        radii=None if radii is None else radii_of(radii),
        compare={inputs.model.stem: model, **others} if others else None,
        **ball.arguments(model),
        output=label_of(label, model),
        tol=tol,
        n_jobs=search.jobs,
        **choices,
    )
    result = points.named(found)
    picture.draw(result)
    median = float(np.median(result.deltas())) if len(result) else 0.0
    summary = f"{len(result)} ranges: median delta at most {above(median)}"
    files.report(
        result, f"Robustness, l_{ball.norm} balls", COLUMNS, "group setting delta boxes ms", summary
    )
    raise typer.Exit(settled(result))
