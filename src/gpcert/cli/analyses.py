"""`gpcert attack`, `safety`, `robustness`, `accuracy` and `worst-case`: analyses of a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import RenderableType

from gpcert import analyses as verbs
from gpcert.analyses import SafetyStep
from gpcert.analyses.accuracy import TestPoint
from gpcert.attacks import AttackName
from gpcert.cli import options
from gpcert.cli.files import load_model
from gpcert.cli.options import command, exits_within, label_of, named, radii_of, radius_of
from gpcert.cli.results import ENDS, Files, Picture
from gpcert.cli.terminal import ExitCode, above, below, cells, option
from gpcert.committee import Committee, Model
from gpcert.errors import InputError

Radii = Annotated[str, option("radii, as in 0.1,0.2 or first:last:count as in 0:0.5:11")]
Tolerance = Annotated[float, option("accuracy at which a search ends")]


@command(
    "attack",
    "Examples:",
    "gpcert attack model.npz points.csv --radius 0.1",
    "gpcert attack digits.joblib images.csv --radius 0.05 --domain 0,1 --method gpfgs "
    "--csv attacks.csv",
    "gpcert attack regressor.npz points.csv --radius 0.1 --delta 0.5 --plot attacks.png",
    "Exit code: 1 some counter-examples found and confirmed; 2 none (which proves nothing); 3 bad "
    "input; 4 a defect.",
)
def attack(
    inputs: options.Inputs,
    radius: options.Radius,
    ball: options.Ball,
    decision: options.Decision,
    method: Annotated[AttackName, option("which attack")] = "best",
    restarts: Annotated[int, option("random starts of projected gradient")] = 3,
    iterations: Annotated[int, option("steps from each start")] = 40,
    confirm: Annotated[bool, option("prove the other decision at the points found")] = True,
    seed: Annotated[int, option("of the random starts")] = 0,
    *,
    files: Files,
    picture: Picture,
) -> None:
    """Look for another decision in a ball around each point, in plain floating point."""
    model, points, words = inputs.read(ball, decision)
    found = verbs.attack(
        model,
        points.X,
        radius_of(radius, model),
        method=method,
        restarts=restarts,
        iterations=iterations,
        confirm=confirm,
        random_state=seed,
        **words,
    )
    result = replace(found, labels=points.labels)
    won, sure = int(result.success.sum()), int(result.confirmed.sum())
    summary = f"{len(result)} points: {won} successes, {sure} confirmed; a failure proves nothing"
    title = f"Attacks ({method}), l_{ball.norm} radius {radius}"
    columns = ["decision", "found", "before", "after", "success", "confirmed", "distance"]
    shown = "decision new_decision before after success confirmed distance"
    code = ExitCode.REFUTED if sure else ExitCode.UNDECIDED
    files.end(result, title, columns, shown, summary, picture, code=lambda table: code)


@command(
    "safety",
    "Examples:",
    "gpcert safety model.npz points.csv --radii 0:0.5:11 --plot safety.png",
    "gpcert safety model.npz points.csv --point 3 --radii 0.1,0.2,0.4 --attack best "
    "--csv curve.csv",
    exits_within("bounds"),
)
def safety(
    inputs: options.Inputs,
    radii: Radii,
    ball: options.Ball,
    decision: options.Decision,
    point: Annotated[str | None, option("which point, by its label; the first by default")] = None,
    label: options.Label = None,
    attack: Annotated[AttackName, option("which attack is shown")] = "gpfgs",
    tol: Tolerance = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Bound a prediction in growing balls around one point, beside an attack."""
    model, points, words = inputs.read(ball, decision, search)
    row = 0
    if point is not None:
        row = points.labels.index(named("--point", point, points.labels))
    del words["n_jobs"]  # one point
    result = verbs.safety_curve(
        model,
        model.check_inputs(points.X)[row],
        radii_of(radii),
        output=label_of(label, model),
        attack=attack,
        tol=tol,
        **words,
    )
    safe, broken = (
        "none of the radii" if radius is None else radius
        for radius in (result.safe_up_to, result.first_unsafe)
    )
    summary = (
        f"point {points.labels[row]}: proved safe up to {safe}, first counter-example at {broken}"
    )
    columns = ["radius", *ENDS, "attack", "verdict"]

    def shown(step: SafetyStep) -> list[RenderableType]:
        return [f"{step.radius:g}", *cells(step, "minimum maximum attack status")]

    files.end(result, f"Safety, l_{ball.norm} balls", columns, shown, summary, picture)


