"""Gaussian measure of sectors of the plane, and its derivatives under a shift.

A sector `{z : n_1.z < h_1, n_2.z < h_2}` with unit normals has the standard Gaussian measure
`Phi_2(h_1, h_2; n_1.n_2)`, `Phi_2(h, k; rho) = P(x < h, y < k)`: by Owen's identity two of his
integrals T, one for each edge, of slopes at most 1. Shifted by z, the gradient lives on the two
edges and is a product of functions of two orthogonal coordinates: all derivatives are closed forms.

Proofs: docs/mathematics.md, statements 9.2, 9.12 to 9.15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from math import comb

import scipy.special

from gpcert.integrals.special import normal_cdf, normal_cdf_bounds, normal_pdf
from gpcert.numerics.arrays import Array, PerVector, Reals, Vectors, namespace, to_numpy
from gpcert.numerics.rounding import U, down, nonnegative, up

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
    value = value - 0.5 * xp.astype(h * k < 0.0, h.dtype)
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
    Statement 9.15: `Phi_2(h_low; r_low) <= Phi_2(h; rho) <= Phi_2(h_high; r_high)`, and always
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
    quantile = xp.asarray(scipy.special.ndtri(to_numpy(p)), device=p.device)
    finite = xp.isfinite(quantile)
    z = xp.where(finite, quantile, xp.zeros_like(quantile))
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
    swapped = normal_cdf(t) * (below - 0.5) + integral + 0.5 * xp.astype(h * t < 0.0, h.dtype)
    return xp.where(near, 0.5 * below - integral, swapped)


def _cut(h: Array) -> Array:
    """h between -`FARTHEST` and `FARTHEST`, and at least `NEAREST` from 0."""
    xp = namespace(h)
    h = xp.clip(h, -FARTHEST, FARTHEST)
    return xp.where(xp.abs(h) < NEAREST, xp.full_like(h, NEAREST), h)  # NaN stays NaN


DERIVATIVE_BOUNDS = (1.0, 0.39895, 0.48395, 0.75502, 1.40035)
"""`b_k >= E|He_k(z)| / 2`, k = 1..4 (`b_0 = 1`): the derivative of order k along a unit vector of
any Gaussian smoothing `E link(s + z)`, 0 <= link <= 1, is at most b_k.
See Statement 9.2."""

DENSITY_ULPS = 64.0
"""`|fl(phi^(i)(x)) - phi^(i)(x')| <= DENSITY_ULPS U`, i <= 3, if x is within 8 U of x', relative.
Reason: the evaluation errs by `(18 + 1.5 x^2) U` of its terms, at most `(|x|^3 + 3 |x|) phi(x)`:
less than 25 U; and `8 U sup |x phi^(i+1)(x)| < 9 U`."""

TENSOR_ULPS = 64.0
"""Relative rounding of the products of up to 4 components of unit normals (7 U each), 2
coefficients and the sums of at most 16 of them."""


@dataclass(frozen=True, eq=False)
class Sector:
    """`{z : first.z < h, second.z < k}`: normals (..., 2) and scores (...), of unit length.

    `sine` (...) is the cross product of the normals, `first x second >= 0`. Assumed: components of
    normals are within 7 U of the real ones, scores within 8 U, sine within 16 U, all relative.
    """

    first: Array
    second: Array
    h: Array
    k: Array
    sine: Array


def sector_moments(sector: Sector, order: int) -> tuple[list[Array], list[PerVector]]:
    """Measure of the shifted sector and its derivatives in the shift, at 0, with error bounds.

    Returns tensors of shape (..., 2, ..., 2) of order 0..`order` and bounds (...) of the error of
    each as a multilinear form on unit vectors.
    Statement: `D F(z) = - sum_j n_j phi(h_j - n_j.z) Phi(t_j - tau_j.z)`, tau_j along the edges.
    The rest is the product rule for orthogonal n_j, tau_j (Statement 9.14).
    Where the error bound exceeds `DERIVATIVE_BOUNDS`, 0 is returned with that bound.
    Reference: Plackett 1954, "A reduction formula for normal multivariate integrals".
    """
    xp = namespace(sector.h)
    # within 16 U: two factors within 7 U, a product and a sum, and sum_p |n_p n'_p| <= 1
    rho = xp.sum(sector.first * sector.second, axis=-1)
    value, error = bivariate_orthant(sector.h, sector.k, rho, sector.sine)
    tensors, errors = [value], [error]
    # the rotation by +90 degrees takes the first normal to its edge, by -90 the second
    edges = [
        _Edge.of(sector.first, 1.0, sector.h, sector.k, rho, sector.sine, order),
        _Edge.of(sector.second, -1.0, sector.k, sector.h, rho, sector.sine, order),
    ]
    for degree in range(1, order + 1):
        entries, slack = _entries(edges, degree)
        bound = xp.where(sector.sine > SMALLEST_SINE, slack, xp.full_like(slack, float("inf")))
        known = bound < DERIVATIVE_BOUNDS[degree]
        entries = [xp.where(known, entry, xp.zeros_like(entry)) for entry in entries]
        fallback = xp.full_like(bound, DERIVATIVE_BOUNDS[degree])
        # the symmetric tensor with entry `entries[q]` where q indices are 1
        each = [entries[sum(index)] for index in product((0, 1), repeat=degree)]
        tensors.append(xp.reshape(xp.stack(each, axis=-1), (*each[0].shape, *([2] * degree))))
        errors.append(xp.where(known, bound, fallback))
    return tensors, errors


@dataclass(frozen=True, eq=False)
class _Edge:
    """`phi(h - n.z) Phi(t - tau.z)` on one edge: directions, derivatives, their error bounds."""

    normal: Array
    along: Array
    across: list[Array]
    """`phi^(i)(h)`, i = 0..order - 1."""
    cut: list[Array]
    """`Phi^(i)(t)`, i = 0..order - 1."""
    cut_errors: list[Array]

    @classmethod
    def of(
        cls, n: Vectors, turn: float, h: Reals, k: Reals, rho: Reals, sine: Reals, order: int
    ) -> _Edge:
        """The edge with normal n and score h that the half-plane of score k cuts.

        Rounding: t errs by at most `U (32 (|h| + |k|) / s + 20 |t|)` (`bivariate_orthant`), and
        `Phi^(i)` by that times the largest `|Phi^(i+1)|` so near to t.
        """
        xp = namespace(h)
        h, k = xp.clip(h, -FARTHEST, FARTHEST), xp.clip(k, -FARTHEST, FARTHEST)
        safe = xp.clip(sine, SMALLEST_SINE, None)
        t = (k - rho * h) / safe
        doubt = 1.01 * U * (32.0 * (xp.abs(h) + xp.abs(k)) / safe + 20.0 * xp.abs(t))
        along = turn * xp.stack([-n[..., 1], n[..., 0]], axis=-1)
        cut = [normal_cdf(t), *normal_derivatives(t, order - 1)]
        density = 1.01 * normal_pdf(nonnegative(xp.abs(t) - doubt))
        far = xp.abs(t) + doubt
        sizes = [xp.ones_like(far), far, far * far + 1.0, far * far * far + 3.0 * far]
        # DENSITY_ULPS + 6 > 66: the library's own error of Phi
        errors = [doubt * density * sizes[i] + (DENSITY_ULPS + 6.0) * U for i in range(order)]
        return cls(n, along, normal_derivatives(h, order), cut, errors)


def normal_derivatives(x: Reals, count: int) -> list[Reals]:
    """`phi, phi', phi'', phi'''` at x, the first `count` (at most 4); no NaN for |x| <= 2^300."""
    density = normal_pdf(x)
    factors = [1.0, -x, x * x - 1.0, x * (3.0 - x * x)]
    return [density * factor for factor in factors[:count]]


def _entries(edges: list[_Edge], degree: int) -> tuple[list[Array], Array]:
    """Entries `T_(0..0 1..1)` with q = 0..degree ones, and a bound of the form's error.

    Statement: an error below e of every entry of a symmetric tensor of order k changes the form on
    unit vectors by at most `e 2^(k/2)`: `sum_p |u_p| <= sqrt 2` for each of them.
    """
    xp = namespace(edges[0].normal)
    sign = (-1.0) ** degree
    indices = [[0] * (degree - ones) + [1] * ones for ones in range(degree + 1)]
    entries = [sign * (_entry(edges[0], each) + _entry(edges[1], each)) for each in indices]
    error = xp.zeros_like(edges[0].cut[0])
    for edge in edges:
        for i in range(degree):
            size, slack = xp.abs(edge.across[i]), edge.cut_errors[degree - 1 - i]
            other = xp.abs(edge.cut[degree - 1 - i]) + slack
            term = (size + DENSITY_ULPS * U) * other * (TENSOR_ULPS * U)
            term = term + DENSITY_ULPS * U * other + size * slack
            error = error + comb(degree - 1, i) * term
    return entries, 1.01 * 2.0 ** (0.5 * degree) * error


def _entry(edge: _Edge, indices: list[int]) -> Array:
    """The derivative of one edge's part of the gradient, less the sign `(-1)^k`.

    `n_(p_1)` times the sum over i of `phi^(i) Phi^(k-1-i)` times the coefficient of x^i in
    `prod_(p_2..p_k) (n_p x + tau_p)`.
    """
    xp = namespace(edge.normal)
    coefficients = [xp.ones_like(edge.normal[..., 0])]
    for p in indices[1:]:
        n, tau = edge.normal[..., p], edge.along[..., p]
        lower = [tau * c for c in coefficients]
        upper = [n * c for c in coefficients]
        inner = [a + b for a, b in zip(lower[1:], upper[:-1], strict=True)]
        coefficients = [lower[0], *inner, upper[-1]]
    terms = zip(edge.across, reversed(edge.cut[: len(indices)]), coefficients, strict=False)
    return edge.normal[..., indices[0]] * sum(a * b * c for a, b, c in terms)
