"""The normal distribution function and the mean excess over 0, far into the tail, with errors.

For `f ~ N(u, v)`, s = sqrt(v) and z = u / s,

    P(f > 0) = Phi(z),   E max(f, 0) = u Phi(z) + s phi(z) = s psi(z),   psi(z) = phi(z) + z Phi(z).

For x = -z > 0 both are phi(x) times an integral with an enveloping series:

    Phi(z) = phi(x) R(x),   R(x) = int_0^oo exp(-x t - t^2 / 2) dt     (Mills' ratio),
    psi(z) = phi(x) J(x),   J(x) = int_0^oo t exp(-x t - t^2 / 2) dt = 1 - x R(x).

Proofs: docs/mathematics.md, statements 8.11 and 8.12.
"""

from __future__ import annotations

import math

import array_api_compat
import numpy as np
from scipy import special

from gpcert.integrals.special import normal_cdf, normal_cdf_bounds, normal_pdf, score
from gpcert.numerics.arrays import Array, Reals, namespace
from gpcert.numerics.rounding import EXP_ULPS, TINY, U, down, gamma, nonnegative, up

FAR = 10.0
"""From here on the series are taken."""

_LAST = 39
"""The last factor of the series, of k = 20: `2 k - 1`."""

_SERIES_ERROR = 1.4e-15 + gamma(16)
"""`41!! / FAR^40` is below 1.4e-15; and rounding, as every stage has at most half the error of the
next (Statement 8.11)."""

LARGEST = 2.0**500
"""Scores are cut here: their squares are floats."""

_LOG_ROOT_2PI = 0.9189385332046728
"""`log sqrt(2 pi)`, rounded."""


def _series(x: Array, factor: int) -> Array:
    """`1 - f/x^2 (1 - (f+2)/x^2 (1 - ...))` from f = `factor` to `_LAST`, for x >= FAR: `x R(x)`
    for f = 1 and `x^2 J(x)` for f = 3, up to `_SERIES_ERROR`."""
    xp = namespace(x)
    inverse, total = 1.0 / (x * x), xp.ones_like(x)
    for f in range(_LAST, factor - 2, -2):
        total = 1.0 - (f * inverse) * total
    return total


def _log_tail(z: Reals, power: int) -> tuple[Array, Array]:
    """Bounds of `log Phi(z)`, power = 1, or `log psi(z)`, power = 2, for z <= -FAR: the logarithm
    of `phi(x) x^-power` times the series; both functions increase, so a cut z bounds from above."""
    xp = namespace(z)
    x = xp.clip(-z, FAR, LARGEST)
    half_square, log_x, inner = 0.5 * x * x, xp.log(x), _series(x, 2 * power - 1)
    size = half_square + 2.0 + power * log_x
    ends = []
    for side in (-1.0, 1.0):
        value = xp.log(inner + side * _SERIES_ERROR) - power * log_x - _LOG_ROOT_2PI - half_square
        ends.append(value + side * (gamma(32) * size))
    return xp.where(z < -LARGEST, xp.full_like(x, -math.inf), ends[0]), ends[1]


def log_bounds(lower: Reals, upper: Reals) -> tuple[Reals, Reals]:
    """Bounds of the logarithm of a number in [lower, upper]; minus infinity where it may be 0."""
    xp = namespace(lower)
    ends = []
    for end, rounded in ((lower, down), (upper, up)):
        usable = end > 0.0
        value = xp.log(xp.where(usable, end, xp.ones_like(end)))
        infinite = value == math.inf
        value = rounded(xp.where(infinite, xp.zeros_like(value), value), EXP_ULPS)
        value = xp.where(infinite, xp.full_like(value, math.inf), value)
        ends.append(xp.where(usable, value, xp.full_like(value, -math.inf)))
    return ends[0], ends[1]


