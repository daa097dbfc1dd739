"""Exact powers of two, so that kernels are of size about one at a posterior's points.

Bounds square, multiply and subtract kernel values, and count what underflows as absolute amounts
(`gpcert.rounding.TINY`): both are harmless on numbers of size about one only. A power of two
changes no mantissa, so nothing is rounded and the model stays what it is. `Kernel.in_units` and
`Kernel.with_factor` take them out and in.

Proofs: docs/mathematics.md, statement 1.8.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpcert.arrays import Reals
from gpcert.errors import InputError

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
