"""Which outputs of the searched model make up the latent differences and their covariance.

Proofs: docs/mathematics.md, statements 9.1, 10.1 and 10.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpcert.likelihoods import ClassLikelihood
from gpcert.model.multi_output import Outputs
from gpcert.model.posterior import Posterior
from gpcert.numerics.rounding import U

Terms = tuple[tuple[int, float], ...]
"""Outputs and their coefficients; never empty."""


@dataclass(frozen=True, eq=False)
class ClassLayout:
    """Latent differences `d_k = f_k - f_0`, k = 1..n, and their covariance V, from outputs.

    With the outputs' means mu_j and variances y_j

        mean of f_l - f_k = sum_j c_j mu_j,     cov(f_k - f_c, f_l - f_c) = sum_j s_j y_j,

    c from `pair(k, l)`, s from `covariance(c, k, l)`, so `V = sum_j y_j matrices_j`. The variance
    of a difference of two classes is `sum_j c_j^2 y_j`.

    Independent outputs u with `f = mixing u`: c is a difference of two rows of `mixing` (m, J), and
    s the product of two such. The rows lie on a grid, so that differences are exact; products round
    once, a relative error of at most `rounding`. Without mixing weights it is the identity.
    Coupled outputs (`mixing` is None): the searched posterior is `Posterior.differences`, one
    output per pair with variance D_kl, and `cov = (D_ck + D_cl - D_kl) / 2`.
    """

    classes: int
    mixing: np.ndarray | None = None

    def same_as(self, other: ClassLayout) -> bool:
        """Whether both are of the same classes, made up of outputs in the same way."""
        if self.mixing is None or other.mixing is None:
            return self.classes == other.classes and self.mixing is other.mixing
        return np.array_equal(self.mixing, other.mixing)

    @property
    def n(self) -> int:
        """Number of differences."""
        return self.classes - 1

    @property
    def outputs(self) -> int:
        """Number of searched outputs J."""
        return self.classes * self.n // 2 if self.mixing is None else self.mixing.shape[1]

    @property
    def mean_outputs(self) -> int:
        """The first outputs, so many, whose means make up the differences `f_k - f_0`."""
        return self.n if self.mixing is None else self.outputs

    @cached_property
    def independent(self) -> bool:
        """Whether the latent values of the classes are independent: each is an output."""
        return self.mixing is not None and np.array_equal(self.mixing, np.eye(self.classes))

    @property
    def rounding(self) -> float:
        """Relative error of the coefficients of covariances."""
        return 0.0 if self.mixing is None or self.independent else 1.01 * U

    def pair(self, first: int, second: int) -> Terms:
        """Outputs and coefficients whose sum is `f_second - f_first`.

        >>> ClassLayout(3, np.eye(3)).pair(0, 2)
        ((0, -1.0), (2, 1.0))
        >>> ClassLayout(2, np.array([[0.5, 0.0], [2.0, -3.0]])).pair(0, 1)
        ((0, 1.5), (1, -3.0))
        >>> ClassLayout(3).pair(2, 1)
        ((2, -1.0),)
        """
        if self.mixing is None:
            return ((self._number(first, second), 1.0 if first < second else -1.0),)
        return _terms(self.mixing[second] - self.mixing[first])

    def covariance(self, c: int, k: int, other: int) -> Terms:
        """Outputs and coefficients whose variances add up to `cov(f_k - f_c, f_other - f_c)`.

        >>> ClassLayout(3, np.eye(3)).covariance(0, 1, 2)
        ((0, 1.0),)
        >>> ClassLayout(3).covariance(0, 1, 2)
        ((0, 0.5), (1, 0.5), (2, -0.5))
        """
        if self.mixing is not None:
            coefficient = self.mixing[c]
            return _terms((self.mixing[k] - coefficient) * (self.mixing[other] - coefficient))
        if k == other:
            return ((self._number(c, k), 1.0),)
        pairs = (((c, k), 0.5), ((c, other), 0.5), ((k, other), -0.5))
        return tuple((self._number(*pair), factor) for pair, factor in pairs)

    def _number(self, first: int, second: int) -> int:
        """Of the output that is the difference of two classes."""
        low, high = min(first, second), max(first, second)
        return low * self.classes - low * (low + 1) // 2 + high - low - 1

    @cached_property
    def matrices(self) -> np.ndarray:
        """(J, n, n): what every output's variance contributes to V."""
        covariances = np.zeros((self.outputs, self.n, self.n))
        for k in range(self.n):
            for other in range(self.n):
                for j, factor in self.covariance(0, k + 1, other + 1):
                    covariances[j, k, other] = factor
        return covariances

    @property
    def ranks(self) -> np.ndarray:
        """(J,): ranks of `matrices`, or more: 1 for independent outputs, else at most 2."""
        return np.full(self.outputs, 2.0 if self.mixing is None else 1.0)


def _terms(coefficients: np.ndarray) -> Terms:
    """Those that are not 0; one 0 where all are."""
    numbers = np.flatnonzero(coefficients)
    terms = tuple((int(j), float(coefficients[j])) for j in numbers)
    return terms or ((0, 0.0),)


def class_layout(model: Outputs) -> tuple[ClassLayout, Outputs]:
    """The layout of a classifier of several classes, and the model that is searched."""
    likelihood = model.likelihood
    assert isinstance(likelihood, ClassLikelihood), "of several classes"
    mixing = likelihood.mixed(model.outputs)
    return ClassLayout(len(mixing), None if model.coupled else mixing), searched(model)


def searched(model: Outputs) -> Outputs:
    """What is searched for a decision: the differences of coupled classes, or the model."""
    if not isinstance(model.likelihood, ClassLikelihood) or not isinstance(model, Posterior):
        return model
    return model.differences if model.coupled else model
