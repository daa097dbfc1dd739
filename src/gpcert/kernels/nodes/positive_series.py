"""`g(x) - e^-x h(x)` for polynomials, where the terms cancel near x = 0 but the series does not.

Squared Taylor remainders of feature maps have this form, with `g e^x - h` a power series whose
coefficients are all nonnegative: then `e^-x (g e^x - h)` is a sum of positive terms.

Proofs: docs/mathematics.md, statement 2.14.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from gpcert.arrays import Array, PerCell, namespace
from gpcert.rounding import EXP_ULPS, U, up

TERMS = 30
"""Powers of x that are summed for x <= 1: the rest is below 1e-25 of the first term."""

STEP = 5
"""Powers of x that are formed; the others are products of x^STEP and one of them."""

LARGEST_EXPONENT = 700.0
"""Beyond, e^-x h(x) >= 0 is dropped: g(x) alone is an upper bound."""


@lru_cache(maxsize=64)
def reverse_bessel(m: int) -> tuple[int, ...]:
    """Coefficients, lowest first, of theta_m: `theta_m = (2m - 1) theta_(m-1) + x^2 theta_(m-2)`.

    `x^(m + 1/2) K_(m + 1/2)(x) = sqrt(pi / 2) e^-x theta_m(x)`.

    >>> reverse_bessel(3)
    (15, 15, 6, 1)
    """
    before, here = [1], [1, 1]
    if m == 0:
        return (1,)
    for n in range(2, m + 1):
        following = [(2 * n - 1) * c for c in here] + [0]
        for i, c in enumerate(before):
            following[i + 2] += c
        before, here = here, following
    return tuple(here)


@dataclass(frozen=True, eq=False)
class PositiveSeries:
    """Upper bounds of `g(x) - e^-x h(x)`, x >= 0; coefficients g, h >= 0, lowest first.

    Statement: all Taylor coefficients `sum_j g_j / (i-j)! - h_i` are >= 0, which is checked exactly
    (beyond the degree of h there is nothing to check).
    """

    g: tuple[Fraction, ...]
    h: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if min(*self._taylor, *self.g, *self.h) < 0:
            raise ValueError("PositiveSeries: a coefficient is negative")

    @cached_property
    def _taylor(self) -> list[Fraction]:
        """Coefficients of `g e^x - h`."""
        found = []
        for i in range(max(TERMS, len(self.h))):
            parts = (c / math.factorial(i - j) for j, c in enumerate(self.g[: i + 1]))
            found.append(sum(parts, Fraction(0)) - (self.h[i] if i < len(self.h) else 0))
        return found

    @cached_property
    def _floats(self) -> tuple[list[float], list[float]]:
        """g and h, one rounding each."""
        return [float(c) for c in self.g], [float(c) for c in self.h]

    def at(self, x: PerCell) -> PerCell:
        """Upper bound; zero stays zero."""
        return all_at((self,), x)[0]


@lru_cache(maxsize=64)
def _table(family: tuple[PositiveSeries, ...]) -> np.ndarray:
    """(STEP, TERMS / STEP * n): the coefficients of `g e^x - h`, powers below STEP in the rows."""
    found = np.array([[float(c) for c in series._taylor[:TERMS]] for series in family])
    return found.reshape(len(family), TERMS // STEP, STEP).transpose(2, 1, 0).reshape(STEP, -1)


def all_at(family: tuple[PositiveSeries, ...], x: PerCell) -> list[PerCell]:
    """Upper bounds of several series; zero stays zero.

    x <= 1: sums of products of positive numbers, so only relative rounding, at most 3 a term, and
    the rest of the series is below 1e-25 of the sum (Statement 2.14). Above 1 the terms cancel
    mildly; their rounding is added in full.
    """
    xp = namespace(x)
    small, large = (xp.minimum(x, xp.full_like(x, end)) for end in (1.0, LARGEST_EXPONENT))
    powers = [xp.ones_like(x), small]
    for _ in range(STEP - 1):
        powers.append(powers[-1] * small)
    table = xp.asarray(_table(family), device=x.device)
    parts = xp.reshape(xp.stack(powers[:STEP], axis=1) @ table, (len(x), -1, len(family)))
    total, step = parts[:, -1, :], powers[STEP][:, None]
    for place in range(parts.shape[1] - 2, -1, -1):
        total = total * step + parts[:, place, :]
    near = up(total * xp.exp(-small)[:, None], 3 * TERMS + EXP_ULPS)
    fall, found = xp.exp(-large), []
    for number, series in enumerate(family):
        with np.errstate(over="ignore"):
            growth = _horner(series._floats[0], x)
        decay = fall * _horner(series._floats[1], large)
        decay = xp.where(x <= LARGEST_EXPONENT, decay, xp.zeros_like(decay))
        roundings = 2.0 * (EXP_ULPS + 2 * (len(series.g) + len(series.h)) + 8) * U
        # the rounded exponent -x is exact: only exp, the polynomials and their difference round
        direct = up((growth - decay) + roundings * (growth + decay), 4)
        best = xp.where(x <= 1.0, near[:, number], direct)
        found.append(xp.where(x > 0, best, xp.zeros_like(x)))
    return found


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    total = namespace(x).full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total
