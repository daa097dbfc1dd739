"""A scalar quantity: one function of a latent mean and variance, read by bounds and by attacks.

Enclosures bound it over cells and at points, so do the paper's intervals, and an attack takes its
values and slopes: a new quantity is one file here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from gpcert.arrays import Array


class Quantity(ABC):
    """`G(q, v)` of q = sign mu_c(x) and the variance v of output c, in the output's units (noise
    included), for a G that does not decrease in q. Subclasses are frozen records.

    The maximum of a quantity is minus the minimum of its negative, so sign = -1 asks for that.
    """

    output: int
    sign: int

    by_mean: bool = True
    """Whether G depends on q; else q is not looked at."""

    by_variance: bool = True
    """Whether G depends on v."""

    @property
    def known(self) -> tuple[float, float]:
        """Bounds that hold for every q and v."""
        return -math.inf, math.inf

    # proved

    @abstractmethod
    def lowest(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        """Certified lower bound of G where `q >= alpha + beta v` and v lies in the range.

        alpha may be infinite or NaN where nothing is known: the bound is then a trivial one.
        """

    @abstractmethod
    def highest(self, q: Array, v_low: Array, v_high: Array) -> Array:
        """Certified upper bound of G for means up to q and variances of the range."""

    # in plain floating point: guides choices and attacks, proves nothing

    @abstractmethod
    def value(self, q: Array, v: Array) -> Array:
        """G."""

    @abstractmethod
    def slopes(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Partial derivatives `(G_q, G_v)`; 0 where there is none."""

    def level_slope(self, q: Array, v: Array) -> Array:
        """Slope d q / d v of G's level curve."""
        by_q, by_v = self.slopes(q, v)
        return -by_v / by_q

    def corners(self, v_low: Array, v_high: Array) -> tuple[Array, Array]:
        """Two variances of a range at which level curves may differ most: by default its ends."""
        return v_low, v_high

    def worthwhile(self, v_high: Array) -> Array | float:
        """What further lines must gain on some cell of a batch to be worth their time."""
        del v_high
        return 0.0
