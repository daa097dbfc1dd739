"""What turns latent Gaussians into predictions, and what the engine asks of it.

For one latent value `f ~ N(mu, v)` the prediction is `F(mu, v) = E[link(f)]`. The engine needs
three certified things of F: its value, and its smallest and largest value on a segment
`{(alpha + beta v, v) : v_low <= v <= v_high}` of the (mu, v) plane: the paper's monotone bound with
`beta = 0`; with the slope of F's level curve only what that curve bends is lost.

With m classes only the n = m - 1 differences `d_k = f_k - f_0` of the latent values matter. For
`d ~ N(a, L L^T)` the class probabilities are `pi_c = E link_c(d)`, c = 0..m-1.

Proofs: docs/mathematics.md, statements 8.2, 8.6 and 9.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.functions import Curve
from gpcert.integrals.moments import ClassMoments, IndependentMoments
from gpcert.numerics.arrays import Array, Gaps, PerCell, PerCellAndClass, PerOrder, Reals, namespace
from gpcert.numerics.rounding import TINY, U


class Likelihood(ABC):
    """What every likelihood has: a name and parameters. Subclasses are frozen records."""

    name: ClassVar[str]
    """Key of the registry; written to saved posteriors."""

    classifies: ClassVar[bool] = False
    """Whether the prediction is one of classes."""

    has_variance: ClassVar[bool] = True
    """Whether the latent variance means something: a support vector machine has a mean only, and
    neither variances nor probabilities."""

    curve: Curve | None = None
    """The increasing function h that a regression's target is of its latent value, h(f); None where
    there is none."""

    advice: str = ""
    """What may have been forgotten where classes are asked for and there are none, for errors."""

    def config(self) -> dict[str, Any]:
        """Parameters from which the registry rebuilds this likelihood."""
        return {}

    def identity(self) -> dict[str, Any]:
        """What tells it from others of its name, for fingerprints of models: its parameters."""
        return self.config()


class ScalarLikelihood(Likelihood):
    """A prediction `F(mu, v)` from one latent output that does not decrease in mu.

    One that `classifies` has two classes, and F is the probability of the second.
    """

    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Bounds of F for all mu and v."""

    symmetric: ClassVar[bool] = False
    """Whether `F(mu, v) + F(-mu, v)` is the same for all mu and v: by default classes are then
    decided by the sign of mu, as scikit-learn's `predict` does. See `fair` for what F says."""

    @property
    def fair(self) -> bool:
        """Whether it is proved that F > 1/2 exactly where mu > 0."""
        return False

    @abstractmethod
    def value(self, mu: Reals, v: Reals) -> Reals:
        """`F(mu, v)` in plain floating point, for searching and plotting; proves nothing."""

    @abstractmethod
    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Approximate partial derivatives `(F_mu, F_v)`; guides choices, proves nothing."""

    def level_slope(self, mu: Reals, v: Reals) -> Reals:
        """Approximate `d mu / d v = -F_v / F_mu` along the level curve; 0 where F is saturated."""
        by_mu, by_v = self.slopes(mu, v)
        xp = namespace(by_mu)
        usable = by_mu > TINY
        slope = -by_v / xp.where(usable, by_mu, xp.ones_like(by_mu))
        return xp.where(usable, slope, xp.zeros_like(slope))

    @abstractmethod
    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Certified `lower <= F(mu, v) <= upper` for the exact float64 arguments, v >= 0."""

    @abstractmethod
    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Certified lower bound of `min F(alpha + beta v, v)` over `v_low <= v <= v_high`."""

    @abstractmethod
    def line_maximum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Certified upper bound of `max F(alpha + beta v, v)` over `v_low <= v <= v_high`."""


class ResponseLikelihood(ScalarLikelihood):
    """A regression whose prediction F(mu, v), the mean of the target, is another function than mu:
    verbs ask for it (`quantity="response"`) by default. `range` bounds it for all mu and v."""

    by_variance: ClassVar[bool] = True
    """Whether F depends on v."""


