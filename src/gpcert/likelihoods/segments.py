"""Segments `{(alpha + beta v, v)}` of the (mu, v) plane: checks, the mean, the monotone bound.

Proofs: docs/mathematics.md, statement 8.2.
"""

from __future__ import annotations

from gpcert.arrays import Reals, namespace
from gpcert.errors import InputError
from gpcert.likelihoods.base import BinaryLikelihood
from gpcert.rounding import TINY, U

LARGEST_LATENT = 2.0**500
"""Largest |mu| and v accepted by `enclose`: nothing that is computed from them overflows."""

LARGEST_SEGMENT = 2.0**200
"""Largest |alpha|, |beta| and v of a segment: `beta^2 (v_high - v_low)^2` does not overflow."""


def check_latent(mu: Reals, v: Reals) -> tuple[Reals, Reals]:
    """Broadcast `mu` and `v` to one shape; an `InputError` unless both are finite and v >= 0."""
    xp = namespace(mu, v)
    # written so that NaN fails every comparison
    good = (abs(mu) <= LARGEST_LATENT) & (v >= 0.0) & (v <= LARGEST_LATENT)
    if not bool(xp.all(good)):
        raise InputError(
            "mu, v: expected finite numbers up to 2^500 with v >= 0, got NaN, infinite, too large "
            "or negative ones; check the latent mean and variance that were passed"
        )
    mu, v = xp.broadcast_arrays(mu, v)
    return mu, v


def check_segment(
    alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals
) -> tuple[Reals, Reals, Reals, Reals]:
    """Broadcast the four arrays to one shape; an `InputError` unless they describe segments."""
    xp = namespace(alpha, beta, v_low, v_high)
    good = (abs(alpha) <= LARGEST_SEGMENT) & (abs(beta) <= LARGEST_SEGMENT)
    good = good & (v_low >= 0.0) & (v_low <= v_high) & (v_high <= LARGEST_SEGMENT)
    if not bool(xp.all(good)):
        raise InputError(
            "alpha, beta, v_low, v_high: expected finite numbers up to 2^200 with "
            "0 <= v_low <= v_high, got others (NaN, infinite, too large, negative or crossed); "
            "check the variance bounds and the slope that were passed"
        )
    alpha, beta, v_low, v_high = xp.broadcast_arrays(alpha, beta, v_low, v_high)
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
