"""erf and the normal distribution function on every backend, a certified enclosure of Phi, and how
much of a Gaussian falls into an interval, over ranges of its mean and variance.

Proofs: docs/mathematics.md, statements 8.8 and 16.11.
"""

from __future__ import annotations

import math

import array_api_compat
import numpy as np
from scipy import special

from gpcert.numerics.arrays import Array, Reals, least_of, namespace
from gpcert.numerics.rounding import NORMAL_CDF_ULPS, TINY, U, down, nonnegative, up

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


PEAK_SLACK = 128.0 * U
"""What the rounding of the critical variance can cost: it is known to 64 U relative (two
differences, a sum, a quotient and log1p), and `|v dP/dv| <= sup |z phi(z)| < 0.25`."""


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def score(gap: Reals, v: Reals) -> tuple[Reals, Reals]:
    """Certified `low <= gap / sqrt(v) <= high`; for v = 0 minus or plus infinity by gap's sign.

    `gap` is the real number that its float is; the root and the quotient round once each. A gap of
    0 at v = 0 says nothing: then the score may be either infinity.
    """
    xp = namespace(gap, v)
    gap, v = xp.broadcast_arrays(gap, v)
    infinite = xp.full_like(gap, np.inf)
    flat = v <= 0
    low, high = _outward(gap / xp.sqrt(xp.where(flat, xp.ones_like(v), v)), 3)
    low = xp.where(flat, xp.where(gap > 0, infinite, -infinite), low)
    high = xp.where(flat, xp.where(gap < 0, -infinite, infinite), high)
    return low, high


def gaussian_integral_range(
    a: Reals, b: Reals, mu: tuple[Reals, Reals], v: tuple[Reals, Reals]
) -> tuple[Reals, Reals]:
    """Certified least and greatest `P(a <= f <= b)`, f ~ N(mu, v), over ranges of mu and v.

    Statement (Lemma "Gaussian" of the paper): the integral is greatest at the mean nearest to the
    interval's middle, there at v_low if the mean lies in [a, b], else at the variance nearest to
    `v_c = ((mu-a)^2 - (mu-b)^2) / (2 log((mu-a)/(mu-b)))`; it is least at the mean farthest from
    the middle and at an end of the range of v.
    All arrays broadcast; a and b finite, v > 0 or 0. Where two means are equally far, or rounding
    leaves it open, both are counted.
    """
    xp = namespace(a)
    a, b, mu_low, mu_high, v_low, v_high = xp.broadcast_arrays(a, b, *mu, *v)
    middle = 0.5 * a + 0.5 * b
    nearest = xp.minimum(xp.maximum(middle, mu_low), mu_high)
    inside = (nearest >= a) & (nearest <= b)
    critical = _critical_variance(nearest, a, b)
    best = xp.where(inside, v_low, xp.minimum(xp.maximum(critical, v_low), v_high))
    greatest = _probability(a, b, nearest, best)[1] + PEAK_SLACK
    # a range that may contain the middle, which itself is rounded: the centred interval
    half = up(0.5 * (b - a), 1)
    centred = _probability(-half, half, xp.zeros_like(half), v_low)[1]
    around = (mu_low <= up(middle, 2)) & (mu_high >= down(middle, 2))
    greatest = xp.where(around, xp.maximum(greatest, centred), greatest)
    ends = [_probability(a, b, m, w)[0] for m in (mu_low, mu_high) for w in (v_low, v_high)]
    return least_of(ends), xp.clip(greatest, 0.0, 1.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _critical_variance(mu: Array, a: Array, b: Array) -> Array:
    """v_c for a mean outside [a, b]: `(b - a)(A + B) / (2 log(A / B))`, A, B the distances."""
    xp = namespace(mu)
    far = xp.maximum(xp.abs(mu - a), xp.abs(mu - b))
    near = xp.minimum(xp.abs(mu - a), xp.abs(mu - b))
    width = b - a
    usable = (near > 0) & (width > 0)
    safe = xp.where(usable, near, xp.ones_like(near))
    wide = xp.where(usable, width, xp.ones_like(width))
    value = wide * (far + near) / (2.0 * xp.log1p(wide / safe))
    return xp.where(usable, value, xp.where(width > 0, xp.zeros_like(value), far * far))


def _probability(a: Array, b: Array, mu: Array, v: Array) -> tuple[Array, Array]:
    """Certified `P(a <= f <= b)`: `Phi(z_b) - Phi(z_a)`, taken in the left tail where it is small.

    For mu < a the interval is reflected, so that no difference of numbers near 1 is formed.
    """
    xp = namespace(mu)
    left = mu <= 0.5 * a + 0.5 * b
    first = xp.where(left, mu - b, a - mu)
    second = xp.where(left, mu - a, b - mu)
    ends = []
    for gap in (first, second):  # differences of floats: one rounding, relative
        low, high = score(gap, v)
        below, above = _outward(low, 2)[0], _outward(high, 2)[1]
        ends.append((normal_cdf_bounds(below)[0], normal_cdf_bounds(above)[1]))
    lower, upper = ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]
    return nonnegative(down(lower, 1)), xp.clip(up(upper, 1), 0.0, 1.0)


def _outward(z: Array, roundings: int) -> tuple[Array, Array]:
    """z rounded down and up; infinities stay."""
    xp = namespace(z)
    finite = xp.isfinite(z)
    safe = xp.where(finite, z, xp.zeros_like(z))
    return xp.where(finite, down(safe, roundings), z), xp.where(finite, up(safe, roundings), z)
