"""Functions G(mu, V) of a latent mean and variance with derivatives that are bounded: what slopes
of predictions are made of, `D_u G = G_mu D_u mu + G_V D_u V`.

Proofs: docs/mathematics.md, statements 19.14 and 19.15.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from gpcert.errors import InputError
from gpcert.likelihoods import ScalarLikelihood
from gpcert.likelihoods.logistic import Logistic, SmoothedLink
from gpcert.likelihoods.probit import LapseProbit, Probit, StepLink
from gpcert.numerics.arrays import PerCell, Reals, namespace
from gpcert.numerics.rounding import TINY, U, down, gamma, nonnegative, up

HERMITE = ((1,), (0, 1), (-1, 0, 1), (0, -3, 0, 1), (3, 0, -6, 0, 1), (0, 15, 0, -10, 0, 1))
"""Coefficients of He_m, m = 0..5: `phi^(m)(z) = (-1)^m He_m(z) phi(z)`."""

DENSITY_BOUNDS = (0.39895, 0.24198, 0.39895, 0.5506, 1.19683, 2.3072)
"""At least `sup |phi^(m)|`, m = 0..5."""

LAST_EXTREMA = (0.0, 1.0, 1.7321, 2.3345, 2.8570, 3.3243)
"""`|phi^(m)|` falls from here on: at least the largest zeros of He_(m+1)."""

FAR = 38.0
"""Beyond, `phi^(m)(z)` is less than 1e-300."""

ROUNDINGS = 512.0
"""Of a derivative's terms, times `1 + z^2`, in units of U: see `_density`."""

LOGISTIC_BOUNDS = (0.25, 0.40833)
"""At least sup |sigma^(n)|, n = 5, 6."""


class Expanded(NamedTuple):
    """G's slopes about (mu0, V0) on boxes of means and variances, all (B,).

    `first` are about (G_mu, G_V) there, `second` about (G_mumu, G_muV, G_VV); on the box the slopes
    are within `near` of `first` and within `left` of first + second (mu - mu0, V - V0).
    """

    first: tuple[PerCell, PerCell]
    second: tuple[PerCell, PerCell, PerCell]
    near: tuple[PerCell, PerCell]
    left: tuple[PerCell, PerCell]


class Differentiable(ABC):
    """G(mu, V), which does not decrease in mu. Subclasses are frozen records."""

    by_mean: bool = True
    """Whether G depends on the mean."""

    @abstractmethod
    def expanded(
        self, mu: tuple[PerCell, PerCell, PerCell], v: tuple[PerCell, PerCell, PerCell]
    ) -> Expanded:
        """On boxes `low <= mu <= high` and alike for V, about a point: (at, low, high) each."""

    @abstractmethod
    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """(G_mu, G_V) in plain floating point."""

    def ratio(
        self, mu: tuple[PerCell, PerCell], v: tuple[PerCell, PerCell]
    ) -> tuple[PerCell, PerCell] | None:
        """Certified ends of G_V / G_mu on boxes, where G_mu > 0 there; None where not known."""
        del mu, v
        return None


@dataclass(frozen=True)
class VarianceItself(Differentiable):
    """G = V."""

    by_mean = False

    def expanded(self, mu: Any, v: Any) -> Expanded:
        zero = 0.0 * v[0]
        return Expanded((zero, 1.0 + zero), (zero, zero, zero), (zero, zero), (zero, zero))

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        return 0.0 * v, 1.0 + 0.0 * v


@dataclass(frozen=True)
class RootOfVariance(Differentiable):
    """G = sqrt(V): slopes `V^-1/2 / 2`, of which the next are `-V^-3/2 / 4` and `3 V^-5/2 / 8`."""

    by_mean = False

    def expanded(self, mu: Any, v: Any) -> Expanded:
        at, low, high = v
        xp, zero = namespace(at), 0.0 * at
        known = low > TINY
        least = xp.where(known, low, zero + 1.0)
        at = xp.where(known, at, zero + 1.0)
        far = up(xp.maximum(high - at, at - low), 1)
        root = xp.sqrt(at)
        slope, bend = 0.5 / root, -0.25 / (at * root)
        wrong = gamma(8) * (slope + xp.abs(bend) * far)
        steep, bent = _powers(least)
        near = up(steep * far + wrong, 8)
        left = up(xp.minimum(bent * far * far + wrong, near + xp.abs(bend) * far), 8)
        infinite = zero + math.inf
        near, left = (xp.where(known, each, infinite) for each in (near, left))
        return Expanded((zero, slope), (zero, zero, bend), (zero, near), (zero, left))

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        return 0.0 * v, 0.5 / namespace(v).sqrt(v)


