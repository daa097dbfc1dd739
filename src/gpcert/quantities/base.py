"""What is asked of a model: one scalar function of x, written once, read by bounds and by attacks.

Enclosures bound it over cells and at points, so do the paper's intervals, and an attack takes its
values and slopes: a new quantity is one file here. The maximum of a quantity is minus the minimum
of its negative, so every one is minimised.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from gpcert.arrays import Array, namespace

Ends = Sequence[Array]
"""Ends (B,) of the ranges of a compound's parts, each perhaps computed when it is looked at."""


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


class Compound(Quantity, ABC):
    """`H(y_1, ..., y_k)` of several quantities y_p of one output each, its `parts`."""

    parts: tuple[OutputQuantity, ...]
    """The y_p; the negative of each is that of the other sign."""

    level: float | None = None
    """The value of a part that matters most to H, if there is one: bounds are best near it."""

    @property
    def by_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether any part does."""
        return any(part.by_variance for part in self.parts)

    # proved

    @abstractmethod
    def lowest(self, low: Ends, high: Ends) -> Array:
        """Certified lower bound (B,) of H for all `low_p <= y_p <= high_p`."""

    @abstractmethod
    def highest(self, low: Ends, high: Ends) -> Array:
        """Certified upper bound (B,) of H for all of them."""

    # in plain floating point

    @abstractmethod
    def value(self, y: np.ndarray) -> np.ndarray:
        """H (n,) of rows y (n, k)."""

    @abstractmethod
    def slopes(self, y: np.ndarray) -> np.ndarray:
        """A (sub)gradient (n, k)."""

    def pulled(self, low: Ends, high: Ends) -> tuple[Array, Array]:
        """(B,): the part that H's least value hangs on most, and whether it is large there; says
        where to look. By default from the slopes in the middle."""
        xp = namespace(low[0])
        least, most = xp.stack(list(low), axis=1), xp.stack(list(high), axis=1)
        slope: Any = self.slopes(0.5 * (least + most))
        part = xp.argmax(xp.abs(slope) * (most - least), axis=1)
        return part, slope[xp.arange(len(part), device=part.device), part] < 0
