"""Kernels, one a file, and the registry that rebuilds them from saved posteriors."""

from __future__ import annotations

from typing import Any

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel, LocalKernel
from gpcert.kernels.squared_exponential import SquaredExponential

__all__ = ["KERNELS", "Kernel", "LocalKernel", "SquaredExponential", "kernel_from_config"]

KERNELS: dict[str, type[Kernel]] = {SquaredExponential.name: SquaredExponential}


def kernel_from_config(name: str, config: dict[str, Any]) -> Kernel:
    """Rebuild the kernel that `kernel.name` and `kernel.config()` describe."""
    if name not in KERNELS:
        raise InputError(f"kernel: expected one of {sorted(KERNELS)}, got {name!r}")
    return KERNELS[name](**config)
