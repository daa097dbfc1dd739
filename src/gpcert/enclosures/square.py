"""The term `<Psi - e0, P (Psi - e0)>` of the variance, between two quadratic forms.

Psi - e0 = D d + r with `||r||` at most the kernel's `first_tail`, P the posterior covariance
operator, -kappa I <= P <= gain I. For few features also with the second degree, Psi - e0 =
D d + E(d) + r: E(d) the part of degree two, `||r|| <= tail_2(rho2)`.

Proofs: docs/mathematics.md, statements 6.2 to 6.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.enclosures.precision import CenterVariance, Degree, ExplainedForms, Precision
from gpcert.kernels.expansions.base import (
    Expansion,
    LocalKernel,
    QuadraticForm,
    SecondDegree,
    reach,
)
from gpcert.kernels.nodes.moments import dense_places
from gpcert.numerics.arrays import Array, PerCell, PerCellMatrix, namespace
from gpcert.numerics.rounding import gamma, given, nonnegative, up
from gpcert.regions.scaled import ScaledCells, Stretch

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

    def better(self, other: Square, geometry: ScaledCells) -> tuple[Square, bool]:
        """Per cell and side, the form that is tighter (both are valid); and whether the
        other one was taken anywhere."""
        xp = namespace(self.below_error)
        mine, theirs = (reach(form.above, geometry) + form.above_error for form in (self, other))
        upper = theirs < mine
        # a lower form is worth about half of what it can reach
        mine, theirs = (
            0.5 * reach(form.below, geometry) - form.below_error for form in (self, other)
        )
        lower = theirs > mine
        best = Square(
            xp.where(lower[:, None, None], other.below, self.below),
            xp.where(lower, other.below_error, self.below_error),
            xp.where(upper[:, None, None], other.above, self.above),
            xp.where(upper, other.above_error, self.above_error),
        )
        return best, bool(xp.any(lower | upper))


def prior_square(
    step: QuadraticForm, geometry: ScaledCells, operator: OperatorBounds, center: CenterVariance
) -> Square:
    """`-kappa step <= term <= gain step`, step >= ||Psi - e0||^2, as -kappa I <= P <= gain I."""
    excess, gain = operator.excess, operator.gain
    whole = step.reach(geometry)
    rounding = up(gamma(8) * whole, 4)  # of adding it to another matrix
    apart = _deviation(center, whole)
    below_error = up(excess * (step.error + rounding) + apart, 4)
    above_error = up(gain * (step.error + rounding) + apart, 4)
    return Square(-excess * step.matrix, below_error, gain * step.matrix, above_error)


def _deviation(center: CenterVariance, step: PerCell) -> PerCell:
    """At least `2 |<P e0 - p, Psi - e0>|` for steps of squared length up to `step`."""
    return up(2.0 * center.deviation * namespace(step).sqrt(nonnegative(step)), 6)


def posterior_square(
    local: LocalKernel,
    expansion: Expansion,
    precision: Precision,
    step: QuadraticForm,
    operator: OperatorBounds,
    center: CenterVariance,
) -> Square:
    """With G = D* (P + kappa I) D, R^2 = (gain + kappa) ||r||^2, for any eta > 0, 0 <= theta < 1:

        theta d^T G d - theta/(1-theta) R^2 - kappa step <= term
                                        <= (1 + eta) d^T G d + (1 + 1/eta) R^2.

    Reason: P + kappa I >= 0 defines a seminorm, and `2 <a, b> >= -(1-theta)|a|^2 - |b|^2/(1-theta)`
    (Young). eta = R/g and theta = 1 - R/g, g the largest |D d|, are best at the far end.
    """
    xp = namespace(expansion.K)
    geometry, excess = expansion.geometry, operator.excess
    stretch = Stretch.of(geometry) if precision.stretches else None
    form, missed, crossed = precision.derivative_covariance(local, expansion, center, stretch)
    rho, rho2 = (geometry.rho, geometry.rho2) if stretch is None else stretch[1:3]
    prior = local.derivative_covariance(expansion)
    known = xp.isfinite(form.error)  # then the prior's error is finite, too
    zero = xp.zeros_like(form.error)
    spectral = xp.where(known, form.error, zero) + excess * xp.where(known, prior.error, zero)
    G = form.matrix + excess * prior.matrix
    terms = QuadraticForm(xp.abs(form.matrix) + excess * xp.abs(prior.matrix), zero)
    # of d^T G d, either side; the sum above may cancel
    G_error = up(spectral * rho2 + gamma(4) * terms.reach(geometry), 4)
    R = up(operator.shifted**0.5 * local.first_tail(expansion), 8)
    usable = xp.isfinite(R) & known
    safe = xp.where(usable, R, xp.zeros_like(R))
    g = xp.sqrt(reach(G, geometry))
    ratio = safe / xp.where(g > 0, g, xp.ones_like(g))
    eta = given(xp.maximum(ratio, xp.full_like(ratio, SMALLEST_RATIO)))
    above_error = up(safe * safe * (1.0 + 1.0 / eta) + (1.0 + eta) * G_error, 8)
    theta = given(nonnegative(1.0 - eta))
    missed = xp.where(known, missed, zero) * rho2
    below_error = up(theta / (1.0 - theta) * (safe * safe) + theta * (G_error + missed), 8)
    whole = step.reach(geometry)
    apart = _deviation(center, whole)
    below_error = up(below_error + excess * whole + apart, 4)
    if crossed is None:
        above_error = up(above_error + apart, 1)
    else:
        above_error = up(above_error + 2.0 * xp.where(known, crossed, zero) * rho, 4)
    infinite = xp.full_like(R, math.inf)
    rounding = up(gamma(16) * g * g, 4)
    return Square(
        theta[:, None, None] * G,
        xp.where(usable, below_error + rounding, infinite),
        (1.0 + eta)[:, None, None] * G,
        xp.where(usable, above_error + rounding * (1.0 + eta), infinite),
    )


def second_covariance(
    precision: Precision,
    degrees: SecondDegree,
    f: int,
    center: CenterVariance,
    stretch: Stretch | None = None,
) -> tuple[tuple[Array, PerCell], tuple[Array, PerCell], tuple[Array, PerCell], ExplainedForms]:
    """Posterior covariance of the parts of degree one and two, D d and E(d), of omega phi at c, as
    forms of degree 2, 3 and 4 in d, each with its error, which meets |d|^2, |d|^3 and |d|^4, or
    with a stretch the same of |e|; and what they are made of.

    For f features, with Q.Q, Q.T and T.T the products by S of `k u_j` and `k u_j u_k`:
    `<D d, P D d>`, `2 <D d, P E(d)>` and `<E(d), P E(d)>` have the coefficients

        s^2 I - Q.Q,  -sym(Q_j.T_kl),  s^2 (1_jl 1_km + 1_jm 1_kl) / 4 - T_jk.T_lm / 4.

    Reason: P = I - Phi S Phi*, `Phi* E(d) = k_i (u_i.d)^2 / 2`, degrees one and two are orthogonal
    and `|E(d)|^2 = s^2 |d|^4 / 2`; of pairs that E is without (`SecondDegree.pairs`) both terms are
    zero. A row T_jk, j < k, counts twice in a sum over all pairs; each further factor u_i.d carries
    fewer than 16 roundings of size |z_i| + |c|.
    """
    rows = degrees.rows
    xp, s2, count = namespace(rows), degrees.variance, rows.shape[1]
    sizes = xp.sqrt(degrees.squared_sizes) * (1.0 + gamma(4))
    errors = xp.sqrt(degrees.squared_errors) * (1.0 + gamma(4))
    counts = pair_counts(f)
    pairs_used = range(len(counts)) if degrees.pairs is None else degrees.pairs
    weights = [1.0] * f + [counts[place] for place in pairs_used]
    often = xp.asarray(weights, dtype=rows.dtype, device=rows.device)
    parts = ((1, slice(0, f), often[:f]), (2, slice(f, count), often[f:]))
    scale = None
    if stretch is not None:
        ends = [
            xp.asarray(each[list(pairs_used)], device=rows.device) for each in np.triu_indices(f)
        ]
        pairs = stretch.factors[:, ends[0]] * stretch.factors[:, ends[1]]
        scale = xp.concat([stretch.factors, pairs], axis=1)
    forms = precision.explained_forms(
        rows if scale is None else rows * scale[:, :, None],
        [
            Degree(part, times, sizes[:, n], up(errors[:, n] + gamma(16 * n) * sizes[:, n], 4))
            for n, part, times in parts
        ],
        center,
        reach2=math.inf if stretch is None else stretch.largest,
    )
    if scale is not None:
        matrix = forms.matrix / (scale[:, :, None] * scale[:, None, :])
        forms = forms._replace(matrix=matrix)
    # the rows of pairs that are left out are zero, and stand behind those that are kept
    where = np.full(len(counts), count)
    where[list(pairs_used)] = np.arange(f, count)
    places = xp.asarray(where[dense_places(f, 2)], device=rows.device)
    one = xp.eye(f, dtype=rows.dtype, device=rows.device)
    first = s2 * one - forms.matrix[:, :f, :f]
    B, matrix = len(rows), forms.matrix
    if len(pairs_used) < len(counts):
        matrix = xp.zeros((B, count + 1, count + 1), dtype=rows.dtype, device=rows.device)
        matrix[:, :count, :count] = forms.matrix
    whole = matrix[:, :, places]
    mixed = xp.reshape(whole[:, :f], (B, f, f, f))
    turned = xp.permute_dims(mixed, (0, 2, 1, 3)), xp.permute_dims(mixed, (0, 3, 2, 1))
    mixed = -(mixed + turned[0] + turned[1]) / 3.0
    prior = one[:, None, :, None] * one[None, :, None, :]
    prior = 0.25 * s2 * (prior + one[:, None, None, :] * one[None, :, :, None])
    present = xp.reshape(xp.asarray(1.0 * (where < count)[dense_places(f, 2)]), (f, f))
    prior = prior * present[:, :, None, None]
    second = prior[None] - 0.25 * xp.reshape(whole[:, places], (B, f, f, f, f))
    # every entry carries a few roundings more, of the sizes of its terms
    size = [xp.sqrt(xp.sum(each**2, axis=(1, 2))) for each in (whole[:, :f], whole[:, places])]
    plain = xp.sqrt(xp.sum(forms.matrix[:, :f, :f] ** 2, axis=(1, 2)))
    first_error = forms.errors[0, 0] + gamma(16) * (plain + f * s2)
    mixed_error = forms.errors[0, 1] + gamma(16) * size[0]
    second_error = forms.errors[1, 1] + gamma(16) * (size[1] + f * s2)
    first_error, mixed_error, second_error = (
        up(error, count + 16) for error in (first_error, mixed_error, second_error)
    )
    return (first, first_error), (mixed, mixed_error), (second, second_error), forms


def pair_counts(f: int) -> list[float]:
    """How often (j, k), j <= k in lexicographic order, is among all pairs of f features.

    >>> pair_counts(2)
    [1.0, 2.0, 1.0]
    """
    return [1.0 if j == k else 2.0 for j in range(f) for k in range(j, f)]


FELT_TAIL = 0.5
"""Part of the standard deviation at the centres from which the remainder of degree one counts."""

LEFT_OUT = 0.2
"""Part of the standard deviation that pairs of features may count for and be left out together."""


def pairs_that_count(geometry: ScaledCells, value: PerCell, variance: float) -> tuple[int, ...]:
    """Places of pairs of features whose second degree is worth the products with S: where the
    remainder of degree one, `s |d|^2 / sqrt(2)`, is a large part of the standard deviation, all but
    those that count least on average. A choice of speed only; none where degree one is enough."""
    xp, half = namespace(value), geometry.half
    std = xp.sqrt(nonnegative(value) / variance)
    if float(xp.mean(1.0 * (geometry.rho2 > 1.5 * FELT_TAIL * std))) < 0.5:
        return ()
    shares = []
    first, second = np.triu_indices(half.shape[1])
    for j, k in zip(first.tolist(), second.tolist(), strict=True):
        size = (0.7 if j == k else 1.0) * half[:, j] * half[:, k]
        shares.append(float(xp.mean(size / xp.where(std > 0, std, xp.ones_like(std)))))
    order = np.argsort(shares)
    left_out = np.sqrt(np.cumsum(np.square(shares)[order])) <= LEFT_OUT
    return tuple(sorted(order[~left_out].tolist()))


def second_square(
    degrees: SecondDegree,
    geometry: ScaledCells,
    precision: Precision,
    step: QuadraticForm,
    operator: OperatorBounds,
    center: CenterVariance,
) -> Square:
    """With a = D d, b = E(d), G = D* (P + kappa I) D, R^2 = (1 + kappa) tail_2^2, and bounds
    t3 >= |2 <a, P b>|, t4 >= |b|^2 (in the seminorm of P + kappa I), for any 0 < eta <= 1:

        (1 - eta) d^T G d - R^2/eta - t3 - kappa step <= term
                            <= (1 + eta) d^T G d + R^2/eta + t3 + (sqrt(t4) + R)^2.

    Reason: in that seminorm `|a + b + r|^2 = |a|^2 + 2 <a, b> + 2 <a, r> + |b + r|^2`, where
    `|2 <a, r>| <= eta |a|^2 + R^2/eta` (Young); kappa does not enter <a, b>, as degrees one and
    two are orthogonal (Statement 6.4). eta = R/g, g the largest |a|, is best at the far end.
    """
    xp, excess = namespace(geometry.rho2), operator.excess
    rho2, s2 = geometry.rho2, degrees.variance
    w = geometry.half
    stretch = Stretch.of(geometry) if precision.stretches else None
    covariance = second_covariance(precision, degrees, w.shape[1], center, stretch)
    (first, first_error), (mixed, mixed_error), (second, second_error), forms = covariance
    # displacements that errors meet
    far, far2 = (geometry.rho, rho2) if stretch is None else stretch[1:3]
    each = xp.ones_like(w) if stretch is None else 1.0 / stretch.factors**2
    shift = up(first_error[:, None] * each + excess * s2, 4)
    identity = xp.eye(w.shape[1], dtype=w.dtype, device=w.device)
    G = first + shift[:, :, None] * identity
    tail = up(operator.shifted**0.5 * degrees.tail, 8)
    usable = xp.isfinite(tail)
    R = xp.where(usable, tail, xp.zeros_like(tail))
    plane = w[:, :, None] * w[:, None, :]
    space = plane[:, :, :, None] * w[:, None, None, :]
    count = 8 * w.shape[1] ** 2 + 64
    t3 = xp.sum(xp.abs(mixed) * space, axis=(1, 2, 3))
    t3 = up(t3 + mixed_error * (far2 * far), count)
    quartic = plane[:, :, :, None, None] * plane[:, None, None, :, :]
    t4 = xp.sum(xp.abs(second) * quartic, axis=(1, 2, 3, 4))
    t4 = up(t4 + second_error * far2**2 + (0.5 * excess * s2) * rho2**2, count)
    most = (0.5 * operator.shifted * s2) * rho2**2 + (0.25 * forms.missed[1, 1]) * far2**2
    t4 = xp.minimum(t4, up(most, 8))
    g = xp.sqrt(xp.sum(xp.abs(G) * plane, axis=(1, 2)))
    ratio = R / xp.where(g > 0, g, xp.ones_like(g))
    ratio = xp.maximum(ratio, xp.full_like(ratio, SMALLEST_RATIO))
    eta = given(xp.minimum(ratio, xp.ones_like(ratio)))
    common = up(R * R / eta + t3, 8)
    above_error = up(common + (xp.sqrt(t4) + R) ** 2, 8)
    # below uses G on its upper side: take back the error, and the kappa part, and what the forms
    # are larger by than those of P
    take_back = (2.0 * first_error + forms.missed[0, 0]) * far2 + (2.0 * excess * s2) * rho2
    take_back = up(take_back + forms.missed[0, 1] * (far2 * far), 8)
    whole = step.reach(geometry)
    apart = _deviation(center, whole)
    below_error = up(common + take_back + excess * whole + apart, 4)
    if forms.crossed is not None:
        apart = 2.0 * forms.crossed[0] * far + forms.crossed[1] * far2
    above_error = up(above_error + apart, 8)
    # |first| <= |G| + shift: the addition may cancel
    rounding = up(gamma(16) * (g * g + 2.0 * xp.sum(shift * w * w, axis=1)), w.shape[1] + 8)
    infinite = xp.full_like(R, math.inf)
    return Square(
        (1.0 - eta)[:, None, None] * G,
        xp.where(usable, below_error + rounding, infinite),
        (1.0 + eta)[:, None, None] * G,
        xp.where(usable, above_error + 2.0 * rounding, infinite),
    )
