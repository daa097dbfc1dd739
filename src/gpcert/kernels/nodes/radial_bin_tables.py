"""Tables of what rounding and Taylor's remainders of a radial kernel cost at a point of weight 1,
by bins of its distance: made once a region and size of cell (`gpcert.kernels.nodes.radial_bins`).

Proofs: docs/mathematics.md, statements 3.6, 3.7, 3.8, 16.5 and 16.7.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from gpcert.kernels.nodes.radial_variations import (
    FAR,
    SLACK,
    DistanceRange,
    fifth_within,
    first,
    largest_third,
    share_weights,
    third,
)
from gpcert.numerics.arrays import PerCell, PerRow
from gpcert.numerics.rounding import up

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial import Accuracy, LocalRadial

FINENESS = 128.0
"""Bin j holds distances from (j / 128)^2 to ((j+1) / 128)^2, the last one all beyond: of width
0.016 at 1 and 0.03 at 4, finer near 0 where rough kernels change fast."""

MAX_BINS = 512
"""The last of them begins at 15.9; `LocalRadial.bins` are enough for a region."""

SIZES = 128
"""Of rho an octave: tables are made for rho rounded up to one of them."""

MAX_TABLES = 512
"""Kept at most, and those of one batch more: 40 kB each."""

SHARES = tuple(j / 8 for j in range(1, 9))
"""Of a displacement, for the remainder of order 5: made once, they may be many."""


def rounded_sizes(rho: PerCell) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of cells that occur, each rounded up, and (B,) which is whose."""
    mantissa, exponent = np.frexp(rho)
    rounded = np.ldexp(np.ceil(mantissa * (2 * SIZES)) / (2 * SIZES), exponent)
    return np.unique(rounded, return_inverse=True)


class JetTable(NamedTuple):
    """`accuracy` (bins, 6): sizes and errors of value, gradient and Hessian for a weight of 1,
    finite; `infinite` (bins, 6): where nothing is known instead; `used` (2, bins): where F_1 and
    F_2 may be used."""

    accuracy: np.ndarray
    infinite: np.ndarray
    used: np.ndarray

    @staticmethod
    def of(accuracy: Accuracy, used: Annotated[np.ndarray, "2 bins"]) -> JetTable:
        """From (sizes, errors) of each bin."""
        raised = (1.0 + SLACK) * np.stack([*accuracy[0], *accuracy[1]], axis=1)
        infinite = ~np.isfinite(raised)
        return JetTable(np.where(infinite, 0.0, raised), infinite, used)

    def summed(self, weights: Annotated[np.ndarray, "n bins"], power: int = 1) -> np.ndarray:
        """(n, 6): weights times the columns, or their squares; infinite where they say so."""
        sums = weights @ self.accuracy**power
        bins = np.flatnonzero(self.infinite.any(axis=1))  # few, if any
        sums[(weights[:, bins] > 0) @ self.infinite[bins]] = np.inf
        return sums


class SizeTable(NamedTuple):
    """For one rho: bins whose points are near, those that go on to order 5, and columns (bins, 6)
    of what a weight of 1 costs there, apart from powers of rho (see `BinTables.of_sizes`)."""

    near: np.ndarray
    goes_on: np.ndarray
    columns: np.ndarray
    squares: np.ndarray


