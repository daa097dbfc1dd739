"""Gamma and beta distributions, by series and continued fractions with terms of one sign.

Proofs: docs/mathematics.md, statement 22.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from gpcert.integrals.families import EDGES, Ends, Family, complement, modulus, positive
from gpcert.numerics.arrays import Reals
from gpcert.numerics.rounding import ASIN_LOG_ULPS, EXP_ULPS, U, down, nonnegative, up

LGAMMA_ULPS = 16
"""Assumed: |fl(lgamma x) - lgamma x| <= LGAMMA_ULPS U (1 + |lgamma x|); libraries keep within 4."""

DEPTH = 80
"""Of the continued fraction: any is valid."""

MOST_TERMS = 20_000
"""Of a series: what is left of it is bounded wherever it ends."""

ENOUGH = 1e-18
"""A series ends where the rest is less than this part of the sum."""


def _exp(exponent: Reals, size: Reals) -> Ends:
    """Of exp of a sum whose terms together have so many roundings, in units of their sizes."""
    return positive(np.exp(exponent), EXP_ULPS + 2.0 + size)


def _series(ratio: Reals, above: float, below: float) -> Ends:
    """Of `sum_n ratio^n prod_(j < n) (above + j) / (below + j)`, both with one rounding.

    Quotients of terms tend to `ratio`, from either side, so those of the rest are at most the
    larger of that and the last one.
    """
    return _sum(lambda n: ratio * ((above + n) / (below + n)), np.maximum(ratio, 0.0), 7)


def _sum(quotient: Callable[[int], Reals], limit: Reals, roundings: int) -> Ends:
    """Of `sum_n prod_(j < n) quotient(j)`, quotients that tend to `limit` from one side and have so
    many roundings: the n-th term has n times as many, and as its share of the sum counts, so do
    they; what is left is at most a geometric series."""
    term, total = np.ones_like(limit), np.ones_like(limit)
    error, rest, n = np.zeros_like(limit), np.full_like(limit, np.inf), 0
    while n < MOST_TERMS and np.any(rest > ENOUGH * total):
        term = term * quotient(n)
        n += 1
        total = total + term
        # a sum has one rounding, but one that changes it by no more than the term
        error = error + n * roundings * term + np.minimum(total, term / U)
        ahead = np.maximum(quotient(n), limit) * (1.0 + 16.0 * U)
        rest = np.where(ahead < 1, term * ahead / (1.0 - ahead), np.inf)
    low, high = positive(total, error / total + 4.0)
    return low, up(high + up(rest, 1) * (1.0 + 1e-6), 1)


@dataclass(frozen=True)
class Gamma(Family):
    """Of density `y^(shape - 1) exp(-y) / Gamma(shape)`, y >= 0."""

    shape: float = 1.0
    low = 0.0

    @property
    def falling(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.shape >= 1

    @property
    def mode(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(0.0, self.shape - 1.0)

    @cached_property
    def _log(self) -> float:
        return float(special.gammaln(self.shape))

    @EDGES
    def _power(self, y: Reals, exponent: float) -> Ends:
        """Of `y^exponent exp(-y) / Gamma(shape)`."""
        log = np.log(np.where(y > 0, y, 1.0))
        size = abs(exponent * log) * (ASIN_LOG_ULPS + 4) + 4.0 * y
        size = size + (LGAMMA_ULPS + 2.0) * (1.0 + abs(self._log))
        low, high = _exp(exponent * log - y - self._log, size)
        edge, inside = 0.0 if exponent > 0 else np.inf, (y > 0) | (exponent == 0)
        return np.where(inside, low, edge), np.where(inside, high, edge)

    def _left(self, y: Reals) -> Ends:
        """`y^a e^-y / Gamma(a + 1) sum_n y^n / ((a + 1) ... (a + n))`."""
        a = self.shape
        sums = _sum(lambda n: y / (a + n + 1.0), np.zeros_like(y), 3)
        front = self._power(y, a)
        return nonnegative(down(front[0] / a * sums[0], 3)), up(front[1] / a * sums[1], 3)

    def _right(self, y: Reals) -> Ends:
        """`Q(s, y) + sum_(j < m) y^(s + j) e^-y / Gamma(s + j + 1)`, `a = s + m`, 0 < s <= 1, with
        `Gamma(s, y) = y^s e^-y / t_0`, `t_k = y + (k + 1 - s) / (1 + (k + 1) / t_(k + 1))`; t_k is
        between y and `y + k + 1 - s`, and grows with the next one."""
        a, m = self.shape, math.ceil(self.shape) - 1
        s = a - m  # exact
        term, total, j = np.ones_like(y), np.zeros_like(y), m  # in units of y^(a - 1) e^-y
        while j > 0 and np.any(term > ENOUGH * total):
            total, term, j = total + term, term * ((s + j - 1) / y), j - 1
        count = 6.0 * (m - j) + 8.0
        if j > 0:  # the quotients fall: what is left is at most a geometric series
            quotient = np.minimum((s + j) / y, 0.99)
            ends = positive(total, count)[0], positive(total + term / (1.0 - quotient), count)[1]
            ends = ends[0], up(ends[1] + np.where((s + j) / y < 0.98, 0.0, np.inf), 1)
        else:
            tails = []
            for start in (y, y + (DEPTH + 1.0 - s)):  # below and above what follows
                t = start
                for k in range(DEPTH, 0, -1):
                    t = y + (k - s) / (1.0 + k / t)
                tails.append(positive(y / t, 5 * DEPTH))
            low, high = tails[1][0], tails[0][1]
            ends = positive(total + term * low, count)[0], positive(total + term * high, count)[1]
        front = self._power(y, a - 1.0)
        return nonnegative(down(front[0] * ends[0], 2)), up(front[1] * ends[1], 2)

    @EDGES
    def _halves(self, y: Reals) -> tuple[Ends, Ends]:
        """Of P[Y <= y] and P[Y > y]: the smaller of both, about, and its complement."""
        y = nonnegative(y)
        right = (y > self.shape + 1.0) & (y < np.inf)
        near = self._left(np.where(y <= self.shape + 1.0, y, 0.0))
        far = self._right(np.where(right, y, self.shape + 1.0))
        far = [np.where(y == np.inf, 0.0, np.clip(end, 0.0, 1.0)) for end in far]
        near = [np.clip(end, 0.0, 1.0) for end in near]
        left = y <= self.shape + 1.0
        rest = complement((near[0], near[1])), complement((far[0], far[1]))
        below = [np.where(left, a, b) for a, b in zip(near, rest[1], strict=True)]
        above = [np.where(left, a, b) for a, b in zip(rest[0], far, strict=True)]
        return (below[0], below[1]), (above[0], above[1])

    def below(self, y: Reals) -> Ends:
        return self._halves(y)[0]

    def above(self, y: Reals) -> Ends:
        return self._halves(y)[1]

    def density(self, y: Reals) -> Ends:
        y = nonnegative(y)
        low, high = self._power(np.where(y < np.inf, y, 0.0), self.shape - 1.0)
        return np.where(y < np.inf, low, 0.0), np.where(y < np.inf, high, 0.0)

    @EDGES
    def score(self, y: Reals) -> Ends:
        first = (self.shape - 1.0) / nonnegative(y)
        first = np.where(np.isnan(first), 0.0, first)  # an exponential at 0
        return down(down(first, 2) - 1.0, 1), up(up(first, 2) - 1.0, 1)

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        near, far = modulus(low, high, height)
        c = self.shape - 1.0
        value = np.maximum(c * np.log(near), c * np.log(far)) if c else np.zeros_like(low)
        value = np.exp(value - low - self._log)
        return value if c >= 0 and c == int(c) else np.where(low > 0, value, np.inf)


@dataclass(frozen=True)
class Beta(Family):
    """Of density `y^(a - 1) (1 - y)^(b - 1) / B(a, b)`, 0 <= y <= 1."""

    a: float = 1.0
    b: float = 1.0
    low = 0.0
    high = 1.0

    @property
    def mode(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.a > 1 and self.b > 1:
            return (self.a - 1.0) / (self.a + self.b - 2.0)
        return 1.0 if self.a > 1 >= self.b or self.a == 1 > self.b else 0.0

    @cached_property
    def _log(self) -> tuple[float, float]:
        """`-log B(a, b)`, and its roundings."""
        parts = [float(special.gammaln(each)) for each in (self.a, self.b, self.a + self.b)]
        moved = (self.a + self.b) * (1.0 + abs(math.log(self.a + self.b)))
        size = (LGAMMA_ULPS + 4.0) * (3.0 + sum(map(abs, parts))) + 2.0 * moved
        return parts[2] - parts[0] - parts[1], size

    @EDGES
    def _power(self, y: Reals, first: float, second: float) -> Ends:
        """Of `y^first (1 - y)^second / B`."""
        inside = (y > 0) & (y < 1)
        safe = np.where(inside, y, 0.5)
        logs = first * np.log(safe), second * np.log1p(-safe)
        size = (abs(logs[0]) + abs(logs[1])) * (ASIN_LOG_ULPS + 6) + self._log[1]
        low, high = _exp(logs[0] + logs[1] + self._log[0], size)
        whole = _exp(np.float64(self._log[0]), np.float64(self._log[1]))
        at_end = np.where(y <= 0, first, second)
        edges = [np.where(at_end > 0, 0.0, np.where(at_end < 0, np.inf, end)) for end in whole]
        return np.where(inside, low, edges[0]), np.where(inside, high, edges[1])

    def _left(self, y: Reals) -> Ends:
        """`y^a (1 - y)^b / (a B) sum_n y^n prod_(j < n) (a + b + j) / (a + 1 + j)`."""
        front, sums = self._power(y, self.a, self.b), _series(y, self.a + self.b, self.a + 1.0)
        ends = down(front[0] / self.a * sums[0], 3), up(front[1] / self.a * sums[1], 3)
        return np.clip(ends[0], 0.0, 1.0), np.clip(ends[1], 0.0, 1.0)

    @EDGES
    def _sides(self, y: Reals) -> tuple[Ends, Ends]:
        """Of P[Y <= y] and P[Y > y]: that of its side of the middle by the series."""
        y, middle = np.clip(y, 0.0, 1.0), self.a / (self.a + self.b)
        left = y <= middle
        near = self._left(np.where(left, y, 0.0))
        far = Beta(self.b, self.a)._left(np.where(left, 0.0, 1.0 - y))
        # 1 - y is rounded: the share's logarithm changes by so much with that of 1 - y
        slack = 8.0 * U * (1.0 + (self.a + self.b) * (1.0 / middle + 1.0 / (1.0 - middle)))
        far = np.clip(far[0] * (1.0 - slack), 0.0, 1.0), np.clip(far[1] * (1.0 + slack), 0.0, 1.0)
        rest = complement(far), complement(near)
        below = [np.where(left, a, b) for a, b in zip(near, rest[0], strict=True)]
        above = [np.where(left, b, a) for a, b in zip(far, rest[1], strict=True)]
        return (below[0], below[1]), (above[0], above[1])

    def below(self, y: Reals) -> Ends:
        return self._sides(y)[0]

    def above(self, y: Reals) -> Ends:
        return self._sides(y)[1]

    def density(self, y: Reals) -> Ends:
        return self._power(np.clip(y, 0.0, 1.0), self.a - 1.0, self.b - 1.0)

    @EDGES
    def density_range(self, low: Reals, high: Reals) -> Ends:
        """Of two infinite ends the least value is between them."""
        if not (self.a < 1 and self.b < 1):
            return super().density_range(low, high)
        first, last = self.density(low), self.density(high)
        place = (1.0 - self.a) / ((1.0 - self.a) + (1.0 - self.b))
        bottom = down(self.density(np.full(1, place))[0], 64)
        inside = (low <= place * (1.0 + 16.0 * U)) & (high >= place * (1.0 - 16.0 * U))
        least = np.minimum(np.minimum(first[0], last[0]), np.where(inside, bottom, np.inf))
        return least, np.maximum(first[1], last[1])

    @EDGES
    def score(self, y: Reals) -> Ends:
        return self.score_range(y, y)

    @EDGES
    def score_range(self, low: Reals, high: Reals) -> Ends:
        """Of `(a - 1) / y` and `(b - 1) / (1 - y)`, each monotone."""
        ends = []
        for c, (first, last) in (
            (self.a - 1.0, (low, high)),
            (self.b - 1.0, (down(1.0 - high, 1), up(1.0 - low, 1))),
        ):
            values = [c / nonnegative(y) if c else np.zeros_like(low) for y in (first, last)]
            ends.append((down(np.minimum(*values), 3), up(np.maximum(*values), 3)))
        least, most = down(ends[0][0] - ends[1][1], 1), up(ends[0][1] - ends[1][0], 1)
        least, most = (np.where(np.isnan(e), s, e) for e, s in ((least, -np.inf), (most, np.inf)))
        return least, most

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        value, known = np.full_like(low, self._log[0]), np.ones_like(low, dtype=bool)
        for c, ends in ((self.a - 1.0, (low, high)), (self.b - 1.0, (1.0 - high, 1.0 - low))):
            near, far = modulus(*ends, height)
            if c:
                value = value + np.maximum(c * np.log(near), c * np.log(far))
            if c < 0 or c != int(c):
                known &= ends[0] > 0
        return np.where(known, np.exp(value), np.inf)
