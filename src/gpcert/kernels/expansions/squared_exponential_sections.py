"""The squared exponential on many sections at once: every cell of a batch has a section of its own.

A *section* is a point x and one feature j: `x + t e_j`. There `k(x + t e_j, z_i)` is a factor that
does not change times the same kernel of one feature,

    k(x + t e_j, z_i) = s^2 exp(-F_i / 2) exp(-(p_i - t / l_j)^2 / 2),
    p_i = (z_ij - x_j) / l_j,     F_i = sum over the other features of ((z_i - x) / l)^2,

so all that `squared_exponential` knows of a region with one free feature holds on every section,
with its own p and F. Cells of all sections then share their batches: kernel values, moments and
products with the precision are computed for all of them at once. A cell's one coordinate is t, in
the units of the feature.

Proofs: docs/mathematics.md, statements 1.2 and 15.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from gpcert.arrays import Array, Backend, Derivatives, PerCellAndPoint, PerOrder, Points, namespace
from gpcert.kernels.expansions.base import inverse_lengths
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential, WeightedExpansion
from gpcert.kernels.expansions.squared_exponential_table import (
    Cubes,
    kernel_errors,
    subtraction_error,
)
from gpcert.regions.frame import power_of_two
from gpcert.rounding import gamma, nonnegative, up


@dataclass(frozen=True, eq=False)
class Sections:
    """Q sections seen by one squared exponential with N points, on the host; see the module.

    `points`, `fixed` and `errors` are (Q, N): p, F, and the relative errors of the kernel's values
    on the section; `lengths` and `reach` (Q,): l_j, and the largest |t| / l_j that is asked for.
    """

    points: Points
    fixed: np.ndarray
    errors: np.ndarray
    lengths: np.ndarray
    reach: np.ndarray
    variance: float

    @staticmethod
    def build(
        kernel: tuple[np.ndarray, float],
        points: Points,
        X: Annotated[np.ndarray, "n d"],
        sections: tuple[np.ndarray, np.ndarray],
        extent: Annotated[np.ndarray, "Q"],
    ) -> Sections:
        """The sections of the points X[rows] along `features`, (rows, features) = `sections`.

        `kernel` are its length-scales (d,) and variance, `extent` (Q,) bounds |t|. The sums of the
        other features' squares have no differences: each is a product with ones and one zero.
        Coordinates beyond float64 make a section of their own feature infinitely long, which
        `kernel_errors` refuses; among the fixed ones they make k zero, as it nearly is.
        """
        scale, variance = kernel
        rows, features = sections
        d, N = points.shape[1], len(points)
        p, fixed = np.empty((len(rows), N)), np.empty((len(rows), N))
        with np.errstate(over="ignore", invalid="ignore"):
            for row in np.unique(rows):
                own = np.flatnonzero(rows == row)
                scaled = (points - X[row]) / scale
                p[own] = scaled.T[features[own]]
                others = np.ones((len(own), d))
                others[np.arange(len(own)), features[own]] = 0.0
                fixed[own] = others @ np.square(scaled).T
            lengths = scale[features]
            reach = np.asarray(up(extent / lengths, 4))
            far = np.abs(p) + reach[:, None]
            errors = kernel_errors(subtraction_error(far, 1), fixed, d, far)
        return Sections(p, fixed, errors, lengths, reach, float(variance))

    def batch(
        self, index: Annotated[np.ndarray, "B"], backend: Backend
    ) -> SquaredExponentialSections:
        """The kernel on the sections `index` (B,), one per cell of a batch."""
        lengths = self.lengths[index][:, None]
        unit = power_of_two(lengths)
        points = backend.asarray(self.points[index])
        norms = up(abs(points), 4)  # p carries two roundings
        return SquaredExponentialSections(
            inverse_length=backend.asarray(inverse_lengths(lengths)),
            squared_lengths=backend.asarray(up((unit / lengths) ** 2, 4)),
            unit=backend.asarray(unit),
            variance=self.variance,
            origin=backend.asarray(np.zeros(1)),
            lengths=backend.asarray(lengths),
            points=points,
            point_norms=norms,
            fixed_distances=backend.asarray(self.fixed[index]),
            relative_error=backend.asarray(self.errors[index]),
            reach=float(self.reach[index].max(initial=0.0)),
            direct=True,
            extents=up(norms + backend.asarray(self.reach[index][:, None]), 2),
        )


@dataclass(frozen=True, eq=False)
class SquaredExponentialSections(LocalSquaredExponential):
    """The table of `squared_exponential` with a row of points, fixed distances and errors per cell.

    Bound to one batch: every batch of cells that it is asked about has its B sections, in order.
    `points`, `point_norms`, `fixed_distances`, `relative_error` and `extents` (|p| + reach) are
    (B, N); `inverse_length`, `squared_lengths`, `unit` and `lengths` (B, 1).
    """

    extents: Array = None

    def values(self, scaled: Annotated[Array, "B f"]) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        distances = (self.points - scaled) ** 2
        exponent = -0.5 * (distances + self.fixed_distances)
        return distances, self.variance * namespace(scaled).exp(exponent)

    def squared_sizes(self, K: PerCellAndPoint) -> tuple[PerOrder, PerOrder]:
        """The sums of the parent, cell by cell."""
        xp = namespace(K)
        extent2, square = self.extents**2, K**2
        wrong = square * self.relative_error**2
        largest = (1.0 + xp.max(self.relative_error, axis=1)) ** 2
        sums, errors = [], []
        for _ in range(3):
            sums.append(xp.sum(square, axis=1) * largest)
            errors.append(xp.sum(wrong, axis=1))
            square, wrong = square * extent2, wrong * extent2
        N = K.shape[1]
        first, second = (up(xp.stack(part, axis=1), N + 16) for part in (sums, errors))
        return first + self.floor * N, second + self.floor * N

    def restricted_to(self, index: Annotated[Array, "i"]) -> None:
        """Every cell has a table of its own: nothing to be shared."""
        del index

    def moments_and_cubes(
        self, coefficients: PerCellAndPoint, scaled: Array
    ) -> tuple[tuple[Array, Array, Array], Cubes]:
        """`sum_i a_bi (1, u_bi, u_bi^2)`, u = p - c, and of u_bi^3, all about the centre itself."""
        xp = namespace(coefficients)
        u, terms, sums = self.points - scaled, coefficients, []
        for _ in range(4):
            sums.append(xp.sum(terms, axis=1))
            terms = terms * u
        zeroth, first, second, third = sums
        return (zeroth, first[:, None], second[:, None, None]), (third[:, None], 0.0 * scaled)

    @cached_property
    def _largest_extent(self) -> float:
        return float(namespace(self.extents).max(self.extents))

    def terms(self, K: PerCellAndPoint, weights: Array) -> tuple[PerCellAndPoint, PerOrder]:
        """As in the parent, with each cell's own points."""
        xp, N = namespace(K), K.shape[1]
        coefficients = K * weights
        term = xp.abs(coefficients) * (gamma(N + 34) + self.relative_error)
        columns = []
        for _ in range(4):
            columns.append(xp.sum(term, axis=1))
            term = term * self.extents
        return coefficients, up(xp.stack(columns, axis=1), N + 16)

    def center_values(
        self, expansion: WeightedExpansion, weights: Annotated[Array, "m N"]
    ) -> tuple[Annotated[Array, "B m"], Annotated[Array, "B m"]]:
        """As in the parent, with errors cell by cell."""
        xp, N, sizes = namespace(expansion.K), expansion.K.shape[1], abs(weights)
        terms = expansion.K * (gamma(N + 34) + self.relative_error)
        errors = up(terms @ sizes.T, N + 16) + self.floor * xp.sum(sizes, axis=1)
        return expansion.K @ weights.T, errors

    def derivative_parts(self, expansion: WeightedExpansion, cells: int) -> Iterator[Derivatives]:
        """All at once: every cell has points of its own."""
        del cells
        yield self.derivatives(expansion)

    def derivatives(self, expansion: WeightedExpansion) -> Annotated[Array, "B 1 N"]:
        """(B, 1, N): `k_i (p_i - c)`."""
        return (expansion.K * (self.points - expansion.scaled))[:, None, :]

    def second_derivatives(self, expansion: WeightedExpansion) -> Annotated[Array, "B 1 N"]:
        """(B, 1, N): `k_i (p_i - c)^2`."""
        return (expansion.K * (self.points - expansion.scaled) ** 2)[:, None, :]

    def paper_bound(
        self,
        expansion: WeightedExpansion,
        weights: Annotated[Array, "N"],
        slope: Array | None = None,
    ) -> Annotated[Array, "B"]:
        """`-s^2 sum max(-t_i, 0) exp(-F_i/2)`, as `0 <= k <= s^2 exp(-F/2)` on the whole section.

        The paper's own lines, which pay on large cells of several features, are not formed here.
        """
        assert slope is None, "models with a trend have no sections"
        xp = namespace(expansion.K)
        # errors of F and of exp: relative_error covers both, as k itself has them
        caps = self.variance * xp.exp(-0.5 * self.fixed_distances) * (1.0 + self.relative_error)
        total = caps @ nonnegative(-weights)
        return -up(total + self.floor * float(xp.sum(xp.abs(weights))), len(weights) + 16)

    def slice_norm(self, weights: Annotated[np.ndarray, "N"]) -> float | None:
        """Norms differ between sections; that over all features holds on each of them."""
        return None
