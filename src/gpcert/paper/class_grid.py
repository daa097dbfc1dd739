"""Class probabilities over cells by the paper's discretised integral, for two and three classes.

With m classes only `d_k = f_k - f_0`, k = 1..n, n = m - 1, matter (`likelihoods.base`): the paper's
propositions with one variable less. "BOundsGenericMulticlass": for a partition {S_l} of R^n,

    sum_l min_(S_l) link_c min_x P(d(x) in S_l)  <=  pi_c  <=  sum_l max_(S_l) link_c max_x P(...),

and "MultiCLass": for `S = I_1 x I_2`, `P(d in S) = P(d_2 in I_2) P(d_1 in I_1 | d_2 in I_2)`, the
second factor between the extremes of `P(d_1 in I_1 | d_2 = f)` over f in I_2. Each factor is a
Gaussian integral with ranges of mean and variance. Besides, the probabilities add up to 1.

Proofs: docs/mathematics.md, statements 1.7 and 12.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import special

from gpcert.enclosures.evaluation import Evaluation
from gpcert.errors import InputError
from gpcert.integrals.special import gaussian_integral_range
from gpcert.likelihoods import ClassLikelihood, MultinomialProbit, Softmax
from gpcert.model.class_layout import ClassLayout, Terms
from gpcert.numerics.arrays import Array, Index, PerVector, least_of, namespace, to_numpy
from gpcert.numerics.rounding import EXP_ULPS, TINY, down, gamma, nonnegative, up
from gpcert.paper.intervals import CellIntervals, Side, bounded
from gpcert.paper.variance import ClosedForms
from gpcert.quantities import ClassSums
from gpcert.quantities.committee import counted
from gpcert.utils.processes import checkpoint

Range = tuple[Array, Array]
"""Lower and upper ends, arrays of one shape."""

LARGEST = 1e100
"""Means and variances beyond this are taken as unknown: nothing below overflows."""


@dataclass(frozen=True, eq=False)
class LatentRanges:
    """Over every cell: ranges (B,) of the means of d_k, of V_kk, and for n = 2 of V_12.

    `known` (B,): where it is false the ranges of the cell mean nothing.
    """

    means: tuple[Range, ...]
    variances: tuple[Range, ...]
    covariance: Range
    known: Array

    def take(self, rows: Index) -> LatentRanges:
        """The cells with these numbers."""

        def some(pair: Range) -> Range:
            return pair[0][rows], pair[1][rows]

        means, variances = (tuple(map(some, each)) for each in (self.means, self.variances))
        return LatentRanges(means, variances, some(self.covariance), self.known[rows])


@np.errstate(invalid="ignore", over="ignore")
def latent_ranges(intervals: CellIntervals, layout: ClassLayout, noise: float) -> LatentRanges:
    """The paper's intervals of the outputs, combined by the layout; n = 1 or 2:
    `mean of d_k = sum_j c_j mean_j`, `V_kl = sum_j y_j matrices_jkl + noise (1 + [k = l])`, in
    interval arithmetic; a covariance is semi-definite, so `V_12^2 <= V_11 V_22` besides.
    """
    local, expansion = intervals.local, intervals.evaluation.expansion
    outputs, spreads = [], []
    for j in range(layout.outputs):
        below, above = (intervals.mean(j, sign).bound for sign in (1, -1))
        outputs.append(local.mean_units(j, expansion).range(below, -above))
        spreads.append(local.variance_units(j).range(*(s.bound for s in intervals.variance(j))))
    slack = _repair(intervals.evaluation, layout)
    means = tuple(_combined(outputs, layout.pair(0, k), 0.0) for k in range(1, layout.classes))
    ranges = []
    for k, other in ((0, 0), (layout.n - 1, layout.n - 1), (0, layout.n - 1)):
        terms = layout.covariance(0, k + 1, other + 1)
        low, high = _combined(spreads, terms, noise * (2.0 if k == other else 1.0))
        ranges.append((down(low - slack, 1), up(high + slack, 1)))
    return consistent_ranges(means, ranges[: layout.n], ranges[2])


def _combined(values: list[Range], terms: Terms, shift: float) -> Range:
    """`shift + sum of factor * values_j`, factors known to one rounding; none is 0."""
    xp = namespace(values[0][0])
    low = high = xp.full_like(values[0][0], shift)
    for j, factor in terms:
        first, second = values[j] if factor > 0 else values[j][::-1]
        low = down(low + down(factor * first, 3), 1)
        high = up(high + up(factor * second, 3), 1)
    return low, high


def _repair(evaluation: Evaluation, layout: ClassLayout) -> float:
    """Bound of every entry of what makes the covariance V of a rounded model semi-definite.

    Independent outputs have variances `max(v, 0)`: nothing is needed. Coupled ones, whose
    differences have variances >= -e: V is at least `-(e / 2) (I + 1 1^T)`, of norm `<= 1.5 e`,
    variances cut at 0 move it by 3 e, and the nearest semi-definite matrix, which is meant, is
    within `sqrt(2) (1.5 + 3) e + 3 e < 10 e` (Statement 1.7).
    """
    return 0.0 if layout.mixing is not None else 10.0 * evaluation.local.output_dip


def consistent_ranges(
    means: tuple[Range, ...], variances: list[Range], covariance: Range
) -> LatentRanges:
    """Variances >= 0 and |V_12| <= sqrt(V_11 V_22); harmless numbers where a cell is unknown."""
    xp = namespace(covariance[0])
    sizes = [-xp.abs(end) for pair in (*means, *variances) for end in pair]
    known, zero = least_of(sizes) >= -LARGEST, xp.zeros_like(covariance[0])  # false for NaN

    def safe(end: Array, other: float = 0.0) -> Array:
        return xp.where(known, end, zero + other)

    safe_means = tuple((safe(low), safe(high, 1.0)) for low, high in means)
    cut = tuple((nonnegative(safe(low)), nonnegative(safe(high, 1.0))) for low, high in variances)
    largest = up(xp.sqrt(cut[0][1]) * xp.sqrt(cut[-1][1]), 3)
    low, high = covariance
    low, high = xp.where(low > -largest, low, -largest), xp.where(high < largest, high, largest)
    # only a cell without a point of the region can have crossed ends: any range is right there
    return LatentRanges(safe_means, cut, (xp.minimum(low, high), xp.maximum(low, high)), known)


def conditional_mean(ranges: LatentRanges, given: Range) -> Range:
    """Range (B, M) of the mean of d_1 given d_2 = f, over the cell and f in `given` (B, M).

    Statement: `mu_1 + V_12 / V_22 (f - mu_2)`; Proposition "MultiCLass" prints a minus sign, which
    Statement 12.10 mends.
    Reason: conditioning of Gaussians, propagated by interval arithmetic. Where V_22 may be 0 the
    quotient may be anything, and so may the mean.
    """
    (low1, high1), (low2, high2) = ranges.means
    xp = namespace(low1)
    positive, least = _divisor(ranges)
    ends = [
        c / v for c in ranges.covariance for v in (least, xp.maximum(ranges.variances[1][1], least))
    ]
    gaps = (down(given[0] - high2[:, None], 1), up(given[1] - low2[:, None], 1))
    least, most = _hull([slope[:, None] * gap for slope in _hull(ends) for gap in gaps])
    low, high = down(low1[:, None] + least, 1), up(high1[:, None] + most, 1)
    infinite = xp.full_like(low, math.inf)
    usable = positive[:, None] & (xp.abs(low) <= LARGEST) & (xp.abs(high) <= LARGEST)
    return xp.where(usable, low, -infinite), xp.where(usable, high, infinite)


def _hull(products: list[Array]) -> Range:
    """From the least to the greatest of numbers that were rounded once."""
    return down(least_of(products), 1), up(-least_of([-each for each in products]), 1)


def conditional_variance(ranges: LatentRanges) -> Range:
    """Range (B,) of the variance of d_1 given d_2: `V_11 - V_12^2 / V_22`, between 0 and V_11.

    A rational function whose entries occur once each but for the square: its range is exact.
    """
    first_low, first_high = ranges.variances[0]
    xp = namespace(first_low)
    positive, least = _divisor(ranges)
    zero = xp.zeros_like(first_low)
    low, high = ranges.covariance
    largest = xp.maximum(xp.abs(low), xp.abs(high))
    smallest = xp.where((low <= 0) & (high >= 0), zero, xp.minimum(xp.abs(low), xp.abs(high)))
    most = up(largest * largest / least, 3)
    some = nonnegative(down(smallest * smallest / xp.maximum(ranges.variances[1][1], least), 3))
    lower = nonnegative(down(first_low - most, 1))
    upper = nonnegative(up(first_high - some, 1))
    lower = xp.where(positive, lower, zero)
    upper = xp.minimum(xp.where(positive, upper, first_high), first_high)
    return xp.minimum(lower, upper), upper


def _divisor(ranges: LatentRanges) -> tuple[Array, Array]:
    """Whether V_22 is far enough above 0 to divide by, and its lower end or 1."""
    least = ranges.variances[1][0]
    positive = least >= 1.0 / LARGEST
    return positive, namespace(least).where(positive, least, 1.0 + 0.0 * least)


REACH = 41.0
"""Standard deviations to the outermost cuts: beyond each lies less than Phi(-40) < 2^-1100."""

SMALLEST_SPREAD = 1e-3
"""Smallest scale of a partition: no link changes much over it, and the cuts stay apart."""

LARGEST_EXPONENT = 700.0
"""Exponents are cut here, exp(-700) < TINY: the value's TINY stands for what lies beyond."""


