"""Which of two classes is the likelier over a cell, without an integral over all classes: softmax.

For latent values f let `u = f_c - f_k` have mean mu and variance D, and for the other classes
`h_j = f_j - (f_c + f_k) / 2`, `Delta_j = cov(h_j, u) = (D_jk - D_jc) / 2`. Swapping c and k takes u
to -u, and only the Delta_j tell the law of f from the swapped one: with mu > 0,

    pi_c > pi_k   where   mu > T Delta_j for all j,

T a bound of the other classes' share where c and k are even. So a decision is one of a latent mean,
but for a small multiple of a covariance, and its bound is as sharp as that of two classes.

Proofs: docs/mathematics.md, statements 10.15 and 10.16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from gpcert.enclosures.classes.covariances import Covariance, covariance_of
from gpcert.enclosures.classes.faces import has_faces, least_on_faces
from gpcert.enclosures.classes.outputs import LatentOutputs, pair_model
from gpcert.enclosures.classes.pairs import PairBounds
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.kernels.expansions.base import FormFunction
from gpcert.likelihoods import BinaryLikelihood
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import TINY, down, gamma, nonnegative, up, up_float

GAPS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Ends of the pieces of u on which the share of the other classes is bounded; any will do."""

PEAK = 0.6367
"""At least 2 / pi: a uniform law on [-1, 1] is more peaked than a normal one of this variance."""

TILTS, ROUNDS, BEYOND = (0.1, 0.2, 0.4, 0.8), 3, 0.05
"""Multiples of mu that are taken off the others' means, how often the share is found anew, and the
part by which mu exceeds what matters elsewhere. Any will do."""

LIKELY = 2
"""How many of the tilts, those of the least bounds, are tried on faces."""

LOG_2 = 0.693
"""Less than log 2."""

LARGEST = 1e6
"""Means, variances and slopes beyond this are not looked at."""

MAX_CLASSES = 4
"""Up to so many faces are looked at: of ten digits they took a third more time for no gain."""

MIDDLE = 0.34
"""At most Phi(1) - Phi(0)."""


