"""Links p(y | f) of classification: log-likelihood, its derivatives in f, and EP's moments.

Two classes, y in {-1, +1}: `p(y | f) = Phi(y f)` (probit) or `1 / (1 + exp(-y f))` (logistic). Both
are log-concave in f, so `curvature >= 0`, and every EP site has a precision `>= 0`.
Several classes: softmax, `p(y = c | f) = exp(f_c) / sum_j exp(f_j)`.

Reference: Rasmussen & Williams 2006 (GPML), Eqs. 3.15-3.16, 3.57-3.58 and 3.82.

Moments of `sigma(f) N(f; mean, variance)`, for every mean and variance, come from one quadrature
rule. The integrand has two scales: sigma changes over a length of order pi (its poles lie at
+- i pi), the normal density over `s = sqrt(variance)`. The substitution

    f(u) = s (softplus(u - c) - softplus(-u - c)),    c = log(2 s / pi),

grows like `pi sinh(u)` near 0 and has slope s far out: in u the integrand is smooth on scale one
whatever s is, and the trapezoidal rule converges geometrically (Trefethen & Weideman 2014). The
range is centred at the tilted law's mode: as `(log p)'' <= -1 / variance`, the law is below
`exp(-38)` of its peak beyond `8.7 s`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special


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

    def sites(self, mean: np.ndarray, independent: Any = 0.0) -> np.ndarray:
        """(2, N): precision `>= 0`, and precision times mean, of the Gaussian sites that give the
        tilted means and variances; `mean` is that of the cavities.

        Of f without an `independent` part of the variance: with c the variance of that cavity,
        `1 - c curvature = shrinkage + independent curvature`, without cancellation.
        """
        share = self.shrinkage + independent * self.curvature
        return np.stack([self.curvature / share, (self.slope + mean * self.curvature) / share])


class ProbitLink:
    """`p(y | f) = Phi(y f)`; moments in closed form.

    >>> link = ProbitLink()
    >>> moments = link.moments(np.array([1.0]), np.array([0.0]), np.array([3.0]))
    >>> round(float(np.exp(moments.log_z[0])), 12)
    0.5
    """

    name: ClassVar[str] = "probit"

    def log_likelihood(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """`log p(y | f)`, elementwise."""
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


class LogisticLink:
    """`p(y | f) = 1 / (1 + exp(-y f))`; moments by quadrature (see the module).

    >>> link = LogisticLink()
    >>> moments = link.moments(np.array([1.0]), np.array([0.0]), np.array([4.0]))
    >>> round(float(np.exp(moments.log_z[0])), 12)
    0.5
    """

    name: ClassVar[str] = "logistic"

    def log_likelihood(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """`log p(y | f)`, elementwise."""
        return special.log_expit(y * f)

    def derivatives(self, y: np.ndarray, f: np.ndarray) -> Derivatives:
        """With `p = sigma(y f)`: `y (1 - p)`, `p (1 - p)`, `y p (1 - p)(2 p - 1)`."""
        z = y * f
        other = special.expit(-z)
        curvature = special.expit(z) * other
        return Derivatives(y * other, curvature, y * curvature * np.tanh(0.5 * z))

    def moments(self, y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Moments:
        """By quadrature, whose accuracy is stated at `NODES`."""
        mean, variance = np.broadcast_arrays(y * mean, variance)
        starts = range(0, len(mean), _BLOCK)
        parts = [_tilted(mean[i : i + _BLOCK], variance[i : i + _BLOCK]) for i in starts]
        log_z, slope, curvature, shrinkage = np.concatenate(parts, axis=1)
        return Moments(log_z, y * slope, curvature, shrinkage)


Link = ProbitLink | LogisticLink
"""A log-concave `p(y | f)` for y in {-1, +1}."""

LINKS: dict[str, Link] = {link.name: link for link in (ProbitLink(), LogisticLink())}
"""The links of two-class models by name."""

_TAIL_START = 2.0
"""Left of minus this, the continued fraction is used; right of it the third derivative loses at
most three digits by cancellation, the others one."""

_TAIL_TERMS = 64
"""Levels of the continued fraction, which starts at the fixed point of its last level: relative
error below 1e-14 for `x >= 2` (tested)."""


def _log_normal_cdf_derivatives(z: np.ndarray) -> tuple[np.ndarray, ...]:
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


def softmax_log_likelihood(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """`log p(y_i | f_i)` for classes y (N,) in 0..m-1 and latent values f (m, N)."""
    return f[y, np.arange(len(y))] - special.logsumexp(f, axis=0)


NODES = 112
"""Tested against high precision for variances up to 1e6: `log Z` to 1e-11, the tilted mean to
1e-11 standard deviations, the tilted variance to 1e-10 of itself."""

HALF_RANGE = 8.7
"""In standard deviations: `exp(-8.7^2 / 2) = 4e-17`."""

_LINEAR_FROM = 40.0
"""From |f| / s = 40 on, `u = +-(|f| / s + c)` to machine precision."""

_CANCELLATION = 30.0
"""`variance * curvature` is a difference of two terms: up to this size of them the rounding that
it keeps, 30 u, is below that of the other way."""

_MODE_STEPS = 60
_BLOCK = 4096


def _tilted(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """(4, n): `log Z`, `d log Z / d mean`, `-d^2 log Z / d mean^2`, tilted variance / variance.

    With E, Var under the tilted law and `g = 1 - sigma`: the slope is `E g`, the curvature
    `E sigma (1 - sigma) - Var g` (integration by parts); neither divides by the variance.
    """
    s = np.sqrt(variance)
    mode = _mode(mean, variance)
    first = _parameter_of(mode / s - HALF_RANGE, s)
    last = _parameter_of(mode / s + HALF_RANGE, s)
    step = (last - first) / (NODES - 1)
    f, jacobian = _substitution(first[:, None] + step[:, None] * np.arange(NODES), s[:, None])

    decay = np.exp(-np.abs(f))
    other = np.where(f > 0, decay, 1.0) / (1.0 + decay)  # 1 - sigma(f)
    from_mean = (f - mean[:, None]) / s[:, None]
    log_density = np.minimum(f, 0.0) - np.log1p(decay) - 0.5 * from_mean * from_mean
    peak = log_density.max(axis=1, keepdims=True)
    mass = np.exp(log_density - peak) * jacobian
    total = mass.sum(axis=1)
    mass /= total[:, None]

    slope = np.einsum("ij,ij->i", mass, other)
    spread = np.einsum("ij,ij->i", mass, np.square(other - slope[:, None]))
    link_curvature = np.einsum("ij,ij->i", mass, decay / np.square(1.0 + decay))
    curvature = link_curvature - spread
    centre = np.einsum("ij,ij->i", mass, from_mean)
    shrinkage = np.einsum("ij,ij->i", mass, np.square(from_mean - centre[:, None]))
    log_z = peak[:, 0] + np.log(total * step) - 0.5 * math.log(2.0 * math.pi)
    # Two ways to the same number: the curvature's terms cancel for a large variance, the
    # shrinkage's distance from 1 for a small one. Log-concavity: 0 <= variance * curvature < 1.
    small = variance * link_curvature < _CANCELLATION
    shrinkage = np.where(small, 1.0 - variance * np.maximum(curvature, 0.0), shrinkage)
    curvature = np.where(small, np.maximum(curvature, 0.0), (1.0 - shrinkage) / variance)
    return np.stack([log_z, slope, curvature, shrinkage])


def _substitution(u: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f(u) and `f'(u) / s`, written in `E = exp(-|u|)` so that nothing overflows."""
    k = 0.5 * math.pi / s  # exp(-c)
    E = np.exp(-np.abs(u))
    from_left, from_right = E + k, 1.0 + k * E
    f = np.copysign(s, u) * (np.abs(u) + np.log(from_left / from_right))
    return f, k / from_left + k * E / from_right


