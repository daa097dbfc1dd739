"""`gpcert worst-case`: the certified worst prediction of a regression around each point."""

from __future__ import annotations

from typing import Annotated

import typer

from gpcert.analyses import worst_case as worst_case_of
from gpcert.cli import options
from gpcert.cli.exits import settled
from gpcert.cli.options import label_of, radius_of
from gpcert.cli.pictures import Picture
from gpcert.cli.results import Files
from gpcert.cli.terminal import above

EXAMPLES = """Examples:

gpcert worst-case regressor.npz points.csv --radius 0.1

gpcert worst-case regressor.npz points.csv --radius bmi=0.02 --beta 3 --plot worst.png

Exit code: 0 all ranges within the tolerance; 2 some not (they hold all the same); 3 bad input; 4 a
defect."""

COLUMNS = ["mean", "minimum >=", "attained", "attained", "maximum <=", "band from", "band to"]


@options.grouped
def worst_case(
    inputs: options.Inputs,
    radius: options.Radius,
    ball: options.Ball,
    beta: Annotated[float, typer.Option(help="standard deviations that the band reaches")] = 2.0,
    label: options.Label = None,
    tol: Annotated[float, typer.Option(help="accuracy at which a search ends")] = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Bound a regression's least and greatest mean, and its credible band, around each point."""
    choices = search.arguments()
    model, points = inputs.read()
    found = worst_case_of(
        model,
        points.X,
        radius_of(radius, model),
        beta=beta,
        **ball.arguments(model),
        output=label_of(label, model, "mean"),
        tol=tol,
        n_jobs=search.jobs,
        **choices,
    )
    result = points.named(found)
    picture.draw(result)
    widest = max((row.maximum.upper - row.minimum.lower for row in result), default=0.0)
    summary = f"{len(result)} points: a mean moves by at most {above(widest)}"
    title = f"Worst predictions, l_{ball.norm} radius {radius}"
    files.report(result, title, COLUMNS, "mean minimum maximum band", summary)
    raise typer.Exit(settled(result))
