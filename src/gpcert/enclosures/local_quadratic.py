"""The type that crosses every arrow: a quadratic lower model of a function on a cell.

    exp(rate |d|^2) q(c+d) >= value + gradient.d + d^T hessian d / 2 - error,  all d of the cell.

An upper bound of q is a lower bound of -q: each side is written once.

Proofs: docs/mathematics.md, statement 5.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.enclosures.quadratic_minimum import quadratic_minimum
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.kernels.exponentials import LARGEST_EXPONENT, growth_chord
from gpcert.rounding import EXP_ULPS, U, down, gamma, up

__all__ = ["LevelBound", "LocalQuadratic", "add_identity", "usable_error"]


@dataclass(frozen=True, eq=False)
class LevelBound:
    """`lower` (B,): certified bound of q; `point` (B, f): a displacement where q may be small."""

    lower: Array
    point: Array


def usable_error(error: Array, geometry: Geometry, rate: float) -> Array:
    """The error of a model, infinite on cells too large for its weight (see `LARGEST_EXPONENT`)."""
    xp = namespace(error)
    void = xp.full_like(error, math.inf)
    small = geometry.rho2 <= (LARGEST_EXPONENT if rate > 0 else math.inf)
    return xp.where(small & ~xp.isnan(error), error, void)


def add_identity(hessian: Array, amount: Array) -> Array:
    """`hessian + amount I` for a batch."""
    xp = namespace(hessian)
    identity = xp.eye(hessian.shape[-1], dtype=hessian.dtype, device=hessian.device)
    return hessian + amount[:, None, None] * identity


@dataclass(frozen=True, eq=False)
class LocalQuadratic:
    """See the module. `value`, `error` (B,), `gradient` (B, f), `hessian` (B, f, f)."""

    value: Array
    gradient: Array
    hessian: Array
    error: Array
    rate: float

    def take(self, index: Array) -> LocalQuadratic:
        """The same for some of the cells."""
        return LocalQuadratic(
            self.value[index],
            self.gradient[index],
            self.hessian[index],
            self.error[index],
            self.rate,
        )

    def at(self, d: Array) -> Array:
        """The polynomial at displacements d (B, f), in plain floating point."""
        xp = namespace(d)
        bend = (self.hessian @ d[:, :, None])[:, :, 0]
        return self.value + xp.sum(d * (self.gradient + 0.5 * bend), axis=1)

    def value_at(self, d: Array) -> Array:
        """About the smallest value that the model allows q at d; finite, so a usable level."""
        xp = namespace(d)
        error = xp.where(xp.isfinite(self.error), self.error, xp.zeros_like(self.error))
        return (self.at(d) - error) * xp.exp(-self.rate * xp.sum(d**2, axis=1))

    def bound_at(self, geometry: Geometry, level: Array) -> LevelBound:
        """Certified lower bound of q over the cells, by testing `q >= level`.

        Statement: with M <= min [exp(rate|d|^2) (q - level)],
        `q >= level + M` if M < 0, and `q >= level + M exp(-rate rho2)` if M >= 0.
        Reason: q - level = exp(-rate |d|^2) (...) and exp(-rate |d|^2) lies in
        [exp(-rate rho2), 1]. The weight itself obeys 1 + rate |d|^2 <= exp(rate |d|^2) <=
        1 + growth_chord |d|^2, taken on the safe side for the sign of the level. Any finite level
        is valid; the bound is best when the level is close to the true minimum.
        """
        xp = namespace(self.value)
        hessian = self.hessian
        slack = self.error
        if self.rate > 0:
            rate = xp.where(
                level > 0,
                growth_chord(self.rate, geometry.rho2),
                xp.full_like(level, self.rate),
            )
            amount = -2.0 * level * rate
            hessian = add_identity(hessian, amount)
            # rounding of hessian + amount I, entry by entry
            diagonal = xp.sum(xp.abs(xp.linalg.diagonal(hessian)) * geometry.half**2, axis=1)
            slack = slack + up(gamma(4) * (diagonal + xp.abs(amount) * geometry.rho2), 8)
        minimum = quadratic_minimum(geometry, self.gradient, hessian)
        margin = (self.value - level) + minimum.lower - slack
        size = xp.abs(self.value) + xp.abs(level) + xp.abs(minimum.lower) + slack
        margin = margin - gamma(8) * size
        if self.rate > 0:
            x = xp.minimum(self.rate * geometry.rho2, xp.full_like(level, LARGEST_EXPONENT))
            shrunk = margin * xp.exp(-up(x, 2)) * (1.0 - 2 * (EXP_ULPS + 4) * U)
            shrunk = xp.where(self.rate * geometry.rho2 < LARGEST_EXPONENT, shrunk, 0.0 * level)
            margin = xp.where(margin > 0, shrunk, margin)
        return LevelBound(down(level + margin, 2), minimum.point)

    def bound(self, geometry: Geometry, steps: int = 2) -> LevelBound:
        """Lower bound of q, the level improved from step to step; starts at the linear part."""
        xp = namespace(self.value)
        level = self.value - xp.sum(xp.abs(self.gradient) * geometry.half, axis=1)
        best = self.bound_at(geometry, level)
        for _ in range(steps - 1):
            usable = xp.where(xp.isfinite(best.lower), best.lower, level)
            again = self.bound_at(geometry, usable)
            better = again.lower > best.lower
            best = LevelBound(
                xp.where(better, again.lower, best.lower),
                xp.where(better[:, None], again.point, best.point),
            )
        return best
