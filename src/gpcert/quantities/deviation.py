"""Minus the distance of the means from a reference value, over several outputs.

Proofs: docs/mathematics.md, statement 7.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from gpcert.arrays import Array, PerCell, PerRow, namespace
from gpcert.quantities.compound import Compound, Ends, Values
from gpcert.quantities.output import Mean
from gpcert.regions.norms import norm_lower, norm_upper
from gpcert.rounding import down, nonnegative, up

FIELDS = ("reference", "errors")


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
        spreads = [xp.where(above > below, above, below) for below, above in self._sides(low, high)]
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

    def pulled(self, low: Ends, high: Ends) -> tuple[PerCell, PerCell]:
        """The mean that may be farthest away."""
        sides = self._sides(low, high)
        xp = namespace(low[0])
        spreads = xp.stack([xp.maximum(*both) for both in sides], axis=1)
        part = xp.argmax(nonnegative(spreads), axis=1)
        wide = xp.stack([above > below for below, above in sides], axis=1)
        return part, wide[xp.arange(len(part), device=part.device), part]

    def _sides(self, low: Ends, high: Ends) -> list[tuple[Array, Array]]:
        """How far each mean may lie below and above its reference."""
        return [
            (up(up(value - least, 2) + error, 1), up(up(most - value, 2) + error, 1))
            for value, error, least, most in zip(
                self.reference, self.errors, low, high, strict=True
            )
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
    reference, errors = (np.array([getattr(d, name) for d in asked]) for name in FIELDS)
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
