"""Parameters of kernels: what each may be, how it is stored, and its unit; and exact powers of two,
so that kernels are of size about one at a posterior's points.

Bounds square kernel values and count what underflows as absolute amounts: harmless on numbers of
size about one only. A power of two changes no mantissa, so the model stays what it is.

Proofs: docs/mathematics.md, statement 1.8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import Reals, constant_array, finite_array


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
        stored = float(finite_array(name, value, ndim=0))
        if not allowed(stored):
            raise InputError(f"{name}: expected {wanted}, got {value!r}{advice}")
        return kind(stored)

    return Parameter(check)


def numbers(
    wanted: str,
    allowed: Callable[[np.ndarray], Any] = np.isfinite,
    ndim: int | None = None,
    features: bool = True,
    unit: int = 0,
) -> Parameter:
    """Numbers for which `allowed` holds, one per feature, or one for all where `ndim` is None."""

    def check(name: str, value: Any) -> np.ndarray:
        stored = constant_array(name, value, ndim)
        if (ndim is None and stored.ndim > 1) or not np.all(allowed(stored)):
            raise InputError(f"{name}: expected {wanted}, got {value!r}")
        return stored

    return Parameter(check, features, unit)


POSITIVE = number("a positive number", lambda x: x > 0)
NONNEGATIVE = number("a number >= 0", lambda x: x >= 0)
LENGTHS = numbers("a positive number or a vector of positive numbers", lambda x: x > 0, unit=1)
FREQUENCIES = numbers("a vector of numbers", ndim=1, unit=-1)


ORDINARY = 64
"""Kernels without a factor of their own are left alone while their exponents are below this."""


def even_exponent(value: float) -> int:
    """The even e with `2^-e |value|` in [1/2, 2); 0 for 0.

    >>> even_exponent(1.0), even_exponent(8.0), even_exponent(5e-324)
    (0, 4, -1074)
    """
    if value == 0.0:
        return 0
    exponent = math.frexp(value)[1]
    return exponent - exponent % 2


def exactly_scaled(name: str, values: Any, exponent: int) -> Reals:
    """`2^exponent values`, or an `InputError` where float64 does not hold one of them exactly.

    >>> exactly_scaled("x", [3.0], -1).tolist()
    [1.5]
    """
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(array, exponent)
        exact = np.array_equal(np.ldexp(scaled, -exponent), array)
    if not (exact and np.all(np.isfinite(scaled))):
        raise InputError(
            f"{name}: its parts differ by more orders of magnitude than float64 has (about 1e300); "
            "expected comparable sizes: drop the parts that do not matter, or rescale the inputs"
        )
    return scaled
