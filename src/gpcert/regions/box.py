"""An axis-aligned box."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.arrays import Inputs, finite_array
from gpcert.errors import InputError
from gpcert.regions.base import Region


@dataclass(frozen=True, eq=False, init=False)
class Box(Region):
    """`{x : lower <= x <= upper}`; a feature with equal ends is fixed.

    >>> box = Box([0.0, 2.0], [1.0, 2.0])
    >>> box.center, box.free
    (array([0.5, 2. ]), array([0]))
    >>> bool(box.contains([0.25, 2.0]))
    True
    """

    lower: np.ndarray
    upper: np.ndarray
    center: np.ndarray = field(repr=False)
    inner_lower: np.ndarray = field(repr=False)
    inner_upper: np.ndarray = field(repr=False)

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        low, high = finite_array("lower", lower, 1), finite_array("upper", upper, 1)
        if low.shape != high.shape or low.size == 0:
            raise InputError(
                "Box: expected lower and upper of the same length >= 1, "
                f"got shapes {low.shape} and {high.shape}"
            )
        crossed = np.flatnonzero(low > high)
        if crossed.size:
            j = int(crossed[0])
            raise InputError(
                f"Box: expected lower <= upper, got lower[{j}] = {low[j]} > "
                f"upper[{j}] = {high[j]} (and {crossed.size - 1} more); the box is empty"
            )
        # the halves avoid overflow; clipping undoes what their rounding may do
        middle = np.clip(0.5 * low + 0.5 * high, low, high)
        for name, value in (("lower", low), ("upper", high), ("center", middle)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "inner_lower", low)
        object.__setattr__(self, "inner_upper", high)

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        u = np.random.default_rng(random_state).random((n, self.dim))
        return self.project((1.0 - u) * self.lower + u * self.upper)

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """The corner that minimises `g.x`, with `center` where g is 0; exact.

        >>> Box([0, 0, 0], [1, 1, 1]).linear_minimizer([1.0, -1.0, 0.0])
        array([0. , 1. , 0.5])
        """
        rows, single = self._points(g, "g")
        x = np.where(rows > 0, self.lower, np.where(rows < 0, self.upper, self.center))
        return x[0] if single else x

    def describe(self) -> dict[str, Any]:
        return {"kind": "box", "lower": self.lower.tolist(), "upper": self.upper.tolist()}
