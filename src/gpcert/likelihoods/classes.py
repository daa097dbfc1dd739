"""Likelihoods of several classes: what the engine asks of them.

With m classes only the n = m - 1 differences `d_k = f_k - f_0` of the latent values matter. For
`d ~ N(a, L L^T)` the class probabilities are `pi_c = E link_c(d)`, c = 0..m-1.

Proofs: docs/mathematics.md, statement 9.1.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np

from gpcert.arrays import Array, Gaps, PerCell, PerCellAndClass, PerOrder
from gpcert.integrals.moments import ClassMoments, IndependentMoments
from gpcert.likelihoods.base import BinaryLikelihood, Likelihood


class ClassLikelihood(Likelihood):
    """Probabilities of m >= 2 classes from m latent values, each an output, or a sum of outputs
    with mixing weights (`mixed`). Subclasses are frozen records.

    The links lie in [0, 1], add up to 1, are log-concave, and link_c does not increase in
    `d_k - d_c` for any k.
    """

    classifies: ClassVar[bool] = True

    highest_order: ClassVar[int] = 4
    """Largest order of the derivatives that `moments` gives."""

    largest_coupled: ClassVar[int]
    """Most classes for which `moments` are known."""

    noise: float
    """Variance that the likelihood itself adds to every latent output; its link is applied to the
    sum. 0 for the softmax."""

    mixes: bool = False
    """Whether the classes' latent values are sums of outputs, not outputs themselves."""

    def mixed(self, outputs: int) -> Annotated[np.ndarray, "m J"]:
        """(m, J): the latent values of the m classes as sums of the J outputs; the identity, or
        weights on a grid, so that differences of them are exact."""
        return np.eye(outputs)

    @property
    @abstractmethod
    def pair(self) -> BinaryLikelihood:
        """The likelihood between two classes alone: `P(k rather than c) = pair(f_k - f_c)`, noise
        of both included in the variance."""

    @abstractmethod
    def link_bound(self, order: int) -> float:
        """Upper bound of the order-th derivative (1..6) of every link along a direction u with
        `max_k u_k - min_k u_k <= 1` (u_0 = 0 for the reference class); infinite for a step."""

    def joint_range(
        self, wins: tuple[Array, Array], correlation: tuple[PerCell, PerCell]
    ) -> tuple[Array, Array] | None:
        """Certified range of the probability that a class beats two others, from the ranges `wins`
        (B, 2) of the probabilities to beat each of them and that of the correlation (B,) of the two
        latent differences, noise included; None where no more is known than for any two events."""
        del wins, correlation
        return None

    @abstractmethod
    def moments(self, a: Gaps, L: Array, order: int) -> ClassMoments:
        """Certified moments for a (B, n) and lower triangular L (B, n, n), noise included, with
        derivatives up to `order` (0..highest_order)."""

    @abstractmethod
    def independent_moments(
        self, mu: PerCellAndClass, v: PerCellAndClass, weights: Array
    ) -> IndependentMoments:
        """Certified moments of `sum_c weights_c pi_c` for independent outputs with means and
        variances (B, m), the likelihood's noise not yet added; its time is O(m^2) at most."""

    @abstractmethod
    def products(
        self, value: PerCell, gradient: PerCellAndClass, errors: PerOrder, c: int
    ) -> tuple[PerCellAndClass, PerCell]:
        """The means (B, m) of `link_c link_k`, and a bound (B,) of the error of each, from the mean
        of link_c and its gradient in the latent means, known up to `errors` (B, 2 or more)."""

    @abstractmethod
    def probabilities(
        self, mean: np.ndarray, covariance: np.ndarray
    ) -> Annotated[np.ndarray, "n m"]:
        """(n, m) class probabilities for means (n, J) and covariances (n, J, J) of the outputs, in
        plain floating point; proves nothing."""
