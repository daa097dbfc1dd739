"""Quadratic lower models without a weight, in the region's units: those of several kernels add up.

    q(c + unit y) >= value + gradient.y + y^T hessian y / 2 - error,   for all of the cell,

the units being powers of two near the region's widths: second derivatives are then floats
whatever the length-scales are.

A `LocalQuadratic` is sharper, but its weight and its coordinates are those of one kernel alone.

Proofs: docs/mathematics.md, statement 5.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import device

from gpcert.arrays import Array, namespace
from gpcert.enclosures.local_quadratic import LevelBound, LocalQuadratic
from gpcert.enclosures.quadratic_minimum import quadratic_minimum
from gpcert.kernels.expansions.base import finite_product
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.regions import Cells
from gpcert.regions.frame import power_of_two
from gpcert.rounding import down, gamma, nonnegative, up

__all__ = ["PlainQuadratic", "plain_geometry", "region_units"]


@dataclass(frozen=True, eq=False)
class PlainQuadratic:
    """See the module. `value`, `error`, `size` (B,), `gradient` (B, f), `hessian` (B, f, f).

    `size` is at least `|value| + sum |gradient_j| w_j + sum |hessian_jk| w_j w_k`, w the cell's
    half-widths: what the rounding of later operations is counted by.
    """

    value: Array
    gradient: Array
    hessian: Array
    error: Array
    size: Array

    @staticmethod
    def of(model: LocalQuadratic, geometry: Geometry, linear_error: Array) -> PlainQuadratic:
        """Take the weight away and go to the region's units.

        Statement: let `omega q >= value + p(d) - error`, omega = exp(r |d|^2), p(0) = 0, p <= M on
        the cell, x = r rho2. Then `q >= value + p(d) - value s |d|^2 - M min(x, 1) - error` with
        s = r where value > 0, and any 0 <= s <= r (1 - x / 2) elsewhere.
        Reason: `m / omega = m - m (1 - 1/omega)` for m = value + p - error, where error >= 0 and
        `0 <= 1 - 1/omega <= min(r |d|^2, x, 1)`; 1 - exp(-y) is concave, so that it is at least
        `y (1 - exp(-x)) / x >= y (1 - x / 2)` for 0 <= y <= x.

        Where q is known to be within `linear_error` of `value + gradient.d`, and that is less than
        the error with all of the quadratic's curvature, the linear model is taken instead.
        """
        xp = namespace(model.value)
        half = geometry.half
        scale = geometry.inverse_length * region_units(geometry.cells)
        slopes = xp.sum(xp.abs(model.gradient) * half, axis=1)
        bends = xp.sum(xp.abs(model.hessian) * (half[:, :, None] * half[:, None, :]), axis=(1, 2))
        value, hessian, error = model.value, model.hessian, model.error
        zero = xp.zeros_like(value)
        if model.rate > 0:
            x = up(model.rate * geometry.rho2, 2)
            fall = nonnegative(down(model.rate * (1.0 - 0.5 * x), 2))
            amount = -2.0 * value * xp.where(value > 0, zero + model.rate, fall)
            hessian = hessian + amount[:, None, None] * _identity(hessian)
            most = up(slopes + 0.5 * bends, 2 * half.shape[1] ** 2 + 8)
            bends = bends + xp.abs(amount) * xp.sum(half**2, axis=1)
            error = error + finite_product(xp.minimum(x, zero + 1.0), most)
        size = up(xp.abs(value) + slopes + bends, 2 * half.shape[1] ** 2 + 16)
        error = up(error + gamma(16) * size, 4)
        linear = linear_error < error + 0.5 * bends
        unit = scale[..., :, None] * scale[..., None, :]  # (f, f), or per cell
        return PlainQuadratic(
            value,
            model.gradient * scale,
            xp.where(linear[:, None, None], xp.zeros_like(hessian), hessian * unit),
            xp.where(linear, up(linear_error + gamma(16) * size, 4), error),
            size,
        )

    def scaled(self, factor: Array) -> PlainQuadratic:
        """A model of `factor q` for factors (B,) >= 0."""
        size = up(factor * self.size, 1)
        return PlainQuadratic(
            factor * self.value,
            factor[:, None] * self.gradient,
            factor[:, None, None] * self.hessian,
            up(finite_product(factor, self.error) + gamma(4) * size, 2),
            size,
        )

    def shifted(self, constant: Array, size: Array) -> PlainQuadratic:
        """A model of q + constant, the constant computed from numbers of the given size in all."""
        xp = namespace(self.value)
        rounding = gamma(4) * (xp.abs(self.value) + size)
        return PlainQuadratic(
            self.value + constant,
            self.gradient,
            self.hessian,
            up(self.error + rounding, 2),
            up(self.size + size, 2),
        )

    def lowered(self, amount: Array) -> PlainQuadratic:
        """The same with a larger error."""
        error = up(self.error + amount, 1)
        return PlainQuadratic(self.value, self.gradient, self.hessian, error, self.size)

    def where(self, mask: Array, other: PlainQuadratic) -> PlainQuadratic:
        """This model under the mask (B,), the other one elsewhere."""
        xp = namespace(mask)
        return PlainQuadratic(
            xp.where(mask, self.value, other.value),
            xp.where(mask[:, None], self.gradient, other.gradient),
            xp.where(mask[:, None, None], self.hessian, other.hessian),
            xp.where(mask, self.error, other.error),
            xp.where(mask, self.size, other.size),
        )

    @staticmethod
    def total(parts: Sequence[PlainQuadratic]) -> PlainQuadratic:
        """A model of the sum."""
        n = len(parts)
        size = up(sum(part.size for part in parts), n)
        error = sum(part.error for part in parts) + gamma(n + 2) * size
        return PlainQuadratic(
            sum(part.value for part in parts),
            sum(part.gradient for part in parts),
            sum(part.hessian for part in parts),
            up(error, n + 2),
            size,
        )

    def bound(self, geometry: Geometry) -> LevelBound:
        """Lower bound over the cells, whose `plain_geometry` is given; -inf where none is known.

        The point is a displacement in the user's units.
        """
        xp = namespace(self.value)
        minimum = quadratic_minimum(geometry, self.gradient, self.hessian)
        lower = self.value + minimum.lower - self.error
        size = xp.abs(self.value) + xp.abs(minimum.lower) + self.error
        lower = down(lower - gamma(8) * size, 2)
        none = xp.full_like(lower, -math.inf)
        point = geometry.unscaled(minimum.point)
        return LevelBound(xp.where(xp.isnan(lower), none, lower), point)


def plain_geometry(cells: Cells) -> Geometry:
    """The cells in their region's units."""
    xp, unit = namespace(cells.lower), region_units(cells)
    return Geometry.of(cells, 1.0 / unit, xp.ones_like(unit), unit)


def region_units(cells: Cells) -> Array:
    """(f,) powers of two near the widths of the region in its free features."""
    region = cells.region
    widths = (region.upper - region.lower)[region.free]
    widths = np.where((widths > 0) & np.isfinite(widths), widths, np.inf)
    return namespace(cells.lower).asarray(power_of_two(widths), device=device(cells.lower))


def _identity(hessian: Array) -> Array:
    xp = namespace(hessian)
    return xp.eye(hessian.shape[-1], dtype=hessian.dtype, device=hessian.device)
