"""erf and the normal distribution function on every backend, and a certified enclosure of Phi.

Proofs: docs/mathematics.md, statement 16.11.
"""

from __future__ import annotations

import math

import array_api_compat
from scipy import special

from gpcert.arrays import Reals, namespace
from gpcert.rounding import NORMAL_CDF_ULPS, TINY, U

ERF_ULPS = 8
"""Assumed: |fl(erf y) - erf y| <= ERF_ULPS * U * |erf y| where erf y is normal. Documented: 3.4 U
for SciPy's Cephes code, 2 U for torch on a CPU (SLEEF), 4 U for CUDA; tested at 200 bits."""

_LEFT_END = -40.0
"""Phi(-40) < 2^-1000: left of it the relative error no longer matters, TINY covers the value."""


def erf(y: Reals) -> Reals:
    """The error function, elementwise."""
    if array_api_compat.is_torch_array(y):
        return y.erf()
    return special.erf(y)


def normal_cdf(z: Reals) -> Reals:
    """`Phi(z)`, elementwise, accurate relative to Phi in the left tail.

    torch's own `ndtr` is `(1 + erf) / 2`, which loses the left tail; `erfc` keeps it.

    >>> import numpy as np
    >>> float(normal_cdf(np.array([0.0]))[0])
    0.5
    """
    if hasattr(z, "erfc"):  # torch's; its compiler does not see through other questions
        return (z * -math.sqrt(0.5)).erfc() * 0.5
    return special.ndtr(z)


def normal_pdf(z: Reals) -> Reals:
    """`phi(z) = exp(-z^2 / 2) / sqrt(2 pi)`, elementwise."""
    xp = namespace(z)
    return xp.exp(-0.5 * z * z) * (1.0 / math.sqrt(2.0 * math.pi))


def normal_cdf_bounds(z: Reals) -> tuple[Reals, Reals]:
    """Certified `lower <= Phi(z) <= upper` within [0, 1] for the exact floats z.

    Statement: `|fl(Phi z) - Phi z| <= (NORMAL_CDF_ULPS + 4 min(z, 0)^2) U Phi z + TINY`.
    Reason: with `y = -z / sqrt(2)` rounded twice, `Phi = erfc(y) / 2` has relative condition
    `y |erfc'(y)| / erfc(y) <= 2 y^2 + 1 = z^2 + 1` for y > 0 (and `<= 1` for y < 0), and the
    library's own tail `exp(-y^2)` of a rounded square loses another `y^2 U`; together below 4 z^2.
    Reference: Abramowitz & Stegun 7.1.13 for the condition number.

    >>> import numpy as np
    >>> lower, upper = normal_cdf_bounds(np.array([-1.0, 0.0, 50.0]))
    >>> bool(np.all(lower <= upper)), float(upper[2])
    (True, 1.0)
    """
    xp = namespace(z)
    value = normal_cdf(z)
    left = xp.clip(z, _LEFT_END, 0.0)
    # 2 more units: this line's own roundings; 1.001: the bound is relative to Phi, not to fl(Phi)
    error = value * ((NORMAL_CDF_ULPS + 2 + 4.0 * left * left) * (1.001 * U)) + 2.0 * TINY
    return xp.clip(value - error, 0.0, 1.0), xp.clip(value + error, 0.0, 1.0)