def log_normal_cdf_bounds(z: Reals) -> tuple[Reals, Reals]:
    """Certified `lower <= log Phi(z) <= upper <= 0` for the exact floats z, perhaps infinite.

    >>> import numpy as np
    >>> lower, upper = log_normal_cdf_bounds(np.array([-1e6, 0.0]))
    >>> bool(lower[0] <= -500000000014.734 <= upper[0]), bool(upper[1] - lower[1] < 1e-13)
    (True, True)
    """
    xp = namespace(z)
    far, near = _log_tail(z, 1), log_bounds(*normal_cdf_bounds(xp.clip(z, -FAR, 0.0)))
    # where Phi is near 1: the logarithm of 1 less what is missing
    missing = normal_cdf_bounds(-nonnegative(z))
    right = [down(xp.log1p(-missing[1]), EXP_ULPS), up(xp.log1p(-missing[0]), EXP_ULPS)]
    lower, upper = (
        xp.where(z < -FAR, tail, xp.where(z > 0.0, beyond, body))
        for tail, body, beyond in zip(far, near, right, strict=True)
    )
    return lower, xp.minimum(upper, xp.zeros_like(upper))


def _density_bounds(x: Array) -> tuple[Array, Array]:
    """Bounds of `phi(x)`, |x| up to a few hundred: the rounded square moves it by `x^2 U / 2`."""
    value = normal_pdf(x)
    error = value * ((EXP_ULPS + 8.0 + x * x) * (1.01 * U)) + TINY
    return nonnegative(value - error), value + error


def unit_excess_bounds(x: Reals) -> tuple[Reals, Reals]:
    """Certified bounds of `psi(-x) = E max(f, 0)`, f ~ N(-x, 1), for x >= 0, perhaps infinite.

    Up to FAR the difference of the definition, beyond the series.
    """
    xp = namespace(x)
    near, far = xp.clip(x, 0.0, FAR), xp.clip(x, FAR, 100.0)
    density, mass = _density_bounds(near), normal_cdf_bounds(-near)
    ends = [
        down(density[0] - up(near * mass[1], 1), 1),
        up(density[1] - down(near * mass[0], 1), 1),
    ]
    if not bool(xp.any(x > FAR)):  # the series is half of the time
        return nonnegative(ends[0]), ends[1]
    density, inner = _density_bounds(far), _series(far, 3)
    inverse = 1.0 / (far * far)
    tail = [
        down(density[0] * ((inner - _SERIES_ERROR) * inverse), 5),
        up(density[1] * ((inner + _SERIES_ERROR) * inverse), 5),
    ]
    lower, upper = (xp.where(x > FAR, beyond, end) for beyond, end in zip(tail, ends, strict=True))
    # what lies beyond the last x that is looked at is less than there
    return xp.where(x > 100.0, xp.zeros_like(lower), nonnegative(lower)), upper


def _score_sizes(u: Array, v: Array) -> tuple[Array, Array, Array, Array]:
    """Bounds of z = u / sqrt(v), and of |z|."""
    xp = namespace(u)
    low, high = score(u, v)
    zero = xp.zeros_like(u)
    least = xp.maximum(xp.maximum(low, -high), zero)
    return low, high, least, xp.maximum(abs(low), abs(high))


def excess_bounds(u: Reals, v: Reals) -> tuple[Reals, Reals]:
    """Certified bounds of `E max(f, 0)`, f ~ N(u, v), v >= 0: `max(u, 0) + s psi(-|z|)`, a sum
    without cancellation; `max(u, 0)` where v = 0.

    >>> import numpy as np
    >>> lower, upper = excess_bounds(np.array([-36.0, 1.0]), np.array([1.0, 0.0]))
    >>> bool(0 < lower[0] <= 1.16005393337263e-285 <= upper[0]), bool(lower[1] == upper[1] == 1.0)
    (True, True)
    """
    xp = namespace(u, v)
    u, v = xp.broadcast_arrays(u, v)
    _, _, least, most = _score_sizes(u, v)
    s, positive = xp.sqrt(v), nonnegative(u)
    lower = down(s * unit_excess_bounds(most)[0], 2)
    upper = up(s * unit_excess_bounds(least)[1], 2)
    none = v <= 0.0
    lower = xp.maximum(positive, down(positive + nonnegative(lower), 1))
    return xp.where(none, positive, lower), xp.where(none, positive, up(positive + upper, 1))


