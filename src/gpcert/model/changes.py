"""How a mean changes with its inputs, `f(T'x) - f(Tx)` for two affine maps, as a model of its own.

Behind a stationary kernel two maps with one linear part make one kernel sum, over the points moved
by both shifts: `k(z + v, z_i) = k(z, z_i - v)`. Any other pair is two means, `f(T'x)` and `f(Tx)`,
of which the difference is asked.

Proofs: docs/mathematics.md, statements 19.9 and 19.10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.errors import InputError
from gpcert.inputs.tabular import codes_of
from gpcert.kernels import Kernel
from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.composite import Expressed, Product, Scale, Sum
from gpcert.likelihoods.gaussian import MeanOnly
from gpcert.model.multi_output import Outputs, SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_parts import check_linear_mean
from gpcert.numerics.arrays import PerFeature, Points
from gpcert.numerics.rounding import add_down, add_up, up
from gpcert.regions import LinearMap

T = TypeVar("T")

Steps = Sequence[Fraction]
"""By how much what a kernel sees moves, feature by feature."""

MOST_KNOWN = 64
"""Changes of one model that are kept: those of many regions are often the same."""

_KNOWN: WeakKeyDictionary[Posterior, dict[Hashable, Any]] = WeakKeyDictionary()


def _once(posterior: Posterior, key: Hashable, compute: Callable[[], T]) -> T:
    """What was found of a model before, with the norms that are known of it since."""
    check_linear_mean(posterior)
    known = _KNOWN.setdefault(posterior, {})
    if key not in known:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[key] = compute()
    return known[key]


@dataclass(frozen=True)
class Move:
    """x with some features set to values, `at`, and others moved by steps, `by`."""

    at: Mapping[int, float] = field(default_factory=dict)
    by: Mapping[int, float] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((tuple(self.at.items()), tuple(self.by.items())))

    def matrix(self, d: int) -> LinearMap:
        """The affine map of the d inputs."""
        matrix, shift = np.eye(d), np.zeros(d)
        for j, value in self.at.items():
            matrix[j, j], shift[j] = 0.0, value
        for j, step in self.by.items():
            shift[j] = step
        return LinearMap(matrix, shift)

    def steps(self, held: PerFeature) -> dict[int, Fraction]:
        """By how much it moves features, those that it sets from where they are held."""
        steps = {j: Fraction(float(v)) - Fraction(float(held[j])) for j, v in self.at.items()}
        return steps | {j: Fraction(float(v)) for j, v in self.by.items()}


@dataclass(frozen=True, eq=False)
class Change:
    """`f(T'x) - f(Tx)` is within `error` of the mean of `model`, or, if that has two outputs, of
    the first's mean less the second's."""

    model: Outputs
    error: float = 0.0

    @property
    def joint(self) -> bool:
        """Whether it is one kernel sum."""
        return self.model.outputs == 1


def change_by_moves(
    posterior: Posterior, output: int, moves: tuple[Move, Move], held: PerFeature
) -> Change | None:
    """`f(T'x) - f(Tx)` for (T, T') given by moves, where features that they set are held at these
    values; None where it is 0."""
    before, after = (_seen_step(posterior, move, held) for move in moves)

    def found() -> Change | None:
        return _change_by_moves(posterior, output, moves, (before, after))

    # what is held decides nothing but the steps, or is set by the moves themselves
    return _once(posterior, (output, moves, tuple(before), tuple(after)), found)


def _change_by_moves(
    posterior: Posterior, output: int, moves: tuple[Move, Move], steps: tuple[Steps, Steps]
) -> Change | None:
    before, after = steps
    apart = np.array([bool(a != b) for a, b in zip(before, after, strict=True)])
    seen = posterior.kernel.features_seen(len(apart)) | (posterior.slope[output] != 0)
    if not np.any(apart & seen):
        return None
    joint = None
    if stationary(posterior.kernel):
        joint = _moved(posterior, output, before, after)
        if not (joint.error and posterior.kernel.rough and posterior.features is None):
            return joint
    if posterior.features is None:
        return change_by_maps(posterior, output, [move.matrix(posterior.dim) for move in moves])
    if joint is not None:
        return joint
    raise InputError(
        "change: behind linear features (PCA, one-hot columns) expected a stationary kernel, got "
        f"{type(posterior.kernel).__name__}"
    )


def change_by_maps(posterior: Posterior, output: int, maps: Sequence[LinearMap]) -> Change:
    """The same for affine maps T and T' of the inputs."""
    check_linear_mean(posterior)
    if posterior.features is not None:
        raise InputError(
            "change: behind linear features (PCA, one-hot columns) expected values or steps of "
            "features, got two affine maps"
        )
    before, after = maps
    if np.array_equal(before.matrix, after.matrix) and stationary(posterior.kernel):
        shifts = [[Fraction(v) for v in each.shift.tolist()] for each in maps]
        mapped = replace(posterior, features=LinearMap(before.matrix), spread=None)
        joint = _moved(mapped, output, *shifts)
        if not (joint.error and posterior.kernel.rough):
            return joint
    trend = posterior.slope[output] if posterior.has_trend else None
    both = [
        replace(_mean_of(posterior, output), features=each, slope=trend, spread=None)
        for each in (after, before)
    ]
    return Change(SeparateOutputs(tuple(both)))


def mean_at(
    posterior: Posterior, output: int, move: Move, held: PerFeature, pairs: bool | None = None
) -> Change:
    """`f(Tx)` for T given by a move, as `change_by_moves`. With `pairs` its inputs are (x, s), and
    it is `f(T(x + s))`, or, where that is False, `f(Tx)`."""
    step = _seen_step(posterior, move, held)
    known = (output, move, tuple(step), pairs)
    return _once(posterior, known, lambda: _mean_at(posterior, output, move, step, pairs))


def _mean_at(
    posterior: Posterior, output: int, move: Move, step: Steps, pairs: bool | None
) -> Change:
    exact = [v == 0 for v in step]
    if stationary(posterior.kernel) or all(exact):
        points, errors = _less(posterior.points, step)
        t, scale = posterior.weights[output], float(posterior.scale[output])
        error = up(scale * _error(posterior.kernel, points, t, errors), 1)
        if not (error and posterior.kernel.rough and posterior.features is None):
            trend, fields = _trend(posterior, output, step), {"features": posterior.features}
            offset = Fraction(float(posterior.offset[output])) + trend
            near = _finite(offset)
            if Fraction(near) != offset:
                error = up(error + up(float(abs(Fraction(near) - offset)), 1), 1)
            slope = posterior.slope[output] if posterior.has_trend else None
            if pairs is not None:
                identity = LinearMap(np.eye(posterior.dim))
                fields = _of_pairs(posterior.features or identity, pairs)
            mean = _mean_of(posterior, output, points=points, offset=near, slope=slope, **fields)
            if not error:
                same_norm(posterior, output, mean)
            return Change(mean, float(error))
    if posterior.features is not None:
        raise InputError(
            "protected: behind linear features (PCA, one-hot columns) expected a stationary "
            f"kernel, got {type(posterior.kernel).__name__}"
        )
    slope = posterior.slope[output] if posterior.has_trend else None
    whole = move.matrix(posterior.dim)
    fields = {"features": whole, "spread": None}
    if pairs is not None:
        fields = _of_pairs(whole, pairs)
    return Change(_mean_of(posterior, output, slope=slope, **fields))


def same_norm(posterior: Posterior, output: int, mean: Posterior) -> None:
    """A mean over points that moved as one has the norm of the output: K is formed once."""
    known, mine = posterior.unit, mean.unit
    same = known.exponent == mine.exponent
    if same and np.array_equal(known.weights[output], mine.weights[0]):
        vars(mine)["norms"] = known.norms[[output]]


def _of_pairs(features: LinearMap, moved: bool) -> dict[str, Any]:
    """The fields of a posterior whose inputs are (x, s), and whose features are those of x + s, or
    of x."""
    W, K = features.slopes, features.matrix[:, features.inputs :]
    second = W if moved else np.zeros_like(W)
    matrix = np.concatenate([W, second, K], axis=1)
    pairs = LinearMap(matrix, features.shift, features.levels)
    return {"features": pairs, "feature_names": None, "spread": None}


def stationary(kernel: Kernel) -> bool:
    """Whether k(x, y) is a function of x - y."""
    if not kernel.parts:
        return kernel.stationary
    known = isinstance(kernel, Sum | Product | Scale | ActiveDimensions | Expressed)
    return known and all(map(stationary, kernel.parts))


def _mean_of(posterior: Posterior, output: int, **fields: Any) -> Posterior:
    """One output's mean, without a variance."""
    known: dict[str, Any] = {
        "weights": posterior.weights[output],
        "factor": None,
        "negative_factor": None,
        "training_noise": None,
        "inverse": None,
        "offset": posterior.offset[output],
        "scale": posterior.scale[output],
        "noise": 0.0,
        "slope": None,
        "likelihood": MeanOnly(),
        "classes": None,
        "coupled": False,
    }
    return replace(posterior, **(known | fields))


def _seen_step(posterior: Posterior, move: Move, held: PerFeature) -> list[Fraction]:
    """By how much what the kernel sees moves, (q,)."""
    steps, features = move.steps(held), posterior.features
    if features is None:
        return [steps.get(j, Fraction(0)) for j in range(posterior.dim)]
    total = [Fraction(0)] * len(features.matrix)
    blocks = {j: (labels, part) for j, labels, part in features.blocks}
    for j, step in steps.items():
        columns = [(features.matrix[:, j], step)]
        if j in blocks and step != 0:
            labels, part = blocks[j]
            codes = codes_of(labels).tolist()
            for value, sign in ((move.at[j], 1), (float(held[j]), -1)):
                columns.append((part[:, codes.index(value)], Fraction(sign)))
        for column, factor in columns:
            total = [t + factor * Fraction(w) for t, w in zip(total, column.tolist(), strict=True)]
    return total


def _moved(posterior: Posterior, output: int, before: Steps, after: Steps) -> Change:
    """One sum over the points less both steps, with the error that rounding them makes."""
    first, error_first = _less(posterior.points, after)
    second, error_second = _less(posterior.points, before)
    t, scale = posterior.weights[output], float(posterior.scale[output])
    trend = _trend(posterior, output, after) - _trend(posterior, output, before)
    offset = _finite(trend)
    error = _error(posterior.kernel, first, t, error_first)
    error = up(scale * up(error + _error(posterior.kernel, second, t, error_second), 1), 1)
    if Fraction(offset) != trend:
        error = up(error + up(float(abs(Fraction(offset) - trend)), 1), 1)
    points, weights = np.concatenate([first, second]), np.concatenate([t, -t])
    moved = _mean_of(posterior, output, points=points, weights=weights, offset=offset)
    return Change(moved, float(error))


def _trend(posterior: Posterior, output: int, step: Steps) -> Fraction:
    """By how much the linear trend moves, in the output's units."""
    pairs = zip(posterior.slope[output].tolist(), step, strict=True)
    along = sum((Fraction(w) * by for w, by in pairs), Fraction(0))
    return along * Fraction(float(posterior.scale[output]))


def _finite(value: Fraction | float) -> float:
    """As a float, or an `InputError`."""
    try:
        near = float(value)
    except OverflowError:
        near = math.inf
    if not math.isfinite(near):
        raise InputError("change: it leaves float64; express the inputs in another unit")
    return near


def _less(points: Points, step: Steps) -> tuple[Points, Points]:
    """`points - step` and bounds of the rounding of its entries."""
    moved, errors = points.copy(), np.zeros_like(points)
    for j, by in enumerate(step):
        if by == 0:
            continue
        near = _finite(by)
        moved[:, j] = points[:, j] - near
        errors[:, j] = add_up(points[:, j], -near) - add_down(points[:, j], -near)
        if Fraction(near) != by:
            errors[:, j] = up(errors[:, j] + up(float(abs(Fraction(near) - by)), 1), 1)
    return moved, errors


def _error(kernel: Kernel, points: Points, weights: np.ndarray, errors: Points) -> float:
    """Upper bound of `|sum_i t_i (k(z, z_i) - k(z, y_i))|` for all z and `|z_i - y_i| <= errors`:
    each difference is at most `|phi(z)| R0`."""
    if not np.any(errors):
        return 0.0
    length = float(up(np.sqrt(up(np.max(kernel.diagonal(points[:1])), 256)), 2))
    bends = up(np.asarray(kernel.R0(errors)) * np.abs(weights), 1)
    return _finite(float(up(length * up(np.sum(bends), len(weights) + 4), 2)))
