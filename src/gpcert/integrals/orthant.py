"""Bivariate normal orthants `Phi_2(h, k; rho) = P(x < h, y < k)` with a certified error.

Owen's identity writes Phi_2 by two of his integrals T, one for each edge of the orthant seen in
whitened coordinates, where the orthant is a sector of the plane. Every T is brought to a slope of
at most 1; there one Gauss-Legendre rule is exact to 2^-60 whatever the other argument is.

Proofs: docs/mathematics.md, statements 9.12, 9.13 and 9.15.
"""

from __future__ import annotations

import math

import scipy.special

from gpcert.arrays import Array, PerVector, Reals, Vectors, namespace, to_numpy
from gpcert.integrals.special import normal_cdf, normal_cdf_bounds
from gpcert.rounding import U, down, nonnegative, up

FARTHEST = 64.0
"""Scores are cut to +-64: the half-planes change by sets of probability `Phi(-64) < 2^-2900`."""

NEAREST = 2.0**-400
"""Scores nearer to 0 are moved here, so that their signs are known; Phi_2 moves by less."""

SMALLEST_SINE = 2.0**-21
"""Below it the limits `rho = +-1` are nearer to Phi_2 than what rounding leaves of the integral:
there `ORTHANT_ULPS U / s` and `s / 4` cross."""

ORTHANT_ULPS = 512.0
"""Rounding of Owen's identity in units of `U / s`; derived at `bivariate_orthant`."""

GAUSS_LEGENDRE = (
    (0.005299532504175033, 0.013576229705877048),
    (0.02771248846338371, 0.031126761969323947),
    (0.06718439880608412, 0.04757925584124639),
    (0.12229779582249849, 0.06231448562776694),
    (0.19106187779867811, 0.07479799440828837),
    (0.2709916111713863, 0.08457825969750127),
    (0.35919822461037054, 0.09130170752246179),
    (0.4524937450811813, 0.09472530522753425),
    (0.5475062549188188, 0.09472530522753425),
    (0.6408017753896295, 0.09130170752246179),
    (0.7290083888286137, 0.08457825969750127),
    (0.8089381222013219, 0.07479799440828837),
    (0.8777022041775016, 0.06231448562776694),
    (0.9328156011939158, 0.04757925584124639),
    (0.9722875115366163, 0.031126761969323947),
    (0.994700467495825, 0.013576229705877048),
)
"""Nodes in [0, 1] and weights of the rule with 16 nodes, correctly rounded (a test says so)."""


def owen_t(h: Reals, a: Reals) -> Reals:
    """Owen's `T(h, a) = int_0^a exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx / (2 pi)` for `|a| <= 1`.

    Statement: the result is within 16 U of `T(h, a)` for the exact floats h, |h| <= 2^40, and a.
    Reason: the rule errs by less than 2^-60, as the integrand is below 8.3 on an ellipse of
    parameter 4 for every h (Statement 9.12).
    Rounding: a relative error e of `y = h^2 (1 + x^2) / 2`, at most 8 U with that of the node,
    costs `y exp(-y) e < 3 U`; the exponential, quotient, weight and sum of 16 terms add 28 U, and
    the factor `|a| / (2 pi) < 0.16` brings all of it below 6 U.
    Reference: Owen 1956, "Tables for computing bivariate normal probabilities"; Trefethen 2019,
    *Approximation Theory and Approximation Practice*, Theorem 19.3.

    >>> import numpy as np
    >>> round(float(owen_t(np.array([0.0]), np.array([1.0]))[0]), 12)
    0.125
    """
    half_square = -0.5 * h * h
    total = namespace(h, a).zeros_like(a * h)
    for node, weight in GAUSS_LEGENDRE:
        x = a * node
        secant = 1.0 + x * x
        total = total + weight * (namespace(secant).exp(half_square * secant) / secant)
    return a * total * (0.5 / math.pi)


def bivariate_orthant(h: Reals, k: Reals, rho: Reals, sine: Reals) -> tuple[Reals, Reals]:
    """`Phi_2(h, k; rho)` and a bound of its error, for `sine = sqrt(1 - rho^2)`.

    Statement: if the floats h, k are within 8 U of the real scores, relative, rho within 16 U of
    the real correlation, absolute, and sine within 16 U of the real sine, relative, then the
    real Phi_2 is within `error` of `value`. The scores may be infinite.
    Reason: `Phi_2 = E(h, t_h) + E(k, t_k) - [h k < 0] / 2`, `t_h = (k - rho h) / s`, in the form of
    E (`_edge`) whose slope is at most 1; near `rho = +-1` the limit is within `s / 4` (Statement
    9.13).
    Rounding: t errs by `U (32 (|h| + |k|) / s + 20 |t|)`; where `|t| <= |h|`, `|k| <= 2.01 |h|`, so
    the slope errs by at most 128 U / s, and the same where `|h| <= |t|`, with t's relative error:
    the sign of t is then right. T moves by at most `1 / (2 pi)` of the slope's error and 0.13 of
    the relative error of its first argument, Phi by 0.25 of the same, and either errs by 66 U: an
    edge costs at most 176 U / s, two of them and their sum less than `ORTHANT_ULPS U / s`.
    Reference: Owen 1956, eq. (2.1) and (2.3); Plackett 1954 for the derivative in rho.

    >>> import numpy as np
    >>> zero, half = np.array([0.0]), np.array([0.5])
    >>> value, error = bivariate_orthant(zero, zero, half, np.sqrt(1 - half * half))
    >>> round(float(value[0]), 12), bool(error[0] < 1e-12)
    (0.333333333333, True)
    """
    xp = namespace(h)
    h, k, rho, sine = xp.broadcast_arrays(_cut(h), _cut(k), rho, sine)
    safe = xp.clip(sine, SMALLEST_SINE, None)
    value = _edge(h, (k - rho * h) / safe) + _edge(k, (h - rho * k) / safe)
    value = value - 0.5 * _indicator(h * k < 0.0, h)
    left, right = normal_cdf(h), normal_cdf(k)
    limit = xp.where(rho > 0.0, xp.minimum(left, right), nonnegative(left + right - 1.0))
    regular = sine > SMALLEST_SINE
    error = xp.where(regular, ORTHANT_ULPS * U / safe, 0.2501 * sine + 256.0 * U)
    return xp.clip(xp.where(regular, value, limit), 0.0, 1.0), error


