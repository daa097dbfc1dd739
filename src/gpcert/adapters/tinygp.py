"""tinygp models: a `GaussianProcess` conditioned on data."""

from __future__ import annotations

from typing import Any

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import Conversion

LIBRARY = "tinygp"

KERNELS = (
    "ExpSquared",
    "Exp",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
    "ExpSineSquared",
    "Cosine",
    "DotProduct",
    "Polynomial",
    "Constant",
    "Linear",
    "Cholesky",
    "Subspace",
    "Sum",
    "Product",
)

SUPPORTED = (
    Supported(
        "GaussianProcess",
        "Gaussian",
        KERNELS,
        "the conditioned one, gp.condition(y).gp; constant mean; distance=L2Distance() for "
        "several features of Matern32, Matern52, RationalQuadratic; transforms feature by feature",
    ),
)


def accepts(model: Any) -> bool:
    """Whether the model is a Gaussian process of tinygp."""
    return any(
        base.__name__ == "GaussianProcess" and base.__module__.startswith("tinygp.")
        for base in type(model).__mro__
    )


def to_posterior(model: Any) -> Conversion:
    """Convert the model; see `gpcert.adapters.tinygp_models`."""
    from gpcert.adapters.tinygp_models import convert

    return convert(model)