class BinaryLikelihood(ScalarLikelihood):
    """Probability of the positive class for a link with `link(-f) = total - link(f)`.

    By the symmetry of the Gaussian, `F(-mu, v) = total - F(mu, v)`: one side of every bound is
    written once and the other follows by reflection.
    """

    classifies: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    symmetric: ClassVar[bool] = True

    total: ClassVar[float] = 1.0
    """`F(mu, v) + F(-mu, v)`, rounded, at most 1; `line_maximum` accounts for its rounding."""

    total_error: ClassVar[float] = 0.0
    """Bound on the rounding error of `total`; 0 or 2^-53: then `total + total_error` is exact."""

    @property
    def fair(self) -> bool:
        """Whether `total` is exactly 1.

        Reason: `F(0, v) = total / 2` by the reflection, and `F(mu, v) > F(0, v)` for mu > 0, as
        links increase at 0. scikit-learn's own link has a total below 1: there F(0, v) < 1/2.
        """
        return self.total == 1.0 and self.total_error == 0.0

    def line_maximum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """`max F(a + b v, v) = total - min F(-a - b v, v)`, rounded up and clipped at `total`."""
        flipped = self.line_minimum(-alpha, -beta, v_low, v_high)
        # the subtraction of numbers in [0, 1] and the sum err by at most 2^-54 and 2^-53
        upper = (self.total - flipped) + (self.total_error + 2.0 * U)
        return namespace(upper).clip(upper, None, self.total + self.total_error)


LARGEST_LATENT = 2.0**500
"""Largest |mu| and v accepted by `enclose`: nothing that is computed from them overflows."""

LARGEST_SEGMENT = 2.0**200
"""Largest |alpha|, |beta| and v of a segment: `beta^2 (v_high - v_low)^2` does not overflow."""


def _doubles(*arrays: Reals) -> list[Array]:
    """The arrays in one shape and in float64: of whole numbers and single precision, roundings
    would be larger than those counted, and there is no infinite score."""
    xp = namespace(*arrays)
    return [xp.astype(x, xp.float64, copy=False) for x in xp.broadcast_arrays(*arrays)]


def check_latent(mu: Reals, v: Reals) -> tuple[Reals, Reals]:
    """Broadcast `mu` and `v` to one shape of float64; an `InputError` unless both are finite and
    v >= 0."""
    mu, v = _doubles(mu, v)
    xp = namespace(mu)
    # written so that NaN fails every comparison
    good = (abs(mu) <= LARGEST_LATENT) & (v >= 0.0) & (v <= LARGEST_LATENT)
    if not bool(xp.all(good)):
        raise InputError(
            "mu, v: expected finite numbers up to 2^500 with v >= 0, got NaN, infinite, too large "
            "or negative ones; check the latent mean and variance that were passed"
        )
    return mu, v


def check_segment(
    alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals
) -> tuple[Reals, Reals, Reals, Reals]:
    """Broadcast the four arrays to one shape of float64; an `InputError` unless they describe
    segments."""
    alpha, beta, v_low, v_high = _doubles(alpha, beta, v_low, v_high)
    xp = namespace(alpha)
    good = (abs(alpha) <= LARGEST_SEGMENT) & (abs(beta) <= LARGEST_SEGMENT)
    good = good & (v_low >= 0.0) & (v_low <= v_high) & (v_high <= LARGEST_SEGMENT)
    if not bool(xp.all(good)):
        raise InputError(
            "alpha, beta, v_low, v_high: expected finite numbers up to 2^200 with "
            "0 <= v_low <= v_high, got others (NaN, infinite, too large, negative or crossed); "
            "check the variance bounds and the slope that were passed"
        )
    return alpha, beta, v_low, v_high


def mean_lower(alpha: Reals, beta: Reals, v: Reals) -> Reals:
    """A float <= the real number `alpha + beta v`; negate alpha and beta for an upper bound.

    Reason: the product and the sum err by at most `2.01 U (|alpha| + |beta v|)` and an underflow,
    the subtraction below by at most `1.01 U` of the same.
    """
    product = beta * v
    return (alpha + product) - ((abs(alpha) + abs(product)) * (4.0 * U) + TINY)


def monotone_minimum(
    likelihood: BinaryLikelihood, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals
) -> Reals:
    """Certified lower bound of F on segments from monotonicity alone: first order, never absurd.

    Statement: `F(alpha + beta v, v) >= F(m, w)` with `m = min(alpha + beta v)` over the segment and
    `w = v_high` if m > 0, else `w = v_low`.
    Reason: F_mu is symmetric and unimodal, and `F_v = F_mumu / 2` (Statement 8.2).
    Reference: Wintner 1938, "Asymptotic distributions and infinite convolutions"; Dharmadhikari
    & Joag-dev 1988, *Unimodality, Convexity, and Applications*, Theorem 1.6.

    >>> import numpy as np
    >>> from gpcert.likelihoods import Probit
    >>> one, zero = np.array([1.0]), np.array([0.0])
    >>> round(float(monotone_minimum(Probit(), one, zero, zero, 3.0 * one)[0]), 6)
    0.691462
    """
    xp = namespace(alpha, beta, v_low, v_high)
    m = xp.minimum(mean_lower(alpha, beta, v_low), mean_lower(alpha, beta, v_high))
    lower, _ = likelihood.enclose(m, xp.where(m > 0.0, v_high, v_low))
    return lower


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
