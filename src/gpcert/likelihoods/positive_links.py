"""Targets whose mean is a positive function of the latent value: counts and rates (Poisson,
negative binomial), times and sizes (gamma, exponential, log-normal) with a link exp or softplus.

The prediction is the mean response `F(mu, v) = E link(f)`, f ~ N(mu, v). Both links increase and
are convex, so F increases in mu and in v.

Proofs: docs/mathematics.md, statements 8.4, 8.9 and 8.10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from gpcert.functions import Curve, Exp
from gpcert.integrals.softmax_moments import LOGISTIC_ERROR, LOGISTIC_TERMS
from gpcert.integrals.special import erf
from gpcert.likelihoods.base import ResponseLikelihood, check_latent, check_segment, mean_lower
from gpcert.likelihoods.logistic import (
    NEGLIGIBLE_BEND,
    Logistic,
    least_on_chords,
    split_segment,
)
from gpcert.numerics.arrays import Array, Reals, namespace
from gpcert.numerics.rounding import EXP_ULPS, TINY, down, gamma, nonnegative, up

_LARGEST_EXPONENT = 709.0
"""exp(709) is a float: what is larger is at least that, and at most infinity."""

_LARGEST_PLAIN = 600.0
"""The same for values and slopes that guide choices: products of them stay floats."""

_AT_ZERO = 2e-13
"""`>= |log 2 - sum_i c_i sqrt(d_i / pi) / 2|`, the difference at 0 of softplus and its mixture."""


def exponential_bounds(low: Reals, high: Reals) -> tuple[Reals, Reals]:
    """Certified bounds of exp on [low, high]: finite below and perhaps infinite above where exp
    overflows, 0 below where it underflows."""
    xp = namespace(low)
    least = xp.exp(xp.minimum(low, xp.full_like(low, _LARGEST_EXPONENT)))
    with_overflow = high > _LARGEST_EXPONENT
    most = xp.exp(xp.where(with_overflow, xp.zeros_like(high), high))
    most = xp.where(with_overflow, xp.full_like(high, math.inf), up(most, EXP_ULPS))
    return nonnegative(down(least, EXP_ULPS)), most


@dataclass(frozen=True)
class ExpLink(ResponseLikelihood):
    """`F(mu, v) = E exp(f) = exp(mu + v / 2)`: the mean of a log-normal law; with a Poisson
    likelihood the expected count, with a gamma or exponential one the expected size.

    Its level curves are the lines of slope -1/2 (Statement 8.9).

    >>> import numpy as np
    >>> lower, upper = ExpLink().enclose(np.array([1.0]), np.array([2.0]))
    >>> bool(lower[0] <= np.exp(2.0) <= upper[0]), bool(upper[0] - lower[0] < 1e-13)
    (True, True)
    """

    name: ClassVar[str] = "exp-link"
    curve: ClassVar[Curve | None] = Curve((Exp(),))  # pyright: ignore[reportIncompatibleVariableOverride]
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def value(self, mu: Reals, v: Reals) -> Reals:
        xp = namespace(mu, v)
        return xp.exp(xp.clip(mu + 0.5 * v, None, _LARGEST_PLAIN))

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """`(F, F / 2)`, kept from underflow: their ratio says how level curves run."""
        xp = namespace(mu, v)
        value = xp.exp(xp.clip(mu + 0.5 * v, -_LARGEST_PLAIN, _LARGEST_PLAIN))
        return value, 0.5 * value

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """exp of the exponent rounded down and up."""
        mu, v = check_latent(mu, v)
        return exponential_bounds(_exponent(mu, 0.0 * v, v), -_exponent(-mu, 0.0 * v, -v))

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """exp of the least exponent, `alpha + (beta + 1/2) v` at an end of the segment."""
        alpha, beta, v_low, v_high = check_segment(alpha, beta, v_low, v_high)
        ends = [_exponent(alpha, beta, v) for v in (v_low, v_high)]
        least = namespace(alpha).minimum(*ends)
        return exponential_bounds(least, least)[0]

    def line_maximum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """exp of the greatest exponent, which is at an end too."""
        alpha, beta, v_low, v_high = check_segment(alpha, beta, v_low, v_high)
        ends = [-_exponent(-alpha, beta, -v) for v in (v_low, v_high)]
        most = namespace(alpha).maximum(*ends)
        return exponential_bounds(most, most)[1]


def _exponent(alpha: Array, beta: Array, v: Array) -> Array:
    """A float <= `alpha + beta v + v / 2`: two products and two sums, by the size of the terms; one
    product may underflow."""
    along = beta * v
    size = abs(alpha) + abs(along) + 0.5 * abs(v)
    return (alpha + along + 0.5 * v) - (gamma(8) * size + TINY)


@dataclass(frozen=True)
class SoftplusLink(ResponseLikelihood):
    """`F(mu, v) = E log(1 + exp(f))`.

    Softplus is an integral of the logistic function; of the mixture of error functions that is near
    it (`Logistic`) the integral has a closed form, too (Statement 8.10), with `q_i = d_i + 2 v`

        F = (mu + sum_i c_i (mu erf(mu / sqrt q_i) + sqrt(q_i / pi) exp(-mu^2 / q_i))) / 2

    up to `2e-13 + 6e-14 (|mu| + sqrt v)`; besides, `softplus(mu) <= F <= exp(mu + v / 2)`.

    >>> import numpy as np
    >>> lower, upper = SoftplusLink().enclose(np.array([0.0]), np.array([0.0]))
    >>> bool(lower[0] <= np.log(2.0) <= upper[0]), bool(upper[0] - lower[0] < 1e-12)
    (True, True)
    """

    name: ClassVar[str] = "softplus-link"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def value(self, mu: Reals, v: Reals) -> Reals:
        """The closed form, within what is known of F."""
        xp = namespace(mu, v)
        value, least = self._mixture(mu, v)[0], _softplus(mu + 0.0 * v)
        most = xp.maximum(ExpLink().value(mu, v), least)
        return xp.minimum(xp.maximum(value, least), most)

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """`F_mu = E sigma(f)`, `F_v = E sigma'(f) / 2`; in the left tail those of exp, where the
        mixture's error is larger than they are."""
        xp = namespace(mu, v)
        by_mu, by_v = Logistic().value(mu, v), 0.5 * Logistic().slopes(mu, v)[0]
        tail_mu, tail_v = ExpLink().slopes(mu, v)
        usable = by_mu > 1e3 * LOGISTIC_ERROR
        return xp.where(usable, by_mu, tail_mu), xp.where(usable, by_v, tail_v)

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """The closed form less and plus its error, within the bounds of Jensen's inequality and of
        `log(1 + y) <= y`."""
        mu, v = check_latent(mu, v)
        xp = namespace(mu)
        value, error = self._mixture(mu, v)
        least = down(_softplus(mu), 4 * EXP_ULPS)
        most = ExpLink().enclose(mu, v)[1]
        lower = xp.maximum(down(value - error, 1), least)
        return nonnegative(lower), xp.maximum(xp.minimum(up(value + error, 1), most), lower)

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The better of the bound by chords (Statement 8.4) and that by monotonicity."""
        segment = check_segment(alpha, beta, v_low, v_high)
        xp = namespace(segment[0])

        def lower(alpha: Array, beta: Array, v: Array) -> Array:
            return self.enclose(mean_lower(alpha, beta, v), v)[0]

        alpha, beta, v_low, v_high = segment
        least = xp.minimum(mean_lower(alpha, beta, v_low), mean_lower(alpha, beta, v_high))
        return xp.maximum(self._by_chords(lower, *segment), self.enclose(least, v_low)[0])

    def line_maximum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Minus the least value of -F, bounded alike."""
        segment = check_segment(alpha, beta, v_low, v_high)
        xp = namespace(segment[0])

        def lower(alpha: Array, beta: Array, v: Array) -> Array:
            return -self.enclose(-mean_lower(-alpha, -beta, v), v)[1]

        alpha, beta, v_low, v_high = segment
        most = -xp.minimum(mean_lower(-alpha, -beta, v_low), mean_lower(-alpha, -beta, v_high))
        return xp.minimum(-self._by_chords(lower, *segment), self.enclose(most, v_high)[1])

    def _by_chords(
        self,
        lower: Callable[[Array, Array, Array], Array],
        alpha: Array,
        beta: Array,
        v_low: Array,
        v_high: Array,
    ) -> Array:
        """The least value on segments, on pieces where they bend visibly."""
        xp, shape = namespace(alpha), alpha.shape
        alpha, beta, v_low, v_high = (
            xp.reshape(part, (-1,)) for part in (alpha, beta, v_low, v_high)
        )

        def chords(alpha: Array, beta: Array, v: Array) -> tuple[Array, Array]:
            bend = self.half_bend(beta[:, None], v)
            least = least_on_chords(lower(alpha[:, None], beta[:, None], v), bend)
            return xp.min(least, axis=-1), xp.max(bend, axis=-1)

        least, bends = chords(alpha, beta, xp.stack([v_low, v_high], axis=-1))
        bent = bends > NEGLIGIBLE_BEND
        if bool(xp.any(bent)):
            v = split_segment(v_low[bent], v_high[bent])
            least[bent] = chords(alpha[bent], beta[bent], v)[0]
        return xp.reshape(least, shape)

    def half_bend(
        self, beta: Annotated[Array, "B 1"], v: Annotated[Array, "B k"]
    ) -> Annotated[Array, "B pieces"]:
        """Upper bound of `|G''| h^2 / 2` on every piece, `G'' = beta^2 F_2 + beta F_3 + F_4 / 4`;
        F_n is the derivative of order n - 1 of the logistic likelihood's prediction."""
        xp, bound = namespace(v), Logistic().derivative_bound
        start = xp.minimum(v[..., :-1], v[..., 1:])
        length, size = abs(v[..., 1:] - v[..., :-1]), abs(beta)
        curvature = size * size * bound(1, start) + size * bound(2, start) + 0.25 * bound(3, start)
        return up(0.5 * curvature * length * length, 12)

    def _mixture(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """The closed form, and its error with that of rounding.

        Each term carries fewer than 30 roundings of numbers whose sizes add up to at most
        `|mu| + sqrt(q)`, q the largest, as `sum c_i <= 1.001`, `|y erf'(y)| <= 1/2` and
        `y^2 exp(-y^2) <= 1/2`; the sum of 18 adds 20.
        """
        xp = namespace(mu, v)
        double, total = 2.0 * v, 1.0 * mu + 0.0 * v
        for d, c in LOGISTIC_TERMS:
            q = d + double
            y = mu / xp.sqrt(q)
            total = total + c * (mu * erf(y) + xp.sqrt(q / math.pi) * xp.exp(-y * y))
        widest = max(d for d, _ in LOGISTIC_TERMS)
        error = _AT_ZERO + LOGISTIC_ERROR * (abs(mu) + xp.sqrt(v))
        error = error + gamma(64) * (abs(mu) + xp.sqrt(widest + double))
        return 0.5 * total, 1.01 * error


def _softplus(f: Array) -> Array:
    """`log(1 + exp(f))`, in plain floating point: `max(f, 0) + log1p(exp(-|f|))`."""
    xp = namespace(f)
    return nonnegative(f) + xp.log1p(xp.exp(-abs(f)))