class Leader:
    """Class c against class k on a batch of cells."""

    def __init__(self, pairs: PairBounds, c: int, k: int) -> None:
        self.pairs, self.c, self.k = pairs, c, k
        self.latent, self.layout = pairs.latent, pairs.layout
        self.others = [j for j in range(pairs.layout.classes) if j not in (c, k)]

    def lower(self) -> PerCell:
        """(B,): a positive lower bound of `pi_c - pi_k`, or minus infinity."""
        c, k, latent = self.c, self.k, self.latent
        xp = namespace(latent.cells.lower)
        mu = self._ahead_by_faces(k)
        nothing = xp.full_like(mu, -math.inf)
        possible = mu > 0
        for j in self.others:  # a class that may be ahead of c decides otherwise: not worth it
            possible = possible & (self._ahead_by_faces(j) > 0)
        if not bool(xp.any(possible)):
            return nothing
        changes = [covariance_of(self.pairs, (c, k), j) for j in self.others]
        known = [change for change in changes if change is not None]
        if len(known) < len(changes):
            return nothing
        ups = [self._tilted_end(j) for j in self.others]
        spreads = [self._spread(j) for j in self.others]
        share, q = self._share_near(known, ups, spreads)
        q = xp.minimum(mu, q)
        for j, change in zip(self.others, known, strict=True):
            q = xp.minimum(q, self._less_by_faces(mu, change, share, j))
        proved = (mu > 0) & (q > 0)
        one = xp.ones_like(mu)
        mu, q = xp.where(proved, mu, one), xp.where(proved, q, one)
        found = least_lead(mu, q, self.pairs.variance(c, k)[1], ups, spreads)
        return xp.where(proved & (found > 0), found, nothing)

    def _mean_sum(
        self, first: int, second: int, factor: float = 1.0
    ) -> tuple[QuadraticLowerModel, Array]:
        """A model of `factor (mu_second - mu_first)` without its offset, and that offset."""
        return pair_model(self.latent, self.layout, (first, second), factor=factor)

    def _ahead_of(self, k: int) -> Array:
        """Certified lower bound (B,) of the mean of `f_c - f_k`."""
        key = (self.layout, "ahead", self.c, k)
        return self.latent.once(key, lambda: self._least(*self._mean_sum(k, self.c)))

    @property
    def _by_faces(self) -> bool:
        """Whether faces are looked at: not of many classes, where the shares are what is loose."""
        return self.layout.classes <= MAX_CLASSES and has_faces(self.latent)

    def _on(self, latent: LatentOutputs) -> Leader:
        """The same classes on other cells."""
        return Leader(PairBounds(latent, self.layout, self.pairs.likelihood), self.c, self.k)

    def _mean_function(self, *terms: tuple[int, int, float]) -> FormFunction:
        """The sum of `factor (mu_second - mu_first)` over terms (first, second, factor)."""
        latent = self.latent
        local = latent.evaluation.local
        weights = sizes = namespace(local.weights[0]).zeros_like(local.weights[0])
        constant = 0.0
        for first, second, factor in terms:
            for j, c in self.layout.pair(first, second):
                units = latent.mean_units(j)
                part = (factor * c * units.factor) * local.weights[j]
                weights, sizes = weights + part, sizes + abs(part)
                constant = constant + abs(factor * c * units.shift)
        return FormFunction(weights, sizes, constant=up_float(float(constant), 16))

    def _ahead_by_faces(self, k: int) -> Array:
        """`_ahead_of`, or what its faces say where that is not positive."""
        found = self._ahead_of(k)
        if bool(found[0] > 0) or not self._by_faces:
            return found
        key = (self.layout, "ahead by faces", self.c, k)
        function = self._mean_function((k, self.c, 1.0))
        return self.latent.once(
            key,
            lambda: least_on_faces(
                self.latent, function, lambda latent: self._on(latent)._ahead_of(k)
            ),
        )

    def _less_by_faces(self, mu: Array, change: Covariance, share: Array, j: int) -> Array:
        """`_less`, or what its faces say where that is not positive; for positive mu alone."""
        found = self._less(mu, change, share)
        if bool(found[0] > 0) or not bool(mu[0] > 0) or not self._by_faces:
            return found
        mean = self._mean_function((self.k, self.c, 1.0))
        part = float(share[0])
        constant = up_float(mean.constant + part * abs(float(change.constant[0])), 4)
        function = replace(mean, W=change.W, share=part, constant=constant)

        def bound(latent: LatentOutputs) -> Array:
            own = self._on(latent)
            there = covariance_of(own.pairs, (self.c, self.k), j)
            assert there is not None, "known on larger cells"
            return own._less(own._ahead_of(self.k), there, share)

        return least_on_faces(self.latent, function, bound)

    @staticmethod
    def _least(model: QuadraticLowerModel, constant: Array) -> Array:
        """Certified lower bound (B,) of the model's function and a constant."""
        found = model.minimum().lower
        return down(found + constant - gamma(4) * (abs(found) + abs(constant)), 2)

    def _less(self, mu: Array, change: Covariance, share: Array) -> Array:
        """Certified lower bound (B,) of `mu - share Delta` on cells where mu, at least the number
        given, is positive."""
        model, constant = self._mean_sum(self.k, self.c)
        # an offset belongs to the mean, which is what is positive
        whole = model.shifted(constant).heavier(change.negative.rate, nonnegative(mu))
        less = whole + change.negative.scaled(share)
        return self._least(less, -up(share * change.constant, 2))

    def _spread(self, j: int) -> Array:
        """Upper bound (B,) of the variance of h_j, `(D_jc + D_jk) / 2 - D_ck / 4`."""
        most = self.pairs.variance(self.c, j)[1] + self.pairs.variance(self.k, j)[1]
        least = self.pairs.variance(self.c, self.k)[0]
        return nonnegative(up(0.5 * most - 0.25 * least + gamma(8) * most, 4))

    def _share_near(
        self, changes: list[Covariance], ups: list[Array], spreads: list[Array]
    ) -> tuple[Array, Array]:
        """T (B,) where mu is so small that it matters, and what `mu - T Delta_j` is at least
        elsewhere.

        With `most >= Delta_j` and T known everywhere only points with `mu <= near`, near > T most,
        matter; there `m_j <= max(m_j - lam mu) + lam near` for every lam >= 0, and so on.
        """
        xp = namespace(self.latent.cells.lower)
        most = xp.zeros_like(spreads[0] if spreads else self.latent.geometry.rho2)
        for change in changes:
            most = xp.maximum(most, change.high)
        tilted = [[self._tilted_end(j, lam) for lam in TILTS] for j in self.others]
        share = self._share(changes, list(zip(ups, spreads, strict=True)))
        q = xp.full_like(most, math.inf)
        for _ in range(ROUNDS):
            near = up((1.0 + BEYOND) * share * most, 4)
            ends = []
            for start, row in zip(ups, tilted, strict=True):
                both = zip(TILTS, row, strict=True)
                tops = (up(found + lam * near + gamma(4) * xp.abs(found), 4) for lam, found in both)
                ends.append(reduce(xp.minimum, tops, start))
            q = xp.where(most > 0, xp.minimum(q, down(0.5 * BEYOND * share * most, 4)), q)
            again = self._share(changes, list(zip(ends, spreads, strict=True)))
            share = xp.minimum(share, again)
        if len(self.others) == 1 and self._by_faces and bool(share[0] > 0.5):
            near = up((1.0 + BEYOND) * share * most, 4)
            both = zip(TILTS, tilted[0], strict=True)
            likely = sorted((float((found + lam * near)[0]), lam) for lam, found in both)[:LIKELY]
            if any(self._below_even(self.others[0], lam, near) for _, lam in likely):
                q = xp.where(most > 0, xp.minimum(q, down(0.5 * BEYOND * share * most, 4)), q)
                share = xp.zeros_like(share) + 0.5
        return share, q

    def _below_even(self, j: int, lam: float, near: Array) -> bool:
        """Whether m_j is proved to be below log 2 where mu <= near, on the one cell: the share is
        then at most 1/2. That is so where `lam (mu - near) - m_j + log 2 > 0`."""
        constant = down(LOG_2 - up(lam * near, 2), 2)
        mean = self._mean_function((j, self.c, 0.5), (j, self.k, 0.5), (self.k, self.c, lam))
        function = replace(mean, constant=up_float(mean.constant + abs(float(constant[0])), 4))

        def bound(latent: LatentOutputs) -> Array:
            return down(constant - self._on(latent)._tilted_end(j, lam), 4)

        return bool(least_on_faces(self.latent, function, bound)[0] > 0)

    def _tilted_end(self, j: int, lam: float = 0.0) -> Array:
        """Upper bound (B,) of the mean of h_j less lam times that of u."""
        parts = [self._mean_sum(j, i, 0.5) for i in (self.c, self.k)]
        if lam > 0.0:
            parts.append(self._mean_sum(self.k, self.c, lam))
        model, constant = parts[0]
        size = abs(constant)  # of offsets that may cancel
        for other, offset in parts[1:]:
            model, constant, size = model + other, constant + offset, size + abs(offset)
        return -self._least(model, constant - gamma(8) * size)

    def _share(self, changes: list[Covariance], others: list[tuple[Array, Array]]) -> Array:
        """T (B,). `others` are upper bounds of mean and variance of each h_j; `steep` bounds
        `|Delta_j| / D`, how fast the others rise with u."""
        xp = namespace(self.latent.cells.lower)
        least = self.pairs.variance(self.c, self.k)[0]
        size = xp.zeros_like(least)
        for change in changes:
            size = xp.maximum(size, xp.maximum(change.high, -change.low))
        unknown = xp.full_like(least, math.inf)
        safe = xp.where(least > 0, least, xp.ones_like(least))
        steep = xp.where(least > 0, up(size / safe, 2), unknown)
        total = xp.zeros_like(least)
        for change, (mean, spread) in zip(changes, others, strict=True):
            top = mean
            if len(changes) > 1:  # one that falls with u is larger at u = 0, by |Delta_j| mu / D
                model, constant = self._mean_sum(self.c, self.k)
                falls = nonnegative(-change.low) * nonnegative(-self._least(model, constant))
                gain = xp.where(least > 0, up(falls / safe, 4), unknown)
                top = up(mean + xp.where(falls > 0, gain, 0.0 * gain), 4)
            total = total + share_of_others(self.pairs.likelihood.pair, top, spread, steep)
        return xp.minimum(up(total, len(changes) + 1), xp.ones_like(total))


