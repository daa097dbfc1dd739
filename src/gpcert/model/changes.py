"""How a mean changes with its inputs, `f(T'x) - f(Tx)` for two affine maps, as a model of its own.

Behind a stationary kernel two maps with one linear part make one kernel sum, over the points moved
by both shifts: `k(z + v, z_i) = k(z, z_i - v)`. Any other pair is two means, `f(T'x)` and `f(Tx)`,
of which the difference is asked.

Proofs: docs/mathematics.md, statements 19.9 and 19.10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.inputs.categories import codes_of
from gpcert.kernels import Kernel
from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.composite import Expressed, Product, Scale, Sum
from gpcert.likelihoods.gaussian import MeanOnly
from gpcert.model.multi_output import Outputs, SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import PerFeature, Points
from gpcert.numerics.rounding import add_down, add_up, up
from gpcert.regions import LinearMap


@dataclass(frozen=True)
class Move:
    """x with some features set to values, `at`, and others moved by steps, `by`."""

    at: Mapping[int, float] = field(default_factory=dict)
    by: Mapping[int, float] = field(default_factory=dict)

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


def _moved(
    posterior: Posterior, output: int, before: Sequence[Fraction], after: Sequence[Fraction]
) -> Change:
    """One sum over the points less both steps, with the error that rounding them makes."""
    first, error_first = _less(posterior.points, after)
    second, error_second = _less(posterior.points, before)
    t, scale = posterior.weights[output], float(posterior.scale[output])
    pairs = zip(posterior.slope[output].tolist(), after, before, strict=True)
    trend = sum((Fraction(w) * (a - b) for w, a, b in pairs), Fraction(0)) * Fraction(scale)
    try:
        offset = float(trend)
    except OverflowError:
        offset = math.inf
    error = _error(posterior.kernel, first, t, error_first)
    error = up(scale * up(error + _error(posterior.kernel, second, t, error_second), 1), 1)
    if not (np.isfinite(offset) and np.isfinite(error) and np.all(np.isfinite([first, second]))):
        raise InputError("change: it leaves float64; express the inputs in another unit")
    if Fraction(offset) != trend:
        error = up(error + up(float(abs(Fraction(offset) - trend)), 1), 1)
    points, weights = np.concatenate([first, second]), np.concatenate([t, -t])
    moved = _mean_of(posterior, output, points=points, weights=weights, offset=offset)
    return Change(moved, float(error))


def _less(points: Points, step: Sequence[Fraction]) -> tuple[Points, Points]:
    """`points - step` and bounds of the rounding of its entries."""
    moved, errors = points.copy(), np.zeros_like(points)
    for j, by in enumerate(step):
        if by == 0:
            continue
        near = float(by)
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
    return float(up(length * up(np.sum(bends), len(weights) + 4), 2))
