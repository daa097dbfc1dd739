"""GPyTorch kernels as kernels of ours; one small converter a kernel class.

The library's parametrisations that differ from ours:

    PeriodicKernel   exp(-2 sum_j sin^2(pi d_j / p_j) / l_j)       our l_j is the root of theirs,
    CosineKernel     cos(pi |d| / p)                               one feature only: see below,
    SpectralMixture  prod_j sum_q w_q exp(-2 (pi s_qj d_j)^2) cos(2 pi m_qj d_j), a product over
                     features of mixtures,
    LinearKernel     sum_j v_j x_j y_j,     PolynomialKernel  (x.y + offset)^power.

A kernel selects its `active_dims` when it is called; `ScaleKernel` takes over those of the kernel
inside and calls its formula without selecting again.

>>> k, _ = convert_kernel(gk.ScaleKernel(gk.RBFKernel(ard_num_dims=2)).double(), 2)
>>> k.name, k.length_scale.round(4).tolist()
('squared_exponential', [0.6931, 0.6931])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert import kernels as ours
from gpcert.adapters import kernel_tree as tree
from gpcert.errors import UnsupportedModelError
from gpcert.extras import library
from gpcert.kernels import Kernel
from gpcert.kernels.algebra import product_of, scaled_by

gk: Any = library("gpytorch").kernels


def _dimensions(kernel: Any, d: int) -> list[int]:
    if len(kernel.batch_shape) > 0:
        raise UnsupportedModelError(
            f"{type(kernel).__name__} with batch_shape {tuple(kernel.batch_shape)} is not "
            "supported here: one kernel an output is expected"
        )
    active = kernel.active_dims
    return list(range(d)) if active is None else [int(j) for j in active.tolist()]


def _described(kernel: Any) -> str:
    parts = [_described(part) for part in kernel.sub_kernels()]
    return type(kernel).__name__ + (f"({', '.join(parts)})" if parts else "")


def _periodic(kernel: Any, d: int) -> Kernel:
    return ours.Periodic(
        tree.vector(kernel, "period_length"), np.sqrt(tree.vector(kernel, "lengthscale"))
    )


def _cosine(kernel: Any, d: int) -> Kernel:
    tree.one_feature(
        kernel,
        d,
        "it is a cosine of the Euclidean distance, which for more than one feature is not "
        "positive definite, so that no Gaussian process has this covariance",
    )
    return ours.Cosine([np.pi / tree.number(kernel, "period_length")])


def _spectral_mixture(kernel: Any, d: int) -> Kernel:
    variances = np.atleast_1d(tree.vector(kernel, "mixture_weights"))
    shape = (len(variances), d)
    frequencies = 2.0 * np.pi * tree.vector(kernel, "mixture_means").reshape(shape)
    lengths = 0.5 / (np.pi * tree.vector(kernel, "mixture_scales").reshape(shape))
    parts = [
        ours.SpectralMixture(variances, frequencies[:, j : j + 1], lengths[:, j : j + 1])
        for j in range(d)
    ]
    if d == 1:
        return parts[0]
    return product_of([ours.ActiveDimensions(part, (j,)) for j, part in enumerate(parts)])


def _scale(kernel: Any, d: int) -> tree.Converted:
    inside = TREE.formula(kernel.base_kernel, d).kernel
    assert inside is not None, "no kernel of the library is white noise"
    return tree.Converted(d, scaled_by(inside, tree.number(kernel, "outputscale")))


PARAMETERS = tree.ParameterNames("lengthscale")

TREE = tree.KernelTree(
    converters={
        gk.RBFKernel: PARAMETERS.radial(ours.SquaredExponential),
        gk.MaternKernel: lambda kernel, d: ours.Matern(
            tree.vector(kernel, "lengthscale"), float(kernel.nu)
        ),
        gk.RQKernel: PARAMETERS.radial(ours.RationalQuadratic, alpha="alpha"),
        gk.PeriodicKernel: _periodic,
        gk.CosineKernel: _cosine,
        gk.LinearKernel: tree.linear("variance"),
        gk.PolynomialKernel: lambda kernel, d: tree.polynomial(
            kernel, kernel.power, 1.0, tree.number(kernel, "offset")
        ),
        gk.SpectralMixtureKernel: _spectral_mixture,
        gk.ConstantKernel: tree.constant("constant"),
        gk.ScaleKernel: _scale,
    },
    sums=gk.AdditiveKernel,
    products=gk.ProductKernel,
    parts=lambda kernel: list(kernel.kernels),
    dimensions=_dimensions,
    described=_described,
    example="ScaleKernel(RBFKernel())",
)

convert_kernel = TREE.convert
