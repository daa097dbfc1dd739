"""What sums and products of kernels share: a tuple of kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel


def checked_kernel(name: str, kernel: Any) -> Kernel:
    """The kernel, or an `InputError` that names the argument."""
    if not isinstance(kernel, Kernel):
        raise InputError(f"{name}: expected a kernel, got {kernel!r}")
    return kernel


@dataclass(frozen=True, eq=False)
class Composite(Kernel):
    """One or more kernels of the same inputs; they may be composites themselves."""

    kernels: Any

    def __post_init__(self) -> None:
        if isinstance(self.kernels, Kernel):
            raise InputError(f"kernels: expected several kernels, got one: {self.kernels!r}")
        if not isinstance(self.kernels, Iterable):
            raise InputError(f"kernels: expected a tuple of kernels, got {self.kernels!r}")
        kernels = tuple(checked_kernel(f"kernels[{i}]", k) for i, k in enumerate(self.kernels))
        if not kernels:
            raise InputError("kernels: expected at least one kernel, got none")
        object.__setattr__(self, "kernels", kernels)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """All of them."""
        return self.kernels

    def with_parts(self, parts: tuple[Kernel, ...]) -> Self:
        """The same of other kernels."""
        return type(self)(parts)

    def typical_lengths(self, d: int) -> np.ndarray:
        """The shortest of the parts' lengths."""
        return np.min([kernel.typical_lengths(d) for kernel in self.kernels], axis=0)

    def rescaled(self, scale: np.ndarray, shift: np.ndarray) -> Composite:
        """Every part rescaled."""
        return type(self)(tuple(kernel.rescaled(scale, shift) for kernel in self.kernels))

    def check_dimension(self, d: int) -> None:
        """Every part must fit."""
        for kernel in self.kernels:
            kernel.check_dimension(d)
