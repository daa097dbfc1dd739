"""GPyTorch kernels as kernels of ours; one small converter a kernel class.

The library's parametrisations that differ from ours:

    PeriodicKernel   exp(-2 sum_j sin^2(pi d_j / p_j) / l_j)       our l_j is the root of theirs,
    CosineKernel     cos(pi |d| / p)                               one feature only: see below,
    SpectralMixture  prod_j sum_q w_q exp(-2 (pi s_qj d_j)^2) cos(2 pi m_qj d_j), a product over
                     features of mixtures,
    LinearKernel     sum_j v_j x_j y_j,     PolynomialKernel  (x.y + offset)^power.

A kernel selects its `active_dims` when it is called; `ScaleKernel` takes over those of the kernel
inside and calls its formula without selecting again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpcert.adapters.torch_models import gpytorch, numbers, one, supported_names
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
    SpectralMixture,
    SquaredExponential,
)
from gpcert.kernels.algebra import product_of, scaled_by, sum_of

__all__ = ["CONVERTERS", "convert_kernel"]

gk: Any = gpytorch.kernels


def convert_kernel(kernel: Any, features: int) -> Kernel:
    """The kernel as one of ours, for inputs with so many features.

    >>> k = convert_kernel(gk.ScaleKernel(gk.RBFKernel(ard_num_dims=2)).double(), 2)
    >>> k.name, k.length_scale.round(4).tolist()
    ('squared_exponential', [0.6931, 0.6931])
    """
    try:
        return _called(kernel, features)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            f"kernel: {error}; got {_described(kernel)}. Train the model with a kernel such as "
            "ScaleKernel(RBFKernel())"
        ) from None


def _called(kernel: Any, d: int) -> Kernel:
    """What calling the kernel computes: its formula on its active features."""
    if getattr(kernel, "active_dims", None) is None:
        return _formula(kernel, d)
    dimensions = [int(j) for j in kernel.active_dims.tolist()]
    inside = _formula(kernel, len(dimensions))
    return inside if dimensions == list(range(d)) else ActiveDimensions(inside, dimensions)


def _formula(kernel: Any, d: int) -> Kernel:
    # By exact type: a subclass (RBFKernelGrad is one of RBFKernel) is another function.
    converter = CONVERTERS.get(type(kernel))
    if converter is None:
        raise UnsupportedModelError(
            f"{type(kernel).__name__} is not supported (supported: {supported_names(CONVERTERS)})"
        )
    if len(kernel.batch_shape) > 0:
        raise UnsupportedModelError(
            f"{type(kernel).__name__} with batch_shape {tuple(kernel.batch_shape)} is not "
            "supported here: one kernel an output is expected"
        )
    return converter(kernel, d)


def _described(kernel: Any) -> str:
    parts = [_described(part) for part in kernel.sub_kernels()]
    return type(kernel).__name__ + (f"({', '.join(parts)})" if parts else "")


def _lengths(kernel: Any) -> np.ndarray:
    lengths = numbers(f"{type(kernel).__name__}.lengthscale", kernel.lengthscale).reshape(-1)
    return lengths.reshape(()) if lengths.size == 1 else lengths


def _rbf(kernel: Any, d: int) -> Kernel:
    return SquaredExponential(_lengths(kernel))


def _matern(kernel: Any, d: int) -> Kernel:
    return Matern(_lengths(kernel), float(kernel.nu))


def _rational_quadratic(kernel: Any, d: int) -> Kernel:
    return RationalQuadratic(_lengths(kernel), one("RQKernel.alpha", kernel.alpha))


def _periodic(kernel: Any, d: int) -> Kernel:
    periods = numbers("PeriodicKernel.period_length", kernel.period_length).reshape(-1)
    periods = periods.reshape(()) if periods.size == 1 else periods
    return Periodic(periods, np.sqrt(_lengths(kernel)))


def _cosine(kernel: Any, d: int) -> Kernel:
    if d != 1:
        raise UnsupportedModelError(
            f"CosineKernel on {d} features is not supported: it is a cosine of the Euclidean "
            "distance, which for more than one feature is not positive definite, so that no "
            "Gaussian process has this covariance"
        )
    period = one("CosineKernel.period_length", kernel.period_length)
    return Cosine([np.pi / period])


def _linear(kernel: Any, d: int) -> Kernel:
    weights = numbers("LinearKernel.variance", kernel.variance).reshape(-1)
    return Linear(weights.reshape(()) if weights.size == 1 else weights)


def _polynomial(kernel: Any, d: int) -> Kernel:
    try:
        return Polynomial(kernel.power, 1.0, one("PolynomialKernel.offset", kernel.offset))
    except InputError as error:
        raise UnsupportedModelError(f"PolynomialKernel: {error}") from None


def _spectral_mixture(kernel: Any, d: int) -> Kernel:
    variances = numbers("mixture_weights", kernel.mixture_weights).reshape(-1)
    shape = (len(variances), d)
    frequencies = 2.0 * np.pi * numbers("mixture_means", kernel.mixture_means).reshape(shape)
    lengths = 0.5 / (np.pi * numbers("mixture_scales", kernel.mixture_scales).reshape(shape))
    parts = [
        SpectralMixture(variances, frequencies[:, j : j + 1], lengths[:, j : j + 1])
        for j in range(d)
    ]
    if d == 1:
        return parts[0]
    return product_of([ActiveDimensions(part, (j,)) for j, part in enumerate(parts)])


def _constant(kernel: Any, d: int) -> Kernel:
    return Constant(one("ConstantKernel.constant", kernel.constant))


def _scale(kernel: Any, d: int) -> Kernel:
    factor = one("ScaleKernel.outputscale", kernel.outputscale)
    return scaled_by(_formula(kernel.base_kernel, d), factor)


def _sum(kernel: Any, d: int) -> Kernel:
    return sum_of([_called(part, d) for part in kernel.kernels])


def _product(kernel: Any, d: int) -> Kernel:
    return product_of([_called(part, d) for part in kernel.kernels])


CONVERTERS: dict[type, Callable[[Any, int], Kernel]] = {
    gk.RBFKernel: _rbf,
    gk.MaternKernel: _matern,
    gk.RQKernel: _rational_quadratic,
    gk.PeriodicKernel: _periodic,
    gk.CosineKernel: _cosine,
    gk.LinearKernel: _linear,
    gk.PolynomialKernel: _polynomial,
    gk.SpectralMixtureKernel: _spectral_mixture,
    gk.ConstantKernel: _constant,
    gk.ScaleKernel: _scale,
    gk.AdditiveKernel: _sum,
    gk.ProductKernel: _product,
}
