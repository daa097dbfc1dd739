"""The paper's bounded decomposition: k(x, z_i) between functions affine in carriers phi(x, z_i).

A `Carrier` is a function phi(x, z_i) whose weighted sums over i have an exact minimum over a box
(the paper's U): a separable quadratic, a sum of sinusoids, a linear function. A leaf kernel is
psi(phi); a line under and over psi on the range of phi gives

    intercept_i + slope_i phi(x, z_i) <= k(x, z_i) <= intercept'_i + slope'_i phi(x, z_i).

Sums add such functions, products combine them by McCormick's inequality, so a composed kernel is
enclosed by functions affine in several carriers at once. Reference: Patane et al., Section 5.1 and
Propositions "sum" and "product", with the corrections of Statement 12.10.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from gpcert.arrays import Array, PerCell, PerCellAndPoint


class Carrier(ABC):
    """phi(x, z_i) on a batch of cells."""

    @abstractmethod
    def minimum(self, coefficients: PerCellAndPoint) -> PerCell:
        """Certified lower bound (B,) of `min_x sum_i a_bi phi(x, z_i)` over each cell, a (B, N).

        Exact up to rounding: this is `-U(-a)` of the paper.
        """

    @abstractmethod
    def magnitude(self) -> PerCellAndPoint:
        """Upper bound (B, N) of `|phi(x, z_i)|` over each cell."""


@dataclass(frozen=True, eq=False)
class Affine:
    """`intercept_bi + sum_m slopes[m]_bi phi_m(x, z_i)`, arrays (B, N)."""

    intercept: Array
    slopes: tuple[tuple[Carrier, Array], ...]


@dataclass(frozen=True, eq=False)
class Enclosed:
    """For all x of cell b: `low <= k(x, z_i) <= high` and `under <= k(x, z_i) <= over`.

    The floats of `under` and `over` are taken as exact: whoever makes them rounds intercepts
    outwards.
    """

    low: Array
    high: Array
    under: Affine
    over: Affine
