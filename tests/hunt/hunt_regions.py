"""Regions by their definition: membership and distances in exact rational arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import gpcert


@dataclass(frozen=True, eq=False)
class BoxSet:
    """`lower <= x <= upper`."""

    lower: np.ndarray
    upper: np.ndarray

    def build(self) -> Any:
        """The library's object."""
        return gpcert.Box(self.lower, self.upper)

    def holds(self, x: Any) -> bool:
        """Whether the point of floats lies in the real region."""
        rows = zip(_floats(x), self.lower.tolist(), self.upper.tolist(), strict=True)
        return all(low <= v <= high for v, low, high in rows)

    def hull(self) -> tuple[np.ndarray, np.ndarray]:
        """A box of floats about the region."""
        return self.lower, self.upper


@dataclass(frozen=True, eq=False)
class BallSet:
    """`||(x - center)_F||_p <= radius`, other features as in `center`, inside `domain`."""

    center: np.ndarray
    radius: float
    norm: float
    features: tuple[int, ...] | None
    domain: tuple[float, float] | None

    def arguments(self) -> dict[str, Any]:
        """What the verbs take beside centre and radius."""
        given = None if self.features is None else list(self.features)
        return {"norm": self.norm, "features": given, "domain": self.domain}

    def build(self) -> Any:
        """The library's object."""
        return gpcert.Ball(self.center, self.radius, **self.arguments())

    def holds(self, x: Any) -> bool:
        """Whether the point of floats lies in the real region; p is infinite or whole."""
        return self._fits(x) and self._within(x, self.radius)

    def at_distance(self, x: Any, radius: float) -> bool:
        """Whether the point is at most so far from the centre, in the directions allowed."""
        return self._fits(x) and (radius == np.inf or self._within(x, radius))

    def _fits(self, x: Any) -> bool:
        values = _floats(x)
        low, high = (-np.inf, np.inf) if self.domain is None else self.domain
        moving = set(range(len(values)) if self.features is None else self.features)
        fixed = all(
            v == c
            for j, (v, c) in enumerate(zip(values, self.center, strict=True))
            if j not in moving
        )
        return fixed and all(low <= v <= high for v in values)

    def _within(self, x: Any, radius: float) -> bool:
        steps = [
            abs(Fraction(v) - Fraction(float(c)))
            for v, c in zip(_floats(x), self.center, strict=True)
        ]
        if self.norm == np.inf:
            return max(steps) <= Fraction(radius)
        p = int(self.norm)
        return sum((s**p for s in steps), Fraction(0)) <= Fraction(radius) ** p

    def hull(self) -> tuple[np.ndarray, np.ndarray]:
        """A box of floats about the region, up to rounding."""
        reach = np.zeros_like(self.center)
        reach[list(range(len(reach)) if self.features is None else self.features)] = self.radius
        low, high = (-np.inf, np.inf) if self.domain is None else self.domain
        return np.maximum(self.center - reach, low), np.minimum(self.center + reach, high)

    def scaled(self, radius: float) -> BallSet:
        """The same ball with another radius."""
        return BallSet(self.center, radius, self.norm, self.features, self.domain)


RegionSet = BoxSet | BallSet


def _floats(x: Any) -> list[float]:
    return [float(v) for v in np.asarray(x, dtype=np.float64)]


def candidates(region: RegionSet, rng: np.random.Generator, n: int) -> np.ndarray:
    """Points (n, d) in or near the region, by rejection of nothing: `inside` decides."""
    low, high = region.hull()
    u = rng.random((n, len(low)))
    u[: n // 4] = np.round(u[: n // 4])  # corners
    points = low + u * (high - low)
    return pulled(region, np.clip(points, low, high))


def pulled(region: RegionSet, points: np.ndarray) -> np.ndarray:
    """Points drawn towards the centre of a ball until they are about inside."""
    if isinstance(region, BoxSet) or region.norm == np.inf or region.radius == 0.0:
        return points
    steps = (points - region.center) / region.radius
    sizes = (np.abs(steps) ** region.norm).sum(axis=1) ** (1.0 / region.norm)
    factor = np.where(sizes > 1.0, (1.0 - 1e-14) / np.maximum(sizes, 1e-300), 1.0)
    return region.center + steps * factor[:, None] * region.radius


def inside(region: RegionSet, points: np.ndarray) -> np.ndarray:
    """The points that are proved to lie in the region."""
    finite = [x for x in points if np.all(np.isfinite(x))]
    kept = [x for x in finite if region.holds(x)]
    return np.array(kept).reshape(len(kept), points.shape[1])


def corners(region: RegionSet, most: int = 8) -> np.ndarray:
    """Some corners of the hull, drawn inside."""
    low, high = region.hull()
    d = len(low)
    choices = list(product((0, 1), repeat=d))[:most] if d <= 3 else [(0,) * d, (1,) * d]
    points = np.array([[high[j] if s else low[j] for j, s in enumerate(c)] for c in choices])
    return pulled(region, points)
