"""What is asked of a model: one scalar function of x, written once, read by bounds and by attacks.

Enclosures bound it over cells and at points, so do the paper's intervals, and an attack takes its
values and slopes: a new quantity is one file here. The maximum of a quantity is minus the minimum
of its negative, so every one is minimised. Of one output: the interface, and mean, variance and
standard deviation themselves.

Proofs: docs/mathematics.md, statements 7.1 and 7.6.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

from gpcert.arrays import Array, PerCell, Reals, namespace
from gpcert.rounding import down, nonnegative, up


class Quantity:
    """A function of x by latent means and variances. Subclasses are frozen records."""

    by_variance: bool = True
    """Whether it depends on variances."""

    @property
    def known(self) -> tuple[float, float]:
        """Bounds that hold for every x whatever the model."""
        return -math.inf, math.inf


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
    def negative(self) -> Self:
        """That of the other sign, which is minus this one for all but a band."""
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
        del v_high
        return 0.0


@dataclass(frozen=True)
class Mean(OutputQuantity):
    """`sign mu_c`, sign = 1 for the minimum, -1 for the maximum."""

    output: int
    sign: int

    by_variance = False

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """q itself."""
        del beta, v_low, v_high
        return alpha

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """q itself."""
        del v_low, v_high
        return q

    def value(self, q: Reals, v: Reals) -> Reals:
        """q."""
        del v
        return q

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """1 and 0."""
        del v
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
        """An end of the range."""
        del alpha, beta
        return v_low if self.sign > 0 else -v_high

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The other end."""
        del q
        return v_high if self.sign > 0 else -v_low

    def value(self, q: Reals, v: Reals) -> Reals:
        """`sign V`."""
        del q
        return self.sign * v

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """0 and the sign."""
        del q
        return 0.0 * v, self.sign + 0.0 * v


@dataclass(frozen=True)
class Std(Variance):
    """`sign sqrt(V_c)`.

    Statement: if `V <= W` then `sqrt(V) <= sqrt(max(W, 0))`, and likewise from below.
    Reason: V >= 0 and the root increases; it is correctly rounded, one outward step covers it.
    """

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The root of the variance's."""
        return self._rooted(super().lowest(alpha, beta, v_low, v_high), -1)

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The root of the variance's."""
        return self._rooted(super().highest(q, v_low, v_high), 1)

    def value(self, q: Reals, v: Reals) -> Reals:
        """`sign sqrt(V)`."""
        del q
        return self.sign * namespace(v).sqrt(v)

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """0 and `sign / (2 sqrt(V))`, 0 where the variance vanishes."""
        del q
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
