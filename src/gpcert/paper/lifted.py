"""Lifted coordinates: functions of x in which every carrier is exactly linear.

    phi(x, z_i) = constant_i + G_i.w(x),     w = (e, e^2, cos a, sin a, s).

`e` are displacements from the cell's centre, one per feature, `e^2` their squares, `a` angles of
periodic parts and `s` factors of exponential ones: all points share them, which is never looser
than the paper's slack variables phi_ij. `lift`, one function a type of carrier, bounds the
error that rounding adds, `|phi(x, z_i) - (constant_i + G_i.w(x))| <= error_i` on the cell.

Proofs: docs/mathematics.md, statement 12.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Annotated, Literal

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import Array, PerVector, namespace
from gpcert.numerics.rounding import (
    EXP_ULPS,
    SIN_COS_ULPS,
    TINY,
    down,
    gamma,
    nonnegative,
    root,
    up,
)
from gpcert.paper.lines.carriers import (
    Carrier,
    ExponentialCarrier,
    LinearCarrier,
    QuadraticCarrier,
    SinusoidCarrier,
    sinusoid_minimum,
)
from gpcert.regions import Cells


@dataclass(frozen=True, eq=False)
class LiftedBox:
    """All values of w on a batch of cells: `|e| <= half` (B, P), `|a| <= spreads` (B, R), `s`
    between `least` and `most` (B, T). The first `features` of the P displacements are those of the
    cells' free features in frame units (`unit`, powers of two).

    Columns of coefficients (B, M, K): P displacements, P squares, R cosines, R sines, T factors.
    """

    half: Array
    spreads: Array
    least: Array
    most: Array
    cells: Cells
    unit: Array

    @property
    def features(self) -> int:
        """How many displacements are features of the region."""
        return int(self.cells.lower.shape[1])

    @property
    def columns(self) -> int:
        """K."""
        return 2 * self.half.shape[1] + 2 * self.spreads.shape[1] + self.least.shape[1]

    @cached_property
    @np.errstate(over="ignore")
    def sizes(self) -> Annotated[Array, "B K"]:
        """(B, K): upper bounds of |w_k|."""
        xp = namespace(self.half)
        ones = xp.ones_like(self.spreads)
        square = xp.where(self.half > 0, up(self.half**2, 2), xp.zeros_like(self.half))
        factor = xp.maximum(xp.abs(self.least), xp.abs(self.most))
        return xp.concat([self.half, square, ones, ones, factor], axis=1)

    @np.errstate(over="ignore", invalid="ignore")
    def minimum(self, coefficients: Array, errors: Array) -> Annotated[Array, "B M"]:
        """Certified lower bound (B, M) of `min c.w` for coefficients c (B, M, K) within `errors`.

        Statement: the minimum over each displacement of `g e + c e^2` is at an end, or at
        `-g / (2 c)` inside, `-g^2 / (4 c)`; that over an angle is `sinusoid_minimum`; that over a
        factor at an end. Together they are below the minimum over x; the linear part is also
        bounded over a ball. Rounding: 8 operations on terms of sizes `|c| half^2` and `|g| half`;
        an error of a coefficient costs it times `|w_k|`.
        """
        xp, P, R = namespace(coefficients), self.half.shape[1], self.spreads.shape[1]
        g, c = coefficients[..., :P], coefficients[..., P : 2 * P]
        cosine, sine = coefficients[..., 2 * P : 2 * P + R], coefficients[..., 2 * P + R :]
        sine, factor = sine[..., :R], sine[..., R:]
        half = self.half[:, None, :] + xp.zeros_like(g)
        slope, bend = xp.abs(g) * half, xp.abs(c) * half * half
        total = xp.sum(_parabola(g, c, half), axis=-1)
        size = xp.sum(slope + bend, axis=-1)
        if self.cells.region.bounds_cells:
            total = xp.maximum(total, self._over_ball(g, c, half))
        if R:
            spread = self.spreads[:, None, :] + xp.zeros_like(cosine)
            length = xp.abs(cosine) + xp.abs(sine)
            slack = up(2.0 * gamma(2 * SIN_COS_ULPS + 16) * length, 4)
            total = total + xp.sum(sinusoid_minimum(cosine, -sine, spread, slack), axis=-1)
            size = size + xp.sum(length + slack, axis=-1)
        if factor.shape[-1]:
            ends = xp.where(factor > 0, self.least[:, None, :], self.most[:, None, :])
            total = total + xp.sum(factor * ends, axis=-1)
            size = size + xp.sum(xp.abs(factor * ends), axis=-1)
        K = coefficients.shape[-1]
        off = xp.sum(errors * self.sizes[:, None, :], axis=-1)
        return finite_or_none(total - (up(gamma(K + 16) * size + off, K + 16) + TINY * (K + 1)))

    def _over_ball(self, g: Array, c: Array, half: Array) -> Array:
        """`min g.e` over the part of the ball in the cell, and `c e^2 >= min(c, 0) half^2`."""
        xp, f = namespace(g), self.features
        linear = self.cells.scaled_minimum(g[..., :f], 1.0 / self.unit)
        bend = up(xp.sum(nonnegative(-c[..., :f]) * half[..., :f] ** 2, axis=-1), f + 8)
        P, g, c, half = g.shape[-1], g[..., f:], c[..., f:], half[..., f:]
        size = xp.sum(xp.abs(g) * half, axis=-1) + xp.sum(xp.abs(c) * half**2, axis=-1)
        total = linear - bend + xp.sum(_parabola(g, c, half), axis=-1)
        return total - up(gamma(P + 16) * (size + xp.abs(linear) + bend), P + 8)

    def minimiser(self, coefficients: Array) -> Annotated[Array, "B M f"]:
        """(B, M, f): displacements of the features at which the parabolas are least."""
        xp, P, f = namespace(coefficients), self.half.shape[1], self.features
        g, c = coefficients[..., :f], coefficients[..., P : P + f]
        half = self.half[:, None, :f] + xp.zeros_like(g)
        inside = (c > 0) & (xp.abs(g) < 2.0 * c * half)
        middle = -g / xp.where(inside, 2.0 * c, xp.ones_like(c))
        return xp.where(inside, middle, xp.where(g > 0, -half, half))


def finite_or_none(bound: PerVector) -> PerVector:
    """The lower bound, or -inf where an overflow left nothing."""
    xp = namespace(bound)
    return xp.where(xp.isfinite(bound), bound, xp.full_like(bound, -math.inf))


def _parabola(g: Array, c: Array, half: Array) -> Array:
    """`min g e + c e^2` over |e| <= half, elementwise, up to 8 roundings of the terms."""
    xp = namespace(g)
    ends = c * half * half - xp.abs(g) * half
    inside = (c > 0) & (xp.abs(g) < 2.0 * c * half)
    safe = xp.where(inside, 4.0 * c, xp.ones_like(c))
    # g (g / c), not g^2 / c: the square of 1e-160 would vanish
    return xp.where(inside, -xp.abs(g) * (xp.abs(g) / safe), ends)


@dataclass(frozen=True, eq=False)
class LiftedCarrier:
    """`constant`, `error` (B, N) and slopes (B, N, .) on coordinates of one kind.

    `slopes` are those on displacements and squares ("parabola"), on cosines and sines ("angle"), or
    on factors; `ranges` what the `LiftedBox` says of them: `half`, `spreads`, or `least` and
    `most`. `columns` says which features the displacements are; None: coordinates of its own.
    """

    constant: Array
    error: Array
    kind: Literal["parabola", "angle", "factor"]
    slopes: tuple[Array, ...]
    ranges: tuple[Array, ...]
    columns: np.ndarray | None = None


@singledispatch
def lift(carrier: Carrier) -> LiftedCarrier:
    """The carrier in lifted coordinates.

    A quadratic carrier without `columns` gets displacements of its own: sound, but its coordinates
    are then not tied to those of other parts of the kernel.
    """
    raise InputError(
        f"method='paper' knows no linear form of the carrier {type(carrier).__name__}; "
        "use method='taylor'"
    )


@lift.register
def _quadratic(carrier: QuadraticCarrier) -> LiftedCarrier:
    """`sum_j (scale_j e_j - u_ij)^2 + fixed_i`, u = z - c scaled.

    Rounding: u is off by at most `gamma(8) extent` in norm, scales by one rounding: all is off by
    `gamma(32) (|scaled half| + extent)^2`, the constant by f + 16 roundings of its terms >= 0.
    """
    xp = namespace(carrier.centers)
    f = carrier.points.shape[1]
    scale = xp.ones_like(carrier.half[0]) if carrier.columns is None else carrier.scale
    u = carrier.points[None, :, :] - carrier.centers[:, None, :]
    constant = xp.sum(u * u, axis=2) + carrier.fixed[None, :]
    reach = root(xp.sum(carrier.half**2, axis=1))[:, None] + carrier.extents[None, :]
    error = gamma(32) * up(reach, f + 8) ** 2 + gamma(f + 16) * constant
    error = error + carrier.fixed_error * carrier.fixed[None, :]
    return LiftedCarrier(
        constant=constant,
        error=up(error, 8) + TINY,
        kind="parabola",
        slopes=(-2.0 * scale * u, (scale * scale)[None, None, :] + xp.zeros_like(u)),
        ranges=(carrier.half,),
        columns=carrier.columns,
    )


@lift.register
def _linear(carrier: LinearCarrier) -> LiftedCarrier:
    """Linear already; slopes are known up to `roundings` and underflow."""
    xp, half = namespace(carrier.values), carrier.geometry.half
    slopes = carrier.slopes[None, :, :] + xp.zeros_like(carrier.values)[:, :, None]
    lost = TINY * xp.sum(half, axis=1)[:, None]
    error = carrier.errors + gamma(carrier.roundings) * carrier.spread + lost
    return LiftedCarrier(
        constant=carrier.values,
        error=up(error, 4),
        kind="parabola",
        slopes=(slopes, xp.zeros_like(slopes)),
        ranges=(half,),
        columns=carrier.geometry.features,
    )


@lift.register
def _sinusoid(carrier: SinusoidCarrier) -> LiftedCarrier:
    """`A cos(p + e) = A cos p cos e - A sin p sin e`, exactly.

    Cosines and sines are off by the phases' errors and `gamma(6 SIN_COS_ULPS + 40)`, amplitudes by
    8 roundings; both meet cos e and sin e, at most sqrt(2) together.
    """
    xp = namespace(carrier.cosines)
    f = carrier.amplitudes.shape[0]
    amplitude = carrier.amplitudes[None, :, None]
    off = carrier.phase_errors + gamma(6 * SIN_COS_ULPS + 40)
    error = xp.sum(2.0 * amplitude * off, axis=1) + carrier.constant_errors[None, :]
    cosines = xp.permute_dims(amplitude * carrier.cosines, (0, 2, 1))
    sines = xp.permute_dims(-amplitude * carrier.sines, (0, 2, 1))
    return LiftedCarrier(
        constant=carrier.constants[None, :] + xp.zeros_like(error),
        error=up(error, f + 8) + TINY,
        kind="angle",
        slopes=(cosines, sines),
        ranges=(carrier.spreads,),
    )


@lift.register
def _exponential(carrier: ExponentialCarrier) -> LiftedCarrier:
    """`value_i s`, s = e^t, `|t| <= spread`; an error of the value meets s."""
    xp = namespace(carrier.values)
    with np.errstate(over="ignore"):
        most = up(xp.exp(carrier.spread), EXP_ULPS + 2)[:, None]
        least = down(xp.exp(-carrier.spread), EXP_ULPS + 2)[:, None]
        finite = xp.isfinite(carrier.errors)
        known = xp.where(finite, carrier.errors, xp.zeros_like(carrier.errors))
        error = xp.where(finite, up(known * most, 2), carrier.errors)
    return LiftedCarrier(
        constant=xp.zeros_like(carrier.values),
        error=error,
        kind="factor",
        slopes=(carrier.values[:, :, None],),
        ranges=(xp.where(least > 0, least, xp.zeros_like(least)), most),
    )
