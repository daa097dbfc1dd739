"""The likelihood between two classes whose noise is already in the variance: a step.

Proofs: docs/mathematics.md, statement 8.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpcert.arrays import Array, namespace
from gpcert.integrals.gaussian_integral import score
from gpcert.integrals.special import normal_cdf, normal_cdf_bounds, normal_pdf
from gpcert.likelihoods.base import BinaryLikelihood
from gpcert.likelihoods.segments import check_latent, check_segment, mean_lower
from gpcert.rounding import TINY, down, nonnegative, up


@dataclass(frozen=True)
class StepLink(BinaryLikelihood):
    """`F(mu, v) = P(f > 0) = Phi(mu / sqrt(v))` for `f ~ N(mu, v)`, v > 0.

    At v = 0 it is the step itself, 1/2 at mu = 0.

    >>> import numpy as np
    >>> round(float(StepLink().value(np.array([2.0]), np.array([4.0]))[0]), 6)
    0.841345
    """

    name: ClassVar[str] = "step"

    def value(self, mu: Array, v: Array) -> Array:
        return normal_cdf(mu / _root(v))

    def slopes(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """`phi(z) / sqrt(v)` and `-phi(z) z / (2 v)`; z is cut at 35 within phi, as in `Probit`."""
        root = _root(v)
        z = mu / root
        by_mu = normal_pdf(namespace(z).clip(z, -35.0, 35.0)) / root
        return by_mu, by_mu * z / (-2.0 * root)

    def enclose(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """Phi of the score rounded down and up; Phi is increasing. The score of mu = 0 is 0."""
        mu, v = check_latent(mu, v)
        xp = namespace(mu)
        ends = [xp.where(mu == 0.0, mu, end) for end in score(mu, v)]
        return normal_cdf_bounds(ends[0])[0], normal_cdf_bounds(ends[1])[1]

    def line_minimum(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        """Phi of the exact minimum of the score on the segment, rounded down.

        As for `Probit`, with alpha in the place of alpha - beta and v of 1 + v (Statement 8.3).
        """
        alpha, beta, v_low, v_high = check_segment(alpha, beta, v_low, v_high)
        xp = namespace(alpha)
        z = xp.minimum(_end(alpha, beta, v_low), _end(alpha, beta, v_high))
        inside = (alpha > down(beta * v_low)) & (alpha < up(beta * v_high))
        inside = inside & (alpha > 0.0) & (beta > 0.0)
        roots = xp.sqrt(nonnegative(beta)) * xp.sqrt(nonnegative(alpha))
        z = xp.where(inside, xp.minimum(z, down(2.0 * roots, 3)), z)
        return normal_cdf_bounds(z)[0]


def _root(v: Array) -> Array:
    """`sqrt(v)`, kept from 0."""
    xp = namespace(v)
    return xp.sqrt(xp.clip(v, TINY, None))


def _end(alpha: Array, beta: Array, v: Array) -> Array:
    """A number <= `(alpha + beta v) / sqrt(v)`, maybe infinite."""
    return score(mean_lower(alpha, beta, v), v)[0]
