"""GPy models: regression, classification by EP or Laplace, and sparse models."""

from __future__ import annotations

from typing import Any

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import Conversion

LIBRARY = "GPy"

KERNELS = (
    "RBF",
    "ExpQuad",
    "Exponential",
    "OU",
    "Matern32",
    "Matern52",
    "RatQuad",
    "StdPeriodic",
    "Cosine",
    "Linear",
    "Poly",
    "Bias",
    "White",
    "Add",
    "Prod",
)

SUPPORTED = (
    Supported(
        "GPRegression, GPHeteroscedasticRegression",
        "Gaussian, HeteroscedasticGaussian",
        KERNELS,
        "mean functions Constant, Linear and sums of these; normalizer; several outputs; Cosine on "
        "one feature",
    ),
    Supported("SparseGPRegression", "Gaussian", KERNELS, "at its inducing inputs"),
    Supported(
        "GPClassification, SparseGPClassification",
        "Bernoulli (probit)",
        KERNELS,
        "EP, Laplace; also GPy.core.GP and SparseGP with these likelihoods",
    ),
)


def accepts(model: Any) -> bool:
    """Whether the model is, or derives from, a GP of GPy."""
    return any(
        base.__name__ == "GP" and base.__module__.startswith("GPy.") for base in type(model).__mro__
    )


def to_posterior(model: Any) -> Conversion:
    """Convert the model; see `gpcert.adapters.gpy_models`."""
    from gpcert.adapters.gpy_models import convert

    return convert(model)
