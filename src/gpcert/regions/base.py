"""What every region of inputs can do, and the checks of its words: norm, radius, features, domain.

Proofs: docs/mathematics.md, statement 13.5.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpcert.arrays import Array, Backend, Inputs, backend_from_name, finite_array, number_array
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
    def free(self) -> Annotated[Array, "i"]:
        """Indices of the features that may move."""
        return np.flatnonzero(self.lower < self.upper)

    @cached_property
    def fixed(self) -> Annotated[Array, "i"]:
        """Indices of the features that keep their value in `center`."""
        return np.flatnonzero(self.lower >= self.upper)

    @property
    def norm_constraint(self) -> NormConstraint | None:
        """The norm constraint that the bounding box does not already express, if any."""
        return None

    def contains(self, X: Any) -> Annotated[Array, "..."]:
        """Whether each row of X (n, d), or the point X (d,), is proved to lie in the region.

        The comparison with the inner interval is exact; a norm is rounded up before it is compared,
        so a point within some 100 ulp of a p-ball's sphere may be answered False.
        """
        points, single = self._points(X)
        inside = np.all((points >= self.inner_lower) & (points <= self.inner_upper), axis=1)
        inside &= self._norm_holds(points)
        return inside[0] if single else inside

    def project(self, X: Any) -> Annotated[np.ndarray, "... d"]:
        """Points of the region near X: X clipped to the box, then drawn towards `center`.

        Every returned point satisfies `contains`. Nearest in the l_2 sense for a box and for an
        l_2-ball inside its domain; otherwise near, but not the nearest.
        """
        points, single = self._points(X)
        points = np.clip(points, self.inner_lower, self.inner_upper)
        points = self._shrink(points)
        return points[0] if single else points

    @abstractmethod
    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d) that satisfy `contains`."""

    @abstractmethod
    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
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


def check_norm(norm: float | str, name: str = "norm") -> float:
    """The exponent p in [1, inf] of a norm given as a number or `"inf"`."""
    try:
        p = float("nan" if isinstance(norm, bool | bytes) else norm)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: expected a number >= 1 or 'inf', got {norm!r}") from error
    if not p >= 1.0:
        raise InputError(f"{name}: expected p >= 1 (below, the ball is not convex), got {norm!r}")
    return p


def check_radius(radius: Any, dim: int) -> float | Annotated[np.ndarray, "d"]:
    """A finite radius >= 0, or one per feature: an array (dim,)."""
    values = finite_array("radius", radius)
    if values.shape not in {(), (dim,)}:
        raise InputError(
            f"radius: expected a number or {dim} numbers, one per feature (0 keeps a feature "
            f"fixed), got shape {values.shape}"
        )
    if np.any(values < 0):
        raise InputError(f"radius: expected numbers >= 0, got {radius!r}")
    if values.ndim == 0:
        return float(values)
    values.setflags(write=False)
    return values


def check_features(features: Any, dim: int) -> Annotated[Array, "i"]:
    """Sorted indices of the features that may move, from indices, a mask, or None for all."""
    if features is None:
        return np.arange(dim)
    if isinstance(features, str | bytes):
        raise InputError(
            f"features: expected a list of numbers or a mask, got {features!r}; names are "
            "understood by certify and the other verbs, which know the model's"
        )
    if np.ma.is_masked(features):
        raise InputError("features: expected a list of integers or a mask, got masked entries")
    try:
        given = np.asarray(features)
    except (TypeError, ValueError) as error:
        raise InputError(f"features: expected a list of integers, got {features!r}") from error
    if given.dtype == bool:
        if given.shape != (dim,):
            raise InputError(f"features: expected a mask of shape ({dim},), got {given.shape}")
        return np.flatnonzero(given)
    if given.shape == (0,):
        return np.arange(0)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            f"features: expected a list of integers or a mask of length {dim}, got {features!r}"
        )
    bad = given[(given < 0) | (given >= dim)]
    if bad.size:
        raise InputError(f"features: expected indices in 0..{dim - 1}, got {int(bad[0])}")
    index = np.unique(given)
    if index.size != given.size:
        raise InputError("features: expected distinct indices, got some twice")
    return index


def check_domain(
    domain: Any, center: np.ndarray
) -> tuple[Annotated[np.ndarray, "d"], Annotated[np.ndarray, "d"]] | None:
    """The ends (d,), (d,) of the valid inputs; infinite ends are allowed, the centre is inside."""
    if domain is None:
        return None
    try:
        low, high = (
            np.array(np.broadcast_to(number_array("domain", end), center.shape)) for end in domain
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"domain: expected (low, high), numbers or arrays of shape {center.shape}, got "
            f"{domain!r}; {error}"
        ) from error
    if np.any(np.isnan(low)) or np.any(np.isnan(high)):
        raise InputError("domain: expected numbers, got NaN; use -inf or inf for an open side")
    for side, excess in (("below", low - center), ("above", center - high)):
        if np.any(excess > 0):
            j = int(np.argmax(excess))
            raise InputError(
                f"center: expected inside the domain [{low[j]}, {high[j]}], got "
                f"center[{j}] = {center[j]}, {side} it by {excess[j]}; "
                "move the point or widen the domain"
            )
    return low, high


def number_or_text(value: float) -> float | str:
    """The number, or its name where JSON has none for it.

    >>> number_or_text(2.5), number_or_text(-math.inf)
    (2.5, '-inf')
    """
    return value if math.isfinite(value) else str(value)
