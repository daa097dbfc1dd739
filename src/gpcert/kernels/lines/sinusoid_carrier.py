"""The carrier of periodic kernels: a sum of one sinusoid of each coordinate, or of one phase.

Proofs: docs/mathematics.md, statement 12.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.base import Carrier
from gpcert.rounding import SIN_COS_ULPS, TINY, gamma, root, up

HALF_TURN = 3.14
"""An interval of at least this half-width may hold a sinusoid's minimum wherever it begins."""


def sinusoid_minimum(C: Array, S: Array, spread: Array, error: Array) -> Array:
    """Lower bound of `C cos e - S sin e` over |e| <= spread.

    Statement: it is least at an end, `C cos u - |S| sin u`, or, once its derivative there,
    `-C sin u - |S| cos u`, has become positive, it has passed `-sqrt(C^2 + S^2)`. `error` is twice
    a bound of the errors of C and of S, and of `gamma(2 SIN_COS_ULPS + 16)` times their sizes: both
    forms and the derivative's sign are known within it.
    """
    xp = namespace(C)
    S = xp.abs(S)
    u = xp.minimum(spread, xp.full_like(spread, HALF_TURN))
    cosine, sine = xp.cos(u), xp.sin(u)
    passed = (-C * sine - S * cosine >= -error) | (spread >= HALF_TURN)
    return xp.where(passed, -root(C * C + S * S), C * cosine - S * sine) - error


@dataclass(frozen=True, eq=False)
class SinusoidCarrier(Carrier):
    """`phi(x, z_i) = constant_i + sum_j amplitude_j cos(phase_bij + e_j)`, `|e_j| <= spread_bj`.

    The e_j move freely and independently: they are the displacements of the coordinates, or (f = 1)
    that of one phase. `cosines` and `sines` (B, f, N), at most 1 in size, are those of the phases
    at the centres, within `phase_errors` (at most 2) and a few roundings; `amplitudes` (f,) >= 0
    carry at most 8 roundings, `constants` (N,) the errors `constant_errors` (N,).
    """

    constants: Array
    constant_errors: Array
    amplitudes: Array
    cosines: Array
    sines: Array
    phase_errors: Array
    spreads: Array

    @np.errstate(over="ignore")
    def magnitude(self) -> Array:
        """`|constant_i| + sum_j amplitude_j`, rounded up."""
        xp = namespace(self.constants)
        total = xp.abs(self.constants) + self.constant_errors + xp.sum(self.amplitudes)
        row = up(total, len(self.amplitudes) + 12)
        zero = xp.zeros_like(xp.sum(self.spreads, axis=1))
        return row[None, :] + zero[:, None]

    @np.errstate(over="ignore", invalid="ignore")
    def minimum(self, coefficients: Array) -> Array:
        """`sum_i a_i constant_i`, and for each j the exact minimum of *one* sinusoid.

        Summed over the points first, `sum_i a_i cos(p_i + e) = C cos e - S sin e` is one sinusoid.
        The paper (eq. "priodicU") bounds every point apart, which is never better: `min sum >= sum
        min`.
        """
        xp = namespace(coefficients)
        (_, N), f = coefficients.shape, len(self.amplitudes)
        sizes = xp.abs(coefficients)
        weighted = coefficients[:, None, :]
        C = self.amplitudes * xp.sum(self.cosines * weighted, axis=2)
        S = self.amplitudes * xp.sum(self.sines * weighted, axis=2)
        moved = xp.sum(self.phase_errors * sizes[:, None, :], axis=2)
        whole = xp.sum(sizes, axis=1)[:, None]
        error = self.amplitudes * (moved + gamma(N + 6 * SIN_COS_ULPS + 40) * whole)
        error = up(2.0 * error, N + 16)
        parts = sinusoid_minimum(C, S, self.spreads, error)
        flat = xp.sum(coefficients * self.constants, axis=1)
        lost = xp.sum(sizes * self.constant_errors, axis=1)
        lost = lost + gamma(N + f + 16) * xp.sum(sizes * xp.abs(self.constants), axis=1)
        lost = lost + gamma(f + 16) * xp.sum(xp.abs(parts), axis=1)
        total = flat + xp.sum(parts, axis=1) - up(lost, N + f + 16) - TINY * N
        return xp.where(xp.isfinite(total), total, xp.full_like(total, -math.inf))
