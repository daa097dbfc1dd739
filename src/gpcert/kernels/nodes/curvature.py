"""Second derivatives of radial kernels along a fixed direction u, inside a region, as nodes.

In scaled coordinates, with `b = u.(z - x)` and radial kernels k1 = s F_1(r), k2 = s F_2(r),

    D_u^2 k(x, z) = b^2 k2(x, z) - |u|^2 k1(x, z) = b D_u k1(x, z) - |u|^2 k1(x, z).

Proofs: docs/mathematics.md, statement 19.16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.kernels.nodes.base import (
    DerivativeBounds,
    Jet,
    KnownBatch,
    LocalNode,
    NodeBatch,
    Triple,
)
from gpcert.kernels.nodes.composite import ProductBatch
from gpcert.kernels.nodes.radial import LocalRadial
from gpcert.kernels.nodes.radial_profiles import RadialProfile, infinite_beyond_zero
from gpcert.kernels.nodes.slopes import DerivedProfile, RadialSlope, RadialSlopeBatch, derived
from gpcert.kernels.sizes import raised
from gpcert.numerics.arrays import Array, PerCellAndPoint, PerFeature, Points, namespace
from gpcert.numerics.rounding import POW_ULPS, gamma, up, up_float
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class RadialCurvature(LocalNode):
    """`D_u^2 k`: `turn` is `D_u k1` of the derived kernel k1, `flat` k1 itself; `squared` is about
    |u|^2 in scaled coordinates."""

    turn: RadialSlope
    flat: LocalRadial
    squared: float
    features: int

    @staticmethod
    def build(
        points: Points,
        lengths: PerFeature,
        kernel: tuple[float, RadialProfile],
        direction: PerFeature,
        frame: Frame,
    ) -> RadialCurvature:
        """Of the kernel with that variance and profile."""
        variance, profile = kernel
        derivative = derived(profile)
        factor = derivative.factor if isinstance(derivative, DerivedProfile) else 1.0
        first = (variance / factor, derivative)
        along = direction / lengths
        return RadialCurvature(
            RadialSlope.build(points, lengths, first, direction, frame),
            LocalRadial.build(points, lengths, *first, frame),
            float(np.sum(along * along)),
            len(lengths),
        )

    @np.errstate(over="ignore", invalid="ignore")
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """Statement 19.16: `E (w.u)^4 (w.d)^(2n) <= (2n+3)!! F_(n+2)(0) |u|^4 rho^(2n)`; a step is
        at most twice the largest length."""
        radial, profile = self.turn.radial, self.turn.radial.profile
        rho2 = geometry.squared_norm(radial.metric)
        xp, squared = namespace(rho2), self.turn.squared
        size = up_float(radial.variance * up_float(squared * squared, 1), 2)
        moments = []
        for n, factor in enumerate((3.0, 15.0, 105.0, 945.0)):
            most = up_float(factor * profile.at_zero[n] * size, 4) if squared else 0.0
            if not math.isfinite(most):
                moments.append(infinite_beyond_zero(rho2))
                continue
            power = xp.where(rho2 > 0, rho2, xp.ones_like(rho2)) ** n
            term = raised(most * power, POW_ULPS + 4)
            moments.append(term if n == 0 else xp.where(rho2 > 0, term, xp.zeros_like(rho2)))
        none = xp.zeros_like(rho2)
        zeroth = xp.where(rho2 > 0, up(2.0 * xp.sqrt(moments[0]), 4), none)
        unknown = infinite_beyond_zero(rho2) if squared else none
        return DerivativeBounds(radial.gram_of(moments, rho2), (zeroth, unknown, unknown), True)

    @np.errstate(over="ignore", invalid="ignore")
    def at(self, geometry: ScaledCells) -> RadialCurvatureBatch:
        turn, flat, f = self.turn.at(geometry), self.flat.at(geometry), geometry.half.shape[1]
        bent = ProductBatch.of(turn.left, turn, f)
        value = bent.value - self.squared * flat.value
        slack, sizes, errors = gamma(self.features + 16), [], []
        for n in range(3):
            size = up(bent.sizes[n] + self.squared * flat.sizes[n], 8)
            error = bent.errors[n] + self.squared * (flat.errors[n] + slack * flat.sizes[n])
            rounding = gamma(4 * (1 + math.isqrt(f))) * size
            sizes.append(up(size, self.features + 8))
            errors.append(up(error + rounding, self.features + 8))
        return RadialCurvatureBatch(
            value, tuple(sizes), tuple(errors), bent, flat, turn, self.squared
        )


@dataclass(frozen=True, eq=False)
class RadialCurvatureBatch(KnownBatch):
    """`bent` less `squared` times `flat`."""

    bent: ProductBatch
    flat: NodeBatch
    turn: RadialSlopeBatch
    squared: float

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """Leibniz, as of a slope: the linear functions differ by constants."""
        xp, slope = namespace(coefficients), self.turn.left.slope
        first = self.turn.contract(coefficients * self.turn.left.value)
        second = self.turn.contract(coefficients)
        third = self.flat.contract(-self.squared * coefficients)
        crossed = slope[None, :, None] * second.gradient[:, None, :]
        return Jet(
            xp.sum(coefficients * self.value, axis=1),
            first.gradient + second.value[:, None] * slope + third.gradient,
            first.hessian + (crossed + xp.matrix_transpose(crossed)) + third.hessian,
        )

    def gradients(self) -> Annotated[Array, "B f N"]:
        return self.bent.gradients() - self.squared * self.flat.gradients()

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """Leibniz, as of any product; the linear functions have no more than one derivative."""
        pairs = zip(self.bent.variations(), self.flat.variations(), strict=True)
        return tuple(up(bent + self.squared * flat, 16) for bent, flat in pairs)

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        raise NotImplementedError("a second derivative's own variance is not bounded")


__all__ = ["RadialCurvature", "RadialCurvatureBatch"]