def cuts(mean: Range, variance: Range, pieces: int) -> Annotated[Array, "B cuts"]:
    """(B, pieces + 1) nondecreasing cuts, which leave out less than 2 Phi(-40) of `N(mean, v)`.

    The inner ones are quantiles of a normal law with twice the variance: where a density p is cut
    into steps of width h the sum of `p h * h` is least for `h ~ p^(-1/2)`.
    """
    xp = namespace(mean[0])
    center = 0.5 * mean[0] + 0.5 * mean[1]
    deviation = xp.sqrt(variance[1])
    scale = 2.0**0.5 * deviation + 0.5 * (mean[1] - mean[0])
    scale = xp.maximum(scale, xp.full_like(scale, SMALLEST_SPREAD))
    steps = xp.asarray(special.ndtri(np.arange(1, pieces) / pieces), device=center.device)
    inner = center[:, None] + scale[:, None] * steps
    far = up(REACH * deviation, 4)
    first = xp.minimum(down(mean[0] - far, 1), inner[:, 0])
    last = xp.maximum(up(mean[1] + far, 1), inner[:, -1])
    return xp.concat([first[:, None], inner, last[:, None]], axis=1)


def link_range(likelihood: ClassLikelihood, c: int, boxes: list[Range]) -> Range:
    """Certified range of link_c over boxes of the differences (arrays that broadcast).

    Statement: link_c does not fall with `d_c - d_k` for any k (d_0 = 0), so it is least where d_c
    is least and the others are greatest, and the other way round (Statement 12.9); ties have
    probability 0. Reference: Proposition "BOundsGenericMulticlass", for the softmax.
    """
    least = [box[0 if k == c else 1] for k, box in enumerate(boxes, start=1)]
    most = [box[1 if k == c else 0] for k, box in enumerate(boxes, start=1)]
    if isinstance(likelihood, Softmax):
        return _softmax(c, least)[0], _softmax(c, most)[1]
    if isinstance(likelihood, MultinomialProbit):
        return _largest(c, least, strict=True), _largest(c, most, strict=False)
    raise InputError(
        f"method: the paper's method knows the links of Softmax and MultinomialProbit, got "
        f"{type(likelihood).__name__}; use method='taylor'"
    )


