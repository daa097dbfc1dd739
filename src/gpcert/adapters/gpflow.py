"""GPflow models: exact, sparse and variational."""

from __future__ import annotations

from typing import Any

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import Conversion

LIBRARY = "GPflow"

KERNELS = (
    "SquaredExponential",
    "Matern12",
    "Matern32",
    "Matern52",
    "Exponential",
    "RationalQuadratic",
    "Periodic",
    "Cosine",
    "Linear",
    "Polynomial",
    "Constant",
    "White",
    "Sum",
    "Product",
)

SUPPORTED = (
    Supported(
        "GPR, SGPR",
        "Gaussian",
        KERNELS,
        "Constant, Linear or Zero mean function, sums of these; several outputs",
    ),
    Supported(
        "VGP, SVGP",
        "Gaussian, Bernoulli (inv_probit: 0.998 Phi + 0.001), Softmax",
        KERNELS,
        "whitened or not, diagonal or full q; one kernel for all latent functions, in an SVGP also "
        "their own (SeparateIndependent, SharedIndependent, with shared or separate inducing "
        "points); Softmax is the exact expectation, which predict_y estimates by sampling; float32 "
        "models too",
    ),
)


def accepts(model: Any) -> bool:
    """Whether the model is, or derives from, a model of GPflow."""
    return any(
        base.__name__ == "GPModel" and base.__module__.startswith("gpflow.")
        for base in type(model).__mro__
    )


def to_posterior(model: Any) -> Conversion:
    """Convert the model; see `gpcert.adapters.gpflow_models`."""
    from gpcert.adapters.gpflow_models import convert

    return convert(model)
