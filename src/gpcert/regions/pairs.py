"""Pairs of a point of a region and another one near it, as points (x, s) of twice the features.

Proofs: docs/mathematics.md, statement 13.17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from gpcert.numerics.arrays import Array, Inputs, PerCell, PerCellAndFeature, PerFeature, namespace
from gpcert.numerics.rounding import norm_lower, norm_upper
from gpcert.regions.base import Region
from gpcert.regions.cells import Cells


@dataclass(frozen=True, eq=False, init=False)
class Pairs(Region):
    """`{(x, s) : x in region, ||s / radii||_p <= 1}`, s_j = 0 where the radius is 0: x and x + s
    are alike.

    >>> from gpcert.regions import Box
    >>> pairs = Pairs(Box([0.0, 0.0], [1.0, 0.0]), np.array([0.5, 0.25]), 2.0)
    >>> pairs.contains([[0.3, 0.0, 0.3, 0.1], [0.3, 0.0, 0.4, 0.2]]).tolist()
    [True, False]
    """

    bounds_cells = True

    region: Region
    radii: np.ndarray
    norm: float
    lower: np.ndarray
    upper: np.ndarray
    center: np.ndarray

    def __init__(self, region: Region, radii: PerFeature, norm: float) -> None:
        self._set(region=region, radii=np.array(radii, dtype=np.float64), norm=norm)
        self._set(lower=np.concatenate([region.lower, -self.radii]))
        self._set(upper=np.concatenate([region.upper, self.radii]))
        self._set(center=np.concatenate([region.center, np.zeros(len(radii))]))

    def _scaled(self, steps: Array) -> Array:
        """Steps (..., k) of the features that move over their radii: one rounding."""
        moving = self.radii > 0
        return steps[:, moving] / self.radii[moving]

    def contains(self, X: Any) -> Annotated[Array, "..."]:
        points, single = self._points(X)
        d = self.region.dim
        steps = points[:, d:]
        inside = np.asarray(self.region.contains(points[:, :d]))
        inside = inside & np.all(np.abs(steps) <= self.radii, axis=1)
        if not math.isinf(self.norm) and np.any(self.radii):
            inside &= np.asarray(norm_upper(self._scaled(steps), self.norm, 1)) <= 1.0
        return inside[0] if single else inside

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        rng = np.random.default_rng(random_state)
        steps = rng.uniform(-1.0, 1.0, (n, self.region.dim)) * self.radii
        return self.project(np.concatenate([self.region.sample(n, rng), steps], axis=1))

    def project(self, X: Any) -> Annotated[np.ndarray, "... d"]:
        """x is projected, s clipped and shortened."""
        points, single = self._points(X)
        d = self.region.dim
        steps = np.clip(points[:, d:], -self.radii, self.radii)
        if not math.isinf(self.norm) and np.any(self.radii):
            length = np.asarray(norm_upper(self._scaled(steps), self.norm, 1))
            steps = steps / np.maximum(length * (1.0 + 1e-12), 1.0)[:, None]
        points = np.concatenate([self.region.project(points[:, :d]), steps], axis=1)
        return points[0] if single else points

    def describe(self) -> dict[str, Any]:
        """`{"kind": "pairs", "region", "radii", "norm"}`."""
        about = {"region": self.region.describe(), "radii": self.radii.tolist()}
        return {"kind": "pairs", **about, "norm": self.norm}

    # ---- cells

    def _parts(self, cells: Cells) -> tuple[Cells, Array, Array]:
        """The cells of x, and the ends of s, in the free features of each."""
        k = len(self.region.free)
        first = Cells(self.region, cells.lower[:, :k], cells.upper[:, :k])
        return first, cells.lower[:, k:], cells.upper[:, k:]

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        """Those of x; none where the shortest s of a cell is too long (Statement 13.17)."""
        first, low, high = self._parts(cells)
        inner, empty = self.region.contract(first)
        xp = namespace(low)
        if not math.isinf(self.norm) and low.shape[1]:
            gaps = xp.clip(xp.maximum(low, -high), 0.0, None)
            radii = xp.asarray(self.radii[self.radii > 0], device=low.device)
            empty = empty | (norm_lower(gaps / radii, self.norm, 1) > 1.0)
        lower = xp.concat([inner.lower, low], axis=1)
        return cells.with_ends(lower, xp.concat([inner.upper, high], axis=1)), empty

    def cuts(self, middle: PerCellAndFeature) -> PerCellAndFeature:
        """As the region cuts x."""
        k, xp = len(self.region.free), namespace(middle)
        return xp.concat([self.region.cuts(middle[:, :k]), middle[:, k:]], axis=1)
