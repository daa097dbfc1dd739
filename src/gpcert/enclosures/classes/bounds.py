"""All enclosures of class probabilities of a batch of cells, the best of them taken.

Proofs: docs/mathematics.md, statement 10.9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from gpcert.enclosures.classes.jets import ClassJet, coupled_jet, independent_jet, law_jet
from gpcert.enclosures.classes.leading import Leader
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.classes.pairs import PairBounds
from gpcert.enclosures.classes.reference import Reference, reference
from gpcert.enclosures.classes.remainder import orthogonal_rest
from gpcert.enclosures.classes.taylor_bound import (
    MAX_DIFFERENCES,
    center_range,
    taylor_bound,
    variance_pieces_bound,
)
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.polynomials import Minimum
from gpcert.integrals.moments import UNIMODAL_BOUNDS, ClassMoments
from gpcert.likelihoods import ClassLikelihood, Softmax
from gpcert.model.class_layout import ClassLayout
from gpcert.numerics.arrays import Array, PerCell, PerCellAndFeature, namespace
from gpcert.numerics.rounding import TINY, down, gamma, nonnegative
from gpcert.regions.image import ImageCells

FEW_CLASSES = 4
"""Up to here all pairs are compared for every sum; beyond, only those of its own classes."""

WIDE = 0.02
"""Centres whose sum the expansion about the nearest independent law leaves open by more are looked
at by comparisons of pairs, too."""

NEAR = 0.03
"""What the expansion about the nearest independent law may leave for pairs not to be compared: they
leave more for many classes, and where one class has nearly all the expansion leaves little, too."""

Weights = tuple[float, ...]


class ClassBounds:
    """Bounds of `sum_c w_c pi_c` on a batch of cells, whose evaluation remembers what is found."""

    def __init__(
        self, evaluation: Evaluation, layout: ClassLayout, likelihood: ClassLikelihood
    ) -> None:
        self.evaluation = evaluation
        self.latent = LatentOutputs(evaluation)
        self.layout = layout
        self.likelihood = likelihood
        self.pairs = PairBounds(self.latent, layout, likelihood)

    def _once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        return self.evaluation.once((self.layout, key), compute)

    @property
    def by_moments(self) -> bool:
        """Whether the reference's own law is integrated, and not one of independent classes."""
        return self.layout.classes <= self.likelihood.largest_coupled

    @property
    def _about_nearest(self) -> bool:
        """Whether the expansion is about the nearest independent law: too far for some models."""
        return not self.by_moments and not self.layout.independent

    @property
    def _scales(self) -> bool:
        """Whether multiples of the reference's covariance are known as laws of independent classes,
        and the change's trace apart from the rest of it."""
        return self.likelihood.noise == 0.0 and self.place.change.joint is not None

    @property
    def place(self) -> Reference:
        """Where the cells are expanded."""
        return self._once("place", lambda: reference(self.latent, self.layout, self.likelihood))

    def _moments(self, place: Reference, order: int) -> ClassMoments | None:
        """Class probabilities and their derivatives at a reference, where its law is integrated."""
        a = place.change.means.reference
        return self.likelihood.moments(a, place.L, order) if self.by_moments else None

    def _single(self, place: Reference, moments: ClassMoments | None, c: int) -> ClassJet:
        """One class at a reference."""
        if moments is None:
            return independent_jet(self.likelihood, place, c)
        return coupled_jet(self.likelihood, moments, place, c)

    def jet(self, weights: Weights) -> ClassJet:
        """The weighted sum at the references."""
        order = self.likelihood.highest_order if self.evaluation.optional else 2
        moments = self._once("moments", lambda: self._moments(self.place, order))
        parts = {
            c: self._once(("class", c), partial(self._single, self.place, moments, c))
            for c, w in enumerate(weights)
            if w != 0.0
        }
        return self._once(("jet", weights), lambda: law_jet(weights, parts))

    def lower(self, weights: Weights, target: float | None) -> Minimum:
        """Certified lower bound over each cell, and where the sum may be small (scaled)."""
        xp = namespace(self.evaluation.cells.lower)
        evaluation = self.evaluation
        best = taylor_bound(self.latent, self.place, self.jet(weights))
        if self._about_nearest and target is not None and bool(xp.all(best.lower > target)):
            return best  # all that was asked; pairs of many classes are expensive
        others = {
            "ranges": lambda: self._by_ranges(weights),
            "pieces": lambda: self.by_pieces(weights, best.lower),
        }
        if self._about_nearest:
            rest = orthogonal_rest(self.jet(weights), self.place.sizes)
            if bool(xp.all(rest <= NEAR)):
                del others["ranges"]
        for name, bound in others.items():
            key = f"{name} {weights}"
            if evaluation.wants(key):
                other = bound()
                evaluation.report(key, bool(xp.any(other > best.lower)))
                best = Minimum(xp.maximum(best.lower, other), best.point)
        if target == 0.0 and bool(xp.any(best.lower <= target)):
            best = Minimum(xp.maximum(best.lower, self.by_leader(weights)), best.point)
        floor = xp.full_like(best.lower, min(weights))  # the probabilities add up to one
        return Minimum(xp.maximum(best.lower, floor), best.point)

    def split_scores(self) -> PerCellAndFeature:
        """(B, f): about how much the expansion's rest falls when an axis is halved."""
        xp = namespace(self.evaluation.cells.lower)
        scores_of_features = self.latent.split_scores()
        if isinstance(self.latent.geometry.cells, ImageCells):
            return scores_of_features  # the axes of an image are others
        sizes, half = self.place.sizes, self.place.geometry.half
        A, W = sizes.mean[:, None], sizes.spread[:, None]
        third, fourth, fifth, sixth = UNIMODAL_BOUNDS[2:6]
        by_mean = 0.5 * third * A**2 + 0.5 * fourth * A * W + 0.125 * fifth * W**2
        by_spread = 0.25 * fourth * A**2 + 0.25 * fifth * A * W + 0.0625 * sixth * W**2
        moved = xp.sqrt(xp.sum(sizes.slope**2, axis=1)) * half
        spread = xp.sqrt(xp.sum(sizes.spread_slope**2, axis=(1, 2))) * half
        # the bends grow with the squared widths
        share = scores_of_features / (xp.sum(scores_of_features, axis=1, keepdims=True) + TINY)
        bend = 2.0 * sizes.mean_bend[:, None] * share, 2.0 * sizes.spread_bend[:, None] * share
        return by_mean * (moved + bend[0]) + by_spread * (spread + bend[1])

    def upper_at_center(self, weights: Weights) -> PerCell:
        """Certified upper bound (B,) at the centres of the cells."""
        xp = namespace(self.evaluation.cells.lower)
        low, high = center_range(self.latent, self.place, self.jet(weights))
        if self._about_nearest and bool(xp.any(~(high - low <= WIDE))):
            pairs = -self._point._by_ranges(tuple(-w for w in weights))
            high = xp.where(pairs < high, pairs, high)
        return xp.minimum(high, xp.full_like(high, max(weights)))

    @property
    def _point(self) -> ClassBounds:
        """The cells' centres as cells of their own."""
        if not self.evaluation.optional:
            return self
        evaluation = self._once("point", self.evaluation.at_centers)
        return ClassBounds(evaluation, self.layout, self.likelihood)

    def by_pieces(self, weights: Weights, known: PerCell | None = None) -> PerCell:
        """`variance_pieces_bound`, where it is possible; `known` bounds are those to surpass."""
        xp = namespace(self.evaluation.cells.lower)
        if not (self.layout.n <= MAX_DIFFERENCES if self.by_moments else self._scales):
            return xp.full_like(self.latent.geometry.rho2, -math.inf)

        def jet_at(place: Reference) -> ClassJet:
            moments = self._moments(place, self.likelihood.highest_order)
            parts = [c for c, w in enumerate(weights) if w != 0.0]
            return law_jet(weights, {c: self._single(place, moments, c) for c in parts})

        return variance_pieces_bound(self.latent, self.place, jet_at, known)

    def by_leader(self, weights: Weights) -> PerCell:
        """A positive bound where the sum is a difference of two classes, and its sign is proved."""
        xp = namespace(self.evaluation.cells.lower)
        nothing = xp.full_like(self.latent.geometry.rho2, -math.inf)
        used = sorted((w, c) for c, w in enumerate(weights) if w != 0.0)
        name = f"leader {weights}"
        if len(used) != 2 or used[0][0] != -used[1][0] or not isinstance(self.likelihood, Softmax):
            return nothing
        moves = bool(xp.any(self.latent.geometry.half > 0))  # points are known without it
        if not moves or not self.evaluation.optional or not self.evaluation.wants(name):
            return nothing
        (_, k), (w, c) = used
        lead = Leader(self.pairs, c, k).lower()
        self.evaluation.report(name, bool(xp.any(lead > 0)))
        return down(w * lead, 1)

    def _by_ranges(self, weights: Weights) -> Array:
        """The least sum that the classes' own ranges and their sum 1 allow.

        Statement: minimise `sum_c w_c p_c`, `low_c <= p_c <= high_c`, `sum_c p_c = 1`: start from
        the lows and give what is left of 1 to the classes of the smallest weights first (a
        continuous knapsack, Dantzig 1957). Of many classes only those with a weight are looked at;
        the others have the range [0, 1].
        """
        xp = namespace(self.evaluation.cells.lower)
        m = len(weights)
        zero = xp.zeros_like(self.latent.geometry.rho2)
        every = m <= FEW_CLASSES
        ranges = [
            self._once(("range", c), partial(self.pairs.range, c))
            if every or w != 0.0
            else (zero, zero + 1.0)
            for c, w in enumerate(weights)
        ]
        # rounding: more mass to give away, and the total, only ever fall on the safe side if
        # counted by the sizes of the terms (the probabilities are at most 1 each)
        left = nonnegative(1.0 - sum(low for low, _ in ranges))
        total = sum(w * low for w, (low, _) in zip(weights, ranges, strict=True))
        for c in sorted(range(m), key=lambda c: weights[c]):
            low, high = ranges[c]
            given = xp.minimum(left, nonnegative(high - low))
            total = total + weights[c] * given
            left = left - given
        size = max(map(abs, weights))
        return down(total - gamma(8 * m + 8) * (2.0 * m * size), 2)
