"""Regions: boxes, and balls in a norm, by their definitions in exact rational arithmetic.

A ball is `||((x_j - c_j) / r_j)_j||_p <= 1` over the features that may move; all others keep the
value of the centre, and every feature stays inside its domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gpcert_check.verdicts import BadFile, NotCovered


@dataclass(frozen=True)
class Region:
    """`low <= x <= high` exactly, and where p is 1 or 2 the ball of the centre and the radii."""

    low: list[Fraction]
    high: list[Fraction]
    center: list[float]
    radii: list[float]
    p: float

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.center)

    @property
    def free(self) -> list[int]:
        """The features that may move."""
        return [j for j in range(self.dim) if self.low[j] < self.high[j]]

    @property
    def round(self) -> bool:
        """Whether the ball says more than the box does."""
        return self.p != math.inf and len(self.free) > 1

    def contains(self, x: list[float]) -> bool:
        """Whether x lies in the region, exactly."""
        point = list(map(Fraction, x))
        if len(point) != self.dim:
            return False
        if not all(a <= v <= b for a, v, b in zip(self.low, point, self.high, strict=True)):
            return False
        if not self.round:
            return True
        parts = [
            abs(point[j] - Fraction(self.center[j])) / Fraction(self.radii[j]) for j in self.free
        ]
        return sum(part ** int(self.p) for part in parts) <= 1

    def misses(self, low: list[float], high: list[float]) -> bool:
        """Whether a box, given by the free features' ends, is proved to miss the ball."""
        if not self.round:
            return False
        total = Fraction(0)
        for j, a, b in zip(self.free, low, high, strict=True):
            gap = max(
                Fraction(a) - Fraction(self.center[j]), Fraction(self.center[j]) - Fraction(b)
            )
            total += (max(gap, Fraction(0)) / Fraction(self.radii[j])) ** int(self.p)
        return total > 1


def read_region(record: Any) -> Region:
    """The region of a header."""
    try:
        if record["kind"] == "box":
            return _box(record)
        if record["kind"] == "ball":
            return _ball(record)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise BadFile(f"region: expected a box or a ball, got {error!r}") from error
    raise NotCovered(f"region of kind {record['kind']!r}")


def _box(record: dict[str, Any]) -> Region:
    low, high = (list(map(Fraction, record[name])) for name in ("lower", "upper"))
    if len(low) != len(high) or not low or any(a > b for a, b in zip(low, high, strict=True)):
        raise BadFile("region: expected lower <= upper")
    middle = [float((a + b) / 2) for a, b in zip(low, high, strict=True)]
    middle = [float(a) if a == b else m for a, b, m in zip(low, high, middle, strict=True)]
    return Region(low, high, middle, [0.0] * len(low), math.inf)


def _ball(record: dict[str, Any]) -> Region:
    center = list(map(float, record["center"]))
    radius, p = record["radius"], float(record["norm"])
    radii = list(map(float, radius)) if isinstance(radius, list) else [float(radius)] * len(center)
    moving = range(len(center)) if record["features"] is None else record["features"]
    if len(radii) != len(center) or not center or not all(0 <= r < math.inf for r in radii):
        raise BadFile("region: expected one radius >= 0 for every feature")
    if p not in (1.0, 2.0, math.inf):
        raise NotCovered(f"a ball in the norm p = {p:g}; covered are 1, 2 and infinity")
    reach = [Fraction(r) if j in set(moving) else Fraction(0) for j, r in enumerate(radii)]
    low = [Fraction(c) - r for c, r in zip(center, reach, strict=True)]
    high = [Fraction(c) + r for c, r in zip(center, reach, strict=True)]
    domain = record["domain"] or [[-math.inf] * len(center), [math.inf] * len(center)]
    for j in range(len(center)):
        first, last = float(domain[0][j]), float(domain[1][j])
        if first > -math.inf:
            low[j] = max(low[j], Fraction(first))
        if last < math.inf:
            high[j] = min(high[j], Fraction(last))
        if not low[j] <= Fraction(center[j]) <= high[j]:
            raise BadFile("region: expected a centre inside the domain")
    return Region(low, high, center, [float(r) for r in reach], p)
