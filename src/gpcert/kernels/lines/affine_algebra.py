"""Lower functions of linear combinations of kernels that are enclosed by affine functions.

If `under <= k <= over`, then `c k >= c under` for c >= 0 and `c k >= c over` for c < 0. This one
fact gives sums (c = 1), scalings, McCormick's products (c an end of the other factor's interval)
and means (c a weight). Upper functions are the negatives of lower functions of the negative.

Floats of slopes are taken as exact, so the rounding of a product of slopes, at most U |slope| a
point, moves into the intercept: there it costs U |slope| max |phi|.

Proofs: docs/mathematics.md, statement 12.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.base import Affine, Carrier, Enclosed
from gpcert.kernels.sizes import signed_times, times
from gpcert.rounding import TINY, down, gamma, up

__all__ = ["combined", "interval_term", "lower_combination", "negated"]

Term = tuple[Array, Enclosed]
"""A coefficient c, broadcastable to (B, N), and what encloses k."""


def negated(enclosed: Enclosed) -> Enclosed:
    """What encloses -k."""
    return Enclosed(
        -enclosed.high, -enclosed.low, _negative(enclosed.over), _negative(enclosed.under)
    )


def _negative(affine: Affine) -> Affine:
    return Affine(-affine.intercept, tuple((carrier, -slope) for carrier, slope in affine.slopes))


def combined(terms: Sequence[Term]) -> Enclosed:
    """What encloses `sum c k`: intervals and lines added, each rounded outwards."""
    opposite = [(c, negated(k)) for c, k in terms]
    low, negative_high = interval_sum(terms), interval_sum(opposite)
    under = lower_combination(terms, low)
    over = _negative(lower_combination(opposite, negative_high))
    return Enclosed(low, -negative_high, under, over)


@np.errstate(over="ignore", invalid="ignore")
def interval_sum(terms: Sequence[Term]) -> Array:
    """Lower bound (B, N) of `sum c k` from intervals alone; -inf where nothing is known."""
    xp = namespace(terms[0][1].low)
    total, size = interval_term(*terms[0]), abs(interval_term(*terms[0]))
    for c, k in terms[1:]:
        part = interval_term(c, k)
        total, size = total + part, size + abs(part)
    total = total - up(gamma(len(terms)) * size, 2 * len(terms))
    return xp.where(xp.isfinite(total), total, xp.full_like(total, -math.inf))


def interval_term(coefficient: Array, enclosed: Enclosed) -> Array:
    """Lower bound of `c k` from the interval of k; -inf where nothing is known."""
    xp = namespace(enclosed.low)
    product = signed_times(coefficient, xp.where(coefficient > 0, enclosed.low, enclosed.high))
    finite = xp.isfinite(product)
    lowered = down(xp.where(finite, product, xp.zeros_like(product)), 1)
    exact = (coefficient == 1) | (coefficient == 0)
    lowest = xp.full_like(product, -math.inf)
    return xp.where(finite, xp.where(exact, product, lowered), lowest)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def lower_combination(
    terms: Sequence[Term], lowest: Array, constant: Array | None = None
) -> Affine:
    """An affine function below `constant + sum c k` on each cell, its floats taken as exact.

    `lowest` (B, N) is a lower bound of the same sum, taken as a line of slope zero where no other
    is known. Each carrier occurs once in the result.
    """
    xp = namespace(lowest)
    total = xp.zeros_like(lowest) if constant is None else constant + xp.zeros_like(lowest)
    none, size = xp.zeros_like(lowest), abs(total)
    slopes: dict[int, tuple[Carrier, Array, Array]] = {}
    for coefficient, enclosed in terms:
        affine = _chosen(coefficient >= 0, enclosed)
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


def _chosen(below: Array, enclosed: Enclosed) -> Affine:
    """`under` where the mask holds, `over` elsewhere; each carrier once."""
    xp = namespace(enclosed.low)
    under, over = _by_carrier(enclosed.under), _by_carrier(enclosed.over)
    none = xp.zeros_like(enclosed.low)
    slopes = []
    for key in {**under, **over}:
        carrier = (under.get(key) or over[key])[0]
        first = under[key][1] if key in under else none
        second = over[key][1] if key in over else none
        slopes.append((carrier, xp.where(below, first, second)))
    intercept = xp.where(below, enclosed.under.intercept, enclosed.over.intercept)
    return Affine(intercept, tuple(slopes))


def _by_carrier(affine: Affine) -> dict[int, tuple[Carrier, Array]]:
    found = {id(carrier): (carrier, slope) for carrier, slope in affine.slopes}
    assert len(found) == len(affine.slopes), "each carrier occurs once in an affine function"
    return found
