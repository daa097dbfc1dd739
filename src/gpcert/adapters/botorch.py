"""BoTorch models, in the units of the user: `SingleTaskGP` and `ModelListGP`."""

from __future__ import annotations

from typing import Any

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import Conversion
from gpcert.adapters.gpytorch import KERNELS

LIBRARY = "BoTorch"

TRANSFORMS = (
    "inputs: Normalize, InputStandardize, AffineInputTransform, chains of these; outcomes: "
    "Standardize, chains of it"
)

SUPPORTED = (
    Supported("SingleTaskGP", "Gaussian, known noise (train_Yvar)", KERNELS, TRANSFORMS),
    Supported("ModelListGP", "those of its SingleTaskGPs", KERNELS, "each output its own kernel"),
)


def accepts(model: Any) -> bool:
    """Whether the model's own class, or a base of it, is one of BoTorch's models."""
    return any(base.__module__.startswith("botorch.models") for base in type(model).__mro__)


def to_posterior(model: Any) -> Conversion:
    """Convert the model; see `gpcert.adapters.botorch_models`."""
    from gpcert.adapters.botorch_models import convert

    return convert(model)
