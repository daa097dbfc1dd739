"""Links p(y | f) of classification: log-likelihood, its derivatives in f, and EP's moments.

Two classes, y in {-1, +1}: `p(y | f) = Phi(y f)` (probit) or `1 / (1 + exp(-y f))` (logistic). Both
are log-concave in f, so `curvature >= 0`, and every EP site has a precision `>= 0`.
Several classes: softmax, `p(y = c | f) = exp(f_c) / sum_j exp(f_j)`.

Reference: Rasmussen & Williams 2006 (GPML), Eqs. 3.15-3.16, 3.57-3.58 and 3.82.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from gpcert.models.tilted_logistic import tilted_logistic


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Of `log p(y | f)` in f, elementwise: first, minus second (`curvature >= 0`), third."""

    first: np.ndarray
    curvature: np.ndarray
    third: np.ndarray


@dataclass(frozen=True, eq=False)
class Moments:
    """Of the tilted law `p(y | f) N(f; mean, variance) / Z`, all elementwise.

    `log_z`; `slope = d log Z / d mean`; `curvature = -d^2 log Z / d mean^2`, in [0, 1 / variance];
    `shrinkage` = tilted variance / variance = `1 - variance * curvature`, computed without that
    cancellation. The tilted mean is `mean + variance * slope`.
    """

    log_z: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    shrinkage: np.ndarray

    @property
    def site_precision(self) -> np.ndarray:
        """Precision of the Gaussian site that gives the tilted mean and variance; `>= 0`."""
        return self.curvature / self.shrinkage

    def site_shift(self, mean: np.ndarray) -> np.ndarray:
        """Precision times mean of that site, `mean` being the cavity's."""
        return (self.slope + mean * self.curvature) / self.shrinkage


class Link(ABC):
    """A log-concave `p(y | f)` for y in {-1, +1}."""

    name: ClassVar[str]

    @abstractmethod
    def log_likelihood(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """`log p(y | f)`, elementwise."""

    @abstractmethod
    def derivatives(self, y: np.ndarray, f: np.ndarray) -> Derivatives:
        """Derivatives of `log p(y | f)` in f."""

    @abstractmethod
    def moments(self, y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Moments:
        """Moments of `p(y | f) N(f; mean, variance)`, for variance > 0."""


class ProbitLink(Link):
    """`p(y | f) = Phi(y f)`; moments in closed form.

    >>> link = ProbitLink()
    >>> moments = link.moments(np.array([1.0]), np.array([0.0]), np.array([3.0]))
    >>> round(float(np.exp(moments.log_z[0])), 12)
    0.5
    """

    name: ClassVar[str] = "probit"

    def log_likelihood(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return special.log_ndtr(y * f)

    def derivatives(self, y: np.ndarray, f: np.ndarray) -> Derivatives:
        """With `r = phi / Phi` at `z = y f`: `y r`, `r (r + z)`, `y r ((r + z)(2 r + z) - 1)`."""
        slope, curvature, _, third = _log_normal_cdf_derivatives(y * f)
        return Derivatives(y * slope, curvature, y * third)

    def moments(self, y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Moments:
        """`Z = Phi(z)`, `z = y mean / sqrt(1 + variance)` (GPML 3.58)."""
        total = 1.0 + variance
        z = y * mean / np.sqrt(total)
        slope, curvature, complement, _ = _log_normal_cdf_derivatives(z)
        return Moments(
            log_z=special.log_ndtr(z),
            slope=y * slope / np.sqrt(total),
            curvature=curvature / total,
            shrinkage=(1.0 + variance * complement) / total,
        )


class LogisticLink(Link):
    """`p(y | f) = 1 / (1 + exp(-y f))`; moments by quadrature (`tilted_logistic`)."""

    name: ClassVar[str] = "logistic"

    def log_likelihood(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return special.log_expit(y * f)

    def derivatives(self, y: np.ndarray, f: np.ndarray) -> Derivatives:
        """With `p = sigma(y f)`: `y (1 - p)`, `p (1 - p)`, `y p (1 - p)(2 p - 1)`."""
        z = y * f
        other = special.expit(-z)
        curvature = special.expit(z) * other
        return Derivatives(y * other, curvature, y * curvature * np.tanh(0.5 * z))

    def moments(self, y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Moments:
        """By quadrature; its accuracy is stated in `tilted_logistic`."""
        log_z, slope, curvature, shrinkage = tilted_logistic(y * mean, variance)
        return Moments(log_z, y * slope, curvature, shrinkage)


LINKS: dict[str, Link] = {link.name: link for link in (ProbitLink(), LogisticLink())}
"""The links of two-class models by name."""

_TAIL_START = 2.0
"""Left of minus this, the continued fraction is used; right of it the third derivative loses at
most three digits by cancellation, the others one."""

_TAIL_TERMS = 64
"""Levels of the continued fraction, which starts at the fixed point of its last level: relative
error below 1e-14 for `x >= 2` (tested)."""


def _log_normal_cdf_derivatives(
    z: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives of `log Phi` at z: r, `w = r (r + z)`, `1 - w`, `d^3 = r ((r + z)(2r + z) - 1)`.

    Left tail, `x = -z`: Laplace's continued fraction gives `r = x + delta`,
    `delta = 1 / (x + kappa)`, `kappa = 2 / (x + eta)`, `eta = 3 / (x + 4 / (x + ...))`, all terms
    positive, so that
    `1 - w = (kappa - delta) / (x + kappa)` and `d^3 = 2 r delta (eta - kappa) delta / (x + eta)`
    lose no digits, however far out. Reference: Abramowitz & Stegun 26.2.14.
    """
    z = np.asarray(z, dtype=np.float64)
    x = np.maximum(-z, _TAIL_START)
    eta = 0.5 * (np.sqrt(x * x + 4.0 * _TAIL_TERMS) - x)
    for level in range(_TAIL_TERMS, 2, -1):
        eta = level / (x + eta)
    kappa = 2.0 / (x + eta)
    delta = 1.0 / (x + kappa)
    tail_slope = x + delta

    middle = np.maximum(z, -_TAIL_START)
    # phi / Phi by the scaled complementary error function: infinite, so the ratio 0, from z = 38 on
    ratio = math.sqrt(2.0 / math.pi) / special.erfcx(-math.sqrt(0.5) * middle)
    curvature = ratio * (ratio + middle)
    third = ratio * ((ratio + middle) * (2.0 * ratio + middle) - 1.0)

    tail = z < -_TAIL_START
    return (
        np.where(tail, tail_slope, ratio),
        np.where(tail, tail_slope * delta, curvature),
        np.where(tail, (kappa - delta) * delta, 1.0 - curvature),
        np.where(tail, 2.0 * tail_slope * delta * delta * (eta - kappa) / (x + eta), third),
    )


def softmax_probabilities(f: np.ndarray) -> np.ndarray:
    """`exp(f_c) / sum_j exp(f_j)` over the first axis."""
    return special.softmax(f, axis=0)


def softmax_log_likelihood(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """`log p(y_i | f_i)` for classes y (N,) in 0..m-1 and latent values f (m, N)."""
    return f[y, np.arange(len(y))] - special.logsumexp(f, axis=0)
