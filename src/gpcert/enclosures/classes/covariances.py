"""The covariance of a class with a difference of two others, over cells, as one function.

    Delta_j = cov(f_j - (f_c + f_k) / 2, f_c - f_k) = (D_jk - D_jc) / 2,

D the variances of differences: the priors cancel, and what is left is a quadratic form of kernel
values, `k(x, Z) W k(Z, x)`, small where each variance may be anything between 0 and the prior's. Of
kernels whose forms are not known nothing is said.

Proofs: docs/mathematics.md, statements 6.8 and 10.15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.enclosures.classes.pairs import PairBounds
from gpcert.enclosures.local_posterior import LocalPosterior
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.kernels.expansions.base import Expansion, LocalKernel
from gpcert.kernels.expansions.capabilities import QuadraticForms
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import Array, namespace
from gpcert.numerics.rounding import TINY, down, gamma, up, up_float

MAX_POINTS, MAX_PRODUCTS = 1024, 2.0e8
"""Up to so many points the forms are made: four products of matrices (N, N) per cell. Of several
cells only up to so many times N^3."""


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
    kernel: LocalKernel,
    expansion: Expansion,
    W: Annotated[Array, "N N"],
    norm: float,
) -> tuple[QuadraticLowerModel, QuadraticLowerModel]:
    """Of `k W k` and of minus it, weighted by `omega^2`; see `QuadraticForms`."""
    assert isinstance(kernel, QuadraticForms)
    coefficients, error = kernel.form_polynomial(expansion, W, norm)
    geometry, rate = expansion.geometry, 2.0 * kernel.weight_rate
    negative = tuple(-each for each in coefficients)
    below = QuadraticLowerModel.of(geometry, coefficients, error, rate)
    return below, QuadraticLowerModel.of(geometry, negative, error, rate)


Terms = dict[int, float]
"""Outputs and coefficients of their variances."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """`low <= Delta <= high` (B,) on each cell; `-Delta` is at least minus `constant` (B,) and a
    function, `-k W k` with W (N, N), that is enclosed by `negative`."""

    negative: QuadraticLowerModel
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
    if not isinstance(kernel, QuadraticForms) or local.precisions is None:
        return None
    cells, N = expansion.K.shape
    if N > MAX_POINTS or (cells > 1 and cells * N**3 > MAX_PRODUCTS):
        return None
    xp = namespace(expansion.K)
    W, norm, off = latent.once(
        (layout, "form", tuple(sorted(terms.items()))), lambda: _form(local, terms)
    )
    if not math.isfinite(off):
        return None
    W = xp.asarray(W, device=expansion.K.device)
    below, above = form_enclosures(kernel, expansion, W, norm)
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
    `|| |A| ||_2 <= size`, S is off by at most gamma size^2 in norm, and `|k(x)|^2 <= N s^4`; and
    what the factors are away from the training noise (`UnitForm.distances`)."""
    unit = local.unit
    N = len(unit.points)
    W = np.zeros((N, N))
    off = apart = 0.0
    for output, c in terms.items():
        index = output if unit.precision_count > 1 else 0
        factor = local.variance_units(output).factor
        W -= (c * factor) * unit.precisions[index]
        A, C = unit.factors_of(index)
        size, other = unit.factor_sizes[index]
        rounding = gamma(len(A) + len(C) + 2 * len(terms) + 16)
        off += abs(c * factor) * rounding * (size * size + other * other)
        apart += abs(c * factor) * unit.distances[index]
    W = 0.5 * (W + W.T)
    off = 1.01 * (off * N * local.kernel.variance**2 + apart * local.kernel.variance)
    key = tuple(sorted(terms.items()))
    if key not in unit.form_norms:
        unit.form_norms[key] = form_norm(unit, W)
    return W, unit.form_norms[key], off
