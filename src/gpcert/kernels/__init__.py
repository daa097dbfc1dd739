"""Kernels, one per file, and the registry that rebuilds them from saved posteriors."""

from __future__ import annotations

from typing import Any

from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Product, Scale, Sum
from gpcert.kernels.constant import Constant, White
from gpcert.kernels.expansions.base import LocalKernel
from gpcert.kernels.exponential_tilt import ExponentialTilt
from gpcert.kernels.linear import Linear, Polynomial
from gpcert.kernels.matern import Matern
from gpcert.kernels.periodic import Periodic
from gpcert.kernels.radial import RationalQuadratic, SquaredExponential
from gpcert.kernels.spectral import Cosine, CosinePair, GeneralisedSpectral, SpectralMixture
from gpcert.utils.registry import Registry

__all__ = [
    "KERNELS",
    "ActiveDimensions",
    "Constant",
    "Cosine",
    "CosinePair",
    "ExponentialTilt",
    "GeneralisedSpectral",
    "Kernel",
    "Linear",
    "LocalKernel",
    "Matern",
    "Periodic",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Scale",
    "SpectralMixture",
    "SquaredExponential",
    "Sum",
    "White",
    "kernel_from_config",
    "register",
]

KERNELS: Registry[type[Kernel]] = Registry(
    "kernel",
    Kernel,
    (
        ActiveDimensions,
        Constant,
        Cosine,
        CosinePair,
        ExponentialTilt,
        GeneralisedSpectral,
        Linear,
        Matern,
        Periodic,
        Polynomial,
        Product,
        RationalQuadratic,
        Scale,
        SpectralMixture,
        SquaredExponential,
        Sum,
        White,
    ),
)
"""Every kernel by the name that saved posteriors carry."""

register = KERNELS.register
"""Let saved posteriors hold a kernel of your own, as a decorator: `@gpcert.kernels.register`."""


def kernel_from_config(name: str, config: dict[str, Any]) -> Kernel:
    """Rebuild the kernel that `kernel.name` and `kernel.config()` describe."""
    return KERNELS.built(name, lambda kind: kind.from_config(config))
