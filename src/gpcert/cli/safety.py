"""`gpcert safety`: the range of a prediction as the ball around a point grows."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import RenderableType

from gpcert.analyses import SafetyStep, safety_curve
from gpcert.cli import options
from gpcert.cli.attack import AttackMethod
from gpcert.cli.exits import settled
from gpcert.cli.options import label_of, named
from gpcert.cli.pictures import Picture, radii_of
from gpcert.cli.results import Files
from gpcert.cli.terminal import cells

EXAMPLES = """Examples:

gpcert safety model.npz points.csv --radii 0:0.5:11 --plot safety.png

gpcert safety model.npz points.csv --point 3 --radii 0.1,0.2,0.4 --attack best --csv curve.csv

Exit code: 0 all bounds within the tolerance; 2 some not (they hold all the same); 3 bad input; 4 a
defect."""

COLUMNS = ["radius", "minimum >=", "attained", "attained", "maximum <=", "attack", "verdict"]


@options.grouped
def safety(
    inputs: options.Inputs,
    radii: Annotated[
        str, typer.Option(help="radii, as in 0.1,0.2 or first:last:count as in 0:0.5:11")
    ],
    ball: options.Ball,
    decision: options.Decision,
    point: Annotated[
        str | None, typer.Option(help="which point, by its label; the first by default")
    ] = None,
    label: options.Label = None,
    attack: Annotated[AttackMethod, typer.Option(help="which attack is shown")] = (
        AttackMethod.gpfgs
    ),
    tol: Annotated[float, typer.Option(help="accuracy at which a search ends")] = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Bound a prediction in growing balls around one point, beside an attack."""
    choices = search.arguments()
    model, points = inputs.read()
    row = 0
    if point is not None:
        row = points.labels.index(named("--point", point, points.labels))
    result = safety_curve(
        model,
        model.check_inputs(points.X)[row],
        radii_of(radii),
        **ball.arguments(model),
        **decision.arguments(model),
        output=label_of(label, model),
        attack=attack.value,
        tol=tol,
        **choices,
    )
    picture.draw(result)
    safe, broken = result.safe_up_to, result.first_unsafe
    summary = (
        f"point {points.labels[row]}: proved safe up to "
        f"{'none of the radii' if safe is None else safe}, first counter-example at "
        f"{'none of the radii' if broken is None else broken}"
    )
    files.report(result, f"Safety, l_{ball.norm} balls", COLUMNS, _cells, summary)
    raise typer.Exit(settled(result))


def _cells(step: SafetyStep) -> list[RenderableType]:
    return [f"{step.radius:g}", *cells(step, "minimum maximum attack status")]