def _rivals(c: int, d: list[Array]) -> list[Array]:
    """`d_k - d_c` for all k != c, each rounded once."""
    values = [0.0 * d[0], *d]
    return [value - values[c] for k, value in enumerate(values) if k != c]


def _softmax(c: int, d: list[Array]) -> Range:
    """Certified `1 / (1 + sum_k exp(d_k - d_c))` within [0, 1].

    An exponent x is within U |x|, so its exponential within `(EXP_ULPS + 2 * 700) U`, relative.
    """
    xp = namespace(*d)
    exponents = [xp.clip(each, -LARGEST_EXPONENT, LARGEST_EXPONENT) for each in _rivals(c, d)]
    shares = [xp.exp(exponent) for exponent in exponents]
    value = 1.0 / (1.0 + sum(shares[1:], shares[0]))
    error = value * gamma(EXP_ULPS + 2 * LARGEST_EXPONENT + 16) + TINY
    return xp.clip(value - error, 0.0, 1.0), xp.clip(value + error, 0.0, 1.0)


def _largest(c: int, d: list[Array], strict: bool) -> Array:
    """1 where d_c is the largest (alone, if strict), else 0; the signs of differences are exact."""
    largest = -least_of([-rival for rival in _rivals(c, d)])
    return counted(largest < 0 if strict else largest <= 0)


MAX_CLASSES = 3
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
    if layout.classes > MAX_CLASSES:
        raise InputError(
            f"method: the paper's method for {layout.classes} classes would need a grid of "
            f"1/eps^{layout.n} latent boxes for every cell, expected at most {MAX_CLASSES} "
            "classes; use method='taylor'"
        )

    def compute() -> Range:
        ranges = latent_ranges(intervals, layout, likelihood.noise)
        return grid_ranges(ranges, likelihood, pieces_for(ranges))

    return intervals.once(("classes", layout), compute)


