"""The covariance of a class with a difference of two others, over cells, as one function.

    Delta_j = cov(f_j - (f_c + f_k) / 2, f_c - f_k) = (D_jk - D_jc) / 2,

D the variances of differences: the priors cancel, and what is left is a quadratic form of kernel
values, `q(x) = k(x, Z) W k(Z, x)`, small where each variance may be anything between 0 and the
prior's. Of the squared exponential, with B_ij = W_ij k_i k_j and y_i = u_i.d at a centre,
`exp(|d|^2) q(c+d) = sum_ij B_ij exp(y_i + y_j)`. Degrees up to 2 are computed. Degree n is
`sum_a C(n, a) sum_ij B_ij y_i^a y_j^(n-a) / n!`, each part at most `F_a |d|^n`,
`F_a^2 = sum_ijkl B_ij B_kl (u_i.u_k)^a (u_j.u_l)^(n-a)`, or a spectral norm in place of F_a; beyond
degree 6 or 9 Cauchy-Schwarz in the space of k^2, where q has the squared norm trace(W K W K). Of
other kernels nothing is said.

Proofs: docs/mathematics.md, statements 6.8 and 10.15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.enclosures.classes.pairs import PairBounds
from gpcert.enclosures.enclosure import Enclosure
from gpcert.enclosures.local_posterior import LocalPosterior
from gpcert.kernels.expansions.higher_degrees import HIGHEST_DEGREE, UNDERFLOW, box_metric
from gpcert.kernels.expansions.squared_exponential import (
    LocalSquaredExponential,
    WeightedExpansion,
)
from gpcert.kernels.exponentials import exponential_tail
from gpcert.rounding import TINY, down, gamma, nonnegative, up, up_float
from gpcert.unit_form import UnitForm

MOST_POINTS, MOST_PRODUCTS = 1024, 2.0e8
"""Up to so many points the forms are made: four products of matrices (N, N) a cell. Of several
cells only up to so many times N^3."""

SHARP_DEGREE, SPECTRAL_DEGREE = 9, 6
"""Highest degree of a form that is bounded by itself where that is to be sharp, and the highest one
by spectral norms: a dozen more products of matrices."""

FAINT = 2.0**-900
"""Added to sums of products of four sizes, which lose less where they underflow."""

LARGEST = 300.0
"""Exponents of the rounding's bound, beyond which a cell is too large for it."""


def form_norm(unit: UnitForm, W: Annotated[np.ndarray, "N N"]) -> float:
    """Upper bound of `sqrt(trace(W K W K))`, K the kernel at the points; infinite where that is no
    float."""
    K, errors = unit.gram
    N = len(K)
    with np.errstate(over="ignore", invalid="ignore"):
        X, size = W @ K, np.abs(W) @ (np.abs(K) + errors + TINY)
        off = gamma(2 * N + 8) * size + np.abs(W) @ (errors + TINY)
        square = np.sum(X * X.T)
        lost = np.sum(off * size.T) * 2.0 + gamma(N * N + 8) * np.sum(size * size.T)
        total = up_float(float(square + up_float(float(lost), 2 * N + 16)), 4)
    return up_float(math.sqrt(max(total, 0.0)), 2) if math.isfinite(total) else math.inf


def form_enclosures(
    kernel: LocalSquaredExponential,
    expansion: WeightedExpansion,
    W: Annotated[Array, "N N"],
    norm: float,
    sharp: bool = False,
) -> tuple[Enclosure, Enclosure]:
    """Of q and of -q, for a symmetric W (N, N) that is meant as it is stored, `norm` as in
    `form_norm`; weighted by `exp(|d|^2)`. If `sharp`, at several times the cost."""
    xp, geometry = namespace(W), expansion.geometry
    degree = SHARP_DEGREE if sharp else HIGHEST_DEGREE
    parts = [_polynomial(kernel, expansion, W, b, degree) for b in range(len(expansion.K))]
    value, gradient, hessian, lost = (xp.stack(list(part)) for part in zip(*parts, strict=True))
    tail = xp.sqrt(exponential_tail(up(2.0 * geometry.rho2, 1), degree))
    error = up(lost + up(norm * kernel.variance * tail, 8), 4)
    rate = 2.0 * kernel.weight_rate
    below = Enclosure.of(geometry, (value, gradient, hessian), error, rate)
    above = Enclosure.of(geometry, (-value, -gradient, -hessian), error, rate)
    return below, above


