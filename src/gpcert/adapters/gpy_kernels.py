"""GPy kernels as kernels of ours; one small converter a kernel class.

The library's parametrisations that differ from ours:

    RatQuad       v (1 + r^2 / 2)^-power              our length-scale is theirs / sqrt(power),
    StdPeriodic   v exp(-1/2 sum_j (sin(pi d_j / p_j) / l_j)^2)    our length-scale is twice it,
    Cosine        v cos(r), r the scaled distance     one feature only: else not positive definite,
    Poly          v (scale x.y + bias)^order.

`White` counts in the diagonal only, as in scikit-learn: see `gpcert.adapters.sklearn_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
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
from gpcert.kernels.algebra import scaled_by

__all__ = ["CONVERTERS", "convert_kernel"]

gk: Any = import_module("GPy.kern")


def convert_kernel(kernel: Any, features: int) -> tuple[Kernel, float]:
    """`(k, white)`: the kernel and the variance of its white part, for so many features.

    >>> k, white = convert_kernel(gk.RBF(2, variance=3.0, lengthscale=2.0) + gk.White(2, 0.5), 2)
    >>> k.config(), white
    ({'length_scale': 2.0, 'variance': 3.0}, 0.5)
    """
    try:
        converted = _convert(kernel, features)
        if converted.kernel is None:
            raise UnsupportedModelError("an expression without a smooth part is not supported")
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            f"kernel: {error}. Fit the model with a kernel such as GPy.kern.RBF"
        ) from None
    return converted.kernel, converted.white


def _convert(kernel: Any, d: int) -> Converted:
    # By exact type: a subclass is another function.
    if type(kernel) is gk.Add:
        parts = [_convert(part, d) for part in kernel.parts]
        return _folded(parts, Converted.plus)
    if type(kernel) is gk.Prod:
        parts = [_convert(part, d) for part in kernel.parts]
        return _folded(parts, Converted.times)
    if type(kernel) is gk.White:
        return Converted(d, None, float(finite_array("White.variance", kernel.variance)[0]))
    converter = CONVERTERS.get(type(kernel))
    if converter is None:
        names = ", ".join([*(kind.__name__ for kind in CONVERTERS), "White", "Add", "Prod"])
        raise UnsupportedModelError(
            f"{type(kernel).__name__} is not supported (supported: {names})"
        )
    dimensions = [int(j) for j in kernel.active_dims]
    inside = converter(kernel, len(dimensions))
    whole = dimensions == list(range(d))
    return Converted(d, inside if whole else ActiveDimensions(inside, dimensions))


def _folded(parts: list[Converted], join: Callable[[Converted, Converted], Converted]) -> Converted:
    total = parts[0]
    for part in parts[1:]:
        total = join(total, part)
    return total


def _vector(kernel: Any, name: str) -> np.ndarray:
    """A parameter: a number, or a vector of one an active feature."""
    values = finite_array(f"{type(kernel).__name__}.{name}", getattr(kernel, name)).reshape(-1)
    return values.reshape(()) if values.size == 1 else values


def _number(kernel: Any, name: str) -> float:
    return float(_vector(kernel, name))


def _rbf(kernel: Any, d: int) -> Kernel:
    return SquaredExponential(_vector(kernel, "lengthscale"), _number(kernel, "variance"))


def _matern(nu: float) -> Callable[[Any, int], Kernel]:
    def converter(kernel: Any, d: int) -> Kernel:
        return Matern(_vector(kernel, "lengthscale"), nu, _number(kernel, "variance"))

    return converter


def _rational_quadratic(kernel: Any, d: int) -> Kernel:
    power = _number(kernel, "power")
    lengths = _vector(kernel, "lengthscale") / np.sqrt(power)
    return RationalQuadratic(lengths, power, _number(kernel, "variance"))


def _periodic(kernel: Any, d: int) -> Kernel:
    lengths = 2.0 * _vector(kernel, "lengthscale")
    return Periodic(_vector(kernel, "period"), lengths, _number(kernel, "variance"))


def _cosine(kernel: Any, d: int) -> Kernel:
    if d != 1:
        raise UnsupportedModelError(
            f"Cosine on {d} features is not supported: it is a cosine of the Euclidean distance, "
            "which for more than one feature is not positive definite"
        )
    return Cosine([1.0 / _number(kernel, "lengthscale")], _number(kernel, "variance"))


def _linear(kernel: Any, d: int) -> Kernel:
    return Linear(_vector(kernel, "variances"))


def _polynomial(kernel: Any, d: int) -> Kernel:
    try:
        power = Polynomial(kernel.order, _number(kernel, "scale"), _number(kernel, "bias"))
    except InputError as error:
        raise UnsupportedModelError(f"Poly: {error}") from None
    return scaled_by(power, _number(kernel, "variance"))


def _bias(kernel: Any, d: int) -> Kernel:
    return Constant(_number(kernel, "variance"))


CONVERTERS: dict[type, Callable[[Any, int], Kernel]] = {
    gk.RBF: _rbf,
    gk.ExpQuad: _rbf,
    gk.Exponential: _matern(0.5),
    gk.OU: _matern(0.5),
    gk.Matern32: _matern(1.5),
    gk.Matern52: _matern(2.5),
    gk.RatQuad: _rational_quadratic,
    gk.StdPeriodic: _periodic,
    gk.Cosine: _cosine,
    gk.Linear: _linear,
    gk.Poly: _polynomial,
    gk.Bias: _bias,
}