def pieces_for(ranges: LatentRanges) -> Annotated[np.ndarray, "B"]:
    """(B,) numbers from PIECES: steps in the latent space about as wide as what a cell leaves open;
    any number is sound, a finer grid gains little there and a coarser one hides what cells gain."""
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
    xp, n, device = namespace(ranges.known), len(ranges.means), ranges.known.device
    low = xp.zeros((len(pieces), n + 1), dtype=xp.float64, device=device)
    high = xp.ones_like(low)
    for M in np.unique(pieces):
        rows = np.flatnonzero(pieces == M)
        size = max(1, int(LARGEST_CHUNK / float(M) ** n))
        for start in range(0, len(rows), size):
            checkpoint()
            chosen = xp.asarray(rows[start : start + size], device=device)
            low[chosen], high[chosen] = _sums(ranges.take(chosen), likelihood, int(M))
    known = ranges.known[:, None] & (low >= 0) & (high >= 0)  # false for NaN
    return xp.where(known, low, xp.zeros_like(low)), xp.where(known, high, xp.ones_like(high))


def _sums(ranges: LatentRanges, likelihood: ClassLikelihood, pieces: int) -> Range:
    """Both sums of the proposition, and what the other classes leave."""
    xp, n = namespace(ranges.known), len(ranges.means)
    boxes, least, most = interval_masses(ranges, pieces)
    # products and sums of numbers >= 0; what lies beyond the outermost cuts is below TINY
    slack = gamma(pieces**n + 16)
    lows, highs = [], []
    axes = tuple(range(1, n + 1))
    for c in range(n + 1):
        low, high = link_range(likelihood, c, boxes)
        lows.append(nonnegative(xp.sum(low * least, axis=axes) * (1.0 - 2.0 * slack) - TINY))
        highs.append(xp.sum(high * most, axis=axes) * (1.0 + 2.0 * slack) + 2.0 * TINY)
    low, high = xp.stack(lows, axis=1), xp.clip(xp.stack(highs, axis=1), 0.0, 1.0)
    # pi_c = 1 - sum of the others; sums of n numbers in [0, 1], rounded by their size
    rounding = (n + 2.0) * gamma(n + 5)
    others = xp.sum(high, axis=1, keepdims=True) - high
    low = xp.maximum(low, down(1.0 - others - rounding, 2))
    others = xp.sum(low, axis=1, keepdims=True) - low
    high = xp.minimum(high, up(1.0 - others + rounding, 2))
    return xp.clip(low, 0.0, 1.0), xp.clip(high, 0.0, 1.0)


def interval_masses(ranges: LatentRanges, pieces: int) -> tuple[list[Range], PerVector, PerVector]:
    """Boxes of the partition, and the least and the greatest `P(d in S)` of each, (B, M[, M])."""
    grids = [cuts(*both, pieces) for both in zip(ranges.means, ranges.variances, strict=True)]
    ends = [(grid[:, :-1], grid[:, 1:]) for grid in grids]
    last = (ranges.means[-1], ranges.variances[-1])
    least, most = gaussian_integral_range(
        *ends[-1], *((low[:, None], high[:, None]) for low, high in last)
    )
    if len(ends) == 1:
        return ends, least, most
    mean = conditional_mean(ranges, ends[1])
    variance = conditional_variance(ranges)
    first = (ends[0][0][:, :, None], ends[0][1][:, :, None])
    low, high = gaussian_integral_range(
        *first,
        (mean[0][:, None, :], mean[1][:, None, :]),
        (variance[0][:, None, None], variance[1][:, None, None]),
    )
    boxes = [first, (ends[1][0][:, None, :], ends[1][1][:, None, :])]
    return boxes, least[:, None, :] * low, most[:, None, :] * high


@bounded.register
def _classes(
    quantity: ClassSums, kind: type[ClosedForms], evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """The discretised integral for two or three classes, each class by itself: a decision is
    bounded by the least probability of one class against the greatest of another, as in the paper.
    """
    intervals = CellIntervals(evaluation, kind)
    lower = quantity.lowest(*class_ranges(intervals, quantity.layout, quantity.likelihood))
    outputs = range(quantity.layout.outputs)
    sides = [intervals.mean(j, sign) for j in outputs for sign in (1, -1)]
    return lower, sides + [side for j in outputs for side in intervals.variance(j)]