@command(
    "robustness",
    "Examples:",
    "gpcert robustness model.npz points.csv --radius 0.1 --csv deltas.csv",
    "gpcert robustness laplace.npz points.csv --compare ep.npz --radii 0.05,0.1 --plot boxes.png",
    exits_within("ranges"),
)
def robustness(
    inputs: options.Inputs,
    ball: options.Ball,
    radius: options.OptionalRadius = None,
    radii: Annotated[
        str | None, option("several radii, as in 0.1,0.2 or first:last:count as in 0:0.5:11")
    ] = None,
    label: options.Label = None,
    compare: Annotated[
        list[Path] | None, option("another model file to compare with; may be repeated")
    ] = None,
    tol: Tolerance = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Bound how far the prediction can move in a ball around each point."""
    model, points, words = inputs.read(ball, search)
    others = {path.stem: load_model(path) for path in compare or []}
    found = verbs.robustness(
        None if others else model,
        points.X,
        None if radius is None else radius_of(radius, model),
        radii=None if radii is None else radii_of(radii),
        compare={inputs.model.stem: model, **others} if others else None,
        output=label_of(label, model),
        tol=tol,
        **words,
    )
    median = float(np.median(found.deltas())) if len(found) else 0.0
    summary = f"{len(found)} ranges: median delta at most {above(median)}"
    title = f"Robustness, l_{ball.norm} balls"
    columns = ["model", "radius", "delta >=", "delta <=", "boxes", "ms"]
    shown = "group setting delta boxes ms"
    files.end(points.named(found), title, columns, shown, summary, picture)


@command(
    "accuracy",
    "Examples:",
    "gpcert accuracy model.npz points.csv --labels labels.csv --radii 0:0.5:11 --plot accuracy.png",
    "gpcert accuracy digits.joblib images.csv --labels digits.csv --radii 0.05,0.1 --domain 0,1 "
    "--jobs 2",
    exits_within("radii", "their bounds"),
)
def accuracy(
    inputs: options.Inputs,
    radii: Radii,
    ball: options.Ball,
    decision: options.Decision,
    labels: Annotated[
        Path | None,
        option("a file with one label a line (regression: the target, may be left out)"),
    ] = None,
    rtol: Annotated[float, option("relative accuracy of the radii")] = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Find the share of the points that are right and proved robust, for every radius."""
    model, points, words = inputs.read(ball, decision, search)
    given = None if labels is None else _labels(labels, model, len(points.X))
    found = verbs.certified_accuracy(model, points.X, given, radii_of(radii), rtol=rtol, **words)
    shares = zip(found.radii, found.certified(), found.attacked(), strict=True)
    summary = f"{found.accuracy:.4g} right; right and robust: " + "; ".join(
        f"{below(low)} to {above(high)} at {radius:g}" for radius, low, high in shares
    )
    title = f"Certified accuracy, l_{ball.norm}"
    columns = ["label", "decision", "right", "proved up to", "refuted at", "boxes", "ms"]
    files.end(points.named(found), title, columns, _test_point, summary, picture)


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
    return [named("--labels", line, model.labels) for line in lines]


def _test_point(row: TestPoint) -> list[RenderableType]:
    radius = [below(row.lower), above(row.upper)] if row.right else ["", ""]
    right = "yes" if row.right else "no"
    return [*cells(row, "label decision"), right, *radius, *cells(row, "boxes ms")]


@command(
    "worst-case",
    "Examples:",
    "gpcert worst-case regressor.npz points.csv --radius 0.1",
    "gpcert worst-case regressor.npz points.csv --radius bmi=0.02 --beta 3 --plot worst.png",
    exits_within("ranges"),
)
def worst_case(
    inputs: options.Inputs,
    radius: options.Radius,
    ball: options.Ball,
    beta: Annotated[float, option("standard deviations that the band reaches")] = 2.0,
    label: options.Label = None,
    tol: Tolerance = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Bound a regression's least and greatest mean, and its credible band, around each point."""
    model, points, words = inputs.read(ball, search)
    words |= {"radius": radius_of(radius, model), "output": label_of(label, model, "mean")}
    found = verbs.worst_case(model, points.X, beta=beta, tol=tol, **words)
    widest = max((row.maximum.upper - row.minimum.lower for row in found), default=0.0)
    summary = f"{len(found)} points: a mean moves by at most {above(widest)}"
    title = f"Worst predictions, l_{ball.norm} radius {radius}"
    columns = ["mean", *ENDS, "band from", "band to"]
    shown = "mean minimum maximum band"
    files.end(points.named(found), title, columns, shown, summary, picture)
