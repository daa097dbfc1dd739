"""The covariance of a class with a difference of two others, over cells, as one function.

    Delta_j = cov(f_j - (f_c + f_k) / 2, f_c - f_k) = (D_jk - D_jc) / 2,

D the variances of differences: the priors cancel, and what is left is a quadratic form of kernel
values (`kernel_form`); where that is not known, nothing is said.

Proofs: docs/mathematics.md, statements 6.8 and 10.15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.class_layout import ClassLayout
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.classes.pairs import PairBounds
from gpcert.enclosures.enclosure import Enclosure
from gpcert.enclosures.kernel_form import affordable, form_enclosures, form_norm
from gpcert.enclosures.local_posterior import LocalPosterior
from gpcert.kernels.expansions.squared_exponential import (
    LocalSquaredExponential,
    WeightedExpansion,
)
from gpcert.rounding import down, gamma, up, up_float

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


def covariance_of(
    latent: LatentOutputs, layout: ClassLayout, pairs: PairBounds, pair: tuple[int, int], j: int
) -> Covariance | None:
    """Delta_j of the pair (c, k); None where it is not known as a form."""
    c, k = pair
    terms: Terms = {}
    for sign, first in ((0.5, k), (-0.5, c)):
        for output, factor in layout.covariance(first, j, j):
            terms[output] = terms.get(output, 0.0) + sign * factor
    return latent.once(
        (layout, "covariance", c, k, j), lambda: _covariance(latent, layout, pairs, terms)
    )


def _covariance(
    latent: LatentOutputs, layout: ClassLayout, pairs: PairBounds, terms: Terms
) -> Covariance | None:
    if not latent.together or layout.rounding > 0:
        return None
    local, expansion = latent.evaluation.local, latent.evaluation.expansion
    kernel = local.kernel
    if not isinstance(kernel, LocalSquaredExponential) or local.precisions is None:
        return None
    if not affordable(len(kernel.points), len(expansion.K)):
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