def _powers(v: PerCell) -> tuple[PerCell, PerCell]:
    """`V^-3/2 / 4` and `3 V^-5/2 / 16`, rounded up: the largest from V on."""
    root = namespace(v).sqrt(v)
    return up(0.25 / (v * root), 4), up(0.1875 / (v * v * root), 6)


@dataclass(frozen=True)
class LinkedMean(Differentiable):
    """G = F(mu, V) of the likelihood of two classes: `F = sum_i c_i Phi(mu / sqrt(r_i + V))`, up to
    an error of the link; `F_V = F_mumu / 2`, and all derivatives follow from those in mu.

    >>> import numpy as np
    >>> from gpcert.likelihoods import Probit
    >>> [round(float(s), 4) for s in LinkedMean(Probit()).slopes(np.array(1.0), np.array(1.0))]
    [0.2197, -0.0549]
    """

    likelihood: ScalarLikelihood

    KNOWN: ClassVar[tuple[type, ...]] = (Probit, LapseProbit, SmoothedLink)

    def __post_init__(self) -> None:
        if not isinstance(self.likelihood, self.KNOWN):
            raise InputError(
                "quantity: slopes of a probability are known for two classes with a smooth link "
                f"(probit, logistic), got {type(self.likelihood).__name__}; ask about the latent "
                "function that decides, quantity='mean'"
            )

    @property
    def terms(self) -> list[tuple[float, float]]:
        """The pairs (r_i, c_i)."""
        if isinstance(self.likelihood, SmoothedLink):
            return [(0.5 * d, c) for d, c in self.likelihood.terms]
        if isinstance(self.likelihood, LapseProbit):
            return [(1.0, 1.0 - 2.0 * self.likelihood.lapse)]
        return [(0.0 if isinstance(self.likelihood, StepLink) else 1.0, 1.0)]

    def derivative(self, n: int, mu: PerCell, v: PerCell) -> tuple[PerCell, PerCell]:
        """`d^n F / dmu^n` at points, n = 1..4, and its error."""
        xp = namespace(mu)
        value, error = 0.0 * mu, 0.0 * mu
        for r, c in self.terms:
            w = r + v
            usable = w > TINY
            root = xp.sqrt(xp.where(usable, w, 1.0 + 0.0 * w))
            power = abs(c) / root**n
            density, wrong = _density(n - 1, mu / root)
            value = value + (1.0 if c > 0 else -1.0) * power * density
            lost = power * (wrong + gamma(64) * xp.abs(density))
            error = error + xp.where(usable, lost, 0.0 * w + math.inf)
        link = getattr(self.likelihood, "link_error", 0.0)
        if link:
            spread = xp.sqrt(xp.where(v > TINY, v, 0.0 * v + TINY))
            error = error + 1.01 * link * math.sqrt(math.factorial(n)) / spread**n
        return value, up(error + gamma(4) * xp.abs(value), 64)

    def bound(self, n: int, mu: tuple[PerCell, PerCell], v: tuple[PerCell, PerCell]) -> PerCell:
        """At least `|d^n F / dmu^n|` on boxes, n = 1..6."""
        low = nonnegative(v[0])
        xp = namespace(low)
        if isinstance(self.likelihood, SmoothedLink):
            if n <= 4:
                return self.likelihood.derivative_bound(n, low)
            shrink = xp.where(low > TINY, low, 0.0 * low + TINY)
            bound = up(DENSITY_BOUNDS[n - 1] / xp.sqrt(shrink) ** n, 64)
            own = LOGISTIC_BOUNDS[n - 5] if isinstance(self.likelihood, Logistic) else math.inf
            return xp.minimum(bound, 0.0 * bound + own)
        ((r, c),) = self.terms
        w_low, w_high = r + low, up(r + v[1], 2)
        usable = w_low > TINY
        w_low = xp.where(usable, down(w_low, 2), 1.0 + 0.0 * low)
        nearest = nonnegative(xp.maximum(mu[0], -mu[1]))
        z = nonnegative(down(nearest / xp.sqrt(w_high), 4))
        tail, wrong = _density(n - 1, z)
        falls = z >= LAST_EXTREMA[n - 1]
        largest = 0.0 * z + DENSITY_BOUNDS[n - 1]
        size = xp.where(falls, xp.minimum(up(xp.abs(tail) + wrong, 4), largest), largest)
        return xp.where(usable, up(abs(c) * size / xp.sqrt(w_low) ** n, 64), 0.0 * z + math.inf)

    def expanded(self, mu: Any, v: Any) -> Expanded:
        xp = namespace(mu[0])
        (f1, e1), (f2, e2), (f3, e3), (f4, e4) = (
            self.derivative(n, mu[0], v[0]) for n in range(1, 5)
        )
        ends = (mu[1:], v[1:])
        c2, c3, c4, c5, c6 = (self.bound(n, *ends) for n in range(2, 7))
        dm = nonnegative(up(xp.maximum(mu[2] - mu[0], mu[0] - mu[1]), 1))
        dv = nonnegative(up(xp.maximum(v[2] - v[0], v[0] - v[1]), 1))
        half = 0.5 * dv  # F_V = F_mumu / 2, so V counts half, as two derivatives in mu
        near = (e1 + c2 * dm + c3 * half, 0.5 * (e2 + c3 * dm + c4 * half))
        bent = (_bent(c3, c4, c5, dm, half), 0.5 * _bent(c4, c5, c6, dm, half))
        wrong = (e1 + e2 * dm + e3 * half, 0.5 * (e2 + e3 * dm + e4 * half))
        second = (f2, 0.5 * f3, 0.25 * f4)
        along = (
            xp.abs(second[0]) * dm + xp.abs(second[1]) * dv,
            xp.abs(second[1]) * dm + xp.abs(second[2]) * dv,
        )
        left = [
            up(xp.minimum(b + w, n + a), 16)
            for b, w, n, a in zip(bent, wrong, near, along, strict=True)
        ]
        return Expanded(
            (f1, 0.5 * f2), second, (up(near[0], 16), up(near[1], 16)), (left[0], left[1])
        )

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        return self.likelihood.slopes(mu, v)

    def ratio(
        self, mu: tuple[PerCell, PerCell], v: tuple[PerCell, PerCell]
    ) -> tuple[PerCell, PerCell] | None:
        """Of one term `-mu / (2 (r + V))`; of the logistic link at most a half in size, as
        `|sigma''| <= sigma'`."""
        xp = namespace(mu[0])
        if isinstance(self.likelihood, Logistic):
            half = 0.5 + 0.0 * mu[0]
            return -half, half
        if isinstance(self.likelihood, SmoothedLink):
            return None
        ((r, _),) = self.terms
        low, high = 2.0 * (r + nonnegative(v[0])), 2.0 * (r + v[1])
        usable = low > TINY
        low = xp.where(usable, low, 1.0 + 0.0 * low)
        high = xp.maximum(high, low)
        most = xp.where(mu[0] < 0, -mu[0] / low, -mu[0] / high)
        least = xp.where(mu[1] > 0, -mu[1] / low, -mu[1] / high)
        infinite = 0.0 * low + math.inf
        return xp.where(usable, down(least, 4), -infinite), xp.where(usable, up(most, 4), infinite)


