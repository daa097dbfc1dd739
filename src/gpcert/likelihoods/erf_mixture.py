"""Links that are sums of error functions: smoothing by a Gaussian has a closed form.

Proofs: docs/mathematics.md, statement 8.5.
"""

from __future__ import annotations

import math
from typing import ClassVar

from gpcert.arrays import Array, namespace
from gpcert.integrals.special import ERF_ULPS, erf
from gpcert.likelihoods.segments import check_latent
from gpcert.likelihoods.smoothed_link import SmoothedLink
from gpcert.rounding import U

_LARGEST_EXPONENT = 600.0
"""exp(-600) is a normal number: slopes are cut there and keep their ratio instead of vanishing."""


class ErfMixture(SmoothedLink):
    """`F(mu, v) = (total + sum_i c_i erf(mu / sqrt(d_i + 2 v))) / 2`, up to `link_error`.

    The mixture link is `(total + sum_i c_i erf(x / sqrt d_i)) / 2`, and
    `E erf((mu + sqrt(v) t) / sqrt d) = erf(mu / sqrt(d + 2 v))` (Rasmussen & Williams 2006,
    eq. 3.82). If the true link differs from it by at most `link_error` everywhere, so does F from
    this formula for every mu and v: an average does not enlarge a uniform error.
    """

    terms: ClassVar[tuple[tuple[float, float], ...]]
    """The pairs `(d_i, c_i)`; d_i may carry one rounding. The largest d_i has a positive c_i."""

    link_error: ClassVar[float]
    """`>= sup |link - mixture link|` in real arithmetic."""

    @property
    def error(self) -> float:
        """`>= |fl(value) - F|`: rounding, the error of `total`, and `link_error`.

        The argument `y = mu / sqrt(d + 2 v)` carries 3 U (d and the sum are halved by the root, the
        root, the quotient), which moves erf by as many units: `y erf'(y) <= erf(y)`, erf being
        concave. Then ERF_ULPS for erf, 1 for the product, n for the sum; the last sum and the
        caller's subtraction act on numbers of size at most 1. 1.01 covers products of roundings.
        """
        weight = math.fsum(abs(c) for _, c in self.terms)
        units = weight * (ERF_ULPS + len(self.terms) + 4) + 8
        return (0.5 * 1.01 * U) * units + self.total_error + 1.01 * self.link_error

    def value(self, mu: Array, v: Array) -> Array:
        """The formula of the class in plain floating point."""
        xp = namespace(mu, v)
        double = 2.0 * v
        total = xp.zeros_like(mu + v)
        for d, c in self.terms:
            total = total + c * erf(mu / xp.sqrt(d + double))
        return 0.5 * (self.total + total)

    def enclose(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """The value less and plus `error`, within `[0, total]`."""
        mu, v = check_latent(mu, v)
        xp = namespace(mu)
        value = self.value(mu, v)
        top = self.total + self.total_error
        return xp.clip(value - self.error, 0.0, top), xp.clip(value + self.error, 0.0, top)

    def slopes(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """`sum c_i e_i / sqrt(pi q_i)` and `-mu sum c_i e_i / sqrt(pi q_i^3)`.

        Here `q_i = d_i + 2 v` and `e_i = exp(-mu^2 / q_i)`, taken relative to the slowest of them.
        """
        xp = namespace(mu, v)
        double = 2.0 * v
        widest = max(d for d, _ in self.terms)
        slowest = mu * (mu / (widest + double))
        by_mu = xp.zeros_like(slowest)
        by_variance = xp.zeros_like(slowest)
        for d, c in self.terms:
            q = d + double
            term = c * xp.exp(slowest - mu * (mu / q)) / xp.sqrt(math.pi * q)
            by_mu = by_mu + term
            by_variance = by_variance - term * (mu / q)
        scale = xp.exp(-xp.clip(slowest, None, _LARGEST_EXPONENT))
        return by_mu * scale, by_variance * scale
