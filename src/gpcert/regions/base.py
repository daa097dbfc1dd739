"""What every region of inputs can do: the protocol that searches, attacks and verbs ask.

Proofs: docs/mathematics.md, statements 13.5 and 13.10.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import (
    Array,
    Backend,
    Inputs,
    PerCell,
    PerCellAndFeature,
    PerVector,
    Rows,
    Vectors,
    backend_from_name,
    finite_array,
    namespace,
)
from gpcert.regions.cells import Cells, box_maximum, box_minimum
from gpcert.regions.norm_ball import NormConstraint

Halves = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Upper ends of the first of two boxes, lower and upper ends of the second, (n, f) each; the lower
ends of the first are those of the box that they are parts of."""

PULLS = (1.0, 1.0 - 2.0**-40, 1.0 - 2.0**-20, 0.99, 0.9, 0.75, 0.5, 0.25, 0.1, 0.01)
"""Parts of the way from the centre that `pulled_in` tries."""


class Region(ABC):
    """A compact set of inputs inside a bounding box.

    A region has a bounding box `[lower, upper]`, a `center` that lies in it, `contains`, `sample`
    and `describe`. What it knows beyond its box it says by the methods over cells, boxes in the
    free features (`gpcert.regions.Cells`): a cell stands for its points that lie in the region. By
    default these know the box alone, which is always valid. Each is a bound that verdicts rest on:

    - `contract`: smaller cells that hold the same points of the region, and which hold none;
    - `linear_minimum`: a lower bound of a linear function over the points of each cell;
    - `squared_norm_maximum`: an upper bound of a weighted squared distance from its centre.

    `project`, `sample`, `linear_minimizer`, `cell_centers` and `cuts` only say where to look;
    `halves` are part of a proof. Regions are frozen records of host arrays. Where `lower == upper`
    the feature is fixed.
    """

    kind: ClassVar[str] = ""
    """What records call it."""

    center: np.ndarray
    """A point of the region, (d,)."""
    lower: np.ndarray
    """Bounding box, lower end, (d,): every real point of the region lies above it."""
    upper: np.ndarray
    """Bounding box, upper end, (d,)."""

    names: tuple[str, ...] | None = None
    """The features' names, where the region was given by names."""

    bounds_cells: bool = False
    """Whether bounds over cells may be better than those of the cells' boxes."""
    held: tuple[np.ndarray, ...] = ()
    """Groups of fixed features that cells hold at values of their own: only of `Slices`."""
    is_box_or_ball: ClassVar[bool] = False
    """Whether the floats of the region are those between `inner_lower` and `inner_upper` that
    satisfy `norm_constraint`: such regions share batches."""

    @property
    def dim(self) -> int:
        """Number of features, d."""
        return int(self.lower.shape[0])

    @cached_property
    def free(self) -> Annotated[Array, "i"]:
        """Indices of the features that may move."""
        return np.flatnonzero(self.lower < self.upper)

    @cached_property
    def fixed(self) -> Annotated[Array, "i"]:
        """Indices of the features that keep their value in `center`."""
        return np.flatnonzero(self.lower >= self.upper)

    @cached_property
    def inner_lower(self) -> Annotated[np.ndarray, "d"]:
        """Where a local search may begin, (d,); of boxes and balls the smallest floats that satisfy
        the interval constraints."""
        return self.lower

    @cached_property
    def inner_upper(self) -> Annotated[np.ndarray, "d"]:
        """See `inner_lower`."""
        return self.upper

    def values_of(self, feature: int) -> Annotated[np.ndarray, "k"] | None:
        """The values that a feature takes in the region where they are few, else None."""
        fixed = self.lower[feature] >= self.upper[feature]
        return self.center[[feature]] if fixed else None

    @property
    def norm_constraint(self) -> NormConstraint | None:
        """The norm constraint that the bounding box does not already express, if any."""
        return None

    # ---- points

    @abstractmethod
    def contains(self, X: Any) -> Annotated[Array, "..."]:
        """Whether each row of X (n, d), or the point X (d,), is proved to lie in the region."""

    @abstractmethod
    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d) that satisfy `contains`."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """A record that JSON can hold, with `kind` and what `from_record` takes."""

    @classmethod
    def from_record(cls, **fields: Any) -> Region:
        """The region that `describe` wrote, with the same floats."""
        return cls(**fields)

    def renamed(self, names: Sequence[str]) -> Region:
        """The region of a model whose features have these names, in this order."""
        if self.names is not None and tuple(names) != self.names:
            raise InputError(f"region: expected the features {list(names)}, got {list(self.names)}")
        return self

    def summary(self) -> str:
        """The region in a few words, as records print it."""
        return f"{self.kind or type(self).__name__} in {len(self.free)} of {self.dim} features"

    def __str__(self) -> str:
        return self.summary()

    def project(self, X: Any) -> Annotated[np.ndarray, "... d"]:
        """Points of the region near X: X clipped to the box, then drawn towards `center`.

        Every returned point satisfies `contains`; it need not be the nearest.
        """
        points, single = self._points(X)
        points = self.pulled_in(np.clip(points, self.inner_lower, self.inner_upper))
        return points[0] if single else points

    def pulled_in(self, points: Inputs) -> Annotated[np.ndarray, "n d"]:
        """Points (n, d) moved towards `center` until they are in the region."""
        inside = np.zeros(len(points), dtype=bool)
        drawn = np.tile(self.center, (len(points), 1))
        for part in PULLS:
            out = np.flatnonzero(~inside)
            if len(out) == 0:
                break
            moved = self.center + part * (points[out] - self.center)
            moved = points[out] if part == 1.0 else np.clip(moved, self.lower, self.upper)
            held = np.asarray(self.contains(moved))
            drawn[out[held]], inside[out[held]] = moved[held], True
        return drawn

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point that satisfies `contains` and has a small `g.x`, g (d,) or (n, d); of a box the
        best corner, with `center` where g is 0.

        >>> from gpcert.regions import Ball, Box
        >>> Box([0, 0, 0], [1, 1, 1]).linear_minimizer([1.0, -1.0, 0.0])
        array([0. , 1. , 0.5])
        >>> Ball([0.0, 0.0], 5.0, norm=1).linear_minimizer([1.0, -2.0])
        array([0., 5.])
        """
        rows, single = self._points(g, "g")
        x = np.where(rows > 0, self.lower, np.where(rows < 0, self.upper, self.center))
        x = self.project(x)
        return x[0] if single else x

    # ---- cells

    def root(self, backend: str | Backend = "numpy") -> Cells:
        """The bounding box as one cell in the free coordinates, on a backend.

        >>> from gpcert.regions import Box
        >>> Box([0, 5, 1], [1, 5, 3]).root().upper
        array([[1., 3.]])
        """
        ends = (end[None, self.free] for end in (self.lower, self.upper))
        return Cells(self, *map(backend_from_name(backend).asarray, ends))

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        """Smaller cells that hold the same points of the region, and a mask (B,) of those that are
        proved to hold none (of which any box may be returned)."""
        xp = namespace(cells.lower)
        return cells, xp.zeros_like(xp.sum(cells.lower, axis=-1)) > 0

    def linear_minimum(self, cells: Cells, g: Vectors) -> PerVector:
        """Certified lower bound of `min g.(x - c)` over the region's points x of each cell, c its
        centre; g is (B, f) or (B, m, f). Over a box it is `-sum |g_j| half_j`."""
        half = cells.half[:, None, :] if g.ndim == 3 else cells.half
        return box_minimum(g, half)

    def squared_norm_maximum(self, cells: Cells, weights: Array, unit: Array | None) -> PerCell:
        """Certified upper bound (B,) of `sum_j weights_j ((x_j - c_j) / unit_j)^2` over the
        region's points x of each cell; weights (f,) >= 0, units powers of two or None for 1."""
        half = cells.half if unit is None else cells.half / unit
        return box_maximum(weights, half)

    def cell_centers(self, cells: Cells) -> PerCellAndFeature:
        """The points (B, f) of the cells about which they are described."""
        return cells.middle

    def cuts(self, middle: PerCellAndFeature) -> PerCellAndFeature:
        """Where cells with these middles (B, f) are halved: any points of the cells are valid."""
        return middle

    def halves(self, low: Rows, high: Rows, axis: Annotated[np.ndarray, "n"]) -> Halves:
        """Two boxes that hold every point of the region in each box [low, high] (n, f) of the free
        features, divided along `axis` (n,): those where `cuts` says, which share the cut."""
        rows, middle = np.arange(len(low)), np.clip(self.cuts(0.5 * low + 0.5 * high), low, high)
        first, second = high.copy(), low.copy()
        first[rows, axis] = second[rows, axis] = middle[rows, axis]
        return first, second, high

    # ---- for regions of this package

    def _set(self, **fields: Any) -> None:
        """Fields of the frozen record; arrays can only be read."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def _points(self, X: Any, name: str = "X") -> tuple[np.ndarray, bool]:
        """X as rows (n, d), and whether it was a single point."""
        points = finite_array(name, X)
        single = points.ndim == 1
        rows = points[None, :] if single else points
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise InputError(
                f"{name}: expected shape ({self.dim},) or (n, {self.dim}), got {points.shape}"
            )
        return rows, single
