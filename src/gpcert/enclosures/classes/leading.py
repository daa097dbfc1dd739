"""Which of two classes is the likelier over a cell, without an integral over all classes: softmax.

For latent values f let `u = f_c - f_k` have mean mu and variance D, and for the other classes
`h_j = f_j - (f_c + f_k) / 2`, `Delta_j = cov(h_j, u) = (D_jk - D_jc) / 2`. Swapping c and k takes u
to -u, and only the Delta_j tell the law of f from the swapped one: with mu > 0,

    pi_c > pi_k   where   mu > Delta_j for all j.

So a decision is one of a latent mean and of covariances, which are small where the classes are
alike, and its bound is nearly as sharp as that of two classes.

Proofs: docs/mathematics.md, statement 10.15.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from gpcert.enclosures.classes.covariances import Covariance, covariance_of
from gpcert.enclosures.classes.faces import has_faces, least_on_faces
from gpcert.enclosures.classes.outputs import LatentOutputs, pair_model
from gpcert.enclosures.classes.pairs import PairBounds
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.kernels.expansions.base import FormFunction
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import TINY, down, gamma, nonnegative, up, up_float

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
        mu = self.ahead_by_faces(k)
        nothing = xp.full_like(mu, -math.inf)
        possible = mu > 0
        for j in self.others:  # a class that may be ahead of c decides otherwise: not worth it
            possible = possible & (self.ahead_by_faces(j) > 0)
        if not bool(xp.any(possible)):
            return nothing
        changes = [covariance_of(self.pairs, (c, k), j) for j in self.others]
        known = [change for change in changes if change is not None]
        if len(known) < len(changes):
            return nothing
        means = [self._most_of(j) for j in self.others]
        spreads = [self._spread(j) for j in self.others]
        q = mu
        for j, change in zip(self.others, known, strict=True):
            q = xp.minimum(q, self._less_by_faces(mu, change, j))
        proved = (mu > 0) & (q > 0)
        one = xp.ones_like(mu)
        mu, q = xp.where(proved, mu, one), xp.where(proved, q, one)
        lead = least_lead(mu, q, self.pairs.variance(c, k)[1], means, spreads)
        return xp.where(proved & (lead > 0), lead, nothing)

    def _mean_sum(
        self, first: int, second: int, factor: float = 1.0
    ) -> tuple[QuadraticLowerModel, Array]:
        """A model of `factor (mu_second - mu_first)` without its offset, and that offset."""
        return pair_model(self.latent, self.layout, (first, second), factor=factor)

    def ahead_of(self, k: int) -> PerCell:
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

    def ahead_by_faces(self, k: int) -> PerCell:
        """`ahead_of`, or what its faces say where that is not positive."""
        ahead = self.ahead_of(k)
        if bool(ahead[0] > 0) or not self._by_faces:
            return ahead
        key = (self.layout, "ahead by faces", self.c, k)
        function = self._mean_function((k, self.c, 1.0))
        return self.latent.once(
            key,
            lambda: least_on_faces(
                self.latent, function, lambda latent: self._on(latent).ahead_of(k)
            ),
        )

    def _less_by_faces(self, mu: Array, change: Covariance, j: int) -> Array:
        """`_less`, or what its faces say where that is not positive; for positive mu alone."""
        least = self._less(mu, change)
        if bool(least[0] > 0) or not bool(mu[0] > 0) or not self._by_faces:
            return least
        mean = self._mean_function((self.k, self.c, 1.0))
        constant = up_float(mean.constant + abs(float(change.constant[0])), 4)
        function = replace(mean, W=change.W, constant=constant)

        def bound(latent: LatentOutputs) -> Array:
            leader = self._on(latent)
            there = covariance_of(leader.pairs, (self.c, self.k), j)
            assert there is not None, "known on larger cells"
            return leader._less(leader.ahead_of(self.k), there)

        return least_on_faces(self.latent, function, bound)

    @staticmethod
    def _least(model: QuadraticLowerModel, constant: Array) -> Array:
        """Certified lower bound (B,) of the model's function and a constant."""
        least = model.minimum().lower
        return down(least + constant - gamma(4) * (abs(least) + abs(constant)), 2)

    def _less(self, mu: Array, change: Covariance) -> Array:
        """Certified lower bound (B,) of `mu - Delta` on cells where mu, at least the number given,
        is positive."""
        model, constant = self._mean_sum(self.k, self.c)
        # an offset belongs to the mean, which is what is positive
        whole = model.shifted(constant).heavier(change.negative.rate, nonnegative(mu))
        return self._least(whole + change.negative, -change.constant)

    def _spread(self, j: int) -> Array:
        """Upper bound (B,) of the variance of h_j, `(D_jc + D_jk) / 2 - D_ck / 4`."""
        most = self.pairs.variance(self.c, j)[1] + self.pairs.variance(self.k, j)[1]
        least = self.pairs.variance(self.c, self.k)[0]
        return nonnegative(up(0.5 * most - 0.25 * least + gamma(8) * most, 4))

    def _most_of(self, j: int) -> Array:
        """Upper bound (B,) of the mean of h_j."""
        (model, constant), (other, offset) = (self._mean_sum(j, i, 0.5) for i in (self.c, self.k))
        size = abs(constant) + abs(offset)  # offsets may cancel
        return -self._least(model + other, constant + offset - gamma(8) * size)


def least_lead(
    mu: Array, q: Array, D: Array, means: Sequence[Array], variances: Sequence[Array]
) -> PerCell:
    """A lower bound (B,) of `pi_c - pi_k` for `mu - Delta_j >= q > 0`, mu > 0, D a bound of the
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
