"""Parameters of kernels: what each may be, how it is stored, and its unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.arrays import constant_array, finite_array
from gpcert.errors import InputError


@dataclass(frozen=True)
class Parameter:
    """One field of a kernel: `check(name, value)` is what is stored, or an `InputError`.

    `features`: whether its last axis counts features, if it has one (a number serves them all);
    `unit`: 1 for lengths, which grow with the inputs' unit, -1 for frequencies, else 0.
    """

    check: Callable[[str, Any], Any]
    features: bool = False
    unit: int = 0


def number(
    wanted: str, allowed: Callable[[float], bool], advice: str = "", kind: type = float
) -> Parameter:
    """A number for which `allowed` holds, `wanted` in words."""

    def check(name: str, value: Any) -> Any:
        found = float(finite_array(name, value, ndim=0))
        if not allowed(found):
            raise InputError(f"{name}: expected {wanted}, got {value!r}{advice}")
        return kind(found)

    return Parameter(check)


def numbers(
    wanted: str,
    allowed: Callable[[np.ndarray], Any] = np.isfinite,
    ndim: int | None = None,
    features: bool = True,
    unit: int = 0,
) -> Parameter:
    """Numbers for which `allowed` holds, one a feature, or one for all where `ndim` is None."""

    def check(name: str, value: Any) -> np.ndarray:
        found = constant_array(name, value, ndim)
        if (ndim is None and found.ndim > 1) or not np.all(allowed(found)):
            raise InputError(f"{name}: expected {wanted}, got {value!r}")
        return found

    return Parameter(check, features, unit)


POSITIVE = number("a positive number", lambda x: x > 0)
NONNEGATIVE = number("a number >= 0", lambda x: x >= 0)
LENGTHS = numbers("a positive number or a vector of positive numbers", lambda x: x > 0, unit=1)
FREQUENCIES = numbers("a vector of numbers", ndim=1, unit=-1)
