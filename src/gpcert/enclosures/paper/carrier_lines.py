"""Every carrier as an exactly linear function of lifted coordinates, rounding counted.

    | phi(x, z_i) - (constant_i + G_i.w(x)) | <= error_i      for all x of the cell.

One function a type of carrier, found by `lift`; see `gpcert.enclosures.paper.lifted` for w.

Proofs: docs/mathematics.md, statement 12.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.errors import InputError
from gpcert.kernels.lines.base import Carrier
from gpcert.kernels.lines.exponential_carrier import ExponentialCarrier
from gpcert.kernels.lines.linear_carrier import LinearCarrier
from gpcert.kernels.lines.quadratic_carrier import QuadraticCarrier
from gpcert.kernels.lines.sinusoid_carrier import SinusoidCarrier
from gpcert.rounding import EXP_ULPS, SIN_COS_ULPS, TINY, down, gamma, root, up


@dataclass(frozen=True, eq=False)
class LiftedCarrier:
    """`constant`, `error` (B, N) and slopes (B, N, .) on displacements, squares, cosines and sines
    and factors; None where there are none. `columns` says which features the displacements are, or
    is None where they are the carrier's own, `|e| <= half`. `spreads`, `least` and `most` are as in
    `LiftedBox`.
    """

    constant: Array
    error: Array
    columns: np.ndarray | None = None
    half: Array | None = None
    displacements: Array | None = None
    squares: Array | None = None
    cosines: Array | None = None
    sines: Array | None = None
    spreads: Array | None = None
    factors: Array | None = None
    least: Array | None = None
    most: Array | None = None


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

    Rounding: u is off by at most `gamma(8) extent` in norm, scales by one rounding, so that
    everything is off by `gamma(32) (|scaled half| + extent)^2`, and the constant by f + 16
    roundings of its positive terms.
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
        columns=carrier.columns,
        half=carrier.half,
        displacements=-2.0 * scale * u,
        squares=(scale * scale)[None, None, :] + xp.zeros_like(u),
    )


@lift.register
def _linear(carrier: LinearCarrier) -> LiftedCarrier:
    """Linear already; slopes are known up to `roundings` and underflow."""
    xp, half = namespace(carrier.values), carrier.reach.half
    slopes = carrier.slopes[None, :, :] + xp.zeros_like(carrier.values)[:, :, None]
    lost = TINY * xp.sum(half, axis=1)[:, None]
    columns = carrier.reach.columns
    error = carrier.errors + gamma(carrier.roundings) * carrier.spread + lost
    return LiftedCarrier(
        constant=carrier.values,
        error=up(error, 4),
        columns=columns,
        half=half,
        displacements=slopes,
        squares=xp.zeros_like(slopes),
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
        cosines=cosines,
        sines=sines,
        spreads=carrier.spreads,
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
        factors=carrier.values[:, :, None],
        least=xp.where(least > 0, least, xp.zeros_like(least)),
        most=most,
    )
