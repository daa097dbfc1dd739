"""`gpcert certify`, `range` and `radius`: what is proved around each point; `attack`, `safety`,
`robustness`, `accuracy` and `worst-case`: analyses of a model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gpcert
from gpcert.cli import options
from gpcert.cli.files import Points, load_model, read_labels
from gpcert.cli.reading import label_of, named, quantity_of, radii_of
from gpcert.cli.results import ENDS, Files, Picture
from gpcert.cli.terminal import ExitCode, above, below, cells, exit_code, option
from gpcert.errors import InputError
from gpcert.utils.option_names import AttackName, Sides

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpcert.analyses import SafetyStep
    from gpcert.analyses.accuracy import TestPoint
    from gpcert.model.committee import Model

Radii = Annotated[str, option("radii, as in 0.1,0.2 or first:last:count as in 0:0.5:11")]
Tolerance = Annotated[float | None, option("how near both ends of a bound must be")]
Relative = Annotated[float | None, option("the same, as a part of what is bounded")]


@options.command(
    "certify",
    "Examples:",
    "gpcert certify model.npz points.csv --radius 0.1",
    "gpcert certify digits.joblib images.csv --radius 0.05 --domain 0,1 --jobs 4 "
    "--output results.json",
    "gpcert certify model.npz points.csv --radius 0.2 --norm 2 --features age,bmi --threshold 0.9",
    "gpcert certify regressor.npz - --radius 0.1 --delta 0.5 --csv - < points.csv",
    "Exit code: 0 all proved; 1 some refuted; 2 none refuted, some undecided; 3 bad input; 4 a "
    "defect.",
)
def certify(
    inputs: options.Inputs,
    reach: options.Reach,
    ball: options.Ball,
    decision: options.Decision,
    compared: options.Compared,
    search: options.Search,
    files: Files,
) -> None:
    """Prove or refute that the decision at each point holds in a whole ball around it."""
    reach.required()
    model, points, words = inputs.read(reach, ball, decision, compared, search)
    found = gpcert.certify_many(model, points.X, **words)
    columns = ["decision", "status", "margin >=", "margin <=", "moved by", "boxes", "ms"]
    summary = f"{len(found)} points: {found.summary}"
    title = f"Certificates, {ball.told(reach)}"
    files.end(points.named(found), title, columns, _certificate, summary, code=exit_code)


def _certificate(c: gpcert.Certificate) -> list[RenderableType]:
    moved = "" if c.counterexample is None else f"{c.counterexample_distance:.4g}"
    return [*cells(c, "decision status margin"), moved, *cells(c, "boxes ms")]


@options.command(
    "range",
    "Examples:",
    "gpcert range model.npz points.csv --radius 0.1",
    "gpcert range model.npz points.csv --radius 0.1 --quantity variance --tol 0.001",
    "gpcert range regressor.npz points.csv --radius 0.1 --quantity band --beta 2",
    "gpcert range digits.joblib images.csv --radius 0.05 --domain 0,1 --class 8 --csv ranges.csv",
    options.exits_within("ranges", "their bounds"),
)
def ranges(
    inputs: options.Inputs,
    reach: options.Reach,
    ball: options.Ball,
    quantity: Annotated[
        str | None,
        option(
            "mean, variance, std, band, lcb, ucb, ei, log_ei, pi, log_pi, response (the default of "
            "positive links) or probability (that of classifiers); "
            "module:NAME, a Quantity object of your own"
        ),
    ] = None,
    beta: Annotated[
        float | None, option("standard deviations of a band, lcb or ucb; 2 by default")
    ] = None,
    best_f: options.BestValue = None,
    maximize: options.LargeValues = None,
    label: options.Label = None,
    sides: Annotated[
        Sides, option("search for one end only (with one output, or --class)")
    ] = "both",
    tol: Tolerance = None,
    rtol: Relative = None,
    *,
    search: options.Search,
    files: Files,
) -> None:
    """Bound the smallest and the largest prediction in a ball around each point."""
    reach.required()
    model, points, words = inputs.read(reach, ball, search)
    asked = quantity_of(quantity)
    found = gpcert.prediction_range_many(
        model,
        points.X,
        tol=tol,
        rtol=rtol,
        quantity=asked,
        beta=beta,
        best_f=best_f,
        maximize=maximize,
        output=label_of(label, model, asked),
        sides=sides,
        all_outputs=label is None and sides == "both",
        **words,
    )
    met = sum(item.converged for item in found)
    summary = f"{len(found)} ranges: {met} within the tolerance, {len(found) - met} wider"
    title = f"Prediction ranges, {ball.told(reach)}"
    columns = ["output", "quantity", *ENDS, "boxes", "ms"]
    shown = "output quantity minimum maximum boxes ms"
    files.end(points.named(found), title, columns, shown, summary)


@options.command(
    "radius",
    "Examples:",
    "gpcert radius model.npz points.csv",
    "gpcert radius digits.joblib images.csv --domain 0,1 --rtol 0.05 --seconds 20 "
    "--output radii.json",
    options.exits_within("radii", "their bounds"),
)
def radius(
    inputs: options.Inputs,
    ball: options.Ball,
    decision: options.Decision,
    compared: options.Compared,
    max_radius: Annotated[
        float | None, option("radius at which the search for a counter-example ends")
    ] = None,
    rtol: Annotated[float, option("relative accuracy at which the search ends")] = 0.01,
    *,
    search: options.Search,
    files: Files,
) -> None:
    """Bracket the radius up to which the decision at each point is proved robust."""
    model, points, words = inputs.read(ball, decision, compared, search)
    found = gpcert.certified_radius_many(model, points.X, rtol=rtol, max_radius=max_radius, **words)
    met = sum(item.reason is gpcert.StopReason.CONVERGED for item in found)
    summary = f"{len(found)} radii: {met} within the tolerance {rtol:g}, {len(found) - met} wider"
    title = f"Certified radii, {ball.told()}"
    files.end(points.named(found), title, RADIUS_COLUMNS, radius_cells, summary)


RADIUS_COLUMNS = ["decision", "proved up to", "refuted at", "ratio", "boxes", "ms"]


def radius_cells(item: gpcert.Radius) -> list[RenderableType]:
    """Proved radius, distance of the known counter-example, their ratio, cost."""
    return [
        *cells(item, "decision"),
        below(item.lower),
        above(item.upper) if item.counterexample is not None else "none found",
        below(item.lower / item.upper) if 0 < item.upper < math.inf else "",
        *cells(item, "boxes ms"),
    ]


@options.command(
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
    reach: options.Reach,
    ball: options.Ball,
    decision: options.Decision,
    compared: options.Compared,
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
    reach.required()
    model, points, words = inputs.read(reach, ball, decision, compared)
    found = gpcert.attack(
        model,
        points.X,
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
    title = f"Attacks ({method}), {ball.told(reach)}"
    columns = ["decision", "found", "before", "after", "success", "confirmed", "distance"]
    shown = "decision new_decision before after success confirmed distance"
    code = ExitCode.REFUTED if sure else ExitCode.UNDECIDED
    files.end(result, title, columns, shown, summary, picture, code=lambda table: code)


@options.command(
    "safety",
    "Examples:",
    "gpcert safety model.npz points.csv --radii 0:0.5:11 --plot safety.png",
    "gpcert safety model.npz points.csv --point 3 --radii 0.1,0.2,0.4 --attack best "
    "--csv curve.csv",
    options.exits_within("bounds"),
)
def safety(
    inputs: options.Inputs,
    radii: Radii,
    ball: options.Ball,
    decision: options.Decision,
    point: Annotated[str | None, option("which point, by its label; the first by default")] = None,
    label: options.Label = None,
    attack: Annotated[AttackName, option("which attack is shown")] = "gpfgs",
    tol: Tolerance = None,
    rtol: Relative = None,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
    given: options.Given,
) -> None:
    """Bound a prediction in growing balls around one point, beside an attack."""
    given.without(["jobs"], "on one point")
    model, points, words = inputs.read(ball, decision, search)
    row = 0
    if point is not None:
        row = points.labels.index(named("--point", point, points.labels))
    del words["n_jobs"]
    result = gpcert.safety_curve(
        model,
        model.check_inputs(points.X)[row],
        radii_of(radii),
        output=label_of(label, model),
        attack=attack,
        tol=tol,
        rtol=rtol,
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

    files.end(result, f"Safety, {ball.told()}", columns, shown, summary, picture)


@options.command(
    "robustness",
    "Examples:",
    "gpcert robustness model.npz points.csv --radius 0.1 --csv deltas.csv",
    "gpcert robustness laplace.npz points.csv --compare ep.npz --radii 0.05,0.1 --plot boxes.png",
    options.exits_within("ranges"),
)
def robustness(
    inputs: options.Inputs,
    reach: options.Reach,
    ball: options.Ball,
    radii: Annotated[
        str | None, option("several radii, as in 0.1,0.2 or first:last:count as in 0:0.5:11")
    ] = None,
    label: options.Label = None,
    compare: Annotated[
        list[Path] | None, option("another model file to compare with; may be repeated")
    ] = None,
    tol: Tolerance = None,
    rtol: Relative = None,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Bound how far the prediction can move in a ball around each point."""
    model, points, words = inputs.read(reach, ball, search)
    names = [path.stem for path in (inputs.model, *(compare or []))]
    if len(set(names)) < len(names):
        raise InputError(f"--compare: expected files of different names, got {names}")
    others = {path.stem: load_model(path) for path in compare or []}
    for name, other in others.items():  # the points are in the first model's order
        if other.feature_names not in (None, model.feature_names):
            raise InputError(
                f"--compare: expected the features of {inputs.model.stem} in the same order, "
                f"{model.feature_names}, got {other.feature_names} of {name}"
            )
    found = gpcert.robustness(
        None if others else model,
        points.X,
        radii=None if radii is None else radii_of(radii),
        compare={inputs.model.stem: model, **others} if others else None,
        output=label_of(label, model),
        tol=tol,
        rtol=rtol,
        **words,
    )
    import numpy as np

    median = float(np.median(found.deltas())) if len(found) else 0.0
    summary = f"{len(found)} ranges: median delta at most {above(median)}"
    title = f"Robustness, {ball.told()}"
    columns = ["model", "radius", "delta >=", "delta <=", "boxes", "ms"]
    shown = "group setting delta boxes ms"
    files.end(points.named(found), title, columns, shown, summary, picture)


