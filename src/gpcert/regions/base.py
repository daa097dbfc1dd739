"""What every region of inputs can do.

Proofs: docs/mathematics.md, statement 13.5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpcert.arrays import Backend, backend_from_name, finite_array
from gpcert.errors import InputError
from gpcert.regions.cells import Cells


class NormConstraint(NamedTuple):
    """`||(x_free - center) / unit||_p <= radius`, p finite, two free features or more, radius > 0.

    `unit` (f,) is positive, one number per free feature, and then the radius is 1 (what underflows
    in a quotient or a product with a unit is then far below it); None stands for units of 1.
    """

    center: np.ndarray
    radius: float
    p: float
    unit: np.ndarray | None = None


class Region(ABC):
    """A compact set of inputs: a box, for a p-ball intersected with a norm constraint.

    Invariant: the real region lies inside `[lower, upper]` and contains every float point of
    `[inner_lower, inner_upper]` that satisfies `norm_constraint`. Where `lower == upper` the
    feature is fixed and both equal `center`. Regions are frozen records of host arrays.
    """

    center: np.ndarray
    """A point of the region, (d,)."""
    lower: np.ndarray
    """Outer bounding box, lower end, (d,)."""
    upper: np.ndarray
    """Outer bounding box, upper end, (d,)."""
    inner_lower: np.ndarray
    """Smallest floats that satisfy the interval constraints, (d,)."""
    inner_upper: np.ndarray
    """Largest floats that satisfy the interval constraints, (d,)."""

    @property
    def dim(self) -> int:
        """Number of features, d."""
        return int(self.center.shape[0])

    @cached_property
    def free(self) -> np.ndarray:
        """Indices of the features that may move."""
        return np.flatnonzero(self.lower < self.upper)

    @cached_property
    def fixed(self) -> np.ndarray:
        """Indices of the features that keep their value in `center`."""
        return np.flatnonzero(self.lower >= self.upper)

    @property
    def norm_constraint(self) -> NormConstraint | None:
        """The norm constraint that the bounding box does not already express, if any."""
        return None

    def contains(self, X: Any) -> np.ndarray:
        """Whether each row of X (n, d), or the point X (d,), is proved to lie in the region.

        The comparison with the inner interval is exact; a norm is rounded up before it is compared,
        so a point within some 100 ulp of a p-ball's sphere may be answered False.
        """
        points, single = self._points(X)
        inside = np.all((points >= self.inner_lower) & (points <= self.inner_upper), axis=1)
        inside &= self._norm_holds(points)
        return inside[0] if single else inside

    def project(self, X: Any) -> np.ndarray:
        """Points of the region near X: X clipped to the box, then drawn towards `center`.

        Every returned point satisfies `contains`. Nearest in the l_2 sense for a box and for an
        l_2-ball inside its domain; otherwise near, but not the nearest.
        """
        points, single = self._points(X)
        points = np.clip(points, self.inner_lower, self.inner_upper)
        points = self._shrink(points)
        return points[0] if single else points

    @abstractmethod
    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> np.ndarray:
        """Return n random points (n, d) that satisfy `contains`."""

    @abstractmethod
    def linear_minimizer(self, g: Any) -> np.ndarray:
        """A point that minimises `g.x` approximately and satisfies `contains`; g (d,) or (n, d)."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """A record that JSON can hold and `region_from_dict` turns back into the region."""

    def root(self, backend: str | Backend = "numpy") -> Cells:
        """The bounding box as one cell in the free coordinates, on a backend.

        >>> from gpcert.regions import Box
        >>> Box([0, 5, 1], [1, 5, 3]).root().upper
        array([[1., 3.]])
        """
        place = backend_from_name(backend)
        lower, upper = self.lower[self.free], self.upper[self.free]
        return Cells(self, place.asarray(lower[None, :]), place.asarray(upper[None, :]))

    def _norm_holds(self, points: np.ndarray) -> np.ndarray:
        """Whether the norm constraint is proved at points of the inner box."""
        return np.ones(points.shape[0], dtype=bool)

    def _shrink(self, points: np.ndarray) -> np.ndarray:
        """Points of the inner box drawn towards the centre until the norm constraint is proved."""
        return points

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
