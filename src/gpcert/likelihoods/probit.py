"""Probit likelihoods with the exact minimum along a line: plain, with lapses, and without noise.

Proofs: docs/mathematics.md, statement 8.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpcert.errors import InputError
from gpcert.integrals.special import normal_cdf, normal_cdf_bounds, normal_pdf, score
from gpcert.likelihoods.base import BinaryLikelihood, check_latent, check_segment, mean_lower
from gpcert.numerics.arrays import Array, Reals, finite_array, fused, namespace
from gpcert.numerics.rounding import TINY, down, nonnegative, up

_LAPSE_ROUNDINGS = 3  # 1 - 2 e, the product and the sum, of numbers >= 0: errors add up
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

    def _root(self, mu: Array, v: Array) -> Array:
        """By which mu is divided; either may be a number."""
        return namespace(mu, v).sqrt(1.0 + v)

    def value(self, mu: Reals, v: Reals) -> Reals:
        return normal_cdf(mu / self._root(mu, v))

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """`phi(z) / root` and `-phi(z) z / (2 root^2)`, z = mu / root.

        z is cut at 35 within phi only: both stay above underflow and keep their exact ratio.
        """
        root = self._root(mu, v)
        z = mu / root
        by_mu = normal_pdf(namespace(z).clip(z, -35.0, 35.0)) / root
        return by_mu, by_mu * z / (-2.0 * root)

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Phi of the score rounded down and up; Phi is increasing."""
        mu, v = check_latent(mu, v)
        z = mu / namespace(mu).sqrt(1.0 + v)
        lower, _ = normal_cdf_bounds(down(z, _SCORE_ROUNDINGS))
        _, upper = normal_cdf_bounds(up(z, _SCORE_ROUNDINGS))
        return lower, upper

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Phi of the exact minimum of the score on the segment, rounded down.

        Statement: with `w = 1 + v` and `d = alpha - beta`, `z = d w^-1/2 + beta w^1/2` is least at
        an end of the segment or, if `beta > 0` and `beta w_low < d < beta w_high`, at `w = d/beta`,
        with value `2 sqrt(beta d)`.
        Where rounding leaves the place in doubt, `2 sqrt(beta d)` is included, which is below z for
        all w > 0 (Statement 8.3).
        """
        return _line_minimum(*check_segment(alpha, beta, v_low, v_high))


@fused
def _line_minimum(alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
    """See `Probit.line_minimum`."""
    xp, d = namespace(alpha), alpha - beta
    scores = (mean_lower(alpha, beta, v) / xp.sqrt(1.0 + v) for v in (v_low, v_high))
    ends = [down(z, _SCORE_ROUNDINGS) for z in scores]
    around = (beta * (1.0 + v_low), beta * (1.0 + v_high))
    return normal_cdf_bounds(_with_inner(xp.minimum(*ends), (down(d), up(d)), beta, around))[0]


def _with_inner(
    ends: Array, d: tuple[Array, Array], beta: Array, around: tuple[Array, Array]
) -> Array:
    """The least score at the ends of a segment, and `2 sqrt(beta d)` where d, one of two
    neighbouring floats or between, may lie between `beta w` at both ends, after two roundings."""
    xp = namespace(ends)
    inside = (beta > 0.0) & (d[1] > down(around[0], 2)) & (d[0] < up(around[1], 2))
    roots = xp.sqrt(nonnegative(beta)) * xp.sqrt(nonnegative(d[0]))
    return xp.where(inside, xp.minimum(ends, down(2.0 * roots, 3)), ends)


@dataclass(frozen=True)
class StepLink(Probit):
    """`F(mu, v) = P(f > 0) = Phi(mu / sqrt(v))` for `f ~ N(mu, v)`, v > 0.

    At v = 0 it is the step itself, 1/2 at mu = 0.

    >>> import numpy as np
    >>> round(float(StepLink().value(np.array([2.0]), np.array([4.0]))[0]), 6)
    0.841345
    """

    name: ClassVar[str] = "step"

    def _root(self, mu: Array, v: Array) -> Array:
        """`sqrt(v)`, kept from 0."""
        xp = namespace(mu, v)
        return xp.sqrt(xp.clip(v, TINY, None))

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Phi of the score rounded down and up; Phi is increasing. The score of mu = 0 is 0."""
        mu, v = check_latent(mu, v)
        xp = namespace(mu)
        ends = [xp.where(mu == 0.0, mu, end) for end in score(mu, v)]
        return normal_cdf_bounds(ends[0])[0], normal_cdf_bounds(ends[1])[1]

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Phi of the exact minimum of the score on the segment, rounded down."""
        alpha, *rest = check_segment(alpha, beta, v_low, v_high)
        return normal_cdf_bounds(least_score(alpha, alpha, *rest))[0]


def least_score(least: Reals, most: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
    """A number <= `(a + beta v) / sqrt(v)` on the segment, maybe infinite, for a in [least, most],
    neighbouring floats or one.

    As for `Probit.line_minimum`, with a in the place of alpha - beta and v of 1 + v (Statement
    8.3).
    """
    ends = [score(mean_lower(least, beta, v), v)[0] for v in (v_low, v_high)]
    around = (beta * v_low, beta * v_high)
    return _with_inner(namespace(least).minimum(*ends), (least, most), beta, around)


@dataclass(frozen=True)
class LapseProbit(BinaryLikelihood):
    """`F(mu, v) = e + (1 - 2 e) Phi(mu / sqrt(1 + v))`, for `f ~ N(mu, v)`: labels that are wrong
    with probability e, whatever f is.

    It is an affine, increasing image of the probit likelihood, so every bound is the image of a
    bound of `Probit`, rounded outward; `F(mu, v) + F(-mu, v) = 1` exactly. GPflow's `Bernoulli`
    predicts with e = 0.001, `0.998 Phi + 0.001` (gpflow/likelihoods/utils.py, inv_probit); the
    float64 sum of its two constants and their doubles is 1 up to 2e-18.

    >>> import numpy as np
    >>> LapseProbit(0.001).value(np.array([0.0, 50.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.999]
    """

    lapse: float = 0.001

    name: ClassVar[str] = "lapse-probit"

    def __post_init__(self) -> None:
        lapse = float(finite_array("lapse", self.lapse, ndim=0))
        if not 0.0 <= lapse < 0.5:
            raise InputError(f"lapse: expected a probability below 1/2, got {self.lapse!r}")
        object.__setattr__(self, "lapse", lapse)

    def _image(self, probability: Array) -> Array:
        return (1.0 - 2.0 * self.lapse) * probability + self.lapse

    def value(self, mu: Reals, v: Reals) -> Reals:
        return self._image(Probit().value(mu, v))

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """`1 - 2 e` times those of the probit."""
        by_mu, by_v = Probit().slopes(mu, v)
        return (1.0 - 2.0 * self.lapse) * by_mu, (1.0 - 2.0 * self.lapse) * by_v

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """The images of the probit's bounds, rounded outward."""
        lower, upper = Probit().enclose(mu, v)
        return down(self._image(lower), _LAPSE_ROUNDINGS), up(self._image(upper), _LAPSE_ROUNDINGS)

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The image of the probit's minimum, rounded down: the map increases."""
        lower = Probit().line_minimum(alpha, beta, v_low, v_high)
        return down(self._image(lower), _LAPSE_ROUNDINGS)

    def config(self) -> dict[str, Any]:
        return {"lapse": self.lapse}
