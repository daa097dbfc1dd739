"""`gpcert attack`: look for another decision around each point, without proof."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from gpcert.analyses import attack as attack_all
from gpcert.cli import options
from gpcert.cli.exits import ExitCode
from gpcert.cli.options import radius_of
from gpcert.cli.pictures import Picture
from gpcert.cli.results import Files

EXAMPLES = """Examples:

gpcert attack model.npz points.csv --radius 0.1

gpcert attack digits.joblib images.csv --radius 0.05 --domain 0,1 --method gpfgs --csv attacks.csv

gpcert attack regressor.npz points.csv --radius 0.1 --delta 0.5 --plot attacks.png

Exit code: 1 some counter-examples found and confirmed; 2 none (which proves nothing); 3 bad input;
4 a defect."""

COLUMNS = ["decision", "found", "before", "after", "success", "confirmed", "distance"]


class AttackMethod(StrEnum):
    """Attacks; see `gpcert.attack`."""

    gpfgs = "gpfgs"
    gpfgs_probability = "gpfgs_probability"
    pgd = "pgd"
    square = "square"
    best = "best"


@options.grouped
def attack(
    inputs: options.Inputs,
    radius: options.Radius,
    ball: options.Ball,
    decision: options.Decision,
    method: Annotated[AttackMethod, typer.Option(help="which attack")] = AttackMethod.best,
    restarts: Annotated[int, typer.Option(help="random starts of projected gradient")] = 3,
    iterations: Annotated[int, typer.Option(help="steps from each start")] = 40,
    confirm: Annotated[
        bool, typer.Option(help="prove the other decision at the points found")
    ] = True,
    seed: Annotated[int, typer.Option(help="of the random starts")] = 0,
    *,
    files: Files,
    picture: Picture,
) -> None:
    """Look for another decision in a ball around each point, in plain floating point."""
    model, points = inputs.read()
    found = attack_all(
        model,
        points.X,
        radius_of(radius, model),
        method=method.value,
        **ball.arguments(model),
        **decision.arguments(model),
        restarts=restarts,
        iterations=iterations,
        confirm=confirm,
        random_state=seed,
    )
    result = replace(found, labels=points.labels)
    picture.draw(result)
    won, sure = int(result.success.sum()), int(result.confirmed.sum())
    summary = f"{len(result)} points: {won} successes, {sure} confirmed; a failure proves nothing"
    title = f"Attacks ({method.value}), l_{ball.norm} radius {radius}"
    files.report(
        result,
        title,
        COLUMNS,
        "decision new_decision before after success confirmed distance",
        summary,
    )
    raise typer.Exit(ExitCode.REFUTED if sure else ExitCode.UNDECIDED)
