"""Lower functions of linear combinations of kernels that are enclosed by affine functions.

If `under <= k <= over`, then `c k >= c under` for c >= 0 and `c k >= c over` for c < 0. This one
fact gives sums (c = 1), scalings, McCormick's products (c an end of the other factor's interval)
and means (c a weight). Upper functions are the negatives of lower functions of the negative.

McCormick's inequalities (1976): with `L <= k <= H` for both factors, `(k1 - L1)(k2 - L2) >= 0` and
`(H1 - k1)(H2 - k2) >= 0` give

    k1 k2 >= L2 k1 + L1 k2 - L1 L2,        k1 k2 >= H2 k1 + H1 k2 - H1 H2.

Reference: Patane et al., Proposition "product", with the signs of Statement 12.2.

Floats of slopes are taken as exact, so the rounding of a product of slopes, at most U |slope| a
point, moves into the intercept: there it costs U |slope| max |phi|.

Proofs: docs/mathematics.md, statements 12.2, 12.4 and 12.10.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from operator import add

import numpy as np

from gpcert.kernels.sizes import signed_times, times
from gpcert.numerics.arrays import Array, PerCell, PerCellAndPoint, namespace
from gpcert.numerics.rounding import TINY, down, gamma, given, nonnegative, up
from gpcert.paper.lines.carriers import (
    Affine,
    AffineRelaxation,
    Carrier,
    LinearCarrier,
    joint_minimum,
)

Term = tuple[Array, AffineRelaxation]
"""A coefficient c, broadcastable to (B, N), and what encloses k."""


def negated(lines: AffineRelaxation) -> AffineRelaxation:
    """What encloses -k."""
    return AffineRelaxation(
        -lines.high,
        -lines.low,
        _negative(lines.over),
        _negative(lines.under),
    )


def _negative(affine: Affine) -> Affine:
    return Affine(-affine.intercept, tuple((carrier, -slope) for carrier, slope in affine.slopes))


def combined(terms: Sequence[Term]) -> AffineRelaxation:
    """What encloses `sum c k`: intervals and lines added, each rounded outwards."""
    opposite = [(c, negated(k)) for c, k in terms]
    low, negative_high = interval_sum(terms), interval_sum(opposite)
    under = lower_combination(terms, low)
    over = _negative(lower_combination(opposite, negative_high))
    return AffineRelaxation(low, -negative_high, under, over)


@np.errstate(over="ignore", invalid="ignore")
def interval_sum(terms: Sequence[Term]) -> PerCellAndPoint:
    """Lower bound (B, N) of `sum c k` from intervals alone; -inf where nothing is known."""
    xp = namespace(terms[0][1].low)
    parts = [interval_term(*term) for term in terms]
    total, size = reduce(add, parts), reduce(add, [abs(part) for part in parts])
    total = total - up(gamma(len(terms)) * size, 2 * len(terms))
    return xp.where(xp.isfinite(total), total, xp.full_like(total, -math.inf))


def interval_term(coefficient: Array, lines: AffineRelaxation) -> PerCellAndPoint:
    """Lower bound of `c k` from the interval of k; -inf where nothing is known."""
    xp = namespace(lines.low)
    product = signed_times(coefficient, xp.where(coefficient > 0, lines.low, lines.high))
    finite = xp.isfinite(product)
    lowered = down(xp.where(finite, product, xp.zeros_like(product)), 1)
    exact = (coefficient == 1) | (coefficient == 0)
    lowest = xp.full_like(product, -math.inf)
    return xp.where(finite, xp.where(exact, product, lowered), lowest)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def lower_combination(
    terms: Sequence[Term], lowest: PerCellAndPoint, constant: Array | None = None
) -> Affine:
    """An affine function below `constant + sum c k` on each cell, its floats taken as exact.

    `lowest` (B, N) is a lower bound of the same sum, taken as a line of slope zero where no other
    is known. Each carrier occurs once in the result.
    """
    xp = namespace(lowest)
    total = xp.zeros_like(lowest) if constant is None else constant + xp.zeros_like(lowest)
    none, size = xp.zeros_like(lowest), abs(total)
    slopes: dict[int, tuple[Carrier, Array, Array]] = {}
    for coefficient, lines in terms:
        affine = _chosen(coefficient >= 0, lines)
        part = signed_times(coefficient, affine.intercept)
        total, size = total + part, size + abs(part)
        for carrier, slope in affine.slopes:
            scaled = coefficient * slope
            # a product that is not zero may underflow to zero
            lost = xp.where((coefficient != 0) & (slope != 0), TINY + none, none)
            _, known, bulk = slopes.get(id(carrier), (carrier, none, none))
            slopes[id(carrier)] = (carrier, known + scaled, bulk + (abs(scaled) + lost))
    roundings = len(terms) + 4
    error = gamma(roundings) * size
    usable = xp.isfinite(total)
    for carrier, slope, bulk in slopes.values():
        rounding = xp.where(bulk > 0, up(gamma(roundings) * bulk, 2), none)
        error = error + times(rounding, carrier.magnitude())
        usable = usable & xp.isfinite(slope)
    total = total - up(error, 2 * roundings)
    usable = usable & xp.isfinite(total)
    return Affine(
        xp.where(usable, total, lowest),
        tuple(
            (carrier, xp.where(usable, slope, xp.zeros_like(slope)))
            for carrier, slope, _ in slopes.values()
        ),
    )


def _chosen(below: Array, lines: AffineRelaxation) -> Affine:
    """`under` where the mask holds, `over` elsewhere; each carrier once."""
    xp, none = (
        namespace(lines.low),
        namespace(lines.low).zeros_like(lines.low),
    )
    slopes: dict[int, tuple[Carrier, list[Array]]] = {}
    for side, affine in enumerate((lines.under, lines.over)):
        for carrier, slope in affine.slopes:
            _, pair = slopes.setdefault(id(carrier), (carrier, [none, none]))
            assert pair[side] is none, "each carrier occurs once in an affine function"
            pair[side] = slope
    intercept = xp.where(below, lines.under.intercept, lines.over.intercept)
    each = slopes.values()
    return Affine(intercept, tuple((carrier, xp.where(below, *pair)) for carrier, pair in each))


def product_enclosed(
    first: AffineRelaxation,
    second: AffineRelaxation,
    values: tuple[PerCellAndPoint, PerCellAndPoint],
) -> AffineRelaxation:
    """What encloses k1 k2; `values` (B, N) of both at the centres choose among the lines."""
    v, w = values
    low, high = product_interval(first, second)
    under = _under(first, second, (v, w), low)
    opposite = _under(negated(first), second, (-v, w), -high)
    return AffineRelaxation(low, high, under, _negative(opposite))


def product_interval(
    first: AffineRelaxation, second: AffineRelaxation
) -> tuple[PerCellAndPoint, PerCellAndPoint]:
    """Interval of the product: least and greatest of the products of the ends."""
    xp = namespace(first.low)
    ends = product((first.low, first.high), (second.low, second.high))
    corners = [signed_times(a, b) for a, b in ends]
    return -_raised(-reduce(xp.minimum, corners)), _raised(reduce(xp.maximum, corners))


def _raised(x: Array) -> Array:
    """`up(x)`; infinite where x has overflown on either side."""
    xp = namespace(x)
    finite = xp.isfinite(x)
    return xp.where(finite, up(xp.where(finite, x, xp.zeros_like(x)), 1), xp.full_like(x, math.inf))


@np.errstate(over="ignore", invalid="ignore")
def _under(
    first: AffineRelaxation, second: AffineRelaxation, values: tuple[Array, Array], low: Array
) -> Affine:
    """The better of both lower functions at the centre, a choice for each cell and point.

    There they lose `(v - L1)(w - L2)` and `(H1 - v)(H2 - w)`.
    """
    xp = namespace(low)
    v, w = values
    at_low = xp.isfinite(first.low) & xp.isfinite(second.low)
    at_high = xp.isfinite(first.high) & xp.isfinite(second.high)
    # to choose by; either would do
    loss_low = times(given(nonnegative(v - first.low)), given(nonnegative(w - second.low)))
    loss_high = times(given(nonnegative(first.high - v)), given(nonnegative(second.high - w)))
    choice = at_low & ((loss_low <= loss_high) | ~at_high)
    usable = at_low | at_high
    none = xp.zeros_like(low)
    on_second = xp.where(usable, xp.where(choice, first.low, first.high), none)
    on_first = xp.where(usable, xp.where(choice, second.low, second.high), none)
    constant = xp.where(usable, -(on_first * on_second), xp.full_like(low, -math.inf))
    return lower_combination([(on_first, first), (on_second, second)], low, constant)


@np.errstate(over="ignore", invalid="ignore")
def affine_lower_bound(lines: AffineRelaxation, weights: Array) -> PerCell:
    """Certified lower bound (B,) of `sum_i t_i k(x, z_i)` over each cell, t (N,) or (B, N).

    With `under` where t_i >= 0 and `over` where t_i < 0 the sum is at least
    `sum_i intercept_i + sum_m min_x sum_i slope_mi phi_m(x, z_i)`; by intervals at least
    `sum_i min(t_i low_i, t_i high_i)`. The better one counts. Reference: Patane et al.,
    Proposition "mean bound", with the sign and weights of Statement 12.4.
    """
    xp = namespace(lines.low)
    each = interval_term(weights, lines)
    below = lower_combination([(weights, lines)], each)
    total, size = xp.sum(below.intercept, axis=1), xp.sum(abs(below.intercept), axis=1)
    for least in _minima(below.slopes):
        total, size = total + least, size + abs(least)
    count = each.shape[1] + len(below.slopes) + 4
    total = total - up(gamma(count) * size, count)
    plain = xp.sum(each, axis=1) - up(gamma(count) * xp.sum(abs(each), axis=1), count)
    lowest = xp.full_like(total, -math.inf)
    total = xp.where(xp.isfinite(total), total, lowest)
    plain = xp.where(xp.isfinite(plain), plain, lowest)
    return xp.maximum(total, plain)


def _minima(slopes: Sequence[tuple[Carrier, Array]]) -> Iterator[Array]:
    """One minimum for all linear carriers on the same cells, one for each other carrier."""
    together: dict[int, list[tuple[LinearCarrier, Array]]] = {}
    for carrier, slope in slopes:
        if not isinstance(carrier, LinearCarrier):
            yield carrier.minimum(slope)
        else:
            together.setdefault(id(carrier.geometry.cells), []).append((carrier, slope))
    for group in together.values():
        yield joint_minimum(group)
