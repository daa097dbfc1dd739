"""The probit likelihood, with the exact minimum along a line.

Proofs: docs/mathematics.md, statement 8.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpcert.arrays import Array, namespace
from gpcert.integrals.special import normal_cdf, normal_cdf_bounds, normal_pdf
from gpcert.likelihoods.base import BinaryLikelihood
from gpcert.likelihoods.segments import check_latent, check_segment, mean_lower
from gpcert.rounding import down, nonnegative, up

_SCORE_ROUNDINGS = 3  # mu / sqrt(1 + v): the sum (halved by the root), the root, the quotient


@dataclass(frozen=True)
class Probit(BinaryLikelihood):
    """`F(mu, v) = E Phi(f) = Phi(z)`, `z = mu / sqrt(1 + v)`, for `f ~ N(mu, v)`.

    Reference: Rasmussen & Williams 2006, eq. 3.82.

    >>> import numpy as np
    >>> Probit().value(np.array([0.0]), np.array([2.0]))
    array([0.5])
    """

    name: ClassVar[str] = "probit"

    def value(self, mu: Array, v: Array) -> Array:
        return normal_cdf(mu / namespace(mu, v).sqrt(1.0 + v))

    def slopes(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """`phi(z) / sqrt(1 + v)` and `-phi(z) z / (2 (1 + v))`.

        z is cut at 35 within phi only: both stay above underflow and keep their exact ratio.
        """
        xp = namespace(mu, v)
        root = xp.sqrt(1.0 + v)
        z = mu / root
        by_mu = normal_pdf(xp.clip(z, -35.0, 35.0)) / root
        return by_mu, by_mu * z / (-2.0 * root)

    def enclose(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """Phi of the score rounded down and up; Phi is increasing."""
        mu, v = check_latent(mu, v)
        z = mu / namespace(mu).sqrt(1.0 + v)
        lower, _ = normal_cdf_bounds(down(z, _SCORE_ROUNDINGS))
        _, upper = normal_cdf_bounds(up(z, _SCORE_ROUNDINGS))
        return lower, upper

    def line_minimum(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        """Phi of the exact minimum of the score on the segment, rounded down.

        Statement: with `w = 1 + v` and `d = alpha - beta`, `z = d w^-1/2 + beta w^1/2` is least at
        an end of the segment or, if `beta > 0` and `beta w_low < d < beta w_high`, at `w = d/beta`,
        with value `2 sqrt(beta d)`.
        Where rounding leaves the place in doubt, `2 sqrt(beta d)` is included, which is below z for
        all w > 0 (Statement 8.3).
        """
        alpha, beta, v_low, v_high = check_segment(alpha, beta, v_low, v_high)
        xp = namespace(alpha)
        ends = xp.minimum(_end(alpha, beta, v_low), _end(alpha, beta, v_high))
        d = alpha - beta
        inside = (up(d) > down(beta * (1.0 + v_low), 2)) & (down(d) < up(beta * (1.0 + v_high), 2))
        inside = inside & (beta > 0.0)
        roots = xp.sqrt(nonnegative(beta)) * xp.sqrt(nonnegative(down(d)))
        z = xp.where(inside, xp.minimum(ends, down(2.0 * roots, 3)), ends)
        lower, _ = normal_cdf_bounds(z)
        return lower


def _end(alpha: Array, beta: Array, v: Array) -> Array:
    """A float <= `(alpha + beta v) / sqrt(1 + v)`."""
    mean = mean_lower(alpha, beta, v)
    return down(mean / namespace(v).sqrt(1.0 + v), _SCORE_ROUNDINGS)
