"""Bounds of one class probability by its log-concavity in the latent means.

For a fixed covariance V_0, `F(e) = pi_c` as a function of the differences `e_k = f_k - f_c` falls
with every e_k, and log F is concave (Prekopa 1973: the links are log-concave, and averaging over a
Gaussian keeps that). So the means may move far at no loss in exactness; only the change of the
covariance is bounded by derivatives,

    |F(e, V) - F(e, V_0)| <= |<Q, V - V_0>| / 2 + b4 w^2 / 8  and  <= b2 w / 2,

Q the second derivative at (e, V_0), b_j bounds of the j-th ones along the way, w the nuclear norm
of V - V_0 in the metric of V_0 (Taylor's formula and Price's theorem).

Proofs: docs/mathematics.md, statements 10.8 and 10.9.
"""

from __future__ import annotations

import math

from gpcert.arrays import Array, namespace
from gpcert.class_layout import ClassLayout
from gpcert.enclosures.classes.latent import linear_reach
from gpcert.enclosures.classes.moments import ClassJet, class_jet
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.classes.reference import Reference
from gpcert.enclosures.classes.remainder import shrunk_bounds
from gpcert.enclosures.classes.sum_model import mean_sum_model
from gpcert.enclosures.classes.taylor_bound import Slopes
from gpcert.integrals.derivative_bounds import UNIMODAL_BOUNDS, unimodal_bound
from gpcert.likelihoods import ClassLikelihood
from gpcert.rounding import EXP_ULPS, down, gamma, nonnegative, root, up