def log_excess_bounds(u: Reals, v: Reals) -> tuple[Reals, Reals]:
    """Certified bounds of `log E max(f, 0)`, f ~ N(u, v), v >= 0; minus infinity for u <= 0 = v.

    Where u <= 0 it is `log s + log psi(z)`, in logarithms from the start where z is far; each way
    is taken for the numbers alone that it is for.
    """
    xp = namespace(u, v)
    u, v = xp.broadcast_arrays(u, v)
    shape, u, v = u.shape, xp.reshape(u, (-1,)), xp.reshape(v, (-1,))
    direct = (u > 0.0) | (v <= 0.0)
    lower, upper = 0.0 * u, 0.0 * u
    for mask, bounds in ((direct, _log_of_bounds), (~direct, _log_in_parts)):
        (index,) = xp.nonzero(mask)
        if len(index):
            lower[index], upper[index] = bounds(u[index], v[index])
    return xp.reshape(lower, shape), xp.reshape(upper, shape)


def _log_of_bounds(u: Array, v: Array) -> tuple[Array, Array]:
    """`log_excess_bounds` by the logarithm of the bounds."""
    return log_bounds(*excess_bounds(u, v))


def _log_in_parts(u: Array, v: Array) -> tuple[Array, Array]:
    """`log_excess_bounds` for u <= 0 < v."""
    xp = namespace(u)
    low, high, least, most = _score_sizes(u, v)
    log_v = log_bounds(v, v)
    ends = []
    for k, (z, x) in enumerate(((low, most), (high, least))):
        log_psi = log_bounds(*unit_excess_bounds(xp.clip(x, 0.0, FAR)))[k]
        if bool(xp.any(z < -FAR)):
            log_psi = xp.where(z < -FAR, _log_tail(z, 2)[k], log_psi)
        finite = xp.isfinite(log_psi)
        total = 0.5 * log_v[k] + xp.where(finite, log_psi, xp.zeros_like(log_psi))
        size = 0.5 * abs(log_v[k]) + abs(xp.where(finite, log_psi, xp.zeros_like(log_psi)))
        total = total + (2 * k - 1) * (gamma(4) * size + TINY)
        ends.append(xp.where(finite, total, log_psi))
    return ends[0], ends[1]


def mills_ratios(z: Reals) -> tuple[Reals, Reals]:
    """`phi / Phi` and `Phi / psi` at z, in plain floating point and by other formulas than the
    bounds: for choices and attacks."""
    xp = namespace(z)
    x = xp.clip(-z, 1.0, LARGEST)
    ratio = _scaled_erfc(x * math.sqrt(0.5)) * math.sqrt(0.5 * math.pi)
    inverse = 1.0 / (x * x)
    # 1 - x R cancels: beyond 1000 the first two terms have more digits
    excess = xp.where(x > 1e3, inverse * (1.0 - 3.0 * inverse), 1.0 - x * ratio)
    tail = 1.0 / ratio, ratio / excess
    near = xp.clip(z, -1.0, None)
    density, mass = normal_pdf(near), normal_cdf(near)
    body = density / mass, mass / (density + near * mass)
    first, second = (xp.where(z < -1.0, far, here) for far, here in zip(tail, body, strict=True))
    return first, second


def log_normal_cdf(z: Reals) -> Reals:
    """`log Phi(z)`, in plain floating point."""
    if array_api_compat.is_torch_array(z):
        return array_api_compat.array_namespace(z).special.log_ndtr(z)
    return special.log_ndtr(z)


@np.errstate(over="ignore")
def _scaled_erfc(y: Array) -> Array:
    """`exp(y^2) erfc(y)`."""
    if array_api_compat.is_torch_array(y):
        return array_api_compat.array_namespace(y).special.erfcx(y)
    return special.erfcx(y)