class BinTables:
    """Bounds over each bin; the points' extents count as the largest."""

    def __init__(self, node: LocalRadial) -> None:
        self.node = node
        edges = (np.arange(node.bins + 1) / FINENESS) ** 2
        # the root that tells the bin may be off by a rounding
        self.low, self.high = edges[:-1] * (1.0 - 1e-12), edges[1:] * (1.0 + 1e-12)
        self.extents = np.full(node.bins, node.largest_extent)
        self.error = node.distance_error(self.high, self.extents)
        self._sizes: dict[float, SizeTable] = {}

    @cached_property
    def _factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F_0, F_1 and F_2 at the lower end, where they are largest."""
        value, slope, bend = self.node.profile.terms(self.low, (0, 0), (1, 0), (2, 0))
        return value, slope, bend

    @cached_property
    def regular(self) -> JetTable:
        """Where all is regular (`LocalRadial.is_regular`).

        Factors at the lower end, r at the upper; the last bin holds also what lies beyond, where
        every `F_n r^k` falls.
        """
        accuracy = self.node.regular_accuracy(self.high, self.extents, self._factors)
        return JetTable.of(accuracy, np.ones((2, self.node.bins), dtype=bool))

    @cached_property
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def general(self) -> JetTable:
        """Anywhere: where F_1 or F_2 is not known well enough on a bin, 0 stands for it there."""
        ends = (self.low, self.high)
        accuracy, used = self.node.accuracy(ends, self.error, self.extents, self._factors)
        return JetTable.of(accuracy, np.stack(used) > 0)

    @cached_property
    def rounding(self) -> tuple[PerRow, PerRow]:
        """(bins,): what degrees 3 and 4 may be off by, for rho = 1."""
        profile = self.node.profile
        F = profile.terms(self.low, (2, 0), (3, 0), (4, 0))
        ends = (self.low, self.high)
        cubic, quartic = self.node.tensor_rounding(ends, self.error, self.extents, F)
        return (1.0 + SLACK) * cubic, (1.0 + SLACK) * quartic

    def of_sizes(self, sizes: list[float], tensors: bool) -> list[SizeTable]:
        """Which points end where is free to choose; costs are, with s the variance,

            s rho first                                     near: the value alone,
            s rho^3 third                                   at order 3,
            s rho^5 fifth + rho^3 cubic + rho^4 quartic     at order 5,

        and `squares` those of the first two, for errors of the weights.
        """
        if len(self._sizes) > MAX_TABLES:
            self._sizes.clear()
        missing = [rho for rho in sizes if rho not in self._sizes]
        if missing:
            computed = self._of_sizes(np.asarray(missing)[:, None], tensors)
            tables = (SizeTable(*parts) for parts in zip(*computed, strict=True))
            self._sizes.update(zip(missing, tables, strict=True))
        return [self._sizes[rho] for rho in sizes]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _of_sizes(self, rho: np.ndarray, tensors: bool) -> SizeTable:
        """Of all sizes (S, 1) at once."""
        node, profile = self.node, self.node.profile
        moved = up(self.error + rho, 4)
        high = up(self.high + moved, 2)
        high[:, -1] = FAR
        distances = DistanceRange(np.maximum(self.low - moved, 0.0) * (1.0 - 1e-12), high)
        alone = first(profile, *distances)
        ends = up(np.minimum(third(profile, *distances), largest_third(profile)) / 6.0, 1)
        center = DistanceRange(self.low - self.error, up(self.high + self.error, 2))
        center.high[-1] = FAR
        moves = np.asarray(SHARES)[:, None, None] * rho
        within = fifth_within(profile, center, distances, moves)
        fifth = up(np.tensordot(share_weights(SHARES), within, 1) / 120.0, 12)
        cubic, quartic = (part + 0.0 * rho for part in self.rounding)
        smooth = rho**3 * (cubic + rho * quartic) + node.variance * (rho**5 * fifth)
        rough = node.variance * (rho**3 * ends)
        near = ~(rough <= node.variance * (rho * alone))
        goes_on = (smooth < rough) & ~near & tensors
        columns = [near * alone, _where(~near & ~goes_on, ends), _where(goes_on, fifth)]
        columns += [_where(goes_on, cubic), _where(goes_on, quartic), _where(~near, ends)]
        squares = [near * alone**2, _where(~near, ends) ** 2]
        return SizeTable(near, goes_on, np.stack(columns, axis=2), np.stack(squares, axis=2))


def _where(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.where(mask, values, 0.0)
