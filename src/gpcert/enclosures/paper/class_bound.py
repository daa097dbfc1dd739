"""Class probabilities over cells by the paper's discretised integral, for two and three classes.

Proposition "BOundsGenericMulticlass": for a partition {S_l} of the latent differences,

    sum_l min_(S_l) link_c min_x P(d(x) in S_l)  <=  pi_c  <=  sum_l max_(S_l) link_c max_x P(...),

and Proposition "MultiCLass": for `S = I_1 x I_2`,

    P(d in S) = P(d_2 in I_2) P(d_1 in I_1 | d_2 in I_2),

the second factor between the extremes of `P(d_1 in I_1 | d_2 = f)` over f in I_2. Each factor is a
Gaussian integral with ranges of mean and variance (Lemma "Gaussian"). (The paper's proof has <= for
>= between the minimum of a sum and the sum of minima.) Besides, the probabilities add up to 1.

Proofs: docs/mathematics.md, statement 12.9.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from gpcert.arrays import Array, namespace, to_numpy
from gpcert.class_layout import ClassLayout
from gpcert.deadline import checkpoint
from gpcert.enclosures.paper.intervals import CellIntervals
from gpcert.enclosures.paper.latent_grid import (
    LatentRanges,
    Range,
    conditional_mean,
    conditional_variance,
    cuts,
    latent_ranges,
    link_range,
)
from gpcert.errors import InputError
from gpcert.integrals.special import gaussian_integral_range
from gpcert.likelihoods import ClassLikelihood
from gpcert.rounding import TINY, down, gamma, nonnegative, up

MOST_CLASSES = 3
"""More classes would need M^(m-1) boxes of the latent space for every cell."""

PIECES = (31, 63, 127, 255, 511)
"""Intervals M of each difference. The bounds of a point are 2 / M to 6 / M apart (measured, the
more the stronger d_1 and d_2 are correlated): no search ends with a smaller gap than half of what
the largest M leaves."""

LARGEST_CHUNK = 2.0e5
"""Boxes (cells x M^n) held at once, of which some thirty arrays are made."""


def class_ranges(
    intervals: CellIntervals, layout: ClassLayout, likelihood: ClassLikelihood
) -> Range:
    """Certified ranges (B, m) of all class probabilities over every cell."""
    if layout.classes > MOST_CLASSES:
        raise InputError(
            f"method: the paper's method for {layout.classes} classes would need a grid of "
            f"1/eps^{layout.n} latent boxes for every cell, expected at most {MOST_CLASSES} "
            "classes; use method='taylor'"
        )

    def compute() -> Range:
        ranges = latent_ranges(intervals, layout, likelihood.noise)
        return grid_ranges(ranges, likelihood, pieces_for(ranges))

    return intervals.once(("classes", layout), compute)


def pieces_for(ranges: LatentRanges) -> Annotated[np.ndarray, "B"]:
    """(B,) numbers from PIECES: steps in the latent space about as wide as what a cell leaves open.

    Any number is sound. Where means and variances are known in wide ranges only, a finer grid gains
    little; where they are known well, a coarse one would hide what a smaller cell gains.
    """
    blur = np.zeros(len(to_numpy(ranges.known)))
    for mean, variance in zip(ranges.means, ranges.variances, strict=True):
        low, high = (to_numpy(end) for end in variance)
        width = to_numpy(mean[1]) - to_numpy(mean[0])
        deviation = np.sqrt(high) + 1e-3
        blur = np.maximum(blur, width / deviation + (high - low) / (2.0 * deviation**2))
    wanted = 4.0 / np.maximum(blur, 1e-9)
    return np.asarray(PIECES)[np.minimum(np.searchsorted(PIECES, wanted), len(PIECES) - 1)]


def grid_ranges(
    ranges: LatentRanges, likelihood: ClassLikelihood, pieces: Annotated[np.ndarray, "B"]
) -> Range:
    """Certified ranges (B, m) with `pieces` (B,) intervals of each difference."""
    xp = namespace(ranges.known)
    n = len(ranges.means)
    order, lows, highs = [], [], []
    for M in np.unique(pieces):
        rows = np.flatnonzero(pieces == M)
        size = max(1, int(LARGEST_CHUNK / float(M) ** n))
        for start in range(0, len(rows), size):
            checkpoint()
            chosen = rows[start : start + size]
            order.append(chosen)
            part = ranges.take(xp.asarray(chosen, device=ranges.known.device))
            low, high = _sums(part, likelihood, int(M))
            lows.append(low)
            highs.append(high)
    back = xp.asarray(np.argsort(np.concatenate(order)), device=ranges.known.device)
    low = xp.take(xp.concat(lows, axis=0), back, axis=0)
    high = xp.take(xp.concat(highs, axis=0), back, axis=0)
    known = ranges.known[:, None] & (low >= 0) & (high >= 0)  # false for NaN
    return (
        xp.where(known, low, xp.zeros_like(low)),
        xp.where(known, high, xp.ones_like(high)),
    )


def _sums(ranges: LatentRanges, likelihood: ClassLikelihood, pieces: int) -> Range:
    """Both sums of the proposition, and what the other classes leave."""
    xp = namespace(ranges.known)
    n = len(ranges.means)
    boxes, least, most = _masses(ranges, pieces)
    # products and sums of numbers >= 0; what lies beyond the outermost cuts is below TINY
    slack = gamma(pieces**n + 16)
    lows, highs = [], []
    for c in range(n + 1):
        low, high = link_range(likelihood, c, boxes)
        axes = tuple(range(1, n + 1))
        lows.append(nonnegative(xp.sum(low * least, axis=axes) * (1.0 - 2.0 * slack) - TINY))
        highs.append(xp.sum(high * most, axis=axes) * (1.0 + 2.0 * slack) + 2.0 * TINY)
    low, high = xp.stack(lows, axis=1), xp.clip(xp.stack(highs, axis=1), 0.0, 1.0)
    # pi_c = 1 - sum of the others; sums of n numbers in [0, 1], rounded by their size
    rounding = (n + 2.0) * gamma(n + 5)
    low = xp.maximum(low, down(1.0 - _others(high) - rounding, 2))
    high = xp.minimum(high, up(1.0 - _others(low) + rounding, 2))
    return xp.clip(low, 0.0, 1.0), xp.clip(high, 0.0, 1.0)


def _others(numbers: Array) -> Array:
    """(B, m): the sum over all classes but one."""
    return namespace(numbers).sum(numbers, axis=1, keepdims=True) - numbers


def _masses(ranges: LatentRanges, pieces: int) -> tuple[list[Range], Array, Array]:
    """Boxes of the partition, and the least and the greatest `P(d in S)` of each, (B, M[, M])."""
    grids = [cuts(*both, pieces) for both in zip(ranges.means, ranges.variances, strict=True)]
    ends = [(grid[:, :-1], grid[:, 1:]) for grid in grids]
    last = [
        (side[0][:, None], side[1][:, None]) for side in (ranges.means[-1], ranges.variances[-1])
    ]
    least, most = gaussian_integral_range(*ends[-1], *last)
    if len(ends) == 1:
        return ends, least, most
    mean = conditional_mean(ranges, ends[1])
    variance = conditional_variance(ranges)
    low, high = gaussian_integral_range(
        ends[0][0][:, :, None],
        ends[0][1][:, :, None],
        (mean[0][:, None, :], mean[1][:, None, :]),
        (variance[0][:, None, None], variance[1][:, None, None]),
    )
    boxes = [
        (ends[0][0][:, :, None], ends[0][1][:, :, None]),
        (ends[1][0][:, None, :], ends[1][1][:, None, :]),
    ]
    return boxes, least[:, None, :] * low, most[:, None, :] * high