def _polynomial(
    kernel: LocalSquaredExponential, expansion: WeightedExpansion, W: Array, b: int, degree: int
) -> tuple[Array, Array, Array, Array]:
    """Degrees 0, 1, 2 of one cell, and what they and degrees 3 to `degree` leave open.

    Reason for the rounding: every coefficient is a sum of N^2 products `B_ij u_i.. u_j..` with a
    few roundings each, at most `sum_ij |B_ij| (m_i + m_j)^n` in size with m_i >= |z_i| + |c|; over
    all degrees `sum_ij |B_ij| exp((m_i + m_j) rho)` on the cell.
    """
    xp, geometry = namespace(W), expansion.geometry
    N, f = kernel.points.shape
    K, scaled = expansion.K[b], expansion.scaled[b : b + 1]
    half, rho = geometry.half[b : b + 1], geometry.rho[b : b + 1]
    B = W * (K[:, None] * K[None, :])
    rows = xp.sum(B, axis=1)
    points = kernel.points - scaled
    turned = B @ points
    (zeroth, gradient, hessian), _ = kernel.moments_and_cubes(2.0 * rows[None], scaled)
    H = hessian[0] + 2.0 * (points.T @ turned)
    eta = gamma(6 * N + 16 * f + 128) + 4.0 * xp.max(kernel.relative_error)
    exponents = (kernel.point_norms + kernel.reach) * rho[0]
    reach = xp.exp(xp.minimum(exponents, LARGEST + 0.0 * K))
    far, floor = (K + kernel.floor) * reach, kernel.floor * reach
    total = xp.sum(far * (xp.abs(W) @ far)) * eta + 2.0 * xp.sum(floor * (xp.abs(W) @ far))
    usable = xp.all(exponents < LARGEST)
    total = xp.where(usable, up(4.0 * total, 4 * N + 64), xp.full_like(total, math.inf))
    metric = box_metric(xp.sum(xp.abs(B), axis=1)[None], points[None], half, rho)
    sizes = xp.abs(kernel.points) + xp.abs(scaled)
    lengths = metric.lengths(sizes[None])[0]
    higher = _higher_degrees(B, points / metric.delta, lengths, eta, degree)
    power = xp.stack([metric.rho[0] ** n for n in range(3, degree + 1)])
    lost = up(xp.sum(higher * power), 64) + UNDERFLOW + total
    return 0.5 * zeroth[0], gradient[0], 0.5 * (H + H.T), lost


