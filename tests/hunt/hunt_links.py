"""Probabilities of two classes, `F(mu, v) = E link(f)`, f ~ N(mu, v), as balls.

Integrals are sums of the trapezoidal rule with a proved error. Statement: if g is analytic where
`|Im z| <= a` and `int |g(x +- ia)| dx <= M`, then `|h sum_j g(jh) - int g| <= 2 M / (e^(2 pi a / h)
- 1)` (Trefethen & Weideman 2014, theorem 5.1). For `g(z) = link(mu + s z) phi(z)` with
`|link| <= 1` where `|Im| <= pi / 2`, and `s a <= pi / 2`: `M = e^(a^2 / 2)`, as
`|phi(x + ia)| = e^(a^2 / 2) phi(x)`. What is cut off beyond z = Z is at most
`2 Phi(h - Z) <= exp(-(Z - h)^2 / 2)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flint import arb

from tests.hunt.hunt_numbers import Balls, normal_cdf

DIGITS = 46.0
"""The trapezoidal rule errs by about e^-46 = 1e-20."""

CUT = 9.7
"""Standard deviations at which a normal law is cut off: exp(-CUT^2 / 2) = 4e-21."""

MAX_TERMS = 3000

SKLEARN_LAMBDAS = (0.41, 0.4, 0.37, 0.44, 0.39)
SKLEARN_COEFS = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)


class NoReferenceError(Exception):
    """The definition cannot be evaluated cheaply here; the check is left out and counted."""


def average(link: Callable[[arb], arb], mu: arb, v: arb) -> arb:
    """E link(f) for a link that is analytic and at most 1 in size where |Im| <= pi / 2."""
    s = Balls.sqrt(v)
    if not (mu.is_finite() and s.is_finite()):
        raise NoReferenceError("latent moments are not finite")
    size = float(s.upper())
    a = min(4.0, 1.57 / size) if size > 0 else 4.0
    h = 2.0 * np.pi * a / (DIGITS + a * a / 2.0)
    count = int(np.ceil(CUT / h))
    if count > MAX_TERMS:
        raise NoReferenceError("latent variance too large for the trapezoidal rule")
    step, total, weights = arb(h), arb(0), arb(0)
    for j in range(-count, count + 1):
        z = step * j
        weight = (-z * z / 2).exp()
        weights += weight
        total += weight * link(mu + s * z)
    width = arb(a)
    error = 2 * (width * width / 2).exp() / ((2 * arb.pi() * width / step).exp() - 1)
    error += (-((step * count) ** 2) / 2).exp()
    return total * step / (2 * arb.pi()).sqrt() + arb(0, error.upper())


def probit(mu: arb, v: arb) -> arb:
    """Phi(mu / sqrt(1 + v)); Rasmussen & Williams 2006, eq. 3.82."""
    return normal_cdf(mu / (1 + v).sqrt())


def logistic(mu: arb, v: arb) -> arb:
    """E 1 / (1 + exp(-f))."""
    return average(_sigma, mu, v)


def _sigma(f: arb) -> arb:
    if bool(f > 0):
        return 1 / (1 + (-f).exp())
    power = f.exp()
    return power / (1 + power)


def sklearn_logistic(mu: arb, v: arb) -> arb:
    """scikit-learn's `_BinaryGaussianProcessClassifierLaplace.predict_proba`, in real numbers.

    There: `alpha = 1 / (2 v)`, `gamma = L mu`, `integrals = sqrt(pi / alpha) erf(gamma
    sqrt(alpha / (alpha + L^2))) / (2 sqrt(2 pi v))`, `pi = sum C integrals + sum C / 2`; the
    integral is `erf(L mu / sqrt(1 + 2 v L^2)) / 2`.
    """
    total = arb(0)
    for scale, coefficient in zip(SKLEARN_LAMBDAS, SKLEARN_COEFS, strict=True):
        rate, weight = arb(scale), arb(coefficient)
        total += weight * ((rate * mu / (1 + 2 * v * rate * rate).sqrt()).erf() + 1) / 2
    return total


def shifted_probit(mu: arb, v: arb) -> arb:
    """E Phi(f - 1)."""
    return probit(mu - 1, v)


def log_log(mu: arb, v: arb) -> arb:
    """E (1 - exp(-exp(f)))."""
    return 1 - average(lambda f: (-f.exp()).exp(), mu, v)


def step(mu: arb, v: arb) -> arb:
    """P(f > 0.3)."""
    if not bool(v > 0):
        raise NoReferenceError("a step of a latent value without variance")
    return normal_cdf((mu - arb(0.3)) / v.sqrt())


def step_link(f: np.ndarray) -> np.ndarray:
    """1 above 0.3, else 0."""
    return (f > 0.3).astype(float)


def log_log_link(f: np.ndarray) -> np.ndarray:
    """1 - exp(-exp(f))."""
    with np.errstate(over="ignore"):
        return -np.expm1(-np.exp(f))


def shifted_probit_link(f: np.ndarray) -> np.ndarray:
    """Phi(f - 1)."""
    from scipy.special import ndtr

    return ndtr(f - 1.0)


def logistic_link(f: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-f))."""
    from scipy.special import expit

    return expit(f)


OWN_LINKS: dict[str, tuple[Any, Callable[[arb, arb], arb]]] = {
    "step_link": (step_link, step),
    "log_log_link": (log_log_link, log_log),
    "shifted_probit_link": (shifted_probit_link, shifted_probit),
    "logistic_link": (logistic_link, logistic),
}
"""A user's own links, by the name of their function, each with its average."""


def second_class(likelihood: Any, mu: arb, v: arb) -> arb:
    """Probability of the second class."""
    name = type(likelihood).__name__
    if name == "Discretised":
        return OWN_LINKS[likelihood.link.__name__][1](mu, v)
    averages = {"Probit": probit, "Logistic": logistic, "SklearnLogistic": sklearn_logistic}
    return averages[name](mu, v)
