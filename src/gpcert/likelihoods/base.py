"""What turns a latent Gaussian into a prediction, and its certified minimum along a line.

For a latent value `f ~ N(mu, v)` the prediction is `F(mu, v) = E[link(f)]`. The engine needs three
certified things of F: its value, and its smallest and largest value on a segment
`{(alpha + beta v, v) : v_low <= v <= v_high}` of the (mu, v) plane. With `beta = 0` the segment
form is the paper's monotone bound (Propositions on probit and logistic); with beta the slope of the
level curve of F it is the threshold form, which loses only what the level curve bends.

Proofs: docs/mathematics.md, statement 8.6.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from gpcert.arrays import Reals, namespace
from gpcert.rounding import TINY


class Likelihood(ABC):
    """What every likelihood has: a name and parameters. Subclasses are frozen records."""

    name: ClassVar[str]
    """Key of the registry; written to saved posteriors."""

    classifies: ClassVar[bool] = False
    """Whether the prediction is one of classes."""

    has_variance: ClassVar[bool] = True
    """Whether the latent variance means something: a support vector machine has a mean only, and
    neither variances nor probabilities."""

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


class BinaryLikelihood(ScalarLikelihood):
    """Probability of the positive class for a link with `link(-f) = total - link(f)`.

    By the symmetry of the Gaussian, `F(-mu, v) = total - F(mu, v)`: one side of every bound is
    written once and the other follows by reflection.
    """

    classifies: ClassVar[bool] = True
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
        upper = (self.total - flipped) + (self.total_error + 2.0**-52)
        return namespace(upper).clip(upper, None, self.total + self.total_error)
