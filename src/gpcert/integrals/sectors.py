"""Gaussian measure of sectors of the plane, and its derivatives under a shift.

A sector `{z : n_1.z < h_1, n_2.z < h_2}` with unit normals has the standard Gaussian measure
`Phi_2(h_1, h_2; n_1.n_2)`. Shifted by z, the gradient lives on the two edges and is a product of
functions of two orthogonal coordinates, so that all derivatives are closed forms, and in these
coordinates nothing is large however thin the sector.

Proofs: docs/mathematics.md, statements 9.2 and 9.14.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import comb

from gpcert.arrays import Array, PerVector, Reals, Vectors, namespace
from gpcert.integrals.orthant import FARTHEST, SMALLEST_SINE, bivariate_orthant
from gpcert.integrals.special import normal_cdf, normal_pdf
from gpcert.rounding import U, nonnegative

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
    Statement: with `rho = n_1.n_2`, `t_1 = (h_2 - rho h_1) / s`, tau_1 the unit vector of the first
    edge with `n_2.tau_1 = s`, and likewise for the second,
    `D F(z) = - sum_j n_j phi(h_j - n_j.z) Phi(t_j - tau_j.z)`.
    The rest is the product rule for orthogonal n_j, tau_j (Statement 9.14).
    Where the error bound exceeds `DERIVATIVE_BOUNDS`, 0 is returned with that bound.
    Reference: Plackett 1954, "A reduction formula for normal multivariate integrals".
    """
    xp = namespace(sector.h)
    # within 16 U: two factors within 7 U, a product and a sum, and sum_p |n_p n'_p| <= 1
    rho = xp.sum(sector.first * sector.second, axis=-1)
    value, error = bivariate_orthant(sector.h, sector.k, rho, sector.sine)
    tensors, errors = [value], [error]
    if order == 0:
        return tensors, errors
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
        tensors.append(_symmetric(entries, degree))
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
    entries = []
    for ones in range(degree + 1):
        indices = [0] * (degree - ones) + [1] * ones
        entries.append(sign * (_entry(edges[0], indices) + _entry(edges[1], indices)))
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
    namespace_ = namespace(edge.normal)
    coefficients = [namespace_.ones_like(edge.normal[..., 0])]
    for p in indices[1:]:
        n, tau = edge.normal[..., p], edge.along[..., p]
        lower = [tau * c for c in coefficients]
        upper = [n * c for c in coefficients]
        inner = [a + b for a, b in zip(lower[1:], upper[:-1], strict=True)]
        coefficients = [lower[0], *inner, upper[-1]]
    total = namespace_.zeros_like(coefficients[0])
    for i, coefficient in enumerate(coefficients):
        total = total + edge.across[i] * edge.cut[len(indices) - 1 - i] * coefficient
    return edge.normal[..., indices[0]] * total


def _symmetric(entries: list[Array], degree: int) -> Array:
    """The symmetric tensor (..., 2, ..., 2) with entry `entries[q]` where q indices are 1."""
    xp = namespace(entries[0])
    flat = xp.stack([entries[sum(index)] for index in product((0, 1), repeat=degree)], axis=-1)
    return xp.reshape(flat, (*entries[0].shape, *([2] * degree)))