def _higher_degrees(B: Array, points: Array, lengths: Array, eta: Array, degree: int) -> Array:
    """(degree - 2,): bounds of degrees 3 to `degree` for |d| <= 1, from the points u_i (N, f) of
    one cell.

    `F_a^2 = sum_ij (B P^a B)_ij P_ij^(n-a)`, P the points' products and powers entry by entry; its
    error is at most `16 eta (sum_ij |B_ij| m_i^a m_j^(n-a))^2`, m_i >= |u_i|. It is the trace of
    `M = B P^a B P^(n-a)`, whose eigenvalues are not negative and whose largest is the square of the
    part's spectral norm: at most `sqrt(trace(M^2))`, with 32 eta times the fourth power.
    """
    xp = namespace(B)
    rows, turned = xp.sum(B, axis=1), B @ points
    P = points @ points.T
    powers = [xp.ones_like(P)]
    for _ in range(degree):
        powers.append(powers[-1] * P)
    joined = [rows[:, None] * rows[None, :], turned @ turned.T]
    joined += [B @ (powers[a] @ B) for a in range(2, degree // 2 + 1)]
    spread = xp.stack([xp.abs(B) @ lengths**a for a in range(degree // 2 + 1)])
    found = []
    for n in range(3, degree + 1):
        size = 0.0
        for a in range(n // 2 + 1):
            square = xp.sum(joined[a] * powers[n - a])
            most = xp.sum(spread[a] * lengths ** (n - a)) ** 2
            part = xp.sqrt(nonnegative(square + 16.0 * eta * most))
            if n <= SPECTRAL_DEGREE and degree > HIGHEST_DEGREE:
                # of sum_i rows_i y_i^n, which has no two factors, any n - e and e of the y_i
                e = a or n // 2
                first = joined[a] if a else joined[0] * powers[e]
                M = first @ powers[n - e]
                fourth = xp.sum(xp.sum(M * M.T, axis=1)) + 32.0 * eta * most * most + FAINT
                fourth = xp.where(xp.isnan(fourth), xp.full_like(fourth, math.inf), fourth)
                part = xp.minimum(part, nonnegative(fourth) ** 0.25)
            times = (1 if 2 * a == n else 2) * math.comb(n, a)
            size = size + times * part / math.factorial(n)
        found.append(size)
    sizes = xp.stack(found)
    sizes = xp.where(xp.isnan(sizes), xp.full_like(sizes, math.inf), sizes)  # of overflows
    return up(sizes, 4 * len(B) + 64)


FEW_CLASSES = 4
"""Up to so many the forms of one cell are bounded sharply: of ten digits there are too many."""

Terms = dict[int, float]
"""Outputs and coefficients of their variances."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """`low <= Delta <= high` (B,) on each cell; `-Delta` is at least minus `constant` (B,) and a
    function, `-k W k` with W (N, N), that is enclosed by `negative`."""

    negative: Enclosure
    constant: Array
    low: Array
    high: Array
    W: Array


def covariance_of(pairs: PairBounds, pair: tuple[int, int], j: int) -> Covariance | None:
    """Delta_j of the pair (c, k); None where it is not known as a form."""
    (c, k), layout = pair, pairs.layout
    terms: Terms = {}
    for sign, first in ((0.5, k), (-0.5, c)):
        for output, factor in layout.covariance(first, j, j):
            terms[output] = terms.get(output, 0.0) + sign * factor
    return pairs.latent.once((layout, "covariance", c, k, j), lambda: _covariance(pairs, terms))


def _covariance(pairs: PairBounds, terms: Terms) -> Covariance | None:
    latent, layout = pairs.latent, pairs.layout
    if not latent.together or layout.rounding > 0:
        return None
    local, expansion = latent.evaluation.local, latent.evaluation.expansion
    kernel = local.kernel
    if not isinstance(kernel, LocalSquaredExponential) or local.precisions is None:
        return None
    N, cells = len(kernel.points), len(expansion.K)
    if N > MOST_POINTS or (cells > 1 and cells * N**3 > MOST_PRODUCTS):
        return None
    assert isinstance(expansion, WeightedExpansion), "of the squared exponential"
    xp = namespace(expansion.K)
    W, norm, off = latent.once(
        (layout, "form", tuple(sorted(terms.items()))), lambda: _form(local, terms)
    )
    W = xp.asarray(W, device=expansion.K.device)
    sharp = layout.classes <= FEW_CLASSES and len(expansion.K) == 1
    below, above = form_enclosures(kernel, expansion, W, norm, sharp)
    # Delta = constant + k W k, up to: entries of W, variances cut at 0, semi-definite covariances
    units = {o: local.variance_units(o) for o in terms}
    prior = {o: units[o].factor * kernel.variance + units[o].shift for o in terms}
    constant = sum(c * prior[o] for o, c in terms.items())
    slack = gamma(8) * sum(abs(c) * prior[o] for o, c in terms.items())
    slack = slack + sum(abs(c) * latent.dip(o) for o, c in terms.items()) + 2.0 * pairs.raised
    slack = up_float(off + slack, 16)
    least, most = below.minimum().lower, -above.minimum().lower
    low, high = down(least + constant - slack, 4), up(most + constant + slack, 4)
    size = gamma(4) * (abs(least) + abs(most) + abs(constant))
    return Covariance(above, up(constant + slack + 0.0 * least, 2), low - size, high + size, W)


def _form(local: LocalPosterior, terms: Terms) -> tuple[np.ndarray, float, float]:
    """`W = -sum_o c_o factor_o S_o` (N, N), the form's norm, and what W's rounding is worth: with
    `|| |A| ||_2 <= size`, S is off by at most gamma size^2 in norm, and `|k(x)|^2 <= N s^4`."""
    unit = local.unit
    N = len(unit.points)
    W = np.zeros((N, N))
    off = 0.0
    for output, c in terms.items():
        index = output if unit.precision_count > 1 else 0
        factor = local.variance_units(output).factor
        W -= (c * factor) * unit.precisions[index]
        A, C = unit.factors_of(index)
        size, other = unit.factor_sizes[index]
        rounding = gamma(len(A) + len(C) + 2 * len(terms) + 16)
        off += abs(c * factor) * rounding * (size * size + other * other)
    W = 0.5 * (W + W.T)
    off = 1.01 * off * N * local.kernel.variance**2
    key = tuple(sorted(terms.items()))
    if key not in unit.form_norms:
        unit.form_norms[key] = form_norm(unit, W)
    return W, unit.form_norms[key], off
