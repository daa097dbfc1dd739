"""Bounds of class probabilities from comparisons of two classes: valid on cells of any size.

Class c wins if it beats every other one, so with `P_k = P(k beats c)`, at every x

    1 - sum_k P_k  <=  pi_c  <=  min_k (1 - P_k),       prod_k (1 - P_k) <= pi_c,

the last where no two differences `f_k - f_c` have a negative covariance. Reason: union and
intersection of events; for the last, Gaussian variables with covariances >= 0 are associated (Pitt
1982; Esary, Proschan & Walkup 1967).

Proofs: docs/mathematics.md, statements 1.7 and 10.8.
"""

from __future__ import annotations

import math
from itertools import combinations

from gpcert.enclosures.classes.outputs import LatentOutputs, pair_model
from gpcert.enclosures.classes.reference import negative_part
from gpcert.likelihoods import ClassLikelihood
from gpcert.likelihoods.base import LARGEST_SEGMENT
from gpcert.model.class_layout import ClassLayout, Terms
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import U, down, gamma, given, nonnegative, up


class PairBounds:
    """Comparisons of classes on a batch of cells, each found when first asked for."""

    def __init__(
        self, latent: LatentOutputs, layout: ClassLayout, likelihood: ClassLikelihood
    ) -> None:
        self.latent = latent
        self.layout = layout
        self.likelihood = likelihood

    def range(self, c: int) -> tuple[PerCell, PerCell]:
        """Certified `low <= pi_c <= high` over each cell."""
        xp = namespace(self.latent.cells.lower)
        others = [k for k in range(self.layout.classes) if k != c]
        wins = [self.win(c, k) for k in others]  # lower bounds of 1 - P_k
        losses = [self.win(k, c) for k in others]  # lower bounds of P_k
        m = len(wins)
        low = down(sum(wins) - (m - 1.0) - gamma(m + 2) * m, 2)
        product = down(math.prod(wins), m + 2)
        low = nonnegative(xp.where(self.associated(c), xp.maximum(low, product), low))
        most = xp.clip(up(1.0 - xp.stack(losses, axis=1), 1), 0.0, 1.0)
        high = xp.min(most, axis=1)
        if len(others) == 2:
            ends = xp.stack(wins, axis=1), most
            joint = self.likelihood.joint_range(ends, self.correlation(c, *others))
            if joint is not None:
                low, high = xp.maximum(low, joint[0]), xp.minimum(high, joint[1])
        return low, high

    def win(self, c: int, k: int) -> PerCell:
        """Certified lower bound (B,) of `P(c beats k)`.

        With q = mu_c - mu_k and D its variance, `P = pair(q, D)` does not fall with q. For any
        beta, `q - beta D >= alpha` on the cell gives `P >= min_D pair(alpha + beta D, D)` over the
        range of D; beta = 0 and the slope of the level curve at the centre are tried.
        """
        return self.latent.once((self.layout, "win", c, k), lambda: self._win(c, k))

    def _win(self, c: int, k: int) -> Array:
        latent, layout = self.latent, self.layout
        xp = namespace(latent.cells.lower)
        pair = self.likelihood.pair
        low, high = self.variance(c, k)
        center = self._center(c, k)
        steep = given(pair.level_slope(center[0], xp.clip(center[1], self._least(), None)))
        best = xp.zeros_like(low)
        for beta in (0.0 * steep, steep):
            model, constant = pair_model(latent, layout, (k, c), beta)
            constant = constant - up(2.0 * self.raised * nonnegative(beta), 2)
            alpha = model.minimum().lower
            # noise of the likelihood is part of D but not of the model: it shifts the line
            moved = constant - beta * (2.0 * self.likelihood.noise)
            size = xp.abs(alpha) + xp.abs(constant) + xp.abs(beta) * self.likelihood.noise
            alpha = down(alpha + moved - gamma(8) * size, 2)
            usable = (xp.abs(alpha) <= LARGEST_SEGMENT) & (high <= LARGEST_SEGMENT)
            usable = usable & (xp.abs(beta) <= LARGEST_SEGMENT)
            usable = usable & (low <= high)  # crossed where a box's centre is not in the ball
            zero = xp.zeros_like(alpha)
            ends = [xp.where(usable, v, zero + self._least()) for v in (low, high)]
            line = (xp.where(usable, alpha, zero), xp.where(usable, beta, zero))
            best = xp.maximum(best, xp.where(usable, pair.line_minimum(*line, *ends), zero))
        return best

    def _least(self) -> float:
        """The likelihood's own noise in a difference."""
        return 2.0 * self.likelihood.noise

    def variance(self, c: int, k: int) -> tuple[PerCell, PerCell]:
        """Certified range (B,) of `D = var(f_c - f_k)`, noise of the likelihood included."""
        key = (min(c, k), max(c, k))
        return self.latent.once((self.layout, "variance", key), lambda: self._variance(*key))

    def _variance(self, c: int, k: int) -> tuple[Array, Array]:
        low, high = self._combined(self.layout.covariance(c, k, k))
        # the covariance meant is the nearest semi-definite one: |u|^2 <= 2 for a difference
        high = up(high + self._least() + 2.0 * self.raised, 4)
        return nonnegative(down(low + self._least(), 4)), high

    def covariance(self, c: int, k: int, other: int) -> tuple[PerCell, PerCell]:
        """Certified range (B,) of `cov(f_k - f_c, f_other - f_c)`, k and other not the same, noise
        of the likelihood included."""
        low, high = self._combined(self.layout.covariance(c, k, other))
        # of class c; the nearest semi-definite covariance moves it by |u| |u'| = 2 times that
        noise, slack = self.likelihood.noise, 2.0 * self.raised
        return down(low + noise - slack, 4), up(high + noise + slack, 4)

    def _combined(self, terms: Terms) -> tuple[Array, Array]:
        """Certified range (B,) of a sum of outputs' variances; see `ClassLayout.covariance`."""
        xp = namespace(self.latent.cells.lower)
        low = high = size = xp.zeros_like(self.latent.geometry.rho2)
        for j, factor in terms:
            variance = self.latent.variance(j)
            ends = variance.units.below(variance.range[0]), variance.units.above(variance.range[1])
            first, second = ends if factor > 0 else ends[::-1]
            low, high = low + factor * first, high + factor * second
            size = size + abs(factor) * ends[1]
        lost = up((gamma(len(terms) + 2) + self.layout.rounding) * size, len(terms) + 8)
        return low - lost, high + lost

    @property
    def raised(self) -> float:
        """What coupled covariances are raised by at most; see `negative_part`."""
        return 0.0 if self.layout.mixing is not None else negative_part(self.latent, self.layout)

    def _center(self, c: int, k: int) -> tuple[Array, Array]:
        """Mean and variance of `f_c - f_k` at the centres, in plain floating point."""
        q, D = 0.0, self._least()
        for j, factor in self.layout.pair(k, c):
            mean, variance = self.latent.mean(j), self.latent.variance(j)
            q = q + factor * mean.units.about(mean.center)
            D = D + factor * factor * variance.units.about(nonnegative(variance.center))
        return namespace(self.latent.cells.lower).asarray(q), D

    def correlation(self, c: int, k: int, other: int) -> tuple[PerCell, PerCell]:
        """Certified range (B,) of the correlation of `f_k - f_c` and `f_other - f_c`."""
        xp = namespace(self.latent.cells.lower)
        first, second = self.variance(c, k), self.variance(c, other)
        covariance = self.covariance(c, k, other)
        small, large = (xp.sqrt(first[end] * second[end]) for end in (0, 1))
        one = xp.ones_like(small)

        def quotient(value: Array, outwards: float) -> Array:
            # away from zero the smaller standard deviations count, towards it the larger
            away = value * outwards > 0
            scale = xp.where(away, small, large)
            usable = scale > 0
            correlation = value / xp.where(usable, scale, one)
            correlation = correlation + outwards * 16.0 * U * xp.abs(correlation)
            return xp.clip(xp.where(usable, correlation, outwards * one), -1.0, 1.0)

        return quotient(covariance[0], -1.0), quotient(covariance[1], 1.0)

    def associated(self, c: int) -> PerCell:
        """(B,): every covariance of `f_k - f_c` and `f_l - f_c` is proved to be >= 0."""
        xp = namespace(self.latent.cells.lower)
        ok = xp.ones_like(self.latent.geometry.rho2) > 0
        if self.layout.independent:
            return ok  # it is the variance of f_c
        for k, other in combinations(range(self.layout.classes), 2):
            if c not in (k, other):
                ok = ok & (self.covariance(c, k, other)[0] >= 0)
        return ok