@options.command(
    "accuracy",
    "Examples:",
    "gpcert accuracy model.npz points.csv --labels labels.csv --radii 0:0.5:11 --plot accuracy.png",
    "gpcert accuracy digits.joblib images.csv --labels digits.csv --radii 0.05,0.1 --domain 0,1 "
    "--jobs 2",
    options.exits_within("radii", "their bounds"),
)
def accuracy(
    inputs: options.Inputs,
    radii: Radii,
    ball: options.Ball,
    decision: options.Decision,
    labels: Annotated[
        Path | None,
        option(
            "a file with one label a line, or a CSV of id,label, whose ids are those of the points "
            "(regression: the target, may be left out)"
        ),
    ] = None,
    rtol: Annotated[float, option("relative accuracy of the radii")] = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Find the share of the points that are right and proved robust, for every radius."""
    model, points, words = inputs.read(ball, decision, search)
    given = None if labels is None else _labels(labels, model, points)
    words |= {"radii": radii_of(radii), "rtol": rtol}
    found = gpcert.certified_accuracy(model, points.X, given, **words)
    summary = f"{len(found)} points: {found.shares() or 'none was reached'}"
    title = f"Certified accuracy, {ball.told()}"
    columns = ["label", "decision", "right", "proved up to", "refuted at", "boxes", "ms"]
    files.end(points.named(found), title, columns, _test_point, summary, picture)


def _labels(path: Path, model: Model, points: Points) -> list[Any]:
    """The labels of a file as those of the model; numbers of a regression."""
    found = read_labels(path, points, list(map(str, model.labels)))
    if not isinstance(model, gpcert.Committee) and not model.likelihood.classifies:
        try:
            return [float(label) for label in found]
        except ValueError as error:
            raise InputError(f"{path}: expected numbers, one per line ({error})") from error
    return [named("--labels", label, model.labels) for label in found]


def _test_point(row: TestPoint) -> list[RenderableType]:
    radius = [below(row.lower), above(row.upper)] if row.right else ["", ""]
    right = "yes" if row.right else "no"
    return [*cells(row, "label decision"), right, *radius, *cells(row, "boxes ms")]


@options.command(
    "worst-case",
    "Examples:",
    "gpcert worst-case regressor.npz points.csv --radius 0.1",
    "gpcert worst-case regressor.npz points.csv --radius bmi=0.02 --beta 3 --plot worst.png",
    options.exits_within("ranges"),
)
def worst_case(
    inputs: options.Inputs,
    reach: options.Reach,
    ball: options.Ball,
    beta: Annotated[float, option("standard deviations that the band reaches")] = 2.0,
    label: options.Label = None,
    tol: Tolerance = None,
    rtol: Relative = None,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Bound a regression's least and greatest mean, and its credible band, around each point."""
    reach.required()
    model, points, words = inputs.read(reach, ball, search)
    words["output"] = label_of(label, model, "mean")
    found = gpcert.worst_case(model, points.X, beta=beta, tol=tol, rtol=rtol, **words)
    summary = f"{len(found)} points: a mean moves by at most {above(found.widest)}"
    title = f"Worst predictions, {ball.told(reach)}"
    columns = ["mean", *ENDS, "band from", "band to"]
    shown = "mean minimum maximum band"
    files.end(points.named(found), title, columns, shown, summary, picture)
