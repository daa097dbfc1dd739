"""Prior means that are no linear functions: what a posterior adds to its kernel's part.

A mean m is known over a box by its value at the centre c and by an interval of its gradient:
`m(c + d) = m(c) + g.d`, g the middle of that interval, up to half its width times |d|, feature by
feature (mean value theorem): less than the square of the box where the gradient is Lipschitz
continuous.

Proofs: docs/mathematics.md, statement 18.7.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import Inputs, finite_array
from gpcert.numerics.rounding import down, up
from gpcert.utils.registry import Registry

Ends = tuple[np.ndarray, np.ndarray]


class MeanFunction(ABC):
    """m(z) of one or more outputs, as functions of what the kernel sees.

    `value_range` and `gradient_range` are bounds that verdicts rest on; `value` and `gradient` are
    plain floating point. Frozen dataclasses whose fields are numbers, text or lists of these can be
    saved (`name`, and the decorator `gpcert.functions.register_mean`).
    """

    name: ClassVar[str] = ""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many outputs it has."""

    @abstractmethod
    def value(self, Z: Inputs) -> Annotated[np.ndarray, "n m"]:
        """m(z) of rows (n, d)."""

    @abstractmethod
    def gradient(self, Z: Inputs) -> Annotated[np.ndarray, "n m d"]:
        """dm / dz."""

    @abstractmethod
    def value_range(self, Z: Inputs) -> Ends:
        """Ends (n, m), (n, m) of m at the float points Z, which their rounding is part of."""

    @abstractmethod
    def gradient_range(self, lower: Inputs, upper: Inputs) -> Ends:
        """Ends (n, m, d) of the gradient over the boxes [lower, upper] (n, d)."""

    def config(self) -> dict[str, Any]:
        """The fields, as JSON holds them."""
        return {name: _plain(value) for name, value in vars(self).items() if name != "terms"}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


@dataclass(frozen=True, eq=False)
class PolynomialMean(MeanFunction):
    """`m_c(z) = sum_q coefficients_cq prod_j z_j^powers_qj`.

    >>> cubic = PolynomialMean([[0], [3]], [[1.0, 2.0]])
    >>> cubic.value(np.array([[2.0]])).tolist(), cubic.gradient(np.array([[2.0]])).tolist()
    ([[17.0]], [[[24.0]]])
    """

    powers: Any
    """(q, d) whole numbers."""

    coefficients: Any
    """(m, q), or (q,) of one output."""

    name: ClassVar[str] = "polynomial"

    def __post_init__(self) -> None:
        powers = finite_array("powers", self.powers, ndim=2)
        coefficients = np.atleast_2d(finite_array("coefficients", self.coefficients))
        if coefficients.shape[1:] != powers.shape[:1] or np.any(powers != np.rint(np.abs(powers))):
            raise InputError(
                "PolynomialMean: expected powers (q, d), whole numbers, and coefficients (m, q), "
                f"got {powers.tolist()} and coefficients of shape {coefficients.shape}"
            )
        for name, each in (("powers", powers.astype(int)), ("coefficients", coefficients)):
            each.setflags(write=False)
            object.__setattr__(self, name, each)

    @property
    def outputs(self) -> int:
        return len(self.coefficients)

    def value(self, Z: Inputs) -> Annotated[np.ndarray, "n m"]:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.prod(Z[:, None, :] ** self.powers, axis=2) @ self.coefficients.T

    def gradient(self, Z: Inputs) -> Annotated[np.ndarray, "n m d"]:
        return np.stack([part.value(Z) for part in self.terms], axis=2)

    @cached_property
    def terms(self) -> tuple[PolynomialMean, ...]:
        """The derivatives by each feature, but for the factors `powers_j` that these terms carry:
        whole numbers, so that products with coefficients round once."""
        parts = []
        for j in range(self.powers.shape[1]):
            lowered = self.powers.copy()
            lowered[:, j] = np.maximum(lowered[:, j] - 1, 0)
            parts.append(PolynomialMean(lowered, self.coefficients * self.powers[:, j]))
        return tuple(parts)

    def value_range(self, Z: Inputs) -> Ends:
        return self._range(Z, Z, False)

    def gradient_range(self, lower: Inputs, upper: Inputs) -> Ends:
        low, high = zip(*(part._range(lower, upper, True) for part in self.terms), strict=True)
        return np.stack(low, axis=2), np.stack(high, axis=2)

    @np.errstate(over="ignore", invalid="ignore")
    def _range(self, lower: Inputs, upper: Inputs, rounded: bool) -> Ends:
        """Interval arithmetic, each product and sum rounded outwards; coefficients may carry one
        rounding. What leaves float64 is not known."""
        low = np.zeros((len(lower), self.outputs))
        high = low.copy()
        for exponents, weights in zip(self.powers, self.coefficients.T, strict=True):
            product = np.ones(len(lower)), np.ones(len(lower))
            for j in np.flatnonzero(exponents):
                product = _product(product, _power(lower[:, j], upper[:, j], int(exponents[j])))
            ends = (down(weights, 1), up(weights, 1)) if rounded else (weights, weights)
            term = _product((product[0][:, None], product[1][:, None]), ends)
            none = weights == 0.0
            low = np.where(none, low, down(low + term[0], 1))
            high = np.where(none, high, up(high + term[1], 1))
        low = np.where(np.isnan(low), -np.inf, low)
        return low, np.where(np.isnan(high), np.inf, high)


def _product(a: Ends, b: Ends) -> Ends:
    corners = np.stack([x * y for x in a for y in b])
    return down(corners.min(axis=0), 1), up(corners.max(axis=0), 1)


def _power(low: np.ndarray, high: np.ndarray, p: int) -> Ends:
    """The range of x^p over [low, high]: at the ends, or 0 inside for even p."""
    ends = np.ones_like(low), np.ones_like(high)
    for _ in range(p):
        ends = ends[0] * low, ends[1] * high
    least, most = np.minimum(*ends), np.maximum(*ends)
    if p % 2 == 0:
        least = np.where((low <= 0.0) & (high >= 0.0), 0.0, least)
        return np.maximum(down(least, p), 0.0), up(most, p)
    return down(least, p), up(most, p)


MEANS: Registry[type[MeanFunction]] = Registry("mean function", MeanFunction, (PolynomialMean,))
"""Every mean function by the name that saved posteriors carry."""

register_mean = MEANS.register
"""Let saved posteriors hold a mean function of your own, as a decorator."""


def mean_from_config(name: str, config: dict[str, Any]) -> MeanFunction:
    """Rebuild the mean that `name` and `config()` describe."""
    return MEANS.built(name, lambda kind: kind(**config))