def _bent(a: PerCell, b: PerCell, c: PerCell, dm: PerCell, half: PerCell) -> PerCell:
    """`(a dm^2 + 2 b dm half + c half^2) / 2`, where c may be infinite."""
    xp = namespace(a)
    last = xp.where(half > 0, c * half * half, 0.0 * half)
    return up(0.5 * (a * dm * dm + 2.0 * b * dm * half + last), 8)


def _density(m: int, z: PerCell) -> tuple[PerCell, PerCell]:
    """phi^(m)(z) and its error, z with a few roundings.

    An error of 4 U of z counts `|z phi^(m+1)| <= (z^2 + m) A phi`, A the sum of the sizes of the
    terms of He_m, that of the exponential `(z^2 + 16) A phi`, sums and products 32: less than
    ROUNDINGS.
    """
    xp = namespace(z)
    near = xp.clip(z, -FAR, FAR)
    value, size = 0.0 * z, 0.0 * z
    for coefficient in reversed(HERMITE[m]):
        value, size = value * near + coefficient, size * xp.abs(near) + abs(coefficient)
    density = xp.exp(-0.5 * near * near) / math.sqrt(2.0 * math.pi)
    error = ROUNDINGS * U * (1.0 + near * near) * size * density + 1e-290
    inside = xp.abs(z) <= FAR
    value = (1.0 if m % 2 == 0 else -1.0) * value * density
    return xp.where(inside, value, 0.0 * z), up(xp.where(inside, error, 0.0 * z + 1e-290), 8)
