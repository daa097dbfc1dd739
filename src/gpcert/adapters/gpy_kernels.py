"""GPy kernels as kernels of ours; one small converter a kernel class.

The library's parametrisations that differ from ours:

    RatQuad       v (1 + r^2 / 2)^-power              our length-scale is theirs / sqrt(power),
    StdPeriodic   v exp(-1/2 sum_j (sin(pi d_j / p_j) / l_j)^2)    our length-scale is twice it,
    Cosine        v cos(r), r the scaled distance     one feature only: else not positive definite,
    Poly          v (scale x.y + bias)^order.

>>> k, white = convert_kernel(gk.RBF(2, variance=3.0, lengthscale=2.0) + gk.White(2, 0.5), 2)
>>> k.config(), white
({'length_scale': 2.0, 'variance': 3.0}, 0.5)
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
from gpcert.kernels.algebra import scaled_by

gk: Any = library("GPy.kern")


def _rbf(kernel: Any, d: int) -> Kernel:
    return SquaredExponential(vector(kernel, "lengthscale"), number(kernel, "variance"))


def _matern(nu: float) -> Converter:
    def converter(kernel: Any, d: int) -> Kernel:
        return Matern(vector(kernel, "lengthscale"), nu, number(kernel, "variance"))

    return converter


def _rational_quadratic(kernel: Any, d: int) -> Kernel:
    power = number(kernel, "power")
    lengths = vector(kernel, "lengthscale") / np.sqrt(power)
    return RationalQuadratic(lengths, power, number(kernel, "variance"))


def _periodic(kernel: Any, d: int) -> Kernel:
    lengths = 2.0 * vector(kernel, "lengthscale")
    return Periodic(vector(kernel, "period"), lengths, number(kernel, "variance"))


def _cosine(kernel: Any, d: int) -> Kernel:
    if d != 1:
        raise UnsupportedModelError(
            f"Cosine on {d} features is not supported: it is a cosine of the Euclidean distance, "
            "which for more than one feature is not positive definite"
        )
    return Cosine([1.0 / number(kernel, "lengthscale")], number(kernel, "variance"))


def _polynomial(kernel: Any, d: int) -> Kernel:
    power = polynomial(kernel, kernel.order, number(kernel, "scale"), number(kernel, "bias"))
    return scaled_by(power, number(kernel, "variance"))


def _dimensions(kernel: Any, d: int) -> list[int]:
    # a sum or product hands all features to its parts, which select
    joined = type(kernel) in (gk.Add, gk.Prod)
    return list(range(d)) if joined else [int(j) for j in kernel.active_dims]


TREE = KernelTree(
    converters={
        gk.RBF: _rbf,
        gk.ExpQuad: _rbf,
        gk.Exponential: _matern(0.5),
        gk.OU: _matern(0.5),
        gk.Matern32: _matern(1.5),
        gk.Matern52: _matern(2.5),
        gk.RatQuad: _rational_quadratic,
        gk.StdPeriodic: _periodic,
        gk.Cosine: _cosine,
        gk.Linear: lambda kernel, d: Linear(vector(kernel, "variances")),
        gk.Poly: _polynomial,
        gk.Bias: lambda kernel, d: Constant(number(kernel, "variance")),
        gk.White: lambda kernel, d: Converted(d, None, number(kernel, "variance")),
    },
    sums=gk.Add,
    products=gk.Prod,
    parts=lambda kernel: kernel.parts,
    dimensions=_dimensions,
    example="GPy.kern.RBF",
)

convert_kernel = TREE.convert
