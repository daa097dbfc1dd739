"""scikit-learn kernel expressions as kernels of ours; one small converter a kernel class.

Sums, products and powers convert part by part. scikit-learn's `WhiteKernel` is zero in `k(X, Z)`
even at x = z, and counts in `k(X, X)` and `diag(X)`: at new points it is an addition to the
variance, the `noise` of a `Posterior`. In a product it is multiplied by the other's k(x, x):

    (k1 + w1) (k2 + w2) = k1 k2 + [ w1 k2(x, x) + k1(x, x) w2 + w1 w2 ] on the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

from gpcert.arrays import finite_array
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
)
from gpcert.kernels.algebra import power_of, product_of, sum_of

__all__ = ["CONVERTERS", "Converted", "convert_kernel"]


@dataclass(frozen=True, eq=False)
class Converted:
    """An expression: its smooth part (None if it has none) and the variance of its white part."""

    features: int
    kernel: Kernel | None
    white: float = 0.0

    def plus(self, other: Converted) -> Converted:
        """The sum of two expressions."""
        parts = [k for k in (self.kernel, other.kernel) if k is not None]
        kernel = sum_of(parts) if parts else None
        return Converted(self.features, kernel, self.white + other.white)

    def times(self, other: Converted) -> Converted:
        """The product of two expressions; see the module."""
        white = self.white * other.white
        white += self.white * other.height() if self.white else 0.0
        white += other.white * self.height() if other.white else 0.0
        if self.kernel is None or other.kernel is None:
            return Converted(self.features, None, white)
        return Converted(self.features, product_of([self.kernel, other.kernel]), white)

    def height(self) -> float:
        """k(x, x) of the smooth part, which must not depend on x."""
        if self.kernel is None:
            return 0.0
        # two places with nothing in common: a kernel whose diagonal varies shows it
        X = np.stack([np.zeros(self.features), np.sqrt(2.0 + np.arange(self.features))])
        low, high = self.kernel.diagonal(X)
        if low != high:
            raise UnsupportedModelError(
                "WhiteKernel times a kernel whose k(x, x) varies is not supported: its noise would "
                "depend on the input"
            )
        return float(low)


def convert_kernel(kernel: Any, features: int) -> tuple[Kernel, float]:
    """`(k, white)`: the kernel and the variance of its white part, for so many features.

    >>> k, white = convert_kernel(2.0 * sk.RBF([1.0, 3.0]) + sk.WhiteKernel(0.5), 2)
    >>> k.config(), white
    ({'length_scale': [1.0, 3.0], 'variance': 2.0}, 0.5)
    """
    try:
        converted = _convert(kernel, features)
        if converted.kernel is None:
            raise UnsupportedModelError("an expression without a smooth part is not supported")
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            f"kernel: {error}; got the expression {kernel}. "
            "Fit the model with a kernel such as ConstantKernel() * RBF() + WhiteKernel()"
        ) from None
    return converted.kernel, converted.white


def _convert(kernel: Any, d: int) -> Converted:
    # By exact type: a subclass (Matern is one of RBF) is another function.
    converter = CONVERTERS.get(type(kernel))
    if converter is None:
        names = ", ".join(cls.__name__ for cls in CONVERTERS)
        raise UnsupportedModelError(
            f"{type(kernel).__name__} is not supported (supported: {names})"
        )
    return converter(kernel, d)


def _parameter(kernel: Any, name: str) -> np.ndarray:
    values = finite_array(f"{type(kernel).__name__}.{name}", getattr(kernel, name))
    if np.any(values < 0):
        raise InputError(
            f"{type(kernel).__name__}.{name}: expected numbers >= 0, got {values}; "
            "fit the model again with positive hyper-parameters"
        )
    return values


def _number(kernel: Any, name: str) -> float:
    return float(_parameter(kernel, name))


def _lengths(kernel: Any) -> np.ndarray:
    lengths = _parameter(kernel, "length_scale")
    return lengths.reshape(()) if lengths.size == 1 else lengths


def _constant(kernel: sk.ConstantKernel, d: int) -> Converted:
    value = _number(kernel, "constant_value")
    return Converted(d, Constant(value) if value else None)


def _white(kernel: sk.WhiteKernel, d: int) -> Converted:
    return Converted(d, None, _number(kernel, "noise_level"))


def _rbf(kernel: sk.RBF, d: int) -> Converted:
    return Converted(d, SquaredExponential(_lengths(kernel)))


def _rational_quadratic(kernel: sk.RationalQuadratic, d: int) -> Converted:
    return Converted(d, RationalQuadratic(_lengths(kernel), _number(kernel, "alpha")))


def _matern(kernel: sk.Matern, d: int) -> Converted:
    nu = float(kernel.nu)
    if nu == np.inf:
        return Converted(d, SquaredExponential(_lengths(kernel)))
    if not (nu - 0.5).is_integer() or nu > HIGHEST_NU:
        raise UnsupportedModelError(
            f"Matern with nu={nu:g} is not supported (supported: 0.5, 1.5, ..., {HIGHEST_NU} and "
            "inf; others have no closed form)"
        )
    return Converted(d, Matern(_lengths(kernel), nu))


def _exp_sine_squared(kernel: sk.ExpSineSquared, d: int) -> Converted:
    if d != 1:
        raise UnsupportedModelError(
            f"ExpSineSquared on {d} features is not supported: it is periodic in the Euclidean "
            "distance and for more than one feature not positive definite, so that no Gaussian "
            "process has this covariance (see gpcert.kernels.Periodic for a product over features)"
        )
    return Converted(d, Periodic(_number(kernel, "periodicity"), _number(kernel, "length_scale")))


def _dot_product(kernel: sk.DotProduct, d: int) -> Converted:
    bias = _number(kernel, "sigma_0") ** 2
    return Converted(d, sum_of([Linear(1.0), Constant(bias)]) if bias else Linear(1.0))


def _sum(kernel: sk.Sum, d: int) -> Converted:
    return _convert(kernel.k1, d).plus(_convert(kernel.k2, d))


def _product(kernel: sk.Product, d: int) -> Converted:
    return _convert(kernel.k1, d).times(_convert(kernel.k2, d))


def _power(kernel: sk.Exponentiation, d: int) -> Converted:
    base, p = _convert(kernel.kernel, d), _number(kernel, "exponent")
    try:
        smooth = None if base.kernel is None else power_of(base.kernel, p)
    except InputError as error:
        raise UnsupportedModelError(f"Exponentiation: {error}") from None
    # (k + w)^p on the diagonal is (k(x, x) + w)^p; what is not k(x, x)^p is white
    height = base.height() if base.white else 0.0
    white = (height + base.white) ** p - height**p if base.white else 0.0
    return Converted(d, smooth, white)


HIGHEST_NU = 10.5

CONVERTERS: dict[type, Callable[[Any, int], Converted]] = {
    sk.ConstantKernel: _constant,
    sk.WhiteKernel: _white,
    sk.RBF: _rbf,
    sk.RationalQuadratic: _rational_quadratic,
    sk.Matern: _matern,
    sk.ExpSineSquared: _exp_sine_squared,
    sk.DotProduct: _dot_product,
    sk.Sum: _sum,
    sk.Product: _product,
    sk.Exponentiation: _power,
}