class LogConcave:
    """Bounds of one class probability on a batch of cells."""

    def __init__(
        self,
        latent: LatentOutputs,
        layout: ClassLayout,
        likelihood: ClassLikelihood,
        place: Reference,
    ) -> None:
        self.latent = latent
        self.layout = layout
        self.likelihood = likelihood
        self.place = place

    def lower(self, c: int, jet: ClassJet) -> Array:
        """Certified lower bound (B,) of pi_c over each cell; `jet` is that of class c.

        Statement: with `e_k <= h_k` and `u.e <= h` on the cell, u > 0, F is at least its least
        value at the n points with all e_l = h_l but one, e_k, which is lowered until u.e = h (or
        at the corner itself, where it obeys u.e <= h).
        Reason: those points, and all below them, span {e <= h, u.e <= h} as a convex set; F falls
        with every e_k, and a log-concave function is at least its least value at the ends of any
        segment. For one difference that is exact; for two it is the zonotope of the means cut by
        its axes and by the slope of F, the direction in which a vertex is least.
        """
        xp = namespace(self.place.L)
        others = self._others(c)
        u = self._falling(c, jet)
        h = xp.stack([self._highest({k: 1.0, c: -1.0}) for k in others], axis=1)
        weights = {k: u[:, i] for i, k in enumerate(others)}
        top = self._highest({**weights, c: -xp.sum(u, axis=1)}, lost=u)
        # a huge cell may have no bound of a mean
        usable = xp.all(xp.isfinite(h), axis=1) & xp.isfinite(top)
        h = xp.where(usable[:, None], h, xp.zeros_like(h))
        top = xp.where(usable, top, xp.zeros_like(top))
        size = xp.sum(u * xp.abs(h), axis=1) + xp.abs(top)
        excess = nonnegative(down(xp.sum(u * h, axis=1) - top - gamma(16) * size, 4))
        best = None
        for i in range(len(others)):
            lowered = nonnegative(down(excess / u[:, i], 4))
            e = xp.stack([h[:, j] - (lowered if j == i else 0.0) for j in range(len(others))], 1)
            found = self._value(c, up(e, 2))
            best = found if best is None else xp.minimum(best, found)
        assert best is not None
        return nonnegative(xp.where(usable & ~xp.isnan(best), best, xp.zeros_like(best)))

    def upper(self, c: int, jet: ClassJet) -> Array:
        """Certified upper bound (B,) of pi_c over each cell.

        Statement: `F(e) <= F(e*) exp(g.(e - e*))`, g the gradient of log F at any e* (a concave
        function lies below its tangents); e* is taken near where F is largest.
        """
        xp = namespace(self.place.L)
        means, half = self.place.change.means, self.place.geometry.half
        first = self._raw(jet.derivatives[0])
        rise = xp.sum(first[:, :, None] * means.slope, axis=1)
        vertex = xp.where(rise > 0, half, -half)
        a = means.reference + xp.sum(means.slope * vertex[:, None, :], axis=2)
        own = class_jet(self.likelihood.moments(a, self.place.L, 2), c)
        low = down(own.value - own.errors[:, 0], 1)
        usable = low > 1e-12
        safe = xp.where(usable, low, xp.ones_like(low))
        slopes = Slopes.of(self.place, own, own.derivatives[1])
        raw = slopes.p
        slope = xp.where(usable[:, None], raw / safe[:, None], 0.0 * raw)
        weights = {k: slope[:, k - 1] for k in range(1, self.layout.classes)}
        top = self._highest({**weights, 0: -xp.sum(slope, axis=1)}, lost=xp.abs(slope))
        at = xp.sum(slope * a, axis=1)
        size = xp.sum(xp.abs(slope * a), axis=1) + xp.abs(top)
        move = top - at + gamma(2 * self.layout.classes + 8) * size
        # the gradient is known up to its error, the tangent's steepness with it
        reach = self._distance(a)
        # and 1 / low stands for 1 / F: |1/low - 1/F| <= 2 error / low^2
        length = root(xp.sum(own.derivatives[0] ** 2, axis=1)) + own.errors[:, 1]
        miss = slopes.gradient_error / safe
        miss = miss + length * (2.0 * own.errors[:, 0] + gamma(8)) / safe**2
        move = up(move + miss * reach, 16)
        growth = up(xp.exp(xp.minimum(move, xp.full_like(move, 50.0))), EXP_ULPS + 4)
        high = up(own.value + own.errors[:, 0], 1) * growth
        # where the value at e* is not known to be positive there is no tangent
        high = xp.where(usable & (move < 50.0), up(high, 4), xp.ones_like(high))
        return xp.clip(up(high + self._moved_anywhere(high), 2), 0.0, 1.0)

    def _others(self, c: int) -> list[int]:
        return [k for k in range(self.layout.classes) if k != c]

    def _falling(self, c: int, jet: ClassJet) -> Array:
        """(B, n): a direction u > 0 near minus the gradient of F in e; any would be valid."""
        xp = namespace(self.place.L)
        p = self._raw(jet.derivatives[0])
        whole = xp.concat([-xp.sum(p, axis=1, keepdims=True), p], axis=1)
        u = xp.stack([-whole[:, k] for k in self._others(c)], axis=1)
        largest = xp.max(u, axis=1, keepdims=True)
        largest = xp.where(largest > 0, largest, xp.ones_like(largest))
        return xp.maximum(u / largest, xp.full_like(u, 1e-3))

    def _raw(self, first: Array) -> Array:
        """Derivatives in the differences d from those in z."""
        xp = namespace(first)
        return (xp.matrix_transpose(self.place.R) @ first[:, :, None])[:, :, 0]

    def _highest(self, weights: dict, lost: Array | None = None) -> Array:
        """Certified upper bound (B,) of `sum_k weights_k f_k` over each cell; weights add up to 0.

        `lost` (B, n): sizes of weights whose sum rounded; that acts on a difference of the size of
        the means.
        """
        xp = namespace(self.place.L)
        one = xp.ones_like(self.place.geometry.rho2)
        spread = {k: -w * one for k, w in weights.items()}
        model, constant = mean_sum_model(self.latent, self.layout, spread)
        found = model.minimum().lower
        total = down(found + constant - gamma(8) * (xp.abs(found) + xp.abs(constant)), 2)
        if lost is not None:
            means = self.place.change.means
            reach = xp.sum(xp.abs(means.reference) + means.reach, axis=1)
            total = down(total - gamma(16) * xp.sum(lost, axis=1) * reach, 2)
        return -total

    def _value(self, c: int, e: Array) -> Array:
        """Certified lower bound (B,) of F at e for every covariance of the cell."""
        xp = namespace(e)
        others = self._others(c)
        # the change to differences from class 0 rounds: e is raised by as much before
        e = up(e + gamma(8) * xp.max(xp.abs(e), axis=1, keepdims=True), 2)
        base = e[:, others.index(0)] if c != 0 else 0.0 * e[:, 0]
        columns = []
        for k in range(1, self.layout.classes):
            columns.append((e[:, others.index(k)] if k != c else 0.0 * base) - base)
        d = xp.stack(columns, axis=1)
        finite = xp.all(xp.isfinite(d), axis=1)
        d = xp.where(finite[:, None], d, xp.zeros_like(d))
        own = class_jet(self.likelihood.moments(d, self.place.L, 2), c)
        low = own.value - own.errors[:, 0] - self._moved_at(own)
        return xp.where(finite, down(low, 4), xp.zeros_like(low))

    def _moved_at(self, own: ClassJet) -> Array:
        """Upper bound (B,) of |F(e, V) - F(e, V_0)| at the point e of a jet.

        The first-order term `<Q, V - V_0> / 2 = sum_j q_j (y_j - reference_j) / 2 - shift` is
        bounded as one function of x.
        """
        xp = namespace(self.place.L)
        variances, w = self.place.variances, self.place.sizes.spread
        slopes = Slopes.of(self.place, own, own.derivatives[1])
        slope = xp.sum(slopes.q[:, :, None] * variances.slope, axis=1)[:, None, :]
        linear = linear_reach(self.place.geometry, slope)[:, 0]
        # the sum over outputs rounds each entry of the slope; counted by the reaches
        J = slopes.q.shape[1]
        sizes = variances.bend + gamma(J + 8) * (variances.reach + variances.bend)
        bend = xp.sum(xp.abs(slopes.q) * sizes, axis=1)
        moved = xp.sum(xp.abs(variances.slope) * self.place.geometry.half[:, None, :], axis=2)
        bend = bend + gamma(J + 8) * xp.sum(xp.abs(slopes.q) * moved, axis=1)
        first = 0.5 * (linear + bend) + xp.abs(slopes.shift) + slopes.error
        bounds = shrunk_bounds(UNIMODAL_BOUNDS[:4], self.place.sizes.operator)
        known = xp.isfinite(bounds[3]) & xp.isfinite(w)
        w = xp.where(known, w, xp.zeros_like(w))
        fourth = xp.where(known, bounds[3], xp.zeros_like(w))
        finer = up(first + 0.125 * fourth * w * w, J + moved.shape[1] + 32)
        plain = up(0.5 * xp.where(known, bounds[1], xp.zeros_like(w)) * w, 4)
        infinite = xp.full_like(w, math.inf)
        return xp.where(known, xp.minimum(xp.where(xp.isnan(finer), plain, finer), plain), infinite)

    def _moved_anywhere(self, high: Array) -> Array:
        """The same at every e where `F(e, V_0) <= high`: `b2 w / 2`, b2 for a probability that is
        at most `high + b2 w / 2` on the way, first with the uniform b2."""
        xp = namespace(high)
        w, operator = self.place.sizes.spread, self.place.sizes.operator
        bound = shrunk_bounds(UNIMODAL_BOUNDS[:2], operator)[1]
        known = xp.isfinite(bound) & xp.isfinite(w)
        zero = xp.zeros_like(w)
        bound, w = xp.where(known, bound, zero), xp.where(known, w, zero)
        most = xp.clip(up(high + 0.5 * bound * w, 4), 0.0, 1.0)
        sharper = [unimodal_bound(order, zero, most) for order in (1, 2)]
        finer = xp.where(known, shrunk_bounds(sharper, operator)[1], zero)
        return xp.where(known, up(0.5 * finer * w, 4), xp.full_like(w, math.inf))

    def _distance(self, a: Array) -> Array:
        """Upper bound (B,) of |R (d - a)| over each cell."""
        xp = namespace(a)
        gap = xp.abs(a - self.place.change.means.reference)
        gap = gap + gamma(2) * (xp.abs(a) + xp.abs(self.place.change.means.reference))
        gap = (xp.abs(self.place.R) @ gap[:, :, None])[:, :, 0]
        length = root(xp.sum(gap * gap, axis=1)) * (1.0 + self.place.inflation)
        return up(self.place.sizes.mean + length, 32)