def least_lead(
    mu: Array, q: Array, D: Array, means: Sequence[Array], variances: Sequence[Array]
) -> PerCell:
    """A lower bound (B,) of `pi_c - pi_k` for `mu - T Delta_j >= q > 0`, mu > 0, D a bound of the
    variance of u, `means` and `variances` bounds m_j, H_j of those of h_j (Statement 10.15):

        0.34 tanh(mu/2) (1 - exp(-2 mu q / D)) / (1 + sum_j exp(m_j + sqrt H_j + H_j / 2) / 2).

    Exponents are below 710 and carry four roundings each, so that 4096 roundings cover all.
    """
    xp = namespace(mu)
    weight = xp.ones_like(mu)
    for mean, H in zip(means, variances, strict=True):
        weight = weight + 0.5 * xp.exp(mean + xp.sqrt(H) + 0.5 * H)
    gain = -xp.expm1(-2.0 * mu * q / xp.maximum(D, xp.full_like(mu, TINY)))
    return down(MIDDLE * xp.tanh(0.5 * mu) * gain / weight * (1.0 - gamma(4096)), 4)


def share_of_others(logistic: BinaryLikelihood, top: Array, spread: Array, steep: Array) -> PerCell:
    """Upper bound (B,) over u > 0 of `F(top - log(2 cosh(u/2)), v)`, `F(a, v) = E sigma(N(a, v))`,
    for all v up to `spread + steep^2 u^2 2 / pi`: piece by piece, and beyond the last at its
    beginning. Where spread or steep is not known, `max(1/2, sigma(top - log 2))` (Statement 10.16).
    """
    xp = namespace(top)
    zero = xp.zeros_like(top)
    known = xp.abs(top) <= LARGEST
    usable = known & (steep <= LARGEST) & (spread <= LARGEST) & (top <= 0.5 * GAPS[-1])
    start = xp.where(known, up(top, 1) - LOG_2, zero)
    fallback = xp.maximum(logistic.line_maximum(start, zero, zero, zero), zero + 0.5)
    top, spread, steep = (xp.where(usable, x, zero) for x in (top, spread, steep))
    best = zero
    for low, high in zip(GAPS, (*GAPS[1:], GAPS[-1]), strict=True):
        if low < high:
            mean = top - (0.5 * low + math.log1p(math.exp(-low))) * (1.0 - 2.0**-40)
        else:  # mean and deviation are from here on at most multiples of what they are here
            mean = nonnegative(top) - 0.5 * low
        mean = mean + gamma(4) * (xp.abs(top) + low + 1.0)
        variance = up(spread + PEAK * (steep * high) ** 2, 8)
        best = xp.maximum(best, logistic.line_maximum(mean, zero, zero, variance))
    return xp.where(usable, best, xp.where(known, fallback, zero + 1.0))