def _parameter_of(scaled: np.ndarray, s: np.ndarray) -> np.ndarray:
    """u with `f(u) / s = scaled`: a quadratic equation in `exp(u)`, solved for |scaled|."""
    size = np.abs(scaled)
    k = 0.5 * math.pi / s
    grown = np.exp(np.minimum(size, _LINEAR_FROM))
    half = 0.5 * (grown - 1.0)
    u = np.log(half + np.sqrt(half * half + k * k * grown))
    return np.sign(scaled) * (np.where(size > _LINEAR_FROM, size, u) - np.log(k))


def _mode(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Root of `f - mean - variance sigma(-f)`, which increases: Newton inside a bracket."""
    low, high = mean.copy(), mean + variance
    f = np.clip(np.zeros_like(mean), low, high)
    tolerance = 1e-3 * np.sqrt(variance)
    for _ in range(_MODE_STEPS):
        p = special.expit(-f)
        excess = f - mean - variance * p
        low, high = np.where(excess < 0, f, low), np.where(excess < 0, high, f)
        newton = f - excess / (1.0 + variance * p * (1.0 - p))
        inside = (newton > low) & (newton < high)
        f, before = np.where(inside, newton, 0.5 * (low + high)), f
        if np.all(np.abs(f - before) <= tolerance):
            break
    return f
