"""The squared exponential on many sections at once: every cell of a batch has a section of its own.

A *section* is a point x and one feature j: `x + t e_j`. There `k(x + t e_j, z_i)` is a factor that
does not change times the same kernel of one feature,

    k(x + t e_j, z_i) = s^2 exp(-F_i / 2) exp(-(p_i - t / l_j)^2 / 2),
    p_i = (z_ij - x_j) / l_j,     F_i = sum over the other features of ((z_i - x) / l)^2,

so all that `squared_exponential` knows of a region with one free feature holds on every section,
with its own p and F, and cells of all sections share their batches. A cell's one coordinate is t,
in the units of the feature.

Proofs: docs/mathematics.md, statements 1.2 and 15.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.kernels.expansions.base import inverse_lengths
from gpcert.kernels.expansions.exponentials import kernel_errors, subtraction_error
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.kernels.expansions.squared_exponential_table import Cubes
from gpcert.numerics.arrays import Array, Backend, PerCellAndPoint, Points, namespace
from gpcert.numerics.rounding import up
from gpcert.regions.cells import power_of_two


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

        `kernel` are its length-scales (d,) and variance, `extent` (Q,) bounds |t|. Coordinates
        beyond float64 make a section of their own feature infinitely long, which `kernel_errors`
        refuses; among the fixed ones they make k zero, as it nearly is.
        """
        scale, variance = kernel
        rows, features = sections
        d, N = points.shape[1], len(points)
        p, fixed = np.empty((len(rows), N)), np.empty((len(rows), N))
        with np.errstate(over="ignore", invalid="ignore"):
            for row in np.unique(rows):
                here = np.flatnonzero(rows == row)
                scaled = (points - X[row]) / scale
                p[here] = scaled.T[features[here]]
                others = np.ones((len(here), d))
                others[np.arange(len(here)), features[here]] = 0.0
                fixed[here] = others @ np.square(scaled).T
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
        norms = up(abs(points), 6)  # p carries two roundings, its sum with the reach one
        return SquaredExponentialSections(
            inverse_length=backend.asarray(inverse_lengths(lengths)),
            squared_lengths=backend.asarray(up((unit / lengths) ** 2, 4)),
            unit=backend.asarray(unit),
            variance=self.variance,
            origin=backend.asarray(np.zeros(1)),
            lengths=backend.asarray(lengths),
            points=points[..., None],
            point_norms=norms,
            fixed_distances=backend.asarray(self.fixed[index]),
            relative_error=backend.asarray(self.errors[index]),
            reach=backend.asarray(self.reach[index][:, None]),
            direct=True,
        )


@dataclass(frozen=True, eq=False)
class SquaredExponentialSections(LocalSquaredExponential):
    """The table of `squared_exponential` with a row of points, fixed distances and errors per cell.

    Bound to one batch: every batch of cells that it is asked about has its B sections, in order.
    `points` are (B, N, 1), `point_norms`, `fixed_distances` and `relative_error` (B, N), `reach`,
    `inverse_length`, `squared_lengths`, `unit` and `lengths` (B, 1).
    """

    def moments_and_cubes(
        self, coefficients: PerCellAndPoint, scaled: Array
    ) -> tuple[tuple[Array, Array, Array], Cubes]:
        """`sum_i a_bi (1, u_bi, u_bi^2)`, u = p - c, and of u_bi^3, all about the centre itself."""
        xp = namespace(coefficients)
        u, terms, sums = self.points[..., 0] - scaled, coefficients, []
        for _ in range(4):
            sums.append(xp.sum(terms, axis=1))
            terms = terms * u
        zeroth, first, second, third = sums
        return (zeroth, first[:, None], second[:, None, None]), (third[:, None], 0.0 * scaled)
