"""scikit-learn kernel expressions as kernels of ours; one small converter a kernel class.

Sums, products and powers convert part by part; `WhiteKernel` counts on the diagonal only, see
`gpcert.adapters.kernel_tree`.

>>> k, white = convert_kernel(2.0 * sk.RBF([1.0, 3.0]) + sk.WhiteKernel(0.5), 2)
>>> k.config(), white
({'length_scale': [1.0, 3.0], 'variance': 2.0}, 0.5)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

from gpcert.adapters.kernel_tree import Converted, KernelTree, one_feature
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
from gpcert.kernels.algebra import power_of, sum_of


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


def _matern(kernel: sk.Matern, d: int) -> Kernel:
    nu = float(kernel.nu)
    if nu == np.inf:
        return SquaredExponential(_lengths(kernel))
    if not (nu - 0.5).is_integer() or nu > HIGHEST_NU:
        raise UnsupportedModelError(
            f"Matern with nu={nu:g} is not supported (supported: 0.5, 1.5, ..., {HIGHEST_NU} and "
            "inf; others have no closed form)"
        )
    return Matern(_lengths(kernel), nu)


def _exp_sine_squared(kernel: sk.ExpSineSquared, d: int) -> Kernel:
    one_feature(
        kernel,
        d,
        "it is periodic in the Euclidean distance and for more than one feature not positive "
        "definite, so that no Gaussian process has this covariance (see gpcert.kernels.Periodic "
        "for a product over features)",
    )
    return Periodic(_number(kernel, "periodicity"), _number(kernel, "length_scale"))


def _dot_product(kernel: sk.DotProduct, d: int) -> Kernel:
    bias = _number(kernel, "sigma_0") ** 2
    return sum_of([Linear(1.0), Constant(bias)]) if bias else Linear(1.0)


def _power(kernel: sk.Exponentiation, d: int) -> Converted:
    base, p = TREE.called(kernel.kernel, d), _number(kernel, "exponent")
    try:
        smooth = None if base.kernel is None else power_of(base.kernel, p)
    except InputError as error:
        raise UnsupportedModelError(f"Exponentiation: {error}") from None
    # (k + w)^p on the diagonal is (k(x, x) + w)^p; what is not k(x, x)^p is white
    height = base.height() if base.white else 0.0
    white = (height + base.white) ** p - height**p if base.white else 0.0
    return Converted(d, smooth, white)


HIGHEST_NU = 10.5

TREE = KernelTree(
    converters={
        sk.ConstantKernel: _constant,
        sk.WhiteKernel: lambda kernel, d: Converted(d, None, _number(kernel, "noise_level")),
        sk.RBF: lambda kernel, d: SquaredExponential(_lengths(kernel)),
        sk.RationalQuadratic: lambda kernel, d: RationalQuadratic(
            _lengths(kernel), _number(kernel, "alpha")
        ),
        sk.Matern: _matern,
        sk.ExpSineSquared: _exp_sine_squared,
        sk.DotProduct: _dot_product,
        sk.Exponentiation: _power,
    },
    sums=sk.Sum,
    products=sk.Product,
    parts=lambda kernel: (kernel.k1, kernel.k2),
    described=lambda kernel: f"the expression {kernel}",
    example="ConstantKernel() * RBF() + WhiteKernel()",
)

convert_kernel = TREE.convert
