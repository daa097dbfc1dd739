"""The softmax likelihood: class probabilities `E softmax_c(f)`, f Gaussian.

Proofs: docs/mathematics.md, statement 9.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.integrals.gumbel import gumbel_moments
from gpcert.integrals.moments import ClassMoments, IndependentMoments
from gpcert.integrals.plain_probabilities import expected_softmax
from gpcert.integrals.softmax_moments import LARGEST_GRID_DIMENSION, softmax_moments
from gpcert.likelihoods.base import BinaryLikelihood, ClassLikelihood
from gpcert.likelihoods.logistic import Logistic
from gpcert.numerics.arrays import (
    Array,
    Gaps,
    PerCell,
    PerCellAndClass,
    PerOrder,
    finite_array,
    namespace,
)
from gpcert.numerics.rounding import U, on_grid, up

LARGEST_WEIGHT = 2.0**100
"""Largest mixing weight in size, and one over the smallest that may be the largest: squares of
differences, at least 2^-300, neither overflow nor underflow."""


@dataclass(frozen=True)
class Softmax(ClassLikelihood):
    """`pi_c = E[exp(f_c) / sum_k exp(f_k)]` for Gaussian latent values f.

    `mixing` (m rows of J numbers): `f = mixing u` for J independent outputs u; None for f = u. The
    weights are stored on a common grid, so that their differences are exact.

    `link_bounds`: along u with `max_k u_k - min_k u_k <= 1`, the j-th derivative of
    `t -> softmax_c(f + t u)` is at most `link_bounds[j - 1]` in size, j = 1..6 (Statement 9.5).
    Reason: polynomials that the tests bound for j <= 3; for j >= 4 an average over the edge of a
    strip by its harmonic measure (Widder 1961, "Functions harmonic in a strip").

    >>> Softmax().probabilities(np.zeros((1, 3)), np.eye(3)[None]).round(4).tolist()
    [[0.3333, 0.3333, 0.3333]]
    >>> Softmax([[1.0], [-1.0]]).mixed(1).tolist()
    [[1.0], [-1.0]]
    """

    mixing: Any = None

    name: ClassVar[str] = "softmax"
    link_bounds: ClassVar[tuple[float, ...]] = (0.25, 0.096226, 0.12501, 0.27545, 0.46526, 0.93979)

    largest_coupled: ClassVar[int] = LARGEST_GRID_DIMENSION + 1

    noise: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.mixing is None:
            return
        weights = finite_array("mixing", self.mixing, ndim=2)
        largest = float(np.abs(weights).max(initial=0.0))
        if len(weights) < 2 or not 1.0 / LARGEST_WEIGHT <= largest <= LARGEST_WEIGHT:
            raise InputError(
                f"mixing: expected weights of shape (classes, outputs), two classes or more, the "
                f"largest between 2^-100 and 2^100 in size, got shape {weights.shape} and {largest}"
            )
        rows = tuple(map(tuple, on_grid(weights).tolist()))
        object.__setattr__(self, "mixing", rows)

    def __repr__(self) -> str:
        return "Softmax()" if self.mixing is None else f"Softmax(mixing={self.config()['mixing']})"

    def config(self) -> dict[str, Any]:
        return {} if self.mixing is None else {"mixing": [list(row) for row in self.mixing]}

    @property
    def mixes(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.mixing is not None

    def mixed(self, outputs: int) -> Annotated[np.ndarray, "m J"]:
        if self.mixing is None:
            return np.eye(outputs)
        weights = np.asarray(self.mixing)
        if weights.shape[1] != outputs:
            raise InputError(
                f"mixing: expected {outputs} weights per class, one per output, "
                f"got {weights.shape[1]}"
            )
        return weights

    @property
    def pair(self) -> BinaryLikelihood:
        """Two classes alone: the logistic function of the difference."""
        return Logistic()

    def link_bound(self, order: int) -> float:
        if not 1 <= order <= len(self.link_bounds):
            raise InputError(f"link_bound: expected an order in 1..6, got {order}")
        return self.link_bounds[order - 1]

    def moments(self, a: Gaps, L: Array, order: int) -> ClassMoments:
        """`softmax_moments`: for at most `largest_coupled` classes."""
        return softmax_moments(a, L, order)

    def independent_moments(
        self, mu: PerCellAndClass, v: PerCellAndClass, weights: Array
    ) -> IndependentMoments:
        """`gumbel_moments`: one-dimensional integrals of products over the classes."""
        return gumbel_moments(mu, v, weights)

    def products(
        self, value: PerCell, gradient: PerCellAndClass, errors: PerOrder, c: int
    ) -> tuple[PerCellAndClass, PerCell]:
        """`d softmax_c / d f_k = softmax_c ([k = c] - softmax_k)`, and so on average."""
        indicator = namespace(value).asarray(np.eye(gradient.shape[1])[c], device=value.device)
        error = up(errors[:, 0] + errors[:, 1] + 2.0 * U, 4)  # both are at most one
        return indicator * value[:, None] - gradient, error

    def probabilities(
        self, mean: np.ndarray, covariance: np.ndarray
    ) -> Annotated[np.ndarray, "n m"]:
        """`softmax_moments` for few classes, whose covariance is regular; else `expected_softmax`.

        A singular covariance of the differences is raised by 1e-9 of its size: this is no proof.
        """
        mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
        if self.mixing is not None:
            weights = self.mixed(mean.shape[1])
            mean, covariance = mean @ weights.T, weights @ covariance @ weights.T
        if not 2 <= mean.shape[1] <= self.largest_coupled or len(mean) == 0:
            return expected_softmax(mean, covariance)
        d = mean[:, 1:] - mean[:, :1]
        V = covariance[:, 1:, 1:] - covariance[:, :1, 1:] - covariance[:, 1:, :1]
        values, vectors = np.linalg.eigh(V + covariance[:, :1, :1])
        least = np.maximum(1e-9 * values[:, -1:], 1e-12)
        raised = (vectors * np.maximum(values, least)[:, None]) @ np.swapaxes(vectors, 1, 2)
        means = softmax_moments(d, np.linalg.cholesky(raised), 0).value
        return means / means.sum(axis=1, keepdims=True)
