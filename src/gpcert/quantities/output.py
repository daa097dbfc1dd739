"""What is asked of a model: one scalar function of x, written once, read by bounds and by attacks.

Enclosures bound it over cells and at points, so do the paper's intervals, and an attack takes its
values and slopes: a new quantity is one class. The maximum of a quantity is minus the minimum of
its negative, so every one is minimised. Of one output: the interface; mean, variance, standard
deviation, an end of the credible band, the predicted probability.

Proofs: docs/mathematics.md, statements 7.1, 7.2 and 7.6.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

from gpcert.errors import InputError
from gpcert.likelihoods import ScalarLikelihood
from gpcert.likelihoods.base import LARGEST_SEGMENT
from gpcert.numerics.arrays import Array, PerCell, Reals, namespace
from gpcert.numerics.rounding import TINY, down, gamma, given, nonnegative, up


class Quantity:
    """A function of x by latent means and variances. Subclasses are frozen records."""

    by_variance: bool = True
    """Whether it depends on variances."""

    @property
    def known(self) -> tuple[float, float]:
        """Bounds that hold for every x whatever the model."""
        return -math.inf, math.inf

    @property
    def negative(self) -> Quantity:
        """Minus this one, which maxima are read off."""
        raise InputError(
            f"quantity: the negative of {type(self).__name__} is not known, and maxima are read "
            "off it; define the property `negative`, or ask for sides='minimum'"
        )


class OutputQuantity(Quantity, ABC):
    """`G(q, v)` of q = sign mu_c(x) and the variance v of output c, in the output's units (noise
    included), for a G that does not decrease in q."""

    output: int
    """Its number among all outputs of the model, whichever member has it."""
    sign: int

    by_mean: bool = True
    """Whether G depends on q; else q is not looked at."""

    @property
    def parts(self) -> tuple[OutputQuantity, ...]:
        """Itself alone; see `Compound`."""
        return (self,)

    @property
    def negative(self) -> Self:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Minus this one: by default that of the other sign."""
        return replace(self, sign=-self.sign)  # pyright: ignore[reportArgumentType, reportCallIssue]

    # proved

    @abstractmethod
    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Certified lower bound of G where `q >= alpha + beta v` and v lies in the range.

        alpha may be infinite or NaN where nothing is known: the bound is then a trivial one.
        """

    @abstractmethod
    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Certified upper bound of G for means up to q and variances of the range."""

    # in plain floating point: guides choices and attacks, proves nothing

    @abstractmethod
    def value(self, q: Reals, v: Reals) -> Reals:
        """G."""

    @abstractmethod
    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Partial derivatives `(G_q, G_v)`; 0 where there is none."""

    def level_slope(self, q: Reals, v: Reals) -> Reals:
        """Slope d q / d v of G's level curve."""
        by_q, by_v = self.slopes(q, v)
        return -by_v / by_q

    def corners(self, v_low: Reals, v_high: Reals) -> tuple[Reals, Reals]:
        """Two variances of a range at which level curves may differ most: by default its ends."""
        return v_low, v_high

    def worthwhile(self, v_high: PerCell) -> Array | float:
        """What further lines must gain on some cell of a batch to be worth their time."""
        return 0.0


@dataclass(frozen=True)
class Mean(OutputQuantity):
    """`sign mu_c`, sign = 1 for the minimum, -1 for the maximum."""

    output: int
    sign: int

    by_variance = False

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        return alpha

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        return q

    def value(self, q: Reals, v: Reals) -> Reals:
        return q

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        return 1.0 + 0.0 * q, 0.0 * q


@dataclass(frozen=True)
class Variance(OutputQuantity):
    """`sign V_c`: noise included where the output has some."""

    output: int
    sign: int

    by_mean = False

    @property
    def known(self) -> tuple[float, float]:
        """A variance is not negative."""
        return (0.0, math.inf) if self.sign > 0 else (-math.inf, 0.0)

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        return v_low if self.sign > 0 else -v_high

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        return v_high if self.sign > 0 else -v_low

    def value(self, q: Reals, v: Reals) -> Reals:
        return self.sign * v

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        return 0.0 * v, self.sign + 0.0 * v


