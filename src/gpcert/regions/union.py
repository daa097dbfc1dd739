"""Several regions as one: a verdict is that of the worst, a range the union of the ranges.

Proofs: docs/mathematics.md, statement 13.14.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import (
    Array,
    Inputs,
    PerCell,
    PerVector,
    Vectors,
    namespace,
)
from gpcert.regions.base import Region
from gpcert.regions.cells import Cells


@dataclass(frozen=True, eq=False, init=False)
class Union(Region):
    """The points of any of several regions; they may overlap.

    What a cell stands for are the points of all parts in it, so a bound over a cell is the worst of
    those of the parts that it meets; a cell shrinks to the box around what it holds of them.

    >>> from gpcert.regions import Ball, Box
    >>> both = Union(Box([0.0, 0.0], [1.0, 1.0]), Ball([4.0, 0.0], 1.0, norm=2))
    >>> both.contains([[0.5, 0.5], [4.5, 0.5], [2.0, 0.5]]).tolist()
    [True, True, False]
    >>> halves, _ = both.root().split(np.array([0])).feasible()
    >>> halves.upper.tolist()
    [[1.0, 1.0], [5.0, 1.0]]
    """

    kind = "union"
    bounds_cells = True

    parts: tuple[Region, ...]
    lower: np.ndarray
    upper: np.ndarray

    def __init__(self, *parts: Region | Iterable[Region]) -> None:
        given: Any = parts[0] if len(parts) == 1 and not isinstance(parts[0], Region) else parts
        regions = tuple(given)
        if not regions or not all(isinstance(part, Region) for part in regions):
            raise InputError(f"Union: expected one or more regions, got {given!r}")
        dims = {part.dim for part in regions}
        if len(dims) > 1:
            raise InputError(f"Union: expected regions of one dimension, got {sorted(dims)}")
        names = {part.names for part in regions if part.names is not None}
        if len(names) > 1:
            raise InputError(f"Union: expected the same names in the same order, got {names}")
        lower = np.min([part.lower for part in regions], axis=0)
        upper = np.max([part.upper for part in regions], axis=0)
        self._set(parts=regions, lower=lower, upper=upper, center=regions[0].center.copy())
        self._set(names=next(iter(names), None))

    @classmethod
    def from_record(cls, **fields: Any) -> Union:
        return cls(*fields["parts"])

    def describe(self) -> dict[str, Any]:
        """`{"kind": "union", "parts"}`: the records of the parts."""
        return {"kind": self.kind, "parts": [part.describe() for part in self.parts]}

    def summary(self) -> str:
        return f"union of {len(self.parts)} regions: {'; '.join(map(str, self.parts))}"

    def renamed(self, names: Sequence[str]) -> Union:
        """The same region with the features in this order."""
        return Union(*(part.renamed(names) for part in self.parts))

    def values_of(self, feature: int) -> Annotated[np.ndarray, "k"] | None:
        each = [part.values_of(feature) for part in self.parts]
        few = [values for values in each if values is not None]
        return np.unique(np.concatenate(few)) if len(few) == len(each) else None

    # ---- points

    def contains(self, X: Any) -> Annotated[Array, "..."]:
        """Whether each row of X (n, d), or the point X (d,), is proved to lie in a part."""
        points, single = self._points(X)
        inside = np.any([np.asarray(part.contains(points)) for part in self.parts], axis=0)
        return inside[0] if single else inside

    def project(self, X: Any) -> Annotated[np.ndarray, "... d"]:
        """The nearest of the parts' projections."""
        points, single = self._points(X)
        projected = [np.asarray(part.project(points)) for part in self.parts]
        nearest = self._nearest(points, projected)
        return nearest[0] if single else nearest

    def _nearest(self, points: Inputs, candidates: list[np.ndarray]) -> Inputs:
        """Of one point per part (n, d) the nearest to each of the points."""
        width = np.where(self.upper > self.lower, self.upper - self.lower, 1.0)
        away = [np.sum(((each - points) / width) ** 2, axis=1) for each in candidates]
        return np.stack(candidates)[np.argmin(away, axis=0), np.arange(len(points))]

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """The best of the parts' points."""
        rows, single = self._points(g, "g")
        vertices = [np.asarray(part.linear_minimizer(rows)) for part in self.parts]
        least = np.argmin([np.sum(rows * each, axis=1) for each in vertices], axis=0)
        x = np.stack(vertices)[least, np.arange(len(rows))]
        return x[0] if single else x

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d), each of a random part."""
        rng = np.random.default_rng(random_state)
        points = np.stack([part.sample(n, rng) for part in self.parts])
        return points[rng.integers(0, len(self.parts), n), np.arange(n)]

    # ---- cells

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        """The boxes around what is left of the cells in the parts; empty where that is nothing."""
        xp = namespace(cells.lower)
        lower, upper = xp.full_like(cells.lower, xp.inf), xp.full_like(cells.upper, -xp.inf)
        empty = xp.ones_like(xp.sum(cells.lower, axis=-1)) > 0
        for part in self.parts:
            low, high, none = self._left_of(cells, part)
            lower = xp.where(none[:, None], lower, xp.minimum(lower, low))
            upper = xp.where(none[:, None], upper, xp.maximum(upper, high))
            empty = empty & none
        lower = xp.where(empty[:, None], cells.lower, lower)
        upper = xp.where(empty[:, None], cells.upper, upper)
        return cells.with_ends(lower, upper), empty

    def _left_of(self, cells: Cells, part: Region) -> tuple[Array, Array, PerCell]:
        """The ends of what is left of the cells in a part, and which hold nothing of it."""
        xp = namespace(cells.lower)
        low = xp.maximum(cells.lower, cells.placed(part.lower[self.free]))
        high = xp.minimum(cells.upper, cells.placed(part.upper[self.free]))
        none = xp.any(low > high, axis=-1)
        low = xp.where(none[:, None], cells.placed(part.lower[self.free]), low)
        high = xp.where(none[:, None], cells.placed(part.upper[self.free]), high)
        free = cells.placed(np.searchsorted(self.free, part.free))
        inner, missed = part.contract(Cells(part, low[:, free], high[:, free]))
        low[:, free], high[:, free] = inner.lower, inner.upper
        return low, high, none | missed

    def linear_minimum(self, cells: Cells, g: Vectors) -> PerVector:
        """The least of the parts' bounds."""
        xp = namespace(g)
        least = xp.full_like(g[..., 0], xp.inf) if g.shape[-1] else super().linear_minimum(cells, g)
        for part, same, none in self._parts_of(cells):
            bound = super().linear_minimum(cells, g)
            if same is not None:
                bound = part.linear_minimum(same, g)
            skipped = none[:, None] if g.ndim == 3 else none
            least = xp.where(skipped, least, xp.minimum(least, bound))
        return xp.where(xp.isinf(least) & (least > 0), super().linear_minimum(cells, g), least)

    def squared_norm_maximum(self, cells: Cells, weights: Array, unit: Array | None) -> PerCell:
        """The largest of the parts' bounds."""
        xp = namespace(cells.lower)
        box = super().squared_norm_maximum(cells, weights, unit)
        most = 0.0 * box
        for part, same, none in self._parts_of(cells):
            bound = box if same is None else part.squared_norm_maximum(same, weights, unit)
            most = xp.where(none, most, xp.maximum(most, bound))
        return most

    def _parts_of(self, cells: Cells) -> Iterable[tuple[Region, Cells | None, PerCell]]:
        """Each part with the cells as its own, where it moves the same features, and a mask of
        those that hold nothing of it."""
        for part in self.parts:
            _, _, none = self._left_of(cells, part)
            same = None
            if np.array_equal(part.free, self.free):
                same = Cells(part, cells.lower, cells.upper)
                vars(same).update(center=cells.center, half=cells.half)
            yield part, same, none
