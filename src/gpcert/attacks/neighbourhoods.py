"""Regions around many points at once: arrays instead of a loop over regions.

What is returned here is near enough for a search; whoever reports a point lets the region itself
(`Region.project`) have the last word on whether it lies inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpcert.errors import InputError
from gpcert.regions import Ball, Region
from gpcert.regions.base import unit_minimizer
from gpcert.regions.norms import norm


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """One region per point, all of one norm p: `lower <= x <= upper` and, for finite p,
    `||((x - center) / unit)_j||_p <= 1` over the features with a unit > 0; arrays (n, d).

    >>> both = Neighbourhoods.of([Ball([0.0, 0.0], 1.0, norm=2), Ball([5.0, 5.0], 2.0, norm=2)])
    >>> both.project(np.array([[3.0, 0.0], [5.0, 9.0]]), np.array([0, 1])).tolist()
    [[1.0, 0.0], [5.0, 7.0]]
    """

    center: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    unit: np.ndarray
    p: float

    @staticmethod
    def of(regions: Sequence[Region]) -> Neighbourhoods:
        """Stack regions; a box, or a ball of one free feature, has the norm infinity."""
        norms = {region.norm for region in regions if isinstance(region, Ball)}
        if len(norms) > 1:
            raise InputError(f"regions: expected balls of one norm, got {sorted(norms)}")
        p = norms.pop() if norms else math.inf
        if p < math.inf and not all(isinstance(region, Ball) for region in regions):
            raise InputError("regions: expected balls of one norm, or boxes; got both")
        units = [
            np.broadcast_to(region.radius, region.center.shape)
            if isinstance(region, Ball)
            else region.upper - region.lower
            for region in regions
        ]
        free = [region.inner_lower < region.inner_upper for region in regions]
        return Neighbourhoods(
            np.stack([region.center for region in regions]),
            np.stack([region.inner_lower for region in regions]),
            np.stack([region.inner_upper for region in regions]),
            np.where(np.stack(free), np.stack(units), 0.0),
            p,
        )

    def __len__(self) -> int:
        return len(self.center)

    def project(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """X (k, d) clipped to the boxes of the rows (k,), then drawn towards their centres."""
        x = np.clip(X, self.lower[rows], self.upper[rows])
        if self.p == math.inf:
            return x
        size = norm(self._scaled(x - self.center[rows], rows), self.p)
        shrink = 1.0 / np.maximum(size, 1.0)
        return self.center[rows] + (x - self.center[rows]) * shrink[:, None]

    def linear_minimizers(self, g: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Where `g.x` is least in each row's region, up to rounding."""
        low, high, center = self.lower[rows], self.upper[rows], self.center[rows]
        g = _finite_directions(g)
        if self.p == math.inf:
            return np.where(g > 0, low, np.where(g < 0, high, center))
        unit = self.unit[rows]
        a, b = self._scaled(low - center, rows), self._scaled(high - center, rows)
        y = unit_minimizer(g * unit, a, b, self.p)
        return self.project(center + unit * y, rows)

    def sample(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A random point in each row's region; see `Ball.sample`."""
        low, high, center = self.lower[rows], self.upper[rows], self.center[rows]
        v = rng.uniform(-1.0, 1.0, center.shape)
        if self.p == math.inf:
            return np.clip(low + 0.5 * (1.0 + v) * (high - low), low, high)
        free = self.unit[rows] > 0
        powers = rng.gamma(1.0 + 1.0 / self.p, size=v.shape) * free
        total = np.sum(np.abs(v) ** self.p * powers, axis=1) + rng.exponential(size=len(v))
        y = v * powers ** (1.0 / self.p) / (total ** (1.0 / self.p))[:, None]
        return self.project(center + self.unit[rows] * y, rows)

    def width(self, rows: np.ndarray) -> np.ndarray:
        """(k, d) widths of the boxes."""
        return self.upper[rows] - self.lower[rows]

    def _scaled(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """`y / unit`, 0 where a feature is fixed."""
        unit = self.unit[rows]
        return np.divide(y, unit, out=np.zeros_like(y), where=unit > 0)


def _finite_directions(g: np.ndarray) -> np.ndarray:
    """Gradients (k, d) up to a positive factor per row; what is not known is 0.

    >>> _finite_directions(np.array([[np.nan, 2e300], [0.0, 0.0]])).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    known = np.nan_to_num(g)
    largest = np.max(np.abs(known), axis=1, keepdims=True)
    return known / np.where(largest > 0, largest, 1.0)