def slepian_bounds(
    h_low: Vectors, h_high: Vectors, r_low: PerVector, r_high: PerVector
) -> tuple[PerVector, PerVector]:
    """Certified least and greatest `Phi_2(h_1, h_2; rho)` over ranges of the scores and of rho.

    h_low, h_high (..., 2), maybe infinite; r_low, r_high (...) in [-1, 1]; all exact floats.
    Statement: `Phi_2(h_low; r_low) <= Phi_2(h; rho) <= Phi_2(h_high; r_high)`, and always
    `max(Phi(h_1) + Phi(h_2) - 1, 0) <= Phi_2 <= min(Phi(h_1), Phi(h_2))`.
    Reference: Slepian 1962, "The one-sided barrier problem for Gaussian noise", Lemma 1.

    >>> import numpy as np
    >>> zero = np.zeros((1, 2))
    >>> lower, upper = slepian_bounds(zero, zero, np.array([-1.0]), np.array([1.0]))
    >>> [round(float(x[0]), 12) for x in (lower, upper)]
    [0.0, 0.5]
    """
    xp = namespace(h_low)
    value, error = _exact_orthant(h_low, r_low)
    lower = nonnegative(down(value - error, 1))
    first, second = (normal_cdf_bounds(h_low[..., i])[0] for i in (0, 1))
    # the sum of numbers in [0, 1] and the difference err by at most 2 U and U
    lower = xp.maximum(lower, nonnegative(first + second - 1.0 - 4.0 * U))
    value, error = _exact_orthant(h_high, r_high)
    first, second = (normal_cdf_bounds(h_high[..., i])[1] for i in (0, 1))
    upper = xp.minimum(up(value + error, 1), xp.minimum(first, second))
    return lower, xp.clip(upper, 0.0, 1.0)


def score_bounds(p: Reals) -> tuple[Reals, Reals]:
    """Certified `low <= Phi^-1(p) <= high`, maybe infinite, for exact floats p in [0, 1].

    The library's quantile, moved outwards by 1e-8, is only taken where Phi of it, with its error,
    is proved to lie on the right side of p.
    """
    xp = namespace(p)
    found = xp.asarray(scipy.special.ndtri(to_numpy(p)), device=p.device)
    finite = xp.isfinite(found)
    z = xp.where(finite, found, xp.zeros_like(found))
    step = 1e-8 * (1.0 + xp.abs(z))
    infinite = xp.full_like(z, math.inf)
    low, high = z - step, z + step
    below = finite & (normal_cdf_bounds(low)[1] <= p)
    above = finite & (normal_cdf_bounds(high)[0] >= p)
    return xp.where(below, low, -infinite), xp.where(above, high, infinite)


def _exact_orthant(h: Array, rho: Array) -> tuple[Array, Array]:
    """`bivariate_orthant` for scores (..., 2) and a correlation that are exact floats."""
    sine = namespace(rho).sqrt(nonnegative((1.0 - rho) * (1.0 + rho)))
    return bivariate_orthant(h[..., 0], h[..., 1], rho, sine)


def _edge(h: Array, t: Array) -> Array:
    """`E(h, t)` of `bivariate_orthant`, in the form whose T has a slope of at most 1."""
    xp = namespace(h)
    near = xp.abs(t) <= xp.abs(h)
    longer = xp.where(near, h, t)  # never 0: |h| >= NEAREST
    integral = owen_t(longer, xp.where(near, t, h) / longer)
    below = normal_cdf(h)
    swapped = normal_cdf(t) * (below - 0.5) + integral + 0.5 * _indicator(h * t < 0.0, h)
    return xp.where(near, 0.5 * below - integral, swapped)


def _indicator(condition: Array, like: Array) -> Array:
    """1 where `condition`, else 0, as floats."""
    xp = namespace(like)
    return xp.where(condition, xp.ones_like(like), xp.zeros_like(like))


def _cut(h: Array) -> Array:
    """h between -`FARTHEST` and `FARTHEST`, and at least `NEAREST` from 0."""
    xp = namespace(h)
    h = xp.clip(h, -FARTHEST, FARTHEST)
    return xp.where(xp.abs(h) < NEAREST, xp.full_like(h, NEAREST), h)  # NaN stays NaN
