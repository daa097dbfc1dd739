"""Linear features z = W x + b in front of a kernel: what PCA and its like compute.

The stored float64 numbers W and b *are* the map: a bound is proved for `W x + b` in real
arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from gpcert.arrays import Inputs, finite_array
from gpcert.errors import InputError


@dataclass(frozen=True, eq=False)
class LinearMap:
    """`z = matrix x + shift`: matrix W (q, d), shift b (q,), 0 by default.

    >>> LinearMap([[1.0, 1.0]], [0.5])(np.array([[1.0, 2.0]])).tolist()
    [[3.5]]
    """

    matrix: Any
    shift: Any = None

    def __post_init__(self) -> None:
        matrix = finite_array("matrix of a linear map", self.matrix, ndim=2)
        shift = np.zeros(len(matrix)) if self.shift is None else self.shift
        shift = finite_array("shift of a linear map", shift, ndim=1)
        if matrix.size == 0 or len(shift) != len(matrix):
            raise InputError(
                "linear map: expected a matrix (q, d) and a shift (q,), q, d >= 1, got "
                f"{matrix.shape} and {shift.shape}"
            )
        for name, value in (("matrix", matrix), ("shift", shift)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def inputs(self) -> int:
        """d."""
        return self.matrix.shape[1]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Features (n, q) of X (n, d), in plain floating point."""
        return X @ self.matrix.T + self.shift

    def then(self, after: LinearMap) -> LinearMap:
        """This map and another after it, its numbers rounded: they define the new map."""
        return LinearMap(after.matrix @ self.matrix, after.matrix @ self.shift + after.shift)

    @cached_property
    def inverse(self) -> Annotated[np.ndarray, "d q"]:
        """(d, q): about a right inverse of W; for points to try, never for a bound."""
        return np.linalg.pinv(self.matrix)

    def preimage(self, Z: np.ndarray) -> Inputs:
        """Inputs (n, d) whose features are about Z (n, q), as far as there are any."""
        return (Z - self.shift) @ self.inverse.T
