"""Mean functions of the libraries that are linear in the inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.arrays import finite_array
from gpcert.errors import UnsupportedModelError


@dataclass(frozen=True, eq=False)
class PriorMean:
    """`constant_c + slope_c.x`: constant (m,), slope (m, d).

    >>> both = PriorMean.of(1, 2, constant=3.0) + PriorMean.of(1, 2, slope=[[1.0, 0.5]])
    >>> both.at(np.array([[2.0, 4.0]])).tolist()
    [[7.0]]
    """

    constant: np.ndarray
    slope: np.ndarray

    @staticmethod
    def of(m: int, d: int, constant: object = 0.0, slope: object = 0.0) -> PriorMean:
        """Of m outputs and d inputs; a constant (or m) and slopes (m or 1, d), 0 for none."""
        parts = finite_array("mean", constant), finite_array("mean", slope)
        try:
            return PriorMean(np.broadcast_to(parts[0], (m,)), np.broadcast_to(parts[1], (m, d)))
        except ValueError as error:
            raise UnsupportedModelError(
                f"mean: expected a mean of {m} outputs and {d} inputs, got constants of shape "
                f"{parts[0].shape} and slopes of shape {parts[1].shape}"
            ) from error

    def __add__(self, other: PriorMean) -> PriorMean:
        return PriorMean(self.constant + other.constant, self.slope + other.slope)

    def at(self, X: np.ndarray) -> np.ndarray:
        """(n, m) at inputs (n, d)."""
        return X @ self.slope.T + self.constant
