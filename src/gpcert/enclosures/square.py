"""The term `<Psi - e0, P (Psi - e0)>` of the variance, between two quadratic forms.

Psi - e0 = D d + r with `||r||` at most the kernel's `first_tail`, P the posterior covariance
operator, -kappa I <= P <= gain I. For few features also with the second degree, Psi - e0 =
D d + E(d) + r: E(d) the part of degree two, `||r|| <= tail_2(rho2)`.

Proofs: docs/mathematics.md, statements 6.2 to 6.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.arrays import Array, PerCell, PerCellMatrix, namespace
from gpcert.enclosures.polynomials import add_identity
from gpcert.enclosures.precision import LocalPrecision, Precision
from gpcert.kernels.expansions.base import (
    Expansion,
    Geometry,
    LocalKernel,
    QuadraticForm,
    SecondDegree,
    reach,
)
from gpcert.kernels.nodes.moments import dense_places
from gpcert.rounding import gamma, nonnegative, root, up

SMALLEST_RATIO = 1e-6
"""Keeps 1/eta and 1/(1 - theta) finite where the remainder vanishes; any positive value will do."""


@dataclass(frozen=True)
class OperatorBounds:
    """`-excess I <= P <= gain I` for P = I - Phi S Phi*, the posterior covariance operator.

    An exact posterior has excess 0 and gain 1. Both are proved (`UnitForm.excess`, `.gain`): the
    excess covers the rounding of a stored factor, the gain an indefinite S (Statement 1.3).
    """

    excess: float
    gain: float

    @property
    def norm(self) -> float:
        """Upper bound of |P|."""
        return max(self.gain, self.excess)

    @property
    def shifted(self) -> float:
        """Upper bound of P + excess I, which is positive; rounded up."""
        return (self.gain + self.excess) * (1.0 + 2.0**-50)


@dataclass(frozen=True, eq=False)
class Square:
    """`d^T below d - below_error <= term <= d^T above d + above_error` on every cell."""

    below: PerCellMatrix
    below_error: PerCell
    above: PerCellMatrix
    above_error: PerCell

    def better(self, other: Square, geometry: Geometry) -> tuple[Square, bool]:
        """Per cell and side, the form that leaves less room (both are valid); and whether the
        other one was taken anywhere."""
        xp = namespace(self.below_error)
        own, its = (reach(form.above, geometry) + form.above_error for form in (self, other))
        upper = its < own
        # a lower form is worth about half of what it can reach
        own, its = (0.5 * reach(form.below, geometry) - form.below_error for form in (self, other))
        lower = its > own
        best = Square(
            xp.where(lower[:, None, None], other.below, self.below),
            xp.where(lower, other.below_error, self.below_error),
            xp.where(upper[:, None, None], other.above, self.above),
            xp.where(upper, other.above_error, self.above_error),
        )
        return best, bool(xp.any(lower | upper))


def prior_square(step: QuadraticForm, geometry: Geometry, operator: OperatorBounds) -> Square:
    """`-kappa step <= term <= gain step`, step >= ||Psi - e0||^2, as -kappa I <= P <= gain I."""
    excess, gain = operator.excess, operator.gain
    rounding = up(gamma(8) * step.reach(geometry), 4)  # of adding it to another matrix
    below_error = up(excess * (step.error + rounding), 2)
    above_error = up(gain * (step.error + rounding), 4)
    return Square(-excess * step.matrix, below_error, gain * step.matrix, above_error)


def posterior_square(
    local: LocalKernel,
    expansion: Expansion,
    precision: Precision,
    step: QuadraticForm,
    operator: OperatorBounds,
) -> Square:
    """With G = D* (P + kappa I) D, R^2 = (gain + kappa) ||r||^2, for any eta > 0, 0 <= theta < 1:

        theta d^T G d - theta/(1-theta) R^2 - kappa step <= term
                                        <= (1 + eta) d^T G d + (1 + 1/eta) R^2.

    Reason: P + kappa I >= 0 defines a seminorm, and `2 <a, b> >= -(1-theta)|a|^2 - |b|^2/(1-theta)`
    (Young). eta = R/g and theta = 1 - R/g, g the largest |D d|, are best at the far end.
    """
    xp = namespace(expansion.K)
    geometry, excess = expansion.geometry, operator.excess
    form = precision.derivative_covariance(local, expansion)
    prior = local.derivative_covariance(expansion)
    known = xp.isfinite(form.error)  # then the prior's error is finite, too
    zero = xp.zeros_like(form.error)
    spectral = xp.where(known, form.error, zero) + excess * xp.where(known, prior.error, zero)
    G = form.matrix + excess * prior.matrix
    terms = QuadraticForm(xp.abs(form.matrix) + excess * xp.abs(prior.matrix), zero)
    # of d^T G d, either side; the sum above may cancel
    G_error = up(spectral * geometry.rho2 + gamma(4) * terms.reach(geometry), 4)
    R = up(operator.shifted**0.5 * local.first_tail(expansion), 8)
    usable = xp.isfinite(R) & known
    safe = xp.where(usable, R, xp.zeros_like(R))
    g = xp.sqrt(reach(G, geometry))
    ratio = safe / xp.where(g > 0, g, xp.ones_like(g))
    eta = xp.maximum(ratio, xp.full_like(ratio, SMALLEST_RATIO))
    above_error = up(safe * safe * (1.0 + 1.0 / eta) + (1.0 + eta) * G_error, 8)
    theta = nonnegative(1.0 - eta)
    below_error = up(theta / (1.0 - theta) * (safe * safe) + theta * G_error, 8)
    below_error = up(below_error + excess * step.reach(geometry), 4)
    infinite = xp.full_like(R, math.inf)
    rounding = up(gamma(16) * g * g, 4)
    return Square(
        theta[:, None, None] * G,
        xp.where(usable, below_error + rounding, infinite),
        (1.0 + eta)[:, None, None] * G,
        xp.where(usable, above_error + rounding * (1.0 + eta), infinite),
    )


def second_covariance(
    precision: LocalPrecision, degrees: SecondDegree, f: int
) -> tuple[tuple[Array, PerCell], tuple[Array, PerCell], tuple[Array, PerCell]]:
    """Posterior covariance of the parts of degree one and two, D d and E(d), of omega phi at c, as
    forms of degree 2, 3 and 4 in d, each with its error, which meets |d|^2, |d|^3 and |d|^4.

    For f features, with Q, T the products of A with `k u_j` and `k u_j u_k`: `<D d, P D d>`,
    `2 <D d, P E(d)>` and `<E(d), P E(d)>` have the coefficients

        s^2 I - Q Q^T,  -sym(Q_j.T_kl),  s^2 (1_jl 1_km + 1_jm 1_kl) / 4 - T_jk.T_lm / 4.

    Reason: P = I - Phi A^T A Phi*, `Phi* E(d) = k_i (u_i.d)^2 / 2`, degrees one and two are
    orthogonal and `|E(d)|^2 = s^2 |d|^4 / 2`. The errors: those of Q and T
    (`_product_error`), and `||Q^T d|| <= |Q|_F |d|`, `||T^T (d d)|| <= |T|_F |d|^2`.
    """
    rows = degrees.rows
    xp = namespace(rows)
    A, s2, (B, count, N) = precision.factor, degrees.variance, rows.shape
    r = A.shape[0]
    products = xp.reshape(xp.reshape(rows, (B * count, N)) @ A.T, (B, count, r))
    places = xp.asarray(f + dense_places(f, 2), device=rows.device)
    Q, T = products[:, :f], products[:, places]
    one = xp.eye(f, dtype=A.dtype, device=A.device)
    square = Q @ xp.matrix_transpose(Q)
    first = s2 * one - 0.5 * (square + xp.matrix_transpose(square))  # exactly symmetric
    mixed = xp.reshape(Q @ xp.matrix_transpose(T), (B, f, f, f))
    turned = xp.permute_dims(mixed, (0, 2, 1, 3)), xp.permute_dims(mixed, (0, 3, 2, 1))
    mixed = -(mixed + turned[0] + turned[1]) / 3.0
    prior = one[:, None, :, None] * one[None, :, None, :]
    prior = 0.25 * s2 * (prior + one[:, None, None, :] * one[None, :, :, None])
    second = prior[None] - 0.25 * xp.reshape(T @ xp.matrix_transpose(T), (B, f, f, f, f))
    dQ, dT = (_product_error(precision, degrees, degree) for degree in (1, 2))
    size1 = root(xp.sum(Q**2, axis=(1, 2))) * (1.0 + gamma(r * f + 8))
    size2 = root(xp.sum(T**2, axis=(1, 2))) * (1.0 + gamma(r * f * f + 8))
    dot = gamma(r + 16)
    first_error = dQ * (2.0 * size1 + dQ) + dot * (size1**2 + s2)
    mixed_error = dQ * size2 + dT * size1 + dQ * dT + dot * size1 * size2
    second_error = dT * (2.0 * size2 + dT) + dot * (size2**2 + f * s2)
    first_error, mixed_error, second_error = (
        up(error, r + 16) for error in (first_error, mixed_error, second_error)
    )
    return (first, first_error), (mixed, mixed_error), (second, second_error)


def _product_error(precision: LocalPrecision, degrees: SecondDegree, degree: int) -> Array:
    """(B,) e: the product of A with `k_i (u_i.d)^degree` errs by at most e |d|^degree."""
    xp, N = namespace(degrees.rows), degrees.rows.shape[2]
    # each further factor u_i.d carries fewer than 16 roundings of size |z_i| + |c|
    spread = gamma(N + 16 * degree) * xp.sqrt(degrees.squared_sizes[:, degree])
    return up(precision.size * (spread + xp.sqrt(degrees.squared_errors[:, degree])), 8)


def second_square(
    degrees: SecondDegree,
    geometry: Geometry,
    precision: LocalPrecision,
    step: QuadraticForm,
    operator: OperatorBounds,
) -> Square:
    """With a = D d, b = E(d), G = D* (P + kappa I) D, R^2 = (1 + kappa) tail_2^2, and bounds
    t3 >= |2 <a, P b>|, t4 >= |b|^2 (in the seminorm of P + kappa I), for any 0 < eta <= 1:

        (1 - eta) d^T G d - R^2/eta - t3 - kappa step <= term
                            <= (1 + eta) d^T G d + R^2/eta + t3 + (sqrt(t4) + R)^2.

    Reason: in that seminorm `|a + b + r|^2 = |a|^2 + 2 <a, b> + 2 <a, r> + |b + r|^2`, where
    `|2 <a, r>| <= eta |a|^2 + R^2/eta` (Young); kappa does not enter <a, b>, as degrees one and
    two are orthogonal (Statement 6.4). eta = R/g, g the largest |a|, is best at the far end.
    """
    assert precision.negative is None, "the covariance of the second degree needs S = A^T A"
    xp, excess = namespace(geometry.rho2), operator.excess
    rho2, s2 = geometry.rho2, degrees.variance
    w = geometry.half
    forms = second_covariance(precision, degrees, w.shape[1])
    (first, first_error), (mixed, mixed_error), (second, second_error) = forms
    shift = up(first_error + excess * s2, 4)
    G = add_identity(first, shift)
    tail = up(operator.shifted**0.5 * degrees.tail, 8)
    usable = xp.isfinite(tail)
    R = xp.where(usable, tail, xp.zeros_like(tail))
    plane = w[:, :, None] * w[:, None, :]
    space = plane[:, :, :, None] * w[:, None, None, :]
    count = 8 * w.shape[1] ** 2 + 64
    t3 = xp.sum(xp.abs(mixed) * space, axis=(1, 2, 3))
    t3 = up(t3 + mixed_error * (rho2 * geometry.rho), count)
    quartic = plane[:, :, :, None, None] * plane[:, None, None, :, :]
    t4 = xp.sum(xp.abs(second) * quartic, axis=(1, 2, 3, 4))
    t4 = up(t4 + (second_error + 0.5 * excess * s2) * rho2**2, count)
    t4 = xp.minimum(t4, up((0.5 * operator.shifted * s2) * rho2**2, 8))
    g = xp.sqrt(xp.sum(xp.abs(G) * plane, axis=(1, 2)))
    ratio = R / xp.where(g > 0, g, xp.ones_like(g))
    eta = xp.minimum(xp.maximum(ratio, xp.full_like(ratio, SMALLEST_RATIO)), xp.ones_like(ratio))
    common = up(R * R / eta + t3, 8)
    above_error = up(common + (xp.sqrt(t4) + R) ** 2, 8)
    # below uses G on its upper side: take back the error, and the kappa part
    take_back = up(2.0 * (first_error + excess * s2) * rho2, 8)
    below_error = up(common + take_back + excess * step.reach(geometry), 4)
    # |first| <= |G| + shift: the addition may cancel
    rounding = up(gamma(16) * (g * g + 2.0 * shift * xp.sum(w * w, axis=1)), w.shape[1] + 8)
    infinite = xp.full_like(R, math.inf)
    return Square(
        (1.0 - eta)[:, None, None] * G,
        xp.where(usable, below_error + rounding, infinite),
        (1.0 + eta)[:, None, None] * G,
        xp.where(usable, above_error + 2.0 * rounding, infinite),
    )
