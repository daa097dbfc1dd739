"""`certify_fair`: whether a model treats alike who differs in protected features.

Proofs: docs/mathematics.md, statements 13.17, 19.9 to 19.11.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.boxes import bound_boxes
from gpcert.api.differences import held_at, read_values
from gpcert.api.domain import domain_of
from gpcert.api.options import SearchOptions, SearchSettings, read_tolerance, verb
from gpcert.api.regions import as_mapping, labels_by_number, number_per_feature
from gpcert.api.running import margin_text, progress_line
from gpcert.api.slopes import label_of, meaning_of, of_means, output_number
from gpcert.certificates import Fairness, Interval, Status
from gpcert.errors import InputError
from gpcert.inputs.tabular import codes_of
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.model.changes import Change, Move, change_by_moves, mean_at
from gpcert.model.committee import Committee
from gpcert.model.multi_output import Outputs, SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import PerFeature, finite_array
from gpcert.numerics.rounding import add_down, add_up, norm_upper
from gpcert.quantities import LeastMeans, Mean, Quantity, SameDecision, SameSide
from gpcert.regions import Region
from gpcert.regions.pairs import Pairs
from gpcert.regions.shapes import check_norm
from gpcert.search import Budget, GoalResult, Progress, SearchResult, StopReason, solve

MOST_GROUPS = 32
"""Combinations of protected values."""

PointPairs = Annotated[np.ndarray, "n 2 d"]
"""Two individuals a row."""

SHORTER = (1.0, 1.0 - 1e-12, 0.999, 0.9)
"""Parts of a step at which a counter-example is tried: rounding may make it too long."""


@verb
def certify_fair(
    model: Any,
    bounds: Any,
    protected: Any,
    *,
    delta: float | None = None,
    threshold: float | None = None,
    similar: Any = None,
    norm: float | str = "inf",
    output: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    **options: Unpack[SearchOptions],
) -> Fairness:
    """Prove or refute that nobody in a region is treated differently for a protected feature.

    Parameters
    ----------
    model, bounds, fixed, output : as in `slope_ranges`. The other features of the individuals lie
        in the region; of a box its sides in the protected features do not matter, any other region
        must hold these fixed.
    protected : `{"sex": (0, 1)}`, the values that count; of features that hold categories their
        names are enough, `["sex"]`. Of several features all combinations of values count.
    delta : how much the mean (of a classifier the latent mean, of a support vector machine the
        decision function) may differ.
    threshold : instead of delta: whether the means lie on one side of it, so that what is decided
        by it is the same. Of classifiers with neither, the decision is meant: of several classes
        that by the votes of pairs, one against the rest (here a class that alone has a positive
        latent mean), or else the class with the largest latent mean.
    similar : by how much the other features of both may differ: a number, or `{feature: number}`
        (features that are left out do not differ). By default they are the same, and only the
        protected features change: a counterfactual. The second individual may lie outside the
        region.
    norm : of the differences over their radii `similar`: any l_p norm, "inf" by default.
    budget, ... : as in `prediction_range`.

    A verdict that refutes has a pair of inputs with proved predictions.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential([1.0, 4.0]), points=[[0.0, 0.0]], weights=[1.0])
    >>> box = [(-1.0, 1.0), 0.0]
    >>> gpcert.certify_fair(bump, box, {1: (0, 1)}, delta=0.05).status.name  # exp(-1/32): 0.031
    'ROBUST'
    >>> unfair = gpcert.certify_fair(bump, box, {1: (0, 1)}, delta=0.02)
    >>> unfair.status.name, unfair.pair[:, 1].tolist()
    ('NOT_ROBUST', [0.0, 1.0])
    """
    start, whole = time.perf_counter(), as_posterior(model)
    classes = _decided(whole) if delta is None and threshold is None and output is None else None
    posterior: Any = whole if classes else of_means(whole)
    index = 0 if classes else output_number(posterior, output)
    values = _protected(posterior, protected)
    region = held_at(domain_of(posterior, bounds, fixed), {j: v[0] for j, v in values.items()})
    allowed, level = (None, None) if classes else _rule(posterior, delta, threshold, output)
    groups = [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]
    if len(groups) > MOST_GROUPS:
        raise InputError(
            f"protected: expected at most {MOST_GROUPS} combinations of values, got {len(groups)}"
        )
    radii, distance = _radii(posterior, similar, values), check_norm(norm, "norm")
    settings = SearchSettings.read(options)
    owner, c = posterior.output(index)
    asked = _Question(owner, c, groups, region, radii, distance, allowed, level, classes)
    with progress_line(options.get("progress")) as line:
        progress = Progress(start, lambda state: line.show(margin_text(state)))
        margin, pairs, result = asked.answer(settings, progress)
    pair, ends, decisions = None, (), ()
    if margin.upper < 0 and classes:
        pair, ends, decisions = _other_classes(classes, asked, pairs)
    elif margin.upper < 0:
        pair, ends = _refuted(posterior, index, asked, pairs)
    # what is not seen makes no difference at all
    same = (level is None and not classes) or not result.goals
    proved = margin.lower > 0 or (margin.lower == 0 and same)
    status = Status.ROBUST if proved else Status.UNKNOWN if pair is None else Status.NOT_ROBUST
    names = posterior.feature_names
    return Fairness(
        status=status,
        margin=margin,
        pair=np.empty((0, posterior.dim)) if pair is None else pair,
        values=ends,
        protected={
            str(j if names is None else names[j]): _labels(posterior, j, each)
            for j, each in values.items()
        },
        delta=allowed,
        threshold=level,
        radii=radii,
        norm=distance,
        output=None if classes else label_of(posterior, output),
        region=region.describe(),
        meaning=classes.meaning if classes else meaning_of(posterior, index),
        decisions=decisions,
        reason=result.reason,
        boxes=result.boxes,
        seconds=time.perf_counter() - start,
        method=settings.method.name,
        model=posterior.fingerprint,
    )


@dataclass(frozen=True, eq=False)
class _Classes:
    """Which of several classes is decided, by the signs of sums of means: class c where all rows of
    `rows[c]` are positive. `functions` are the means, by posterior and output."""

    labels: tuple[Any, ...]
    functions: list[tuple[Posterior, int]]
    rows: tuple[tuple[tuple[float, ...], ...], ...]
    meaning: str
    compared: tuple[tuple[tuple[float, ...], ...], ...] | None = None
    """Rows of the members' probabilities instead, by which one against the rest decides at a
    point."""


def _decided(model: Any) -> _Classes | None:
    """None of models of one latent function."""
    several = isinstance(model, Committee)
    if not several and not isinstance(model.likelihood, ClassLikelihood):
        return None
    labels = tuple(model.labels)
    m = len(labels)
    functions = [(member, c) for member in model.members for c in range(member.outputs)]
    unit = np.eye(len(functions))
    if several and model.scheme != "one_vs_rest":
        pairs, meaning = list(itertools.combinations(range(m), 2)), "the class that wins all pairs"
        rows = [
            [unit[p] * (1.0 if c == k else -1.0) for p, (j, k) in enumerate(pairs) if c in (j, k)]
            for c in range(m)
        ]
    elif several:
        meaning = "the class that alone is decided against the rest"
        rows = [[unit[k] * (1.0 if k == c else -1.0) for k in range(m)] for c in range(m)]
    else:
        if model.likelihood.mixes:
            raise InputError(
                "threshold: classes that mix latent functions have no largest latent mean; "
                "expected delta= or threshold= with output="
            )
        meaning = "the class with the largest latent mean"
        rows = [[unit[c] - unit[k] for k in range(m) if k != c] for c in range(m)]
    square = np.eye(m)
    largest = [[square[c] - square[k] for k in range(m) if k != c] for c in range(m)]
    weights, compared = (
        tuple(tuple(tuple(row.tolist()) for row in each) for each in part)
        for part in (rows, largest)
    )
    by_rest = several and model.scheme == "one_vs_rest" and model.members[0].likelihood.has_variance
    return _Classes(labels, functions, weights, meaning, compared if by_rest else None)


@dataclass(frozen=True, eq=False)
class _Question:
    """What is searched: individuals of `groups`, whose protected features have certain values."""

    model: Posterior
    output: int
    groups: Sequence[Mapping[int, float]]
    region: Region
    radii: PerFeature
    norm: float
    delta: float | None
    level: float | None
    classes: _Classes | None = None

    @property
    def apart(self) -> bool:
        """Whether other features may differ, too."""
        return bool(np.any(self.radii))

    def answer(
        self, settings: SearchSettings, progress: Progress
    ) -> tuple[Interval, PointPairs, SearchResult]:
        """The least margin, and pairs (n, 2, d) of individuals, protected features aside, at which
        it may be."""
        held = self.region.center
        moves = [Move(group) for group in self.groups]
        if self.classes is not None:
            return self._side(settings, progress, moves, held)
        if self.apart and self.delta is not None:
            return self._near(settings, progress, moves, held)
        known: list[Change] = []
        for both in [] if self.apart else itertools.combinations(moves, 2):
            change = change_by_moves(self.model, self.output, both, held)
            known += [] if change is None else [change]
        if not known and not self.apart:
            return self._nothing()
        if self.delta is None:
            return self._side(settings, progress, moves, held)
        means, asked = _joined(known)
        result = self._solve(settings, progress, means, asked, max(c.error for c in known))
        return self._margin(result.goals, [c.error for c in known for _ in (1, -1)]), *self._of(
            result
        )

    def _side(
        self, settings: SearchSettings, progress: Progress, moves: Sequence[Move], held: PerFeature
    ) -> tuple[Interval, PointPairs, SearchResult]:
        """Whether all means lie on one side of the level."""
        sides = (False, True) if self.apart else (None,)
        known = self.classes
        functions = [(self.model, self.output)] if known is None else known.functions
        groups = [(m, side) for side in sides for m in moves]
        parts = [mean_at(owner, c, m, held, side) for m, side in groups for owner, c in functions]
        means = SeparateOutputs(tuple(m for part in parts for m in part.model.members))
        error = max(part.error for part in parts)
        if known is not None:  # a row has two means at most
            error, asked = 2.0 * error, [SameDecision(known.rows, len(groups))]
        else:
            assert self.level is not None, "what has no delta has a level"
            asked = [SameSide(len(parts), self.level)]
        result = self._solve(settings, progress, means, asked, error)
        (goal,) = result.goals
        ends = Interval(float(add_down(goal.lower, -error)), float(add_up(goal.upper, error)))
        return ends, *self._of(result)

    def _near(
        self, settings: SearchSettings, progress: Progress, moves: Sequence[Move], held: PerFeature
    ) -> tuple[Interval, PointPairs, SearchResult]:
        """Differences between similar individuals of any groups."""
        parts = [
            mean_at(self.model, self.output, m, held, side) for side in (False, True) for m in moves
        ]
        means = SeparateOutputs(tuple(m for part in parts for m in part.model.members))
        error, k, rows = max(part.error for part in parts), len(moves), []
        for (i, j), sign in itertools.product(itertools.product(range(k), range(k)), (1.0, -1.0)):
            row = [0.0] * (2 * k)
            row[i], row[k + j] = -sign, sign
            rows.append(tuple(row))
        both = float(add_up(error, error))
        result = self._solve(settings, progress, means, [LeastMeans(tuple(rows))], both)
        return self._margin(result.goals, [both]), *self._of(result)

    def _solve(
        self,
        settings: SearchSettings,
        progress: Progress,
        model: Outputs,
        asked: Sequence[Quantity],
        error: float,
    ) -> SearchResult:
        """One search for all goals, until each is decided."""
        target = error if self.delta is None else float(add_up(-self.delta, error))
        region = Pairs(self.region, self.radii, self.norm) if self.apart else self.region
        just = float(np.nextafter(target, -math.inf)) if self.delta is not None else target
        stop: dict[str, Any] = {"tol": 0.0, "target": just, "progress": progress}
        return solve(settings.problem(model, region, asked, **stop))

    def _margin(self, goals: Sequence[GoalResult], errors: Sequence[float]) -> Interval:
        """Delta and the least of the goals, which are minus differences."""
        assert self.delta is not None, "of a delta"
        low = min(add_down(g.lower, -e) for g, e in zip(goals, errors, strict=True))
        high = min(add_up(g.upper, e) for g, e in zip(goals, errors, strict=True))
        return Interval(float(add_down(self.delta, low)), float(add_up(self.delta, high)))

    def _of(self, result: SearchResult) -> tuple[PointPairs, SearchResult]:
        d, pairs = self.region.dim, []
        for goal in result.goals:
            if goal.point is None:
                continue
            x, step = goal.point[:d], np.zeros(d)
            if self.apart:
                step = goal.point[d:]
            for part in SHORTER if self.apart else (1.0,):
                y = x + part * step
                if self.similar(x, y):
                    pairs.append([x, y])
                    break
        return np.array(pairs).reshape(-1, 2, d), result

    def similar(self, x: PerFeature, y: PerFeature) -> bool:
        """Whether two points are within the radii, proved."""
        rows = zip(x.tolist(), y.tolist(), self.radii.tolist(), strict=True)
        if any(abs(Fraction(a) - Fraction(b)) > Fraction(r) for a, b, r in rows):
            return False
        moving = self.radii > 0
        if math.isinf(self.norm) or not np.any(moving):
            return True
        scaled = np.abs(x - y)[moving] / self.radii[moving]
        return bool(norm_upper(scaled, self.norm, 2) <= 1.0)

    def _nothing(self) -> tuple[Interval, PointPairs, SearchResult]:
        """Where the model does not see the protected features."""
        least, none = self.delta or 0.0, np.empty((0, 2, self.region.dim))
        return Interval(least, least), none, SearchResult((), StopReason.CONVERGED, 0, 0.0)


def _joined(changes: Sequence[Change]) -> tuple[Outputs, list[Quantity]]:
    """All changes as one model, and both signs of each as goals."""
    members = tuple(m for change in changes for m in change.model.members)
    if all(change.joint for change in changes):
        asked: list[Quantity] = [Mean(p, s) for p in range(len(changes)) for s in (1, -1)]
        return members[0] if len(members) == 1 else SeparateOutputs(members), asked
    ends = np.cumsum([0, *(change.model.outputs for change in changes)])
    asked = []
    for first, change in zip(ends, changes, strict=False):
        for sign in (1.0, -1.0):
            row = np.zeros(len(members))
            row[first] = sign
            if not change.joint:
                row[first + 1] = -sign
            asked.append(LeastMeans((tuple(row.tolist()),)))
    return SeparateOutputs(members), asked


def _refuted(
    model: Outputs, index: int, asked: _Question, pairs: PointPairs
) -> tuple[np.ndarray | None, tuple[Interval, ...]]:
    """The pair of individuals whose proved predictions differ most, if they differ too much."""
    points = []
    for x, y in pairs:
        for first, second in itertools.product(asked.groups, asked.groups):
            both = np.stack([x, y])
            for row, group in zip(both, (first, second), strict=True):
                row[list(group)] = list(group.values())
            points.append(both)
    if not points:
        return None, ()
    flat, limits = np.concatenate(points), Budget(seconds=10.0)
    bounds = bound_boxes(model, flat, flat, quantity="mean", budget=limits, progress=False)
    ends = bounds["mean"][:, index].reshape(-1, 2, 2)  # of both points, lower and upper
    first, second = ends[:, 0], ends[:, 1]
    if asked.delta is not None:
        below, above = add_down(second[:, 0], -first[:, 1]), add_down(first[:, 0], -second[:, 1])
        gaps = np.asarray(add_down(np.maximum(below, above), -asked.delta))
    else:
        level = asked.level
        above = np.minimum(first[:, 0] - level, level - second[:, 1])
        gaps = np.maximum(above, np.minimum(second[:, 0] - level, level - first[:, 1]))
    best = int(np.argmax(np.where(np.isfinite(gaps), gaps, -np.inf)))
    if not gaps[best] > 0:
        return None, ()
    return points[best], tuple(Interval(float(low), float(high)) for low, high in ends[best])


def _other_classes(
    classes: _Classes, asked: _Question, pairs: PointPairs
) -> tuple[np.ndarray | None, tuple[Interval, ...], tuple[Any, ...]]:
    """The first pair of individuals who are proved to be of different classes, by how much they
    lead, and the classes."""
    for x, y in pairs:
        both = [(x, group) for group in asked.groups] + [(y, group) for group in asked.groups]
        points = np.stack([place for place, _ in both])
        for row, (_, group) in zip(points, both, strict=True):
            row[list(group)] = list(group.values())
        low, high = (np.empty((len(points), len(classes.functions))) for _ in range(2))
        name: Any = "mean" if classes.compared is None else "probability"
        for i, (owner, c) in enumerate(classes.functions):
            limits: Any = {"budget": Budget(seconds=10.0), "progress": False}
            bounds = bound_boxes(owner, points, points, quantity=name, **limits)[name]
            low[:, i], high[:, i] = bounds[:, c if classes.compared is None else 1].T
        question = SameDecision(classes.compared or classes.rows, 1)
        least = question.margins(list(low.T), list(high.T))
        winners = [int(c) for c in np.argmax(least, axis=0)]
        leads = np.max(least, axis=0)
        proved = [p for p in range(len(points)) if leads[p] > 0]
        for p, q in itertools.combinations(proved, 2):
            if winners[p] != winners[q]:
                most = question.highest(list(low.T), list(high.T))
                ends = tuple(Interval(float(leads[i]), float(most[i])) for i in (p, q))
                labels = tuple(classes.labels[winners[i]] for i in (p, q))
                return points[[p, q]], ends, labels
    return None, (), ()


def _protected(model: Outputs, protected: Any) -> dict[int, list[float]]:
    """The values of every protected feature, categories by their numbers."""
    named = as_mapping("protected", protected)
    if named is not None:
        numbers = labels_by_number(model, "protected", named)
        codes = {j: read_values(model, "protected", j, named[v]) for j, v in numbers.items()}
        return codes or _no()
    labels = [protected] if isinstance(protected, str) or np.ndim(protected) == 0 else protected
    codes = {}
    for j, label in labels_by_number(model, "protected", labels).items():
        if j not in model.levels:
            raise InputError(
                f"protected: {label!r} holds no categories, so that the values that count are not "
                f"known; expected {{{label!r}: (value, value)}}"
            )
        codes[j] = codes_of(model.levels[j]).tolist()
    return codes or _no()


def _no() -> Any:
    raise InputError("protected: expected one feature or more, got none")


def _labels(model: Outputs, j: int, values: Sequence[float]) -> list[Any]:
    """Values as people know them."""
    if j not in model.levels:
        return list(values)
    codes = codes_of(model.levels[j]).tolist()
    return [model.levels[j][codes.index(value)] for value in values]


def _rule(
    model: Outputs, delta: Any, threshold: Any, output: Any
) -> tuple[float | None, float | None]:
    """What is asked: the largest difference, or the level that decides."""
    if delta is not None and threshold is not None:
        raise InputError("delta, threshold: expected one of them, got both")
    if delta is not None:
        return read_tolerance(delta, name="delta"), None
    if threshold is not None:
        return None, float(finite_array("threshold", threshold, ndim=0))
    likelihood = model.likelihood
    two = isinstance(likelihood, ScalarLikelihood) and likelihood.symmetric
    if not (two and likelihood.classifies):
        raise InputError(
            "delta: expected how much the mean may differ, or threshold=; only a classifier of two "
            "classes whose decision is the sign of its latent mean needs neither"
        )
    return None, 0.0


def _radii(model: Outputs, similar: Any, protected: Mapping[int, Any]) -> PerFeature:
    """By how much the other features of similar individuals differ at most, (d,)."""
    if similar is None:
        return np.zeros(model.dim)
    held = [*protected, *model.levels]
    named = as_mapping("similar", similar)
    if named is None:
        radii = np.full(model.dim, float(finite_array("similar", similar, ndim=0)))
        radii[held] = 0.0
    else:
        radii = number_per_feature(model, "similar", named)
    if np.any(radii < 0) or np.any(radii[held] > 0):
        raise InputError(
            "similar: expected numbers >= 0 for features that are neither protected nor "
            f"categories, got {similar!r}"
        )
    return radii
