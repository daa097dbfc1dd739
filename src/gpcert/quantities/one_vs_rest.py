"""Of several members' own probabilities: the least of weighted sums, and normalised shares.

Proofs: docs/mathematics.md, statements 11.1 and 11.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpcert.arrays import Array, PerCell, PerRow, least_of, namespace
from gpcert.committee import Committee
from gpcert.likelihoods import ScalarLikelihood
from gpcert.quantities.classes import Weights
from gpcert.quantities.compound import Compound, Ends, Values
from gpcert.quantities.probability import Probability
from gpcert.rounding import down, nonnegative, up


def member_probabilities(committee: Committee) -> tuple[Probability, ...]:
    """F_k of every member."""
    found = []
    for k, member in enumerate(committee.members):
        assert isinstance(member.likelihood, ScalarLikelihood), "a committee checks its members"
        found.append(Probability(member.likelihood, k, 1))
    return tuple(found)


@dataclass(frozen=True)
class LeastSum(Compound):
    """`min_j sum_k weights_jk F_k`. With `min_j (w_i F_i - w_j F_j)` it is positive exactly where
    one-vs-rest decides for i, ties apart."""

    parts: tuple[Probability, ...]  # pyright: ignore[reportIncompatibleVariableOverride]
    weights: tuple[Weights, ...]

    @property
    def known(self) -> tuple[float, float]:
        """Each F lies in [0, 1]."""
        rows = np.asarray(self.weights)
        return float(np.minimum(rows, 0).sum(1).min()), float(np.maximum(rows, 0).sum(1).min())

    def sums(self, low: Ends, high: Ends) -> list[PerCell]:
        """Lower bounds (B,) of every sum: each F on the side of its weight."""
        found = []
        for row in self.weights:
            ends = ((w, low[k] if w > 0 else high[k]) for k, w in enumerate(row) if w != 0.0)
            terms = [down(w * end, 1) for w, end in ends]
            found.append(_added(terms))
        return found

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """The least of the sums'."""
        return least_of(self.sums(low, high))

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Minus the lowest of the negative."""
        flipped = replace(self, weights=tuple(tuple(-w for w in row) for row in self.weights))
        return least_of([-lower for lower in flipped.sums(low, high)])

    def value(self, y: Values) -> PerRow:
        """The least sum."""
        return (y @ np.asarray(self.weights).T).min(axis=1)

    def slopes(self, y: Values) -> Values:
        """The weights of the least sum."""
        rows = np.asarray(self.weights)
        return rows[np.argmin(y @ rows.T, axis=1)]


@dataclass(frozen=True)
class Share(Compound):
    """`sign F_c / sum_k F_k`: the normalised probability of class c; 0 where all F_k are 0."""

    parts: tuple[Probability, ...]  # pyright: ignore[reportIncompatibleVariableOverride]
    index: int
    sign: int

    @property
    def known(self) -> tuple[float, float]:
        """A probability, or its negative."""
        return (0.0, 1.0) if self.sign > 0 else (-1.0, 0.0)

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """The ratio increases in F_c and decreases in the others."""
        c, xp = self.index, namespace(low[0])
        own = low[c] if self.sign > 0 else high[c]
        others = high if self.sign > 0 else low
        rest = [others[k] for k in range(len(self.parts)) if k != c]
        one = xp.ones_like(own)
        total = sum(rest, own)
        if self.sign > 0:
            total = up(total, len(rest))
            return nonnegative(down(own / xp.where(total > 0, total, one), 1))
        total = down(total, len(rest))
        ratio = up(own / xp.where(total > 0, total, one), 1)
        # all of them may be 0: then nothing is known, but a ratio is at most 1
        return -xp.minimum(xp.where(total > 0, ratio, one), one) + 0.0 * one

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Minus the lowest of the negative."""
        return -replace(self, sign=-self.sign).lowest(low, high)

    def value(self, y: Values) -> PerRow:
        """The ratio."""
        total = y.sum(axis=1)
        safe = np.where(total != 0, total, 1.0)
        return self.sign * np.where(total != 0, y[:, self.index] / safe, 0.0)

    def slopes(self, y: Values) -> Values:
        """`sign (e_c - ratio) / total`."""
        total = y.sum(axis=1)
        safe = np.where(total != 0, total, 1.0)[:, None]
        unit = self.sign * (np.arange(len(self.parts)) == self.index)
        return (unit - self.value(y)[:, None]) / safe


def _added(terms: Sequence[Array]) -> Array:
    total = terms[0]
    for term in terms[1:]:
        total = down(total + term, 1)
    return total