@dataclass(frozen=True)
class Std(Variance):
    """`sign sqrt(V_c)`.

    Statement: if `V <= W` then `sqrt(V) <= sqrt(max(W, 0))`, and likewise from below.
    Reason: V >= 0 and the root increases; it is correctly rounded, one outward step covers it.
    """

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        return self._rooted(super().lowest(alpha, beta, v_low, v_high), -1)

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        return self._rooted(super().highest(q, v_low, v_high), 1)

    def value(self, q: Reals, v: Reals) -> Reals:
        return self.sign * namespace(v).sqrt(v)

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """0 and `sign / (2 sqrt(V))`, 0 where the variance vanishes."""
        return 0.0 * v, self.sign * root_slope(v)

    def _rooted(self, bound: Array, side: int) -> Array:
        """A bound of `sign sqrt(V)` from one of `sign V`, from below (side = -1) or above."""
        root = namespace(bound).sqrt(nonnegative(self.sign * bound))
        rounded = up(root, 1) if side * self.sign > 0 else nonnegative(down(root, 1))
        return self.sign * rounded


def root_slope(v: Reals) -> Reals:
    """`1 / (2 sqrt(V))`, 0 where that is not a number."""
    xp = namespace(v)
    std = xp.sqrt(v)
    usable = std > 0
    slope = 0.5 / xp.where(usable, std, 1.0 + 0.0 * std)
    return xp.where(usable & xp.isfinite(slope), slope, xp.zeros_like(slope))


WORTHWHILE_SHARE = 1e-3
"""Part of the band's half-width that further lines must gain to be worth their time."""

LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Band(OutputQuantity):
    """`sign mu_c - beta sqrt(V_c)`.

    sign = 1 is a confidence bound, lower (`mu - beta std`) for beta > 0, upper for beta < 0; sign =
    -1 the negative of one. A band is bounded by beta > 0 and both signs: the least lower end, and
    minus the greatest upper end, want an upper bound of the standard deviation.
    """

    output: int
    sign: int
    beta: float

    @property
    def negative(self) -> Self:
        return replace(self, sign=-self.sign, beta=-self.beta)

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Lower bound of `alpha + slope V - beta sqrt(V)` over V in [v_low, v_high], slope the
        argument; the better of two, -inf where nothing is known.

        Statement: where `-beta > 0` the function is concave in V, so at least its smaller value at
        both ends. Else for every s > 0 it is at least the smaller value at both ends of
        `alpha - beta s / 2 + (slope - beta / (2 s)) V`; and at least
        `alpha + min(slope v_low, slope v_high) - beta sqrt(v_high)`.
        Reason: the root lies below its tangent at s^2, `sqrt(V) <= (V + s^2) / (2 s)`, and what is
        left is linear in V. With s nearest to `beta / (2 slope)`, where the convex function is
        least, in [sqrt(v_low), sqrt(v_high)] the first is exact but for rounding, which is
        counted by the size of the terms: at most six operations each. v / s is formed first: what
        underflows in it is below `U s`, as s >= TINY.
        """
        xp = namespace(alpha)
        alpha = xp.minimum(alpha, xp.full_like(alpha, LARGEST))
        if self.beta < 0:
            values = [self._on_line(alpha, beta, v) for v in (v_low, v_high)]
            nothing = xp.full_like(alpha, -math.inf)
            known = (values[0] > nothing) & (values[1] > nothing)  # of NaN nothing is known
            return xp.where(known, xp.minimum(*values), nothing)
        low, high = xp.sqrt(v_low), up(xp.sqrt(v_high), 1)
        steep = beta > TINY
        vertex = xp.where(steep, 0.5 * self.beta / xp.where(steep, beta, 1.0 + 0.0 * beta), high)
        s = given(xp.minimum(xp.maximum(xp.maximum(vertex, low), xp.full_like(low, TINY)), high))
        half = self.beta * (0.5 * s)
        tangents = []
        for v in (v_low, v_high):
            along, fall = beta * v, self.beta * (0.5 * (v / s))
            size = xp.abs(alpha) + half + xp.abs(along) + fall
            tangents.append((alpha - half) + (along - fall) - (gamma(8) * size + TINY))
        tangent = down(xp.minimum(*tangents), 1)
        ends = xp.minimum(down(beta * v_low, 1), down(beta * v_high, 1))
        reach = up(self.beta * high, 1)
        size = xp.abs(alpha) + xp.abs(ends) + reach
        apart = down(alpha + ends - reach - (gamma(4) * size + TINY), 1)
        nothing = xp.full_like(alpha, -math.inf)
        bound = xp.where(apart > nothing, apart, nothing)  # of NaN nothing is known
        bound = xp.where(tangent > bound, tangent, bound)
        return xp.minimum(bound, xp.full_like(bound, LARGEST))

    def _on_line(self, alpha: Reals, slope: Reals, v: Reals) -> Reals:
        """Lower bound of the function at one V, where beta < 0: four roundings by the size of the
        terms, and two products that may underflow."""
        xp = namespace(alpha)
        along, rise = slope * v, -self.beta * xp.sqrt(v)
        size = xp.abs(alpha) + xp.abs(along) + rise
        bound = down(alpha + along + rise - (gamma(8) * size + TINY), 1)
        return xp.minimum(bound, xp.full_like(bound, LARGEST))

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        xp = namespace(q)
        largest = xp.full_like(q, LARGEST)  # what overflows is at least that
        if self.beta < 0:
            return up(xp.maximum(q, -largest) + up(-self.beta * xp.sqrt(v_high), 2), 1)
        reach = xp.minimum(self.beta * xp.sqrt(v_low), largest)
        return up(xp.maximum(q - nonnegative(down(reach, 2)), -largest), 1)

    def value(self, q: Reals, v: Reals) -> Reals:
        return q - self.beta * namespace(v).sqrt(v)

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """1 and `-beta / (2 sqrt(V))`."""
        return 1.0 + 0.0 * q, -self.level_slope(q, v)

    def level_slope(self, q: Reals, v: Reals) -> Reals:
        """`dq/dV = beta / (2 sqrt(V))` where G is constant."""
        return self.beta * root_slope(v)

    def corners(self, v_low: Reals, v_high: Reals) -> tuple[Reals, Reals]:
        """Where std is greatest, and half-way there: its slope at 0 would be useless."""
        xp = namespace(v_low)
        return v_high, (0.5 * (xp.sqrt(v_low) + xp.sqrt(v_high))) ** 2

    def worthwhile(self, v_high: PerCell) -> Array | float:
        return WORTHWHILE_SHARE * abs(self.beta) * namespace(v_high).sqrt(v_high)


def usable_segment(
    alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals
) -> tuple[tuple[Array, Array, Array, Array], Array]:
    """The segment as likelihoods accept it, and where it is; elsewhere zeros.

    A huge cell may give a line that is infinite or beyond `LARGEST_SEGMENT`; a lower one is valid.
    """
    xp = namespace(alpha)
    alpha = xp.minimum(alpha, xp.full_like(alpha, LARGEST_SEGMENT))
    usable = (abs(alpha) <= LARGEST_SEGMENT) & (abs(beta) <= LARGEST_SEGMENT)
    usable = usable & (v_high <= LARGEST_SEGMENT)
    zero = xp.zeros_like(alpha)
    a, b = xp.where(usable, alpha, zero), xp.where(usable, beta, zero)
    return (a, b, xp.where(usable, v_low, zero), xp.where(usable, v_high, zero)), usable


@dataclass(frozen=True)
class Response(OutputQuantity):
    """`sign F(mu_c, v_c)` for the prediction F of a likelihood: `F(q, v)`, or `-F(-q, v)`."""

    likelihood: ScalarLikelihood
    output: int
    sign: int

    @property
    def by_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the prediction does."""
        return getattr(self.likelihood, "by_variance", True)

    @property
    def known(self) -> tuple[float, float]:
        """What the likelihood predicts, or its negative."""
        low, high = self.likelihood.range
        return (low, high) if self.sign > 0 else (0.0 - high, 0.0 - low)

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The likelihood's own; for sign = -1 that of -F(-q, v), the maximum of F on the line."""
        xp = namespace(alpha)
        (a, b, v_low, v_high), usable = usable_segment(alpha, beta, v_low, v_high)
        if self.sign > 0:
            value = self.likelihood.line_minimum(a, b, v_low, v_high)
        else:
            value = -self.likelihood.line_maximum(-a, -b, v_low, v_high)
        # a prediction lies in its range whatever the latent bounds are
        return xp.where(usable, value, xp.full_like(value, self.known[0]))

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Minus the lowest of the negative."""
        return -replace(self, sign=-self.sign).lowest(-q, namespace(q).zeros_like(q), v_low, v_high)

    def value(self, q: Reals, v: Reals) -> Reals:
        return self.sign * self.likelihood.value(self.sign * q, v)

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Those of F at mu = sign q."""
        by_mu, by_v = self.likelihood.slopes(self.sign * q, v)
        return by_mu, self.sign * by_v

    def level_slope(self, q: Reals, v: Reals) -> Reals:
        """That of F at mu = sign q, mirrored."""
        return self.sign * self.likelihood.level_slope(self.sign * q, v)


WORTHWHILE_GAIN = 1e-3
"""Probability that further lines must gain on some cell of a batch to be worth their time."""


@dataclass(frozen=True)
class Probability(Response):
    """`sign F(mu_c, v_c)` for the likelihood of two classes."""

    @property
    def known(self) -> tuple[float, float]:
        """A probability, or its negative."""
        return (0.0, 1.0) if self.sign > 0 else (-1.0, 0.0)

    def worthwhile(self, v_high: PerCell) -> Array | float:
        return WORTHWHILE_GAIN
