"""Quantities of several outputs: H(y_1, ..., y_k) of others of one output each, minus the distance
of the means from a reference value, and weighted sums of class probabilities.

Proofs: docs/mathematics.md, statements 7.5 and 10.10.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Annotated, Any

import numpy as np

from gpcert.likelihoods import ClassLikelihood
from gpcert.model.class_layout import ClassLayout
from gpcert.numerics.arrays import Array, PerCell, PerCellAndClass, PerRow, least_of, namespace
from gpcert.numerics.rounding import down, nonnegative, norm_lower, norm_upper, up
from gpcert.quantities.output import Mean, OutputQuantity, Quantity

Ends = Sequence[PerCell]
"""Ends of the ranges of a compound's parts, each perhaps computed when it is looked at."""

Values = Annotated[np.ndarray, "n k"]
"""A row of numbers, one for each part, at every point."""


class Compound(Quantity, ABC):
    """`H(y_1, ..., y_k)` of several quantities y_p of one output each, its `parts`."""

    parts: tuple[OutputQuantity, ...]
    """The y_p; the negative of each is that of the other sign."""

    level: float | None = None
    """The value of a part that matters most to H, if there is one: bounds are best near it."""

    @property
    def by_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether any part does."""
        return any(part.by_variance for part in self.parts)

    @property
    def negative(self) -> Compound:
        """Minus this one."""
        return Negated(self)

    # proved

    @abstractmethod
    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """Certified lower bound (B,) of H for all `low_p <= y_p <= high_p`."""

    @abstractmethod
    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Certified upper bound (B,) of H for all of them."""

    # in plain floating point

    @abstractmethod
    def value(self, y: Values) -> PerRow:
        """H (n,) of rows y (n, k)."""

    @abstractmethod
    def slopes(self, y: Values) -> Values:
        """A (sub)gradient (n, k)."""

    def leading_part(self, low: Ends, high: Ends) -> tuple[PerCell, PerCell]:
        """(B,): the part that H's least value hangs on most, and whether it is large there; says
        where to look. By default from the slopes in the middle."""
        xp = namespace(low[0])
        least, most = xp.stack(list(low), axis=1), xp.stack(list(high), axis=1)
        slope: Any = self.slopes(0.5 * (least + most))
        part = xp.argmax(xp.abs(slope) * (most - least), axis=1)
        return part, slope[xp.arange(len(part), device=part.device), part] < 0


