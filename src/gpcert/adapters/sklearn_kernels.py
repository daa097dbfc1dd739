"""scikit-learn kernel expressions as kernels of ours; one small converter a kernel class.

Sums, products and powers convert part by part; `WhiteKernel` counts on the diagonal only, see
`gpcert.adapters.kernel_tree`.

>>> k, white = convert_kernel(2.0 * sk.RBF([1.0, 3.0]) + sk.WhiteKernel(0.5), 2)
>>> k.config(), white
({'length_scale': [1.0, 3.0], 'variance': 2.0}, 0.5)
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as sk

from gpcert import kernels as ours
from gpcert.adapters import kernel_tree as tree
from gpcert.adapters.kernel_tree import Converted
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import Kernel
from gpcert.kernels.algebra import power_of, sum_of


def _constant(kernel: sk.ConstantKernel, d: int) -> Converted:
    value = tree.number(kernel, "constant_value")
    return Converted(d, ours.Constant(value) if value else None)


def _matern(kernel: sk.Matern, d: int) -> Kernel:
    nu = float(kernel.nu)
    if nu == np.inf:
        return ours.SquaredExponential(tree.vector(kernel, "length_scale"))
    if not (nu - 0.5).is_integer() or nu > HIGHEST_NU:
        raise UnsupportedModelError(
            f"Matern with nu={nu:g} is not supported (supported: 0.5, 1.5, ..., {HIGHEST_NU} and "
            "inf; others have no closed form)"
        )
    return ours.Matern(tree.vector(kernel, "length_scale"), nu)


def _dot_product(kernel: sk.DotProduct, d: int) -> Kernel:
    bias = tree.number(kernel, "sigma_0") ** 2
    return sum_of([ours.Linear(1.0), ours.Constant(bias)]) if bias else ours.Linear(1.0)


def _power(kernel: sk.Exponentiation, d: int) -> Converted:
    base, p = TREE.called(kernel.kernel, d), tree.number(kernel, "exponent")
    try:
        smooth = None if base.kernel is None else power_of(base.kernel, p)
    except InputError as error:
        raise UnsupportedModelError(f"Exponentiation: {error}") from None
    # (k + w)^p on the diagonal is (k(x, x) + w)^p; what is not k(x, x)^p is white
    height = base.height() if base.white else 0.0
    white = (height + base.white) ** p - height**p if base.white else 0.0
    return Converted(d, smooth, white)


HIGHEST_NU = 10.5

PARAMETERS = tree.ParameterNames("length_scale")

TREE = tree.KernelTree(
    converters={
        sk.ConstantKernel: _constant,
        sk.WhiteKernel: tree.white("noise_level"),
        sk.RBF: PARAMETERS.radial(ours.SquaredExponential),
        sk.RationalQuadratic: PARAMETERS.radial(ours.RationalQuadratic, alpha="alpha"),
        sk.Matern: _matern,
        sk.ExpSineSquared: tree.on_one_feature(
            lambda kernel, d: ours.Periodic(
                tree.number(kernel, "periodicity"), tree.number(kernel, "length_scale")
            ),
            "it is periodic in the Euclidean distance and for more than one feature not positive "
            "definite, so that no Gaussian process has this covariance (see "
            "gpcert.kernels.Periodic for a product over features)",
        ),
        sk.DotProduct: _dot_product,
        sk.Exponentiation: _power,
    },
    sums=sk.Sum,
    products=sk.Product,
    parts=lambda kernel: (kernel.k1, kernel.k2),
    described=lambda kernel: f"the expression {kernel}",
    computed=("__call__", "diag"),
    example="ConstantKernel() * RBF() + WhiteKernel()",
)

convert_kernel = TREE.convert

LARGE_ALPHA = 1e6
"""Of a rational quadratic kernel beyond, `predict` computes `(1 + t / alpha)^-alpha` from a sum
that has lost the last digits of t: about alpha 2^-53 of the kernel's value."""


class _StableRationalQuadratic(sk.RationalQuadratic):
    """The same function without the loss: `exp(-alpha log1p(t / alpha))`."""

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        squares = cdist(np.atleast_2d(X), np.atleast_2d(X if Y is None else Y), "sqeuclidean")
        t = squares / (2.0 * self.length_scale**2)
        return np.exp(-self.alpha * np.log1p(t / self.alpha))


def loses_digits(kernel: Any) -> bool:
    """Whether an expression has a rational quadratic kernel with a large alpha."""
    return any(
        type(part) is sk.RationalQuadratic and part.alpha > LARGE_ALPHA for part in _leaves(kernel)
    )


def _leaves(kernel: Any) -> Iterator[Any]:
    parts = [getattr(kernel, name) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)]
    if not parts:
        yield kernel
    for part in parts:
        yield from _leaves(part)


def stable(model: Any) -> Any:
    """The fitted model; a copy that computes rational quadratic kernels without loss where it
    would lose digits."""
    if not loses_digits(model.kernel_):
        return model
    copied = deepcopy(model)
    for part in _leaves(copied.kernel_):
        if type(part) is sk.RationalQuadratic:
            part.__class__ = _StableRationalQuadratic
    return copied
