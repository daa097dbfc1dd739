"""GPJax models: a posterior conditioned on data."""

from __future__ import annotations

from typing import Any

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import Conversion

LIBRARY = "GPJax"

KERNELS = (
    "RBF",
    "Matern12",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
    "Periodic",
    "Linear",
    "Polynomial",
    "Constant",
    "SumKernel",
    "ProductKernel",
)

SUPPORTED = (
    Supported(
        "ExactPosterior",
        "Gaussian",
        KERNELS,
        "model.condition(data), GPJax 1.0 or newer; Constant or Zero mean function",
    ),
    Supported(
        "LatentPosterior",
        "Bernoulli (inv_probit: 0.998 Phi + 0.001)",
        KERNELS,
        "the same of a NonConjugateModel, at its latent vector",
    ),
)


def accepts(model: Any) -> bool:
    """Whether the model is a model or a posterior of GPJax."""
    return any(
        base.__name__ in {"Posterior", "JointModel"} and base.__module__.startswith("gpjax.")
        for base in type(model).__mro__
    )


def to_posterior(model: Any) -> Conversion:
    """Convert the model; see `gpcert.adapters.gpjax_models`."""
    from gpcert.adapters.gpjax_models import convert

    return convert(model)
