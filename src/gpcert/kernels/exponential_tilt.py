"""k(x, y) = e^{theta.(x + y) + log_factor}.

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.expansions.exponentials import LARGEST_EXPONENT_ERROR, exponential_tail
from gpcert.kernels.nodes.base import DerivativeBounds, Jet, LocalNode, Triple
from gpcert.kernels.nodes.phases import AffinePhase, PhaseBatch, phase_reach
from gpcert.kernels.parameters import FREQUENCIES, Parameter, number
from gpcert.kernels.sizes import times
from gpcert.numerics.arrays import (
    Array,
    Inputs,
    PerCellAndPoint,
    PerFeature,
    Points,
    Reals,
    namespace,
)
from gpcert.numerics.rounding import EXP_ULPS, POW_ULPS, down, gamma, given, up
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class ExponentialTilt(Kernel):
    """The rank-one kernel of the feature `phi(x) = e^{theta.x + log_factor / 2}`.

    A factor of the generalised spectral kernel. With s = theta.d everything is exact:

        R_n = phi(c) |e^s - sum_{k <= n} s^k / k!|,   ||D_d^n phi(x)|| = phi(x) |s|^n.

    >>> k = ExponentialTilt([1.0])
    >>> float(k.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])
    2.718281828459045
    """

    theta: Any
    log_factor: float = 0.0

    name: ClassVar[str] = "exponential_tilt"
    parameters: ClassVar[dict[str, Parameter]] = {
        "theta": FREQUENCIES,
        "log_factor": number("a number", math.isfinite),
    }

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp((X @ self.theta)[:, None] + (Y @ self.theta)[None, :] + self.log_factor)

    def diagonal(self, X: Inputs) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(2.0 * (X @ self.theta) + self.log_factor)

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.value(X, Y)[:, :, None] * self.theta

    def node(self, points: Points, frame: Frame) -> LocalExponentialTilt:
        """Exponents of the points, and their errors."""
        exponents, errors = AffinePhase.of_points(points, self.theta, self.log_factor)
        array = frame.backend.asarray
        phase = AffinePhase.of(self.theta, 0.0, frame)
        return LocalExponentialTilt(phase, array(exponents), array(errors), self.log_factor)

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """By the largest exponent of e at the points: no factor inside changes exactly."""
        with np.errstate(over="ignore", invalid="ignore"):
            logs = 2.0 * (points @ self.theta) + self.log_factor
        known = logs[np.isfinite(logs)]
        exponent = 2 * round(float(known.max()) / math.log(4.0)) if known.size else 0
        return self._unless_ordinary(min(max(exponent, -1000), 1000))

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> ExponentialTilt:
        """theta / scale; the shift is a constant factor `e^{-2 theta.shift / scale}`."""
        theta = self.theta / np.asarray(scale)
        return ExponentialTilt(theta, self.log_factor - 2.0 * float(theta @ np.asarray(shift)))


LARGEST_EXPONENT = 350.0
"""Beyond e^350 nothing is said, so that squares do not overflow."""


def exponential_above(exponent: Reals) -> Reals:
    """exp rounded up; infinite beyond `LARGEST_EXPONENT`."""
    xp = namespace(exponent)
    usable = exponent <= LARGEST_EXPONENT
    value = xp.exp(xp.where(usable, exponent, xp.zeros_like(exponent)))
    return xp.where(usable, up(value, EXP_ULPS + 2), xp.full_like(value, math.inf))


def exponential(exponent: Reals, error: Reals) -> tuple[Reals, Reals]:
    """exp of a number known up to `error`, and a bound of the error of the result."""
    xp = namespace(exponent)
    usable = (exponent <= LARGEST_EXPONENT) & (error <= LARGEST_EXPONENT_ERROR)
    value = xp.exp(xp.where(usable, exponent, xp.zeros_like(exponent)))
    relative = 1.1 * xp.where(usable, error, xp.zeros_like(error)) + gamma(EXP_ULPS + 4)
    infinite = xp.full_like(value, math.inf)
    return value, xp.where(usable, up(value * relative, 4), infinite)


@dataclass(frozen=True, eq=False)
class LocalExponentialTilt(LocalNode):
    """The kernel bound to points: the exponent of (c, z_i) is `phase(c) + point_exponents_i`."""

    phase: AffinePhase
    point_exponents: Array
    point_errors: Array
    log_factor: float

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """`<D_d^i phi, D_d^j phi> = phi(x)^2 (theta.d)^(i+j)`, and the remainders exactly.

        `|e^s - sum_{k <= n} s^k / k!|` is largest over |s| <= u at s = u.
        """
        u = phase_reach(geometry, self.phase.frequency)
        xp = namespace(u)
        center, error = self.phase.at(geometry)
        center = center + 0.5 * self.log_factor
        with np.errstate(over="ignore", invalid="ignore"):
            middle = exponential_above(up(center + error + gamma(4) * abs(self.log_factor), 4))
            exponent = up(center + error + gamma(4) * abs(self.log_factor) + u, 4)
            most = exponential_above(exponent)
            square = up(most**2, 1)
            powers = [xp.where(u > 0, up(u**n, POW_ULPS), xp.zeros_like(u)) for n in range(1, 7)]
            powers = [xp.ones_like(u), *powers]
            gram = tuple(tuple(times(square, powers[i + j]) for j in range(4)) for i in range(4))
            tails = [xp.where(u > 0, exponential_tail(u, n), xp.zeros_like(u)) for n in range(3)]
            direct = tuple(times(middle, tail) for tail in tails)
        return DerivativeBounds(gram, direct, False)

    def at(self, geometry: ScaledCells) -> ExponentialTiltBatch:
        return ExponentialTiltBatch(self, geometry)


class ExponentialTiltBatch(PhaseBatch):
    """See `NodeBatch`; every derivative is the value times powers of theta."""

    def __init__(self, node: LocalExponentialTilt, geometry: ScaledCells) -> None:
        self.node, self.geometry, self.frequencies = node, geometry, (node.phase.frequency,)
        self.center, self.center_error = node.phase.at(geometry)
        with np.errstate(over="ignore"):
            self.exponent = given(self.center[:, None] + node.point_exponents[None, :])
            error = self.center_error[:, None] + node.point_errors[None, :]
            self.exponent_error = up(error + gamma(1) * abs(self.exponent), 4)
        self.value, error = exponential(self.exponent, self.exponent_error)
        self.first = [self.value]
        self.errors: Triple = self._scaled(up(error + gamma(4) * self.value, 2))
        self.sizes: Triple = self._scaled(up(self.value + error, 2))

    def _scaled(self, size: Array) -> Triple:
        """Times |T|^n; a T of zero makes derivatives vanish, whatever the size."""
        L = namespace(size).full_like(size, self.node.phase.length)
        return size, times(size, L), times(size, times(L, L))

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """`sum a k` times 1, T and T T^T."""
        value = namespace(coefficients).sum(coefficients * self.value, axis=1)
        return self._jet(value, [value], [value])

    def exponent_range(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """Certified ends (B, N) of the exponent over each cell."""
        u = phase_reach(self.geometry, self.node.phase.frequency)[:, None]
        with np.errstate(over="ignore"):
            spread = up(u + self.exponent_error, 2)
            return down(self.exponent - spread, 1), up(self.exponent + spread, 1)

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """`sup k` times u^n, u the reach of theta.d."""
        u = phase_reach(self.geometry, self.node.phase.frequency)[:, None]
        xp = namespace(u)
        most = exponential_above(self.exponent_range()[1])
        with np.errstate(over="ignore"):
            powers = [xp.where(u > 0, up(u**n, POW_ULPS), xp.zeros_like(u)) for n in (1, 2, 3)]
            return most, *(times(most, power) for power in powers)

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """`e^{2 theta.c + log_factor}` times 1, T and T T^T."""
        with np.errstate(over="ignore", invalid="ignore"):
            exponent = 2.0 * self.center + self.node.log_factor
            error = up(2.0 * self.center_error + gamma(2) * abs(exponent), 4)
        value, error = exponential(exponent, error)
        errors = self._scaled(up(error + gamma(4) * value, 2))
        return self._jet(value, [value], [value]), errors

    def mixed(self) -> tuple[Annotated[Array, "B f f"], Annotated[Array, "B"]]:
        """The same matrix `k T T^T`: the kernel is a product of functions of x and of z."""
        jet, errors = self.diagonal_jet()
        return jet.hessian, errors[2]
