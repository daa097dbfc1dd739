"""GPflow kernels as kernels of ours; one small converter a kernel class.

The library's parametrisations that differ from ours:

    Exponential   v exp(-r / 2)                                  Matern 1/2 of twice the length,
    Periodic      of a SquaredExponential: v exp(-1/2 sum_j (sin(pi d_j / p_j) / l_j)^2); our
                  length-scale is twice it,
    Cosine        v cos(2 pi sum_j d_j / l_j).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters.kernel_tree import (
    Converted,
    Converter,
    KernelTree,
    number,
    polynomial,
    vector,
)
from gpcert.adapters.library import library
from gpcert.errors import UnsupportedModelError
from gpcert.kernels import (
    Constant,
    Cosine,
    Kernel,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
)

gk: Any = library("gpflow.kernels")


def _matern(nu: float, factor: float = 1.0) -> Converter:
    def converter(kernel: Any, d: int) -> Kernel:
        return Matern(factor * vector(kernel, "lengthscales"), nu, number(kernel, "variance"))

    return converter


def _rational_quadratic(kernel: Any, d: int) -> Kernel:
    alpha, variance = number(kernel, "alpha"), number(kernel, "variance")
    return RationalQuadratic(vector(kernel, "lengthscales"), alpha, variance)


def _periodic(kernel: Any, d: int) -> Kernel:
    base = kernel.base_kernel
    if type(base) is not gk.SquaredExponential:
        raise UnsupportedModelError(
            f"Periodic of a {type(base).__name__} is not supported (supported: of a "
            "SquaredExponential)"
        )
    lengths = 2.0 * vector(base, "lengthscales")
    return Periodic(vector(kernel, "period"), lengths, number(base, "variance"))


def _cosine(kernel: Any, d: int) -> Kernel:
    frequency = 2.0 * np.pi / vector(kernel, "lengthscales")
    return Cosine(np.broadcast_to(frequency, (d,)), number(kernel, "variance"))


def _polynomial(kernel: Any, d: int) -> Kernel:
    degree = np.asarray(kernel.degree)
    return polynomial(kernel, degree, vector(kernel, "variance"), number(kernel, "offset"))


TREE = KernelTree(
    converters={
        gk.SquaredExponential: lambda kernel, d: SquaredExponential(
            vector(kernel, "lengthscales"), number(kernel, "variance")
        ),
        gk.Matern12: _matern(0.5),
        gk.Matern32: _matern(1.5),
        gk.Matern52: _matern(2.5),
        gk.Exponential: _matern(0.5, 2.0),
        gk.RationalQuadratic: _rational_quadratic,
        gk.Periodic: _periodic,
        gk.Cosine: _cosine,
        gk.Linear: lambda kernel, d: Linear(vector(kernel, "variance")),
        gk.Polynomial: _polynomial,
        gk.Constant: lambda kernel, d: Constant(number(kernel, "variance")),
        gk.White: lambda kernel, d: Converted(d, None, number(kernel, "variance")),
    },
    sums=gk.Sum,
    products=gk.Product,
    parts=lambda kernel: kernel.kernels,
    dimensions=lambda kernel, d: np.arange(d)[kernel.active_dims].tolist(),
    example="SquaredExponential",
)

convert_kernel = TREE.convert
