"""`slope_ranges`, `certify_monotone`: what the slopes of a mean, of other predictions, and their
signs can be in a region.

Proofs: docs/mathematics.md, statements 19.1 19.8 and 19.13 to 19.16.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.boxes import bound_boxes
from gpcert.api.domain import domain_of
from gpcert.api.options import QuantityRequest, SearchOptions, SearchSettings, one_of, verb
from gpcert.api.questions import range_question
from gpcert.api.range_questions import owners_of, slopes_of
from gpcert.api.ranges import RangeGoals
from gpcert.api.regions import feature_number
from gpcert.api.running import progress_line, ranges_text, read_flag
from gpcert.certificates import (
    Interval,
    Monotonicity,
    MonotonicityTable,
    SlopeTable,
    Status,
)
from gpcert.errors import InputError
from gpcert.model.committee import Committee, Model
from gpcert.model.multi_output import Outputs
from gpcert.model.slopes import vanishes
from gpcert.numerics.arrays import PerFeature
from gpcert.numerics.rounding import add_down, add_up
from gpcert.quantities.slope import SLOPES_OF
from gpcert.regions import Ball, Box, Polytope, Region
from gpcert.search import Budget, GoalResult, Progress, StopReason, solve

CURVED = ("convex", "concave")

STEPS = 12
"""Halvings of the distance at which a second point is looked for beside one with a wrong slope."""

DIRECTIONS = {"+": (1, 1), "-": (1, -1), "convex": (2, 1), "concave": (2, -1)}
"""What may be asked of a feature: the order of the derivative, and the sign that is wanted."""

BELOW_ZERO = -5e-324
"""The largest float below 0: a slope above it is >= 0."""


@verb
def slope_ranges(
    model: Any,
    bounds: Any,
    features: Any = None,
    *,
    quantity: str = "mean",
    output: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Unpack[SearchOptions],
) -> SlopeTable:
    """The proved range of the partial derivative of a mean or another prediction in every feature,
    over a region.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts. Of a classifier the slopes
        are those of the latent mean (of a support vector machine the decision function), which
        decides; of several outputs or classes `output` names one.
    bounds, fixed : the region, as in `maximize`.
    features : names or numbers of the features asked about; by default all that do not hold
        categories. A feature that the region holds fixed has a slope there, too.
    quantity : what has the slopes: "mean", of two classes the "probability" of the second, or "std"
        or "variance" (stationary kernels).
    tol, rtol : as in `prediction_range`; by default within 0.01 standard deviations of the slope's
        own values at the model's points.
    budget, backend, random_state, method, variance_bound, progress : as in `prediction_range`. One
        search answers for all features.

    Kernels: squared exponential, Matern (nu >= 1.5), rational quadratic, linear, polynomial,
    constant, and sums, products and parts of the inputs of these.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0])
    >>> slopes = gpcert.slope_ranges(bump, [(0.5, 1.0), (-0.5, 0.5)], tol=1e-3)
    >>> slopes.signs  # falls with the first feature; of the second both signs occur
    {0: '-', 1: '+-'}
    """
    start, posterior = time.perf_counter(), of_means(as_posterior(model))
    region = domain_of(posterior, bounds, fixed)
    numbers = _features(posterior, features)
    index = output_number(posterior, output)
    one_of("quantity", quantity, SLOPES_OF)
    settings, accuracy = SearchSettings.read(options), Accuracy.read(tol, rtol)
    question = slopes_of(posterior, axes(posterior, numbers), index, quantity)
    goals = RangeGoals.of_all(question)
    with progress_line(options.get("progress")) as line:
        progress = Progress(start, lambda state: line.show(ranges_text(state)))
        stop: dict[str, Any] = {"tol": accuracy.of(goals), "progress": progress}
        result = solve(settings.problem(question.model, region, goals.quantities, **stop))
    names, zero, rows = _names(posterior, numbers), Interval(0.0, 0.0), []
    ranges = goals.records(result, region, settings)
    for row, name, j, meaning in zip(ranges, names, numbers, question.meanings, strict=True):
        known = {"minimum": zero, "maximum": zero} if vanishes(posterior, j, index) else {}
        about = {"output": label_of(posterior, output), "model": posterior.fingerprint} | known
        rows.append(replace(row, quantity="slope", meaning=f"{meaning} in {name!r}", **about))
    return SlopeTable(tuple(rows), result.reason is not StopReason.INTERRUPTED, names)


@verb
def certify_monotone(
    model: Any,
    bounds: Any,
    features: Any,
    *,
    quantity: str = "mean",
    output: Any = None,
    all_outputs: bool = False,
    fixed: Mapping[Any, Any] | None = None,
    **options: Unpack[SearchOptions],
) -> MonotonicityTable:
    """Prove or refute that the mean, or the predicted probability, never falls, or never rises, as
    a feature grows.

    Parameters
    ----------
    model, bounds, fixed, output : as in `slope_ranges`. The region is convex: a box, a ball or a
        polytope. Of a classifier the latent mean is meant (of a support vector machine the decision
        function): where it never falls, the decision never goes back from the second class, nor do
        Platt's probabilities of a support vector machine, which rise with that function.
    features : `{"age": "+", "bmi": "-"}`: "+" asks whether the mean never falls as the feature
        grows and the others stay, "-" whether it never rises; "convex" and "concave" ask how it
        bends along the feature (kernels with second derivatives; of the mean alone).
    quantity : "mean", or of two classes the "probability" of the second, which depends on the
        variance, too; or "std" or "variance" (these of stationary kernels).
    all_outputs : of several outputs or classes ask about every one; the labels of the rows are then
        "output: feature".
    budget, ... : as in `prediction_range`, for all features together.

    A verdict that refutes has two points of the region with proved values in the wrong order, or of
    curvature three, the value in the middle on the wrong side of the chord.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0])
    >>> table = gpcert.certify_monotone(bump, [(0.5, 1.0), (-0.5, 0.5)], {0: "-", 1: "+"})
    >>> [row.status.name for row in table]
    ['ROBUST', 'NOT_ROBUST']
    >>> first, second = table[1].values  # at growing values of feature 1
    >>> first.lower > second.upper
    True
    """
    start, posterior = time.perf_counter(), of_means(as_posterior(model))
    region = convex(domain_of(posterior, bounds, fixed), "certify_monotone")
    asked = _directions(posterior, features)
    for name, j in zip(features, asked, strict=True):
        if region.lower[j] == region.upper[j]:
            raise InputError(
                f"features: {name!r} is held fixed by the region, so that nothing can be said of "
                "how the mean changes with it; expected a region in which it moves"
            )
    if read_flag("all_outputs", all_outputs) and output is not None:
        raise InputError(f"output: expected none beside all_outputs=True, got {output!r}")
    owners = owners_of(posterior)
    indices = range(len(owners)) if all_outputs else [output_number(posterior, output)]
    one_of("quantity", quantity, SLOPES_OF)
    if quantity != "mean" and set(asked.values()) & set(CURVED):
        raise InputError(
            f"features: 'convex' and 'concave' are known of quantity='mean', got {quantity!r}"
        )
    settings, names = SearchSettings.read(options), _names(posterior, list(asked))
    pairs = [(c, *each) for c in indices for each in zip(names, asked.items(), strict=True)]
    labels = [f"{owners[c].label}: {n}" if len(indices) > 1 else n for c, n, _ in pairs]
    rows, complete = [], True
    with progress_line(options.get("progress")) as line:
        progress = Progress(time.perf_counter(), lambda state: line.show(ranges_text(state)))
        ends = settings.budget.ends(start)
        for done, (index, name, (j, direction)) in enumerate(pairs):
            begun = time.perf_counter()
            share = max(ends - begun, 1e-3) / (len(pairs) - done)
            limits = replace(settings.budget, seconds=share if math.isfinite(share) else None)
            order, sign = DIRECTIONS[direction]
            question = slopes_of(posterior, axes(posterior, [j]), index, quantity, order)
            when = {"tol": 0.0, "target": BELOW_ZERO, "progress": replace(progress, start=begun)}
            each = replace(settings, budget=limits)
            result = solve(each.problem(question.model, region, [question.asked(0, sign)], **when))
            (goal,) = result.goals
            if vanishes(posterior, j, index):  # no rounding: it is 0
                goal = GoalResult(0.0, 0.0, goal.point)
            place = index + (quantity == "probability")  # that of the second class
            what, along = (quantity, place), (j, order, sign)
            refutation = _counterexample(goal, posterior, what, along, region)
            rows.append(
                Monotonicity(
                    status=_verdict(goal, region, refutation["pair"]),
                    feature=name,
                    direction=direction,
                    slope=Interval(goal.lower, goal.upper),
                    point=goal.point,
                    **refutation,
                    region=region.describe(),
                    meaning=question.meanings[0].partition(" of the ")[2],
                    reason=result.reason,
                    boxes=result.boxes,
                    seconds=result.seconds,
                    method=settings.method.name,
                    model=posterior.fingerprint,
                )
            )
            if result.reason is StopReason.INTERRUPTED:
                complete = done + 1 == len(pairs)
                break
    return MonotonicityTable(tuple(rows), complete, tuple(labels[: len(rows)]))


def of_means(model: Model) -> Outputs:
    """A model whose means are functions by themselves."""
    if isinstance(model, Committee):
        raise InputError(
            "model: a one-vs-rest or one-vs-one classifier has several latent functions; ask about "
            "one of as_posterior(model).members"
        )
    return model


def output_number(model: Outputs, output: Any) -> int:
    """The number of the output that a label names, by default of the only one."""
    return range_question(model, QuantityRequest("mean")).index(output)


def label_of(model: Outputs, output: Any) -> Any:
    """What records call the output."""
    question = range_question(model, QuantityRequest("mean"))
    return question.labels[question.index(output)]


def meaning_of(model: Outputs, index: int) -> str:
    """The mean of an output, in words."""
    return range_question(model, QuantityRequest("mean")).meanings[index]


def _features(model: Outputs, features: Any) -> list[int]:
    """Numbers of the features that are asked about."""
    if features is None:
        return [j for j in range(model.dim) if j not in model.levels]
    several = not isinstance(features, str) and np.ndim(features) > 0
    labels = list(features) if several or isinstance(features, Mapping) else [features]
    numbers = [feature_number(model, "features", label) for label in labels]
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"features: expected one or several different ones, got {features!r}")
    return numbers


def _directions(model: Outputs, features: Any) -> dict[int, str]:
    """The wanted direction of every feature that is asked about."""
    if not isinstance(features, Mapping) or not features:
        raise InputError(
            'features: expected {feature: direction}, as in {"age": "+", "bmi": "-"}, got '
            f"{features!r}"
        )
    numbers = [feature_number(model, "features", label) for label in features]
    wrong = [each for each in features.values() if each not in tuple(DIRECTIONS)]
    if wrong or len(set(numbers)) < len(numbers):
        raise InputError(
            f"features: expected one of {', '.join(map(repr, DIRECTIONS))} for each of different "
            f"features, got {features!r}"
        )
    return dict(zip(numbers, features.values(), strict=True))


def axes(model: Outputs, numbers: Sequence[int]) -> list[np.ndarray]:
    """The directions of these features."""
    return [np.eye(model.dim)[j] for j in numbers]


def _names(model: Outputs, numbers: Sequence[int]) -> tuple[Any, ...]:
    names = model.feature_names
    return tuple(j if names is None else names[j] for j in numbers)


def convex(region: Region, name: str) -> Region:
    """A region in which the segment between two points lies."""
    if isinstance(region, Box | Ball | Polytope):
        return region
    raise InputError(
        f"region: {name} is about segments between points, so it expects a gpcert.Box, Ball or "
        f"Polytope, got {type(region).__name__}; ask about the box around it"
    )


def _verdict(goal: GoalResult, region: Region, pair: np.ndarray) -> Status:
    """A polytope may have no interior: there two points must show it (Statement 19.8)."""
    if goal.lower >= 0:
        return Status.ROBUST
    refuted = goal.upper < 0 and not (isinstance(region, Polytope) and not len(pair))
    return Status.NOT_ROBUST if refuted else Status.UNKNOWN


def _counterexample(
    goal: GoalResult,
    model: Outputs,
    what: tuple[str, int],
    along: tuple[int, int, int],
    region: Region,
) -> dict[str, Any]:
    """Points beside that of the goal, along the feature, whose proved values show what is wrong:
    two in the wrong order, or three with the middle on the wrong side of the chord."""
    feature, order, sign = along
    nothing: dict[str, Any] = {"pair": np.empty((0, model.dim)), "values": ()}
    if goal.upper >= 0 or goal.point is None:
        return nothing
    groups = (_pairs if order == 1 else _triples)(goal.point, feature, region)
    if not groups:
        return nothing
    points = np.array(groups).reshape(-1, model.dim)
    limits = Budget(seconds=10.0)
    name: Any = what[0]
    bounds = bound_boxes(model, points, points, quantity=name, budget=limits, progress=False)
    ends = bounds[name][:, what[1]].reshape(-1, order + 1, 2)  # of the points, lower and upper
    low, high = (ends[:, :, 0], ends[:, :, 1]) if sign > 0 else (-ends[:, :, 1], -ends[:, :, 0])
    if order == 1:
        gaps = low[:, 0] - high[:, 1]
    else:
        gaps = add_down(2.0 * low[:, 1], -np.asarray(add_up(high[:, 0], high[:, 2])))
    best = int(np.argmax(np.where(np.isfinite(gaps), gaps, -np.inf)))
    if not gaps[best] > 0:
        return nothing
    values = tuple(Interval(float(least), float(most)) for least, most in ends[best])
    return {"pair": np.array(groups[best]), "values": values}


def _pairs(x: PerFeature, feature: int, region: Region) -> list[list[PerFeature]]:
    """x and another point on either side, in the order of the feature."""
    pairs = []
    for side, end in ((1.0, region.upper[feature]), (-1.0, region.lower[feature])):
        room = abs(end - x[feature])
        for step in room * 2.0 ** -np.arange(STEPS):
            other = x.copy()
            other[feature] = np.clip(x[feature] + side * step, *sorted((x[feature], end)))
            if other[feature] != x[feature] and bool(region.contains(other[None])[0]):
                pairs.append([x, other] if side > 0 else [other, x])
    return pairs


def _triples(x: PerFeature, feature: int, region: Region) -> list[list[PerFeature]]:
    """Three points with x, or what is nearest to it, exactly in the middle."""
    low, high = float(region.lower[feature]), float(region.upper[feature])
    triples = []
    for step in (high - low) * 2.0 ** -np.arange(1.0, STEPS):
        middle = float(np.clip(x[feature], low + step, high - step))
        triple = []
        for value in (middle - step, middle, middle + step):
            other = x.copy()
            other[feature] = value
            triple.append(other)
        first, at, last = (Fraction(float(each[feature])) for each in triple)
        if (
            first + last == 2 * at
            and first < at
            and bool(np.all(region.contains(np.array(triple))))
        ):
            triples.append(triple)
    return triples
