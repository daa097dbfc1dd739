"""`gpcert certify`, `range` and `radius`: proofs around each point; `attack`, `safety`,
`robustness`, `accuracy` and `worst-case`: analyses of a model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gpcert
from gpcert.cli import options
from gpcert.cli.files import Points, load_model, read_labels
from gpcert.cli.reading import label_from_text, label_of, quantity_of, radii_of
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
Tolerance = Annotated[float | None, option("largest distance between both ends of a bound")]
Relative = Annotated[float | None, option("the same, relative to the size of the bound")]


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
    ball_radius: options.BallRadius,
    ball: options.Ball,
    decision: options.Decision,
    compared: options.Compared,
    search: options.Search,
    files: Files,
) -> None:
    """Prove or refute that the decision at each point holds in a whole ball around it."""
    ball_radius.required()
    model, points, arguments = inputs.read(ball_radius, ball, decision, compared, search)
    certificates = gpcert.certify_many(model, points.X, **arguments)
    columns = ["decision", "status", "margin >=", "margin <=", "moved by", "boxes", "ms"]
    summary = f"{len(certificates)} points: {certificates.summary}"
    title = f"Certificates, {ball.title(ball_radius)}"
    files.end(points.labelled(certificates), title, columns, _certificate, summary, code=exit_code)


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
    ball_radius: options.BallRadius,
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
    ball_radius.required()
    model, points, arguments = inputs.read(ball_radius, ball, search)
    parsed = quantity_of(quantity)
    results = gpcert.prediction_range_many(
        model,
        points.X,
        tol=tol,
        rtol=rtol,
        quantity=parsed,
        beta=beta,
        best_f=best_f,
        maximize=maximize,
        output=label_of(label, model, parsed),
        sides=sides,
        all_outputs=label is None and sides == "both",
        **arguments,
    )
    within = sum(item.converged for item in results)
    summary = f"{len(results)} ranges: {within} within the tolerance, {len(results) - within} wider"
    title = f"Prediction ranges, {ball.title(ball_radius)}"
    columns = ["output", "quantity", *ENDS, "boxes", "ms"]
    fields = "output quantity minimum maximum boxes ms"
    files.end(points.labelled(results), title, columns, fields, summary)


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
    model, points, arguments = inputs.read(ball, decision, compared, search)
    results = gpcert.certified_radius_many(
        model, points.X, rtol=rtol, max_radius=max_radius, **arguments
    )
    within = sum(item.reason is gpcert.StopReason.CONVERGED for item in results)
    summary = (
        f"{len(results)} radii: {within} within the tolerance {rtol:g}, "
        f"{len(results) - within} wider"
    )
    title = f"Certified radii, {ball.title()}"
    files.end(points.labelled(results), title, RADIUS_COLUMNS, radius_cells, summary)


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
    ball_radius: options.BallRadius,
    ball: options.Ball,
    decision: options.Decision,
    compared: options.Compared,
    method: Annotated[AttackName, option("which attack")] = "best",
    restarts: Annotated[int, option("random starts of projected gradient")] = 3,
    iterations: Annotated[int, option("steps from each start")] = 40,
    confirm: Annotated[bool, option("prove the other decision at the resulting points")] = True,
    seed: Annotated[int, option("seed of the random starts")] = 0,
    *,
    files: Files,
    picture: Picture,
) -> None:
    """Search for another decision in a ball around each point, in plain floating point."""
    ball_radius.required()
    model, points, arguments = inputs.read(ball_radius, ball, decision, compared)
    attacks = gpcert.attack(
        model,
        points.X,
        method=method,
        restarts=restarts,
        iterations=iterations,
        confirm=confirm,
        random_state=seed,
        **arguments,
    )
    result = replace(attacks, labels=points.labels)
    successes, confirmed = int(result.success.sum()), int(result.confirmed.sum())
    summary = (
        f"{len(result)} points: {successes} successes, {confirmed} confirmed; "
        "a failure proves nothing"
    )
    title = f"Attacks ({method}), {ball.title(ball_radius)}"
    columns = ["decision", "found", "before", "after", "success", "confirmed", "distance"]
    fields = "decision new_decision before after success confirmed distance"
    code = ExitCode.REFUTED if confirmed else ExitCode.UNDECIDED
    files.end(result, title, columns, fields, summary, picture, code=lambda table: code)


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
    point: Annotated[str | None, option("label of the point; the first one by default")] = None,
    label: options.Label = None,
    attack: Annotated[AttackName, option("which attack is shown")] = "gpfgs",
    tol: Tolerance = None,
    rtol: Relative = None,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
    typed: options.TypedOptions,
) -> None:
    """Bound a prediction in growing balls around one point, and attack it."""
    typed.without(["jobs"], "on one point")
    model, points, arguments = inputs.read(ball, decision, search)
    row = 0
    if point is not None:
        row = points.labels.index(label_from_text("--point", point, points.labels))
    del arguments["n_jobs"]
    result = gpcert.safety_curve(
        model,
        model.check_inputs(points.X)[row],
        radii_of(radii),
        output=label_of(label, model),
        attack=attack,
        tol=tol,
        rtol=rtol,
        **arguments,
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

    files.end(result, f"Safety, {ball.title()}", columns, shown, summary, picture)


@options.command(
    "robustness",
    "Examples:",
    "gpcert robustness model.npz points.csv --radius 0.1 --csv deltas.csv",
    "gpcert robustness laplace.npz points.csv --compare ep.npz --radii 0.05,0.1 --plot boxes.png",
    options.exits_within("ranges"),
)
def robustness(
    inputs: options.Inputs,
    ball_radius: options.BallRadius,
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
    """Bound the change of the prediction in a ball around each point."""
    model, points, arguments = inputs.read(ball_radius, ball, search)
    names = [path.stem for path in (inputs.model, *(compare or []))]
    if len(set(names)) < len(names):
        raise InputError(f"--compare: expected files of different names, got {names}")
    others = {path.stem: load_model(path) for path in compare or []}
    for name, other in others.items():  # points have the feature order of the first model
        if other.feature_names not in (None, model.feature_names):
            raise InputError(
                f"--compare: expected the features of {inputs.model.stem} in the same order, "
                f"{model.feature_names}, got {other.feature_names} of {name}"
            )
    deltas = gpcert.robustness(
        None if others else model,
        points.X,
        radii=None if radii is None else radii_of(radii),
        compare={inputs.model.stem: model, **others} if others else None,
        output=label_of(label, model),
        tol=tol,
        rtol=rtol,
        **arguments,
    )
    import numpy as np

    median = float(np.median(deltas.deltas())) if len(deltas) else 0.0
    summary = f"{len(deltas)} ranges: median delta at most {above(median)}"
    title = f"Robustness, {ball.title()}"
    columns = ["model", "radius", "delta >=", "delta <=", "boxes", "ms"]
    fields = "group setting delta boxes ms"
    files.end(points.labelled(deltas), title, columns, fields, summary, picture)


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
            "a file with one label per line, or a CSV of id,label with the ids of the points "
            "(regression: the target, optional)"
        ),
    ] = None,
    rtol: Annotated[float, option("relative accuracy of the radii")] = 0.01,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
) -> None:
    """Find the share of the points that are right and proved robust, for every radius."""
    model, points, arguments = inputs.read(ball, decision, search)
    y = None if labels is None else _labels(labels, model, points)
    arguments |= {"radii": radii_of(radii), "rtol": rtol}
    result = gpcert.certified_accuracy(model, points.X, y, **arguments)
    summary = f"{len(result)} points: {result.shares() or 'none was computed'}"
    title = f"Certified accuracy, {ball.title()}"
    columns = ["label", "decision", "right", "proved up to", "refuted at", "boxes", "ms"]
    files.end(points.labelled(result), title, columns, _test_point, summary, picture)


def _labels(path: Path, model: Model, points: Points) -> list[Any]:
    """Labels of the model from a file; numbers for a regression."""
    texts = read_labels(path, points, list(map(str, model.labels)))
    if not isinstance(model, gpcert.Committee) and not model.likelihood.classifies:
        try:
            return [float(label) for label in texts]
        except ValueError as error:
            raise InputError(f"{path}: expected numbers, one per line ({error})") from error
    return [label_from_text("--labels", label, model.labels) for label in texts]


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
    ball_radius: options.BallRadius,
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
    ball_radius.required()
    model, points, arguments = inputs.read(ball_radius, ball, search)
    arguments["output"] = label_of(label, model, "mean")
    result = gpcert.worst_case(model, points.X, beta=beta, tol=tol, rtol=rtol, **arguments)
    summary = f"{len(result)} points: a mean moves by at most {above(result.widest)}"
    title = f"Worst predictions, {ball.title(ball_radius)}"
    columns = ["mean", *ENDS, "band from", "band to"]
    fields = "mean minimum maximum band"
    files.end(points.labelled(result), title, columns, fields, summary, picture)
