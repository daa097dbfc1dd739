"""How near the two ends of a goal's minimum must be, and which of them rounding keeps apart.

Proofs: docs/mathematics.md, statement 14.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import Reals, Rows
from gpcert.numerics.rounding import given, up

SHRUNK, SLACK = 2.0**-8, 0.1
"""A part of the worst box, so much smaller, and the part of a gap that it must gain: else splitting
goes on to no purpose."""

ROUNDED = 0.5
"""Part of a gap that bounds at single points must leave, which is rounding and nothing else."""

MOVED = 0.02
"""Part of a gap by which the least value known may have fallen since the last look."""


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Ends `lower <= upper` of a goal are near enough where `upper - lower` is at most the larger
    of `absolute` and `relative` times the goal's magnitude: what both ends prove of its distance
    from the nearest of its `zeros`.

    `absolute` is a number or one per goal (G,), `zeros` (G, k); by default 0 for each goal.

    >>> Tolerance(0.1, 0.01).needed(np.array([0.0, 1.0, 100.0])).round(2).tolist()
    [-0.1, 0.9, 99.01]
    """

    absolute: float | np.ndarray = 0.01
    relative: float = 0.0
    zeros: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name, value in (("tol", self.absolute), ("rtol", self.relative)):
            if not np.all(np.isfinite(value) & (np.asarray(value) >= 0)):
                raise InputError(f"{name}: expected a number >= 0, got {value!r}")
        if self.relative >= 1:
            raise InputError(f"rtol: expected a number below 1, got {self.relative!r}")

    @staticmethod
    def of(given: Any) -> Tolerance:
        """A number, or one per goal (G,), is absolute; a tolerance is itself."""
        return given if isinstance(given, Tolerance) else Tolerance(given)

    def needed(self, upper: Reals) -> Reals:
        """(..., G): the least lower ends that are near enough to the upper ones (..., G).

        Above a zero z, `upper - lower <= relative (lower - z)` where `lower - z` is at least
        `(upper - z) / (1 + relative)`; below it, where it is at least `(upper - z)(1 + relative)`.
        """
        needed = upper - self.absolute
        if self.relative > 0:
            zeros = np.zeros((1, 1)) if self.zeros is None else self.zeros
            away, rate = upper[..., None] - zeros, 1.0 + self.relative
            each = zeros + np.where(away > 0, away / rate, away * rate)
            # at most 9 roundings of the parts, which may cancel
            each = each + 1e-15 * (np.abs(zeros) + np.abs(away))
            needed = np.minimum(needed, given(np.max(each, axis=-1)))
        return np.minimum(up(needed, 1), upper)


@dataclass(frozen=True, eq=False)
class Resolution:
    """Which goals cannot be bounded much better, as rounding is what is left: `reached`, of any
    shape; `seen` are the least values known when that was last looked at. Only the effort depends
    on it: bounds hold whenever a search ends.

    A box is bounded no better than what lies in it, but for rounding that differs. So two bounds
    tell what splitting would leave: those of a small box and of a point, which a search of many
    boxes comes near, and which none surpasses.
    """

    reached: np.ndarray
    seen: np.ndarray

    @staticmethod
    def unknown(shape: tuple[int, ...]) -> Resolution:
        """Before the first look."""
        return Resolution(np.zeros(shape, dtype=bool), np.full(shape, np.inf))

    @staticmethod
    def around(
        points: Rows, widths: Rows, low: Reals, high: Reals
    ) -> tuple[np.ndarray, np.ndarray]:
        """Corners of boxes about points (n, f) inside [low, high], `SHRUNK` of these widths; then
        those of the points alone: (2 n, f)."""
        half = 0.5 * SHRUNK * widths
        small = np.maximum(points - half, low), np.minimum(points + half, high)
        return np.concatenate([small[0], points]), np.concatenate([small[1], points])

    @np.errstate(invalid="ignore")
    def looked(
        self, lower: Reals, upper: Reals, small: Reals, point: Reals, left_open: Reals
    ) -> Resolution:
        """What is known now: both ends, the least bounds of small boxes and of points, infinite
        where none was asked for, and whether such a small box keeps its goal open."""
        gap = upper - small
        still = self.seen - upper <= MOVED * gap
        idle = lower >= small - SLACK * gap
        rounded = upper - point >= ROUNDED * (upper - lower)
        return Resolution(self.reached | (left_open & still & idle & rounded), upper.copy())
