"""Likelihoods in ball arithmetic (python-flint), written apart from the code they check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import acb, arb, arb_series, ctx

TAYLOR_ORDER = 16
"""Terms of the Taylor models of `largest_on`."""

_LAMBDAS = (0.41, 0.4, 0.37, 0.44, 0.39)
_COEFS = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)
_TOLERANCE = 1e-22


def normal_cdf(z: arb) -> arb:
    """`Phi(z)`."""
    return (-z / arb(2).sqrt()).erfc() / 2


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))` of a real or complex ball."""
    return 1 / (1 + (-x).exp())


def logistic_normal(mu: arb, v: arb) -> arb:
    """`E sigma(mu + sqrt(v) t)` by certified quadrature.

    If v < 4, over t in [-12, 12], which leaves out a probability below 4e-33. Else over logistic
    noise X in [-60, 60], from `F = P(mu + sqrt(v) t + X > 0)`, which leaves out less than 2e-26.
    """
    if v == 0:
        return sigmoid(mu)
    scale = v.sqrt()

    def over_latent(t: acb, _analytic: bool) -> acb:
        return (-t * t / 2).exp() / (2 * acb.pi()).sqrt() * sigmoid(mu + scale * t)

    def over_noise(x: acb, _analytic: bool) -> acb:
        density = 1 / ((x / 2).cosh() * 2) ** 2
        return density * (-(mu + x) / (scale * acb(2).sqrt())).erfc() / 2

    integrand, end, tail = (over_latent, 12, 1e-30) if v < 4 else (over_noise, 60, 1e-25)
    integral = acb.integral(integrand, -end, end, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return integral.real + arb(0, tail)


def sklearn_probability(mu: arb, v: arb) -> arb:
    """`sum_i C_i Phi(mu / sqrt(1 / (2 L_i^2) + v))` with scikit-learn's constants."""
    total = arb(0)
    for scale, weight in zip(_LAMBDAS, _COEFS, strict=True):
        total += arb(weight) * normal_cdf(mu / (1 / (2 * arb(scale) ** 2) + v).sqrt())
    return total


def largest_on(function: Callable[[arb_series], arb_series], start: arb, end: arb) -> arb:
    """Proved upper bound of `|f|` on [start, end], f given by its action on power series.

    Taylor's theorem: the polynomial at the middle, and Lagrange's remainder from the coefficient
    of order `TAYLOR_ORDER` enclosed over a ball that contains the interval.
    """
    middle, radius = (start + end) / 2, (end - start) / 2
    cell = middle + arb(0, 1) * radius
    before = ctx.cap
    ctx.cap = TAYLOR_ORDER + 8  # a function may differentiate up to 7 times
    try:
        polynomial = function(arb_series([middle, 1])).coeffs()[:TAYLOR_ORDER]
        rest = function(arb_series([cell, 1])).coeffs()[TAYLOR_ORDER]
    finally:
        ctx.cap = before
    total = sum((abs(c) * radius**k for k, c in enumerate(polynomial)), arb(0))
    return total + abs(rest) * radius**TAYLOR_ORDER
