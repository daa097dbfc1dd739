"""Independent inputs: probabilities of boxes and moments over them, proved.

Proofs: docs/mathematics.md, statements 22.2 and 22.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.integrals.families import Ends, product
from gpcert.integrals.marginals import Marginal
from gpcert.numerics.arrays import PerCell, PerCellAndFeature, Rows
from gpcert.numerics.rounding import TINY, U, down, up, up_float

Corner = Annotated[np.ndarray, "f"]

PIECES = 16
"""Parts of an interval whose moments are added up."""


class Moments(NamedTuple):
    """Given that x lies in a cell: `E d_j` and `E d_j^2` for d = x - c, c the cell's rounded middle
    `center`, and bounds of their errors, all (B, f); `half`, at least |d|."""

    center: PerCellAndFeature
    half: PerCellAndFeature
    first: PerCellAndFeature
    first_error: PerCellAndFeature
    second: PerCellAndFeature
    second_error: PerCellAndFeature


@dataclass(frozen=True, eq=False)
class InputLaw:
    """The law of inputs with independent coordinates."""

    marginals: tuple[Marginal, ...]

    def masses(self, low: Rows, high: Rows) -> tuple[PerCell, PerCell]:
        """Proved bounds of the probabilities of boxes."""
        lower = upper = np.ones(len(low))
        for j, marginal in enumerate(self.marginals):
            least, most = marginal.mass(low[:, j], high[:, j])
            lower, upper = down(lower * least, 1), up(upper * most, 1)
        return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)

    def outside(self, low: Corner, high: Corner) -> float:
        """At least the probability of all that lies outside a box."""
        ends = zip(self.marginals, low.tolist(), high.tolist(), strict=True)
        total = sum(marginal.outside(a, b) for marginal, a, b in ends)
        return min(1.0, up_float(total, len(self.marginals))) if total else 0.0

    def moments(self, low: Rows, high: Rows) -> Moments:
        """Those of every cell; intervals that several cells share are looked at once."""
        columns = []
        for j, marginal in enumerate(self.marginals):
            pairs = np.stack([low[:, j], high[:, j]], axis=1)
            distinct, place = np.unique(pairs, axis=0, return_inverse=True)
            moments = _interval_moments(marginal, distinct[:, 0], distinct[:, 1])
            columns.append([each[place.reshape(-1)] for each in moments])
        return Moments(*(np.stack(each, axis=1) for each in zip(*columns, strict=True)))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _interval_moments(
    marginal: Marginal, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The `Moments` of one input over intervals (n,).

    Over a piece with middle m, half-width w and z = x - m, `p(m + z) = p(m) + s z` with s in the
    range of the slope, so `int z p` lies in `2/3 w^3` times that range, and `int z^2 p` within
    `w^4 / 2` times the largest slope of `2/3 w^3 p(m)`; both at most w and w^2 times the mass.
    """
    center = 0.5 * low + 0.5 * high
    half = np.maximum(high - center, center - low) * (1.0 + 4.0 * U)
    parts = np.linspace(0.0, 1.0, PIECES + 1)
    edges = low[:, None] * (1.0 - parts) + high[:, None] * parts
    edges = np.clip(edges, low[:, None], high[:, None])
    edges[:, 0], edges[:, -1] = low, high
    first, last = edges[:, :-1], edges[:, 1:]
    middle = 0.5 * first + 0.5 * last
    w = np.maximum(last - middle, middle - first) * (1.0 + 4.0 * U)
    mass, slope = marginal.mass(first, last), marginal.slope(first, last)
    density = marginal.density(middle, middle)
    cube = up(2.0 / 3.0 * w**3, 4)
    # w is a little more than the true half-widths: the density outside the piece is not needed,
    # as the odd part of the integral is over the true piece, one end of which may be nearer
    uneven = up(8.0 * U * (abs(middle) + w) * w * (density[1] + w * _largest(slope)), 4)
    one = product((down(cube, 8), cube), slope)
    one = down(one[0] - uneven, 2), up(one[1] + uneven, 2)
    bend = up(0.5 * w**4 * _largest(slope), 6)
    two = down(down(cube, 8) * density[0] - bend - uneven * w, 8), up(cube * density[1] + bend, 4)
    most = up(w * mass[1], 1), up(w * w * mass[1], 2)
    one = np.fmax(one[0], -most[0]), np.fmin(one[1], most[0])
    two = np.fmax(two[0], 0.0), np.fmin(two[1], most[1])
    away = middle - center[:, None]
    value, error = _middle(mass)
    one_value, one_error = _middle(one)
    two_value, two_error = _middle(two)
    size = abs(away)
    total, total_error = value.sum(axis=1), _total(error, value)
    terms = one_value + away * value
    m1, e1 = terms.sum(axis=1), _total(one_error + size * error, abs(one_value) + size * value)
    terms = two_value + 2.0 * away * one_value + away * away * value
    errors = two_error + 2.0 * size * one_error + size * size * error
    m2 = terms.sum(axis=1)
    e2 = _total(errors, two_value + 2.0 * size * abs(one_value) + size * size * value)
    # conditional on the cell: where its own mass may be 0 only the cell itself is known
    usable = total > 4.0 * total_error
    safe = np.where(usable, total, 1.0)
    mean, mean_error = m1 / safe, up((e1 + abs(m1 / safe) * total_error) / safe * 2.0, 8)
    square, square_error = m2 / safe, up((e2 + abs(m2 / safe) * total_error) / safe * 2.0, 8)
    mean_error = mean_error + 4.0 * U * abs(mean)
    square_error = square_error + 4.0 * U * abs(square)
    known = usable & np.isfinite(mean_error) & (mean_error <= half)
    mean, mean_error = np.where(known, mean, 0.0), np.where(known, mean_error, half)
    known = usable & np.isfinite(square_error) & (square_error <= half * half)
    middle_square = 0.5 * half * half
    square = np.where(known, square, middle_square)
    square_error = np.where(known, square_error, up(middle_square, 4))
    return center, half, mean, mean_error, square, square_error


def _largest(ends: Ends) -> np.ndarray:
    return np.maximum(abs(ends[0]), abs(ends[1]))


def _middle(ends: Ends) -> tuple[np.ndarray, np.ndarray]:
    """The middle of intervals, and at least how far their ends are from it."""
    value = 0.5 * ends[0] + 0.5 * ends[1]
    return value, up(np.maximum(ends[1] - value, value - ends[0]), 2)


def _total(errors: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """At least the error of a sum over pieces, whose terms have so many roundings and sizes."""
    n = 2 * PIECES + 24
    return up(errors.sum(axis=1) + (4.0 * n * U) * sizes.sum(axis=1) + PIECES * TINY, n)