@dataclass(frozen=True)
class Negated(Compound):
    """`-H`: a lower bound of one is minus an upper bound of the other."""

    compound: Compound

    @property
    def parts(self) -> tuple[OutputQuantity, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Those of H."""
        return self.compound.parts

    @property
    def level(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of H."""
        return self.compound.level

    @property
    def known(self) -> tuple[float, float]:
        """Those of H, mirrored."""
        low, high = self.compound.known
        return -high, -low

    @property
    def negative(self) -> Compound:
        """H."""
        return self.compound

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        return -self.compound.highest(low, high)

    def highest(self, low: Ends, high: Ends) -> PerCell:
        return -self.compound.lowest(low, high)

    def value(self, y: Values) -> PerRow:
        return -self.compound.value(y)

    def slopes(self, y: Values) -> Values:
        return -self.compound.slopes(y)


@dataclass(frozen=True)
class Deviation(Compound):
    """`-|| mu(x) - reference ||_p`: the paper's delta-robustness asks whether it is >= -delta.

    The bounds: an l_p norm does not decrease in |coordinates|. One output: exact.
    """

    reference: tuple[float, ...]
    errors: tuple[float, ...]
    """The real reference lies within these of the floats above; counted on the safe side."""

    norm: float

    @property
    def parts(self) -> tuple[Mean, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The means."""
        return tuple(Mean(c, 1) for c in range(len(self.reference)))

    @property
    def known(self) -> tuple[float, float]:
        """A distance is not negative."""
        return -math.inf, 0.0

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """The norm of the coordinates' largest deviations."""
        xp = namespace(low[0])
        spreads = [xp.maximum(*both) for both in self._sides(low, high)]  # NaN stays
        spread = nonnegative(xp.stack(spreads, axis=1))
        finite = xp.all(xp.isfinite(spread), axis=1)
        safe = xp.where(finite[:, None], spread, xp.zeros_like(spread))
        return -xp.where(finite, norm_upper(safe, self.norm), math.inf)

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """The norm of the smallest ones."""
        xp = namespace(low[0])
        gaps = []
        for value, error, least, most in zip(self.reference, self.errors, low, high, strict=True):
            gap = xp.maximum(down(least - value, 2), down(value - most, 2))
            gaps.append(nonnegative(down(gap - error, 1)))
        return -norm_lower(xp.stack(gaps, axis=1), self.norm)

    def value(self, y: Values) -> PerRow:
        """Minus the norm."""
        return -deviation_of(y - np.asarray(self.reference), self.norm)[0]

    def slopes(self, y: Values) -> Values:
        """Minus a subgradient of the norm."""
        return -deviation_of(y - np.asarray(self.reference), self.norm)[1]

    def leading_part(self, low: Ends, high: Ends) -> tuple[PerCell, PerCell]:
        """The mean that may be farthest away."""
        sides = self._sides(low, high)
        xp = namespace(low[0])
        spreads = xp.stack([xp.maximum(*both) for both in sides], axis=1)
        part = xp.argmax(nonnegative(spreads), axis=1)
        wide = xp.stack([above > below for below, above in sides], axis=1)
        return part, wide[xp.arange(len(part), device=part.device), part]

    def _sides(self, low: Ends, high: Ends) -> list[tuple[Array, Array]]:
        """How far each mean may lie below and above its reference."""
        rows = zip(self.reference, self.errors, low, high, strict=True)
        return [
            (up(up(value - least, 2) + error, 1), up(up(most - value, 2) + error, 1))
            for value, error, least, most in rows
        ]


def means_of(outputs: int) -> list[Mean]:
    """What `deviations` reads: every mean, and its negative."""
    return [Mean(c, sign) for c in range(outputs) for sign in (1, -1)]


def deviations(
    asked: Sequence[Deviation], lower: np.ndarray, upper: np.ndarray
) -> tuple[Annotated[np.ndarray, "n"], Annotated[np.ndarray, "n"], Annotated[np.ndarray, "n"]]:
    """Bounds (n,) of the least deviation of each row, and at which mean's point the upper one is.

    `lower` (n, 2m) are lower bounds of `means_of` over each row's cell, `upper` what they are at
    most at points of it: no norm is below one coordinate.
    """
    reference = np.array([each.reference for each in asked])
    errors = np.array([each.errors for each in asked])
    low, high = lower[:, 0::2], -lower[:, 1::2]
    together: Any = Deviation(tuple(reference.T), tuple(errors.T), asked[0].norm)
    signs = np.tile([1.0, -1.0], reference.shape[1])
    gaps = down(np.repeat(reference, 2, axis=1) * signs - upper, 2)
    gaps = nonnegative(down(gaps - np.repeat(errors, 2, axis=1), 1))
    which = np.argmax(gaps, axis=1)
    least = np.asarray(together.lowest(list(low.T), list(high.T)))
    return least, -gaps[np.arange(len(which)), which], which


def deviation_of(gaps: np.ndarray, norm: float) -> tuple[np.ndarray, Annotated[np.ndarray, "n m"]]:
    """`||gaps||_p` of rows (n, m), and a (sub)gradient (n, m) of it.

    >>> deviation_of(np.array([[3.0, -4.0]]), 2.0)
    (array([5.]), array([[ 0.6, -0.8]]))
    """
    size = np.abs(gaps)
    if math.isinf(norm):
        value = size.max(axis=1)
        weight = (size == value[:, None]).astype(float)
    else:
        value = np.linalg.norm(gaps, ord=norm, axis=1)
        safe = np.where(value > 0, value, 1.0)[:, None]
        weight = (size / safe) ** (norm - 1.0)
    return value, weight * np.sign(gaps)


Weights = tuple[float, ...]


class LeastOfSums:
    """The least of weighted sums of numbers y_1, ..., y_k, in plain floating point."""

    weights: tuple[Weights, ...]

    def value(self, y: Values) -> PerRow:
        """The least sum (n,) of rows y (n, k)."""
        return np.min(y @ np.transpose(self.weights), axis=1)

    def slopes(self, y: Values) -> Values:
        """A subgradient (n, k): the weights of that sum."""
        weights = np.asarray(self.weights)
        return weights[np.argmin(y @ weights.T, axis=1)]


@dataclass(frozen=True, eq=False)
class ClassSums(LeastOfSums, Quantity):
    """`min_j sum_c weights_jc pi_c(x)`: a probability, its negative, or a decision's margin.

    `layout` says which outputs make up the latent differences and their covariance.
    """

    layout: ClassLayout
    likelihood: ClassLikelihood
    weights: tuple[Weights, ...]

    @property
    def negative(self) -> Quantity:
        """Minus a single sum; that of the least of several is none."""
        first, *others = self.weights
        return super().negative if others else replace(self, weights=(tuple(-w for w in first),))

    @property
    def known(self) -> tuple[float, float]:
        """The probabilities add up to one, so a sum lies between its least and greatest weight."""
        return min(map(min, self.weights)), min(map(max, self.weights))

    def lowest(self, low: PerCellAndClass, high: PerCellAndClass) -> PerCell:
        """Certified lower bound for all `low_c <= pi_c <= high_c` that add up to one."""
        xp, sums = namespace(low), []
        ends = [[end[:, c] for c in range(end.shape[1])] for end in (low, high)]
        for row in self.weights:
            total = row_sum(row, *ends)
            sums.append(xp.maximum(total, xp.full_like(total, min(row))))
        return least_of(sums)


def row_sum(weights: Weights, low: Ends, high: Ends) -> PerCell:
    """Lower bound (B,) of `sum_k w_k y_k` for `low_k <= y_k <= high_k`: each on the side of its
    weight, every product and every sum rounded down."""
    ends = ((w, low[k] if w > 0 else high[k]) for k, w in enumerate(weights) if w != 0.0)
    terms = [down(w * end, 1) for w, end in ends]
    return reduce(lambda total, term: down(total + term, 1), terms)


def margins(classes: int, winner: int, costs: Weights) -> tuple[Weights, ...]:
    """Weights of `costs_i p_i - costs_j p_j` for all j != i.

    >>> margins(3, 1, (1.0, 1.0, 2.0))
    ((-1.0, 1.0, 0.0), (0.0, 1.0, -2.0))
    """
    unit = np.eye(classes)
    return tuple(
        tuple((costs[winner] * unit[winner] - costs[other] * unit[other]).tolist())
        for other in range(classes)
        if other != winner
    )
