"""GPflow kernels as kernels of ours; one small converter a kernel class.

The library's parametrisations that differ from ours:

    Exponential   v exp(-r / 2)                                  Matern 1/2 of twice the length,
    Periodic      of a SquaredExponential: v exp(-1/2 sum_j (sin(pi d_j / p_j) / l_j)^2); our
                  length-scale is twice it,
    Cosine        v cos(2 pi sum_j d_j / l_j).

`White` counts in the diagonal only, as in scikit-learn: see `gpcert.adapters.sklearn_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np

from gpcert.adapters.sklearn_kernels import Converted
from gpcert.arrays import finite_array
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Cosine,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
)

__all__ = ["CONVERTERS", "convert_kernel"]

gk: Any = import_module("gpflow.kernels")


def convert_kernel(kernel: Any, features: int) -> tuple[Kernel, float]:
    """`(k, white)`: the kernel and the variance of its white part, for so many features."""
    try:
        converted = _convert(kernel, features)
        if converted.kernel is None:
            raise UnsupportedModelError("an expression without a smooth part is not supported")
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            f"kernel: {error}. Fit the model with a kernel such as SquaredExponential"
        ) from None
    return converted.kernel, converted.white


def _convert(kernel: Any, d: int) -> Converted:
    # By exact type: a subclass is another function.
    if type(kernel) is gk.Sum:
        return reduce(Converted.plus, [_convert(part, d) for part in kernel.kernels])
    if type(kernel) is gk.Product:
        return reduce(Converted.times, [_convert(part, d) for part in kernel.kernels])
    if type(kernel) is gk.White:
        return Converted(d, None, _number(kernel, "variance"))
    converter = CONVERTERS.get(type(kernel))
    if converter is None:
        names = ", ".join([*(kind.__name__ for kind in CONVERTERS), "White", "Sum", "Product"])
        raise UnsupportedModelError(
            f"{type(kernel).__name__} is not supported (supported: {names})"
        )
    dimensions = np.arange(d)[kernel.active_dims].tolist()
    inside = converter(kernel, len(dimensions))
    whole = dimensions == list(range(d))
    return Converted(d, inside if whole else ActiveDimensions(inside, dimensions))


def _vector(kernel: Any, name: str) -> np.ndarray:
    """A parameter: a number, or a vector of one an active feature."""
    values = finite_array(f"{type(kernel).__name__}.{name}", np.asarray(getattr(kernel, name)))
    return values.reshape(()) if values.size == 1 else values


def _number(kernel: Any, name: str) -> float:
    return float(_vector(kernel, name))


def _squared_exponential(kernel: Any, d: int) -> Kernel:
    return SquaredExponential(_vector(kernel, "lengthscales"), _number(kernel, "variance"))


def _matern(nu: float, factor: float = 1.0) -> Callable[[Any, int], Kernel]:
    def converter(kernel: Any, d: int) -> Kernel:
        return Matern(factor * _vector(kernel, "lengthscales"), nu, _number(kernel, "variance"))

    return converter


def _rational_quadratic(kernel: Any, d: int) -> Kernel:
    alpha, variance = _number(kernel, "alpha"), _number(kernel, "variance")
    return RationalQuadratic(_vector(kernel, "lengthscales"), alpha, variance)


def _periodic(kernel: Any, d: int) -> Kernel:
    base = kernel.base_kernel
    if type(base) is not gk.SquaredExponential:
        raise UnsupportedModelError(
            f"Periodic of a {type(base).__name__} is not supported (supported: of a "
            "SquaredExponential)"
        )
    lengths = 2.0 * _vector(base, "lengthscales")
    return Periodic(_vector(kernel, "period"), lengths, _number(base, "variance"))


def _cosine(kernel: Any, d: int) -> Kernel:
    frequency = 2.0 * np.pi / _vector(kernel, "lengthscales")
    return Cosine(np.broadcast_to(frequency, (d,)), _number(kernel, "variance"))


def _linear(kernel: Any, d: int) -> Kernel:
    return Linear(_vector(kernel, "variance"))


def _polynomial(kernel: Any, d: int) -> Kernel:
    degree: Any = np.asarray(kernel.degree)
    try:
        return Polynomial(degree, _vector(kernel, "variance"), _number(kernel, "offset"))
    except InputError as error:
        raise UnsupportedModelError(f"Polynomial: {error}") from None


def _constant(kernel: Any, d: int) -> Kernel:
    return Constant(_number(kernel, "variance"))


CONVERTERS: dict[type, Callable[[Any, int], Kernel]] = {
    gk.SquaredExponential: _squared_exponential,
    gk.Matern12: _matern(0.5),
    gk.Matern32: _matern(1.5),
    gk.Matern52: _matern(2.5),
    gk.Exponential: _matern(0.5, 2.0),
    gk.RationalQuadratic: _rational_quadratic,
    gk.Periodic: _periodic,
    gk.Cosine: _cosine,
    gk.Linear: _linear,
    gk.Polynomial: _polynomial,
    gk.Constant: _constant,
}
