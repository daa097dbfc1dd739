"""What some kernels know besides what every `LocalKernel` does: one small interface each.

A class that can do it derives from the interface; whoever needs it asks by `isinstance`, and does
without where the kernel has it not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from gpcert.kernels.expansions.base import (
    Combination,
    Expansion,
    FormFunction,
    LinearModel,
    LocalKernel,
    SecondDegree,
)
from gpcert.numerics.arrays import Array, Inputs, PerCell, PerCellAndFeature, PerCellMatrix, Points

if TYPE_CHECKING:
    from gpcert.kernels.expansions.squared_exponential_sections import Sections


class FirstOrderModels(ABC):
    """Models of first order that are much cheaper than `LocalKernel.model`."""

    @abstractmethod
    def linear_models(
        self, expansion: Any, functions: Sequence[Combination]
    ) -> list[LinearModel] | None:
        """The first order alone of functions with weights (N,); None for cells on which it is not
        cheaper."""


class OrthogonalDegrees(ABC):
    """Features whose degrees are orthogonal at the centre."""

    @abstractmethod
    def second_degree(self, expansion: Any, pairs: tuple[int, ...] | None = None) -> SecondDegree:
        """The parts of degree one and two of Psi at the centres; of degree two only some `pairs` of
        features, if these are given."""


class QuadraticForms(ABC):
    """Quadratic forms of the kernel's values as polynomials."""

    @abstractmethod
    def form_polynomial(
        self, expansion: Any, W: Annotated[Array, "N N"], norm: float
    ) -> tuple[tuple[PerCell, PerCellAndFeature, PerCellMatrix], PerCell]:
        """Value, gradient and Hessian (at d = 0) of a polynomial of degree 2, and by how much it
        may differ (B,) from `omega^2 k(x, Z) W k(Z, x)` on the cells, rounding included.

        W (N, N) is symmetric and meant as it is stored; `norm` bounds `sqrt(trace(W K W K))`, K the
        kernel at the points.
        """

    @abstractmethod
    def monotone_signs(self, expansion: Any, function: FormFunction) -> Annotated[Array, "f"]:
        """(f,): 1 where the function, weighted, rises on the one cell of the expansion, -1 where it
        falls, 0 where that is not known or the cell has no width."""


class Restrictable(ABC):
    """Kernels that may be bound to some of their points, for functions that use no others."""

    @abstractmethod
    def restricted_to(self, index: Annotated[Array, "i"]) -> LocalKernel[Any]:
        """The kernel with some of its points."""

    @abstractmethod
    def restricted_expansion(self, expansion: Any, index: Annotated[Array, "i"]) -> Expansion:
        """The expansion of all points as one of `restricted_to(index)`, this kernel."""


class SliceNorms(ABC):
    """Norms of functions on a region that fixes some features."""

    @abstractmethod
    def slice_norm(self, weights: Annotated[np.ndarray, "N"]) -> float | None:
        """Upper bound of the RKHS norm of `x -> sum_i t_i k(x, z_i)` on the free coordinates; None
        where nothing better than the norm over all coordinates is known."""


class SectionKernel(ABC):
    """Kernels (not local ones) that are known on many sections `x + t e_j` at once."""

    @abstractmethod
    def sections(
        self,
        points: Points,
        X: Inputs,
        sections: tuple[np.ndarray, np.ndarray],
        extent: np.ndarray,
    ) -> Sections:
        """On the sections `x + t e_j`, (rows of X, features j) = `sections`, for `|t| <= extent`
        (Q,)."""
