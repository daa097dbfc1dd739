"""GPyTorch models: exact regression, and variational models with a likelihood of this list.

`ExactGP` knows its likelihood. To an `ApproximateGP` it is given as the pair `(model, likelihood)`,
or found in its attribute `likelihood`; without one the latent function is certified.
"""

from __future__ import annotations

from typing import Any

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import Conversion
from gpcert.errors import UnsupportedModelError

LIBRARY = "GPyTorch"

KERNELS = (
    "RBFKernel",
    "MaternKernel",
    "RQKernel",
    "PeriodicKernel",
    "CosineKernel",
    "LinearKernel",
    "PolynomialKernel",
    "SpectralMixtureKernel",
    "ConstantKernel",
    "ScaleKernel",
    "AdditiveKernel",
    "ProductKernel",
)

SUPPORTED = (
    Supported(
        "ExactGP",
        "GaussianLikelihood, FixedNoiseGaussianLikelihood",
        KERNELS,
        "ConstantMean, LinearMean or ZeroMean; float64 Cholesky at any size; CosineKernel on one "
        "feature; several independent outputs (a batch of kernels) with "
        "MultitaskGaussianLikelihood",
    ),
    Supported("IndependentModelList", "those of its ExactGPs", KERNELS),
    Supported(
        "ApproximateGP",
        "none (latent), Gaussian, FixedNoiseGaussian, Bernoulli, Softmax with or without mixing "
        "weights",
        KERNELS,
        "whitened or not; Cholesky, mean-field, delta and natural distributions; several outputs "
        "by IndependentMultitaskVariationalStrategy, with one kernel for all or their own; Softmax "
        "is the exact expectation, which the likelihood estimates by sampling",
    ),
)


def accepts(model: Any) -> bool:
    """Whether the model, or the first of a pair, is a GPyTorch model."""
    if isinstance(model, tuple):
        return len(model) == 2 and _is_a(model[0], "ApproximateGP") and _is_a(model[1], "Module")
    return _is_a(model, "GP")


def to_posterior(model: Any) -> Conversion:
    """Convert an `ExactGP`, an `ApproximateGP`, or a pair of that and its likelihood."""
    from gpcert.adapters.gpytorch_exact import convert_exact
    from gpcert.adapters.gpytorch_variational import convert_variational

    if isinstance(model, tuple):
        return convert_variational(*model)
    if _is_a(model, "ExactGP") or _is_a(model, "IndependentModelList"):
        return convert_exact(model)
    if _is_a(model, "ApproximateGP"):
        return convert_variational(model, getattr(model, "likelihood", None))
    raise UnsupportedModelError(
        f"model: {type(model).__name__} is not supported (supported: ExactGP, ApproximateGP, "
        "IndependentModelList, or a pair (ApproximateGP, likelihood) of gpytorch.models)"
    )


def _is_a(model: Any, name: str) -> bool:
    """Whether a class of this name of the library is among the model's."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == "gpytorch"
        for base in type(model).__mro__
    )
