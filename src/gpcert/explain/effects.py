"""`effects`: how much a feature raises or lowers a prediction, as proved intervals.

Proofs: docs/mathematics.md, statement 15.1.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.options import QuantityLike, QuantityRequest, TableOptions, verb
from gpcert.api.questions import range_question
from gpcert.api.range_questions import RangeQuestion
from gpcert.api.regions import RegionSpecification
from gpcert.api.running import Line, progress_line
from gpcert.certificates import Interval
from gpcert.certificates.record import Searched
from gpcert.certificates.text import MAX_ROWS, TextTable, above, interval_text
from gpcert.errors import InputError
from gpcert.explain.arguments import feature_labels, features_seen, read_labelled_points, read_moves
from gpcert.explain.attribution import PerFeature
from gpcert.explain.sides import Effort, Intervals, Sides, one_sided_ranges
from gpcert.model.committee import Model
from gpcert.numerics.rounding import TINY, gamma
from gpcert.search import StopReason
from gpcert.utils.optional_imports import optional


@dataclass(frozen=True, eq=False, repr=False)
class Effects(PerFeature, Searched, kind="effects"):
    """`lower <= Delta <= upper`, (points, outputs, features) each; see `gpcert.explain.effects`.

    `outputs` are the labels of all classes (the effects on two classes differ in sign only), or the
    numbers of the targets; None is the one latent function of two classes. `labels` name the
    points: the index of a data frame, or 0, 1, ... `radius` is (features,), or (points, features)
    if points have different radii. `averaged` is the number of points of which this is the mean, 0
    if it is not a mean. `method` is the family of bounds, `model` the posterior's fingerprint.
    """

    X: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    outputs: tuple[Any, ...]
    quantity: str
    radius: np.ndarray
    labels: tuple[Any, ...]
    averaged: int = 0

    @property
    def values(self) -> np.ndarray:
        """The midpoints of the intervals; NaN where a bound is infinite."""
        return self._bounds()[2]

    @property
    def converged(self) -> bool:
        """Whether every interval is within the tolerance."""
        return self.reason is StopReason.CONVERGED

    def interval(self, feature: int | str, *, point: int = 0, output: Any = None) -> Interval:
        """The effect of one feature, by name or index in the model."""
        known = self.feature_names if isinstance(feature, str) else self.features
        if feature not in known:
            raise InputError(f"feature: expected one of {list(known)[:9]}, got {feature!r}")
        place = (point, self._output(output), list(known).index(feature))
        return Interval(float(self.lower[place]), float(self.upper[place]))

    def of(self, output: Any) -> Effects:
        """The effects on one output."""
        k = self._output(output)
        lower, upper = self.lower[:, [k]], self.upper[:, [k]]
        return replace(self, lower=lower, upper=upper, outputs=(self.outputs[k],))

    def mean(self) -> Effects:
        """The average over the points, as intervals that follow from those of the points."""
        n = len(self.lower)
        slack = [
            gamma(n + 4) * np.abs(side).sum(axis=0, keepdims=True) / n + TINY
            for side in (self.lower, self.upper)
        ]
        return replace(
            self,
            X=self.X.mean(axis=0, keepdims=True),
            lower=self.lower.mean(axis=0, keepdims=True) - slack[0],
            upper=self.upper.mean(axis=0, keepdims=True) + slack[1],
            labels=("mean",),
            averaged=n,
        )

    def to_shap(self, *, output: Any = None) -> Any:
        """A `shap.Explanation` (n, features) of the midpoints with lower and upper bounds (extra
        `explain`). Effects do not sum to the prediction, so there is no base value."""
        shap, k = optional("shap", "to_shap"), self._output(output)
        return shap.Explanation(
            values=self.values[:, k],
            lower_bounds=self.lower[:, k],
            upper_bounds=self.upper[:, k],
            base_values=np.zeros(len(self.lower)),
            data=self.X[:, list(self.features)],
            feature_names=list(self.feature_names),
        )

    def check(self) -> None:
        super().check()
        inside = set(self.features) <= set(range(self.X.shape[1]))
        count = self.radius.shape[-1] if self.radius.ndim else 0
        if not inside or not len(self.feature_names) == count == len(self.features):
            raise InputError("expected names and radii of the features")
        if not np.all(self.lower <= self.upper):
            raise InputError("effects: expected lower <= upper")

    def _label(self, k: int) -> str:
        if self.quantity == "probability":
            return f"effect on the probability of {self.outputs[k]}"
        of_output = f" of output {self.outputs[k]}" if len(self.outputs) > 1 else ""
        return f"effect on the {self.quantity}{of_output}"

    def __repr__(self) -> str:
        P, C, F = self.lower.shape
        width = float(np.max(self.upper - self.lower, initial=0.0))
        mean = f", mean of {self.averaged}" if self.averaged else ""
        return f"Effects({P} points, {C} outputs, {F} features, width <= {above(width)}{mean})"

    def shown(self) -> TextTable:
        """The largest effects at the first point on the last output, rounded outward."""
        largest = self.largest(MAX_ROWS, output=self.outputs[-1])
        rows = [(name, interval_text(Interval(*ends))) for name, *ends in largest]
        label = self._label(len(self.outputs) - 1)
        notes = [] if self.averaged else [f"at point {self.labels[0]}"]
        if len(self.features) > MAX_ROWS:
            notes.append(f"the largest of {len(self.features)}: to_frame() has all")
        return TextTable(repr(self), ("feature", label), rows, notes)


DEFAULT_TOLERANCE = 1e-3
"""Default width of an effect's interval: absolute for probabilities, else a fraction of the prior
standard deviation."""

STEP, MAX_SEARCHES = 1.0 / 16.0, 12
"""With a relative tolerance, widths are reduced step by step: the smallest factor of a step, and
the largest number of steps. Effects smaller than the first width by 16^12 are rounding errors."""


@verb
def effects(
    model: Any,
    X: Any,
    radius: Any = None,
    *,
    relative: Any = None,
    features: Any = None,
    domain: Any = None,
    scale: Any = None,
    quantity: QuantityLike | None = None,
    beta: float | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Unpack[TableOptions],
) -> Effects:
    """The paper's interpretability metric, as intervals that provably contain it.

    With `T+ = [x, x + r e_i]` and `T- = [x - r e_i, x]`, the effect of feature i on a prediction pi
    is ("Interpretability Analysis" in the paper)

        Delta_i(x) = (max_T+ pi - max_T- pi) + (min_T+ pi - min_T- pi):

    It is positive where raising the feature raises pi, and `Delta_i / (2 r)` tends to the
    derivative as r goes to 0. Branch and bound bounds each of the four numbers; the sum is rounded
    outward.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    X : one point (d,) or several (n, d), also rows of a data frame; `Effects.mean()` averages over
        them.
    radius : how far a feature moves: a number, one per feature, a dict by feature, or a row of
        numbers per point; features with radius 0, or missing from the dict, are not explained. Its
        unit is `scale="std"` or one number per feature, as in `certify`. `relative=` is the
        alternative.
    features : features to explain, by index or name; all by default.
    domain : (low, high), the valid inputs; features stay within it.
    quantity, beta : as in `prediction_range`, except "band". All outputs or classes are explained.
    tol, rtol : the largest width of an interval: `tol`, or `rtol` times the proved lower bound of
        the output's largest effect, whichever is larger. By default 0.001 for probabilities, else
        0.001 prior standard deviations.
    budget : for the whole call, 60 seconds by default; when it is used up, or after Ctrl-C, the
        intervals so far are returned. They are all valid, those not yet searched are wide.
    n_jobs : number of threads.
    checkpoint : a file that saves the searches and goes on from it; one thread.
    backend, random_state, method, variance_bound, progress : as in `prediction_range`.

    Squared exponential kernels bound all features of all points in shared batches. A feature that
    the kernel does not depend on, or that the domain fixes, has the effect [0, 0] exactly.

    Example
    -------
    >>> import gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0], [2.0, 0.0]], [-1.0, 1.0])
    >>> bounds = explain.effects(p, [1.0, 0.0], radius=0.5)
    >>> bool(bounds.lower[0, 0, 0] > 0)  # the mean grows with the first feature
    True
    >>> bool(bounds.lower[0, 0, 1] <= 0 <= bounds.upper[0, 0, 1])  # and is even in the second
    True
    """
    start = time.perf_counter()
    posterior = as_posterior(model)
    points, labels = read_labelled_points(posterior, X)
    specification = RegionSpecification(
        radius, relative, features=features, domain=domain, scale=scale
    )
    chosen, radii, domain_ends = read_moves(posterior, points, specification, X)
    if quantity == "band":
        raise InputError(
            "quantity: a band is bounded by two functions, whose effects differ; expected 'lcb', "
            "'ucb', 'mean', 'std' or 'variance'"
        )
    question = range_question(posterior, QuantityRequest(quantity, beta))
    widths = _Widths.read(question, posterior, Accuracy.read(tol, rtol))
    effort = Effort.read(options, widths.first / 4.0, start)
    moving = features_seen(posterior)[chosen]
    intervals = Intervals(points, chosen[moving], radii[..., moving], domain_ends)
    with progress_line(options.get("progress")) as line:
        sides, bounds = _within_tolerance(question, posterior, intervals, effort, widths, line)
    if question.two:  # pi_1 = 1 - pi_2: the effects differ in sign only
        lower, upper = bounds
        bounds = np.concatenate([-upper, lower], axis=2), np.concatenate([-lower, upper], axis=2)
    fixed = ~np.any(intervals.lengths()[0] > 0, axis=-1)
    shape = (len(points), len(question.labels), len(chosen))
    least, most = np.zeros(shape), np.zeros(shape)
    for target, values in zip((least, most), bounds, strict=True):
        target[:, :, moving] = np.where(fixed[:, None], 0.0, np.moveaxis(values, 2, 1))
    names = feature_labels(posterior.feature_names, posterior.dim)
    return Effects(
        X=points,
        lower=least,
        upper=most,
        features=tuple(int(j) for j in chosen),
        feature_names=tuple(names[j] for j in chosen),
        outputs=question.labels,
        quantity=question.quantity,
        radius=radii,
        reason=sides.reason,
        boxes=sides.boxes,
        seconds=time.perf_counter() - start,
        labels=labels,
        method=effort.settings.method.name,
        model=posterior.fingerprint,
    )


@dataclass(frozen=True, eq=False)
class _Widths:
    """Largest widths of effects per searched output (C,): `absolute`, or `relative` times the
    largest effect, whichever is larger. `first` are the widths of the first search."""

    first: np.ndarray
    absolute: np.ndarray
    relative: float

    @staticmethod
    def read(question: RangeQuestion, model: Model, accuracy: Accuracy) -> _Widths:
        tol, rtol, count = accuracy.tol, accuracy.rtol, question.searched
        if tol is None and rtol is None:
            usual = DEFAULT_TOLERANCE * _sizes(question, model)
            return _Widths(usual, usual, 0.0)
        absolute = np.full(count, tol or 0.0)
        guess = 0.0 if rtol is None else rtol * _sizes(question, model)
        return _Widths(np.maximum(absolute, guess), absolute, rtol or 0.0)

    def narrower(
        self, tried: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ) -> np.ndarray | None:
        """Widths of the next search, or None if all effects (P, F, C) are within the tolerance."""
        size = np.maximum(np.maximum(lower, -upper), 0.0).max(axis=(0, 1), initial=0.0)
        allowed = np.maximum(self.absolute, self.relative * size)
        wide = (upper - lower).max(axis=(0, 1), initial=0.0) > allowed
        if self.relative == 0.0 or not wide.any():
            return None
        return np.where(wide, np.clip(0.9 * allowed, STEP * tried, 0.5 * tried), tried)


def _within_tolerance(
    question: RangeQuestion,
    model: Model,
    intervals: Intervals,
    effort: Effort,
    widths: _Widths,
    line: Line,
) -> tuple[Sides, tuple[np.ndarray, np.ndarray]]:
    """The one-sided ranges and the effects (P, F, C).

    A relative tolerance needs repeated searches: the size of the effects is known only afterwards.
    """
    sides = one_sided_ranges(question, model, intervals, effort, line)
    tried, used, bounds = widths.first, sides.boxes, differences(sides, question.quantity)
    for _ in range(MAX_SEARCHES):
        narrower = widths.narrower(tried, *bounds)
        if narrower is None or sides.reason is not StopReason.CONVERGED:
            return sides, bounds
        tried, effort = narrower, effort.again(narrower / 4.0, used)
        repeated = one_sided_ranges(question, model, intervals, effort, line)
        used, sides = repeated.boxes, replace(repeated, boxes=sides.boxes + repeated.boxes)
        lower, upper = differences(sides, question.quantity)  # both searches are valid
        bounds = np.maximum(lower, bounds[0]), np.minimum(upper, bounds[1])
    return replace(sides, reason=StopReason.RESOLUTION), bounds


def _sizes(question: RangeQuestion, model: Model) -> np.ndarray:
    """(C,) a rough size of the quantity of each searched output."""
    count = question.searched
    if question.quantity == "probability":
        return np.ones(count)
    power = 2 if question.quantity == "variance" else 1
    deviations = []  # per member (m,): about the largest prior deviation at the model's points
    with np.errstate(over="ignore", under="ignore"):
        for member in model.members:
            unit = member.unit  # the variance may be beyond float64 where products with it are not
            prior = math.sqrt(float(np.max(unit.kernel.diagonal(unit.points))))
            deviations.append(np.ldexp(member.scale * prior, unit.exponent // 2))
        each = np.concatenate(deviations) ** power
        if len(each) not in {1, count}:  # of several functions at once
            each = each.max(keepdims=True)
        spread = np.broadcast_to(each, (count,))
    limits = np.finfo(float)
    return np.clip(spread, limits.tiny / DEFAULT_TOLERANCE, limits.max)


def differences(sides: Sides, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """(P, F, C) bounds of Delta, rounded outward by the size of what cancels."""
    bottom, top = (0.0, 1.0) if quantity == "probability" else (-np.inf, np.inf)
    low, high = (np.maximum(a, bottom) for a in (sides.minimum_lower, sides.maximum_lower))
    low_up, high_up = (np.minimum(a, top) for a in (sides.minimum_upper, sides.maximum_upper))
    above, below = 0, 1
    least = (high[:, :, above], -high_up[:, :, below], low[:, :, above], -low_up[:, :, below])
    most = (high_up[:, :, above], -high[:, :, below], low_up[:, :, above], -low[:, :, below])
    return -_sum_up([-term for term in least]), _sum_up(list(most))


def _sum_up(terms: list[np.ndarray]) -> np.ndarray:
    """Upper bound of a sum of four numbers that may cancel; infinite if a term is."""
    total, size = sum(terms), sum(abs(term) for term in terms)
    with np.errstate(invalid="ignore"):
        bound = np.asarray(total + (gamma(8) * size + TINY))
    return np.where(np.isnan(bound), np.inf, bound)
