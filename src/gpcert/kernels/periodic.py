"""k(x, y) = v exp(-2 sum_j sin^2(pi (x_j - y_j) / p_j) / l_j^2).

A product of one factor per coordinate, `e_j = exp(q_j (cos(w_j t_j) - 1))` with `q = 1 / l^2` and
`w = 2 pi / p`, so derivatives follow from those of log e_j: with W = w unit in frame coordinates

    L1 = -W q sin(w t),   L2 = -W^2 q cos(w t),   L3 = W^3 q sin(w t),
    D_j k = k L1_j,       D_jk k = k (L1_j L1_k + [j = k] L2_j).

Proofs: docs/mathematics.md, statement 2.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.expansions.exponentials import LARGEST_EXPONENT_ERROR
from gpcert.kernels.nodes.base import (
    DerivativeBounds,
    Jet,
    LocalNode,
    NodeBatch,
    Triple,
    spectral_gram,
)
from gpcert.kernels.nodes.phases import QUARTER_TURN, swing
from gpcert.kernels.parameters import POSITIVE, Parameter, numbers
from gpcert.numerics.arrays import (
    Array,
    Inputs,
    PerCellAndPoint,
    PerFeature,
    Points,
    Reals,
    namespace,
)
from gpcert.numerics.rounding import (
    EXP_ULPS,
    POW_ULPS,
    SIN_COS_ULPS,
    TINY,
    U,
    down,
    gamma,
    given,
    nonnegative,
    root,
    up,
)
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells

SMALLEST, LARGEST = 1e-100, 1e100
"""Periods and length-scales outside this range would overflow when squared."""

SMALLEST_FREQUENCY = 2.0**-1022
"""Below it, in the coordinates of a frame, a frequency has lost digits, all in the end."""

_ORDINARY = numbers(
    f"a positive number or a vector of positive numbers, between {SMALLEST} and {LARGEST}",
    lambda x: (x >= SMALLEST) & (x <= LARGEST),
)


@dataclass(frozen=True, eq=False)
class Periodic(Kernel):
    """Periodic kernel with a period and a length-scale per feature, and a variance v.

    The product of one periodic kernel per feature. For one feature this is scikit-learn's
    `ExpSineSquared`. For several that one is periodic in the Euclidean distance,
    `exp(-2 sin^2(pi |x - y| / p) / l^2)`, which is not positive definite: with p = 2 and l = 1 the
    6 x 6 grid of points with spacing 0.4 has a Gram matrix with a negative eigenvalue (proved in
    the tests), so no Gaussian process has it as covariance, and it is refused.

    >>> k = Periodic(period=2.0, length_scale=1.0)
    >>> float(k.value(np.zeros((1, 1)), np.full((1, 1), 4.0))[0, 0])
    1.0
    """

    period: Any
    length_scale: Any
    variance: float = 1.0

    name: ClassVar[str] = "periodic"
    has_variance: ClassVar[bool] = True
    stationary: ClassVar[bool] = True
    parameters: ClassVar[dict[str, Parameter]] = {
        "period": replace(_ORDINARY, unit=1),
        "length_scale": _ORDINARY,
        "variance": POSITIVE,
    }

    def _parameters(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Periods and length-scales, one per feature."""
        return np.broadcast_to(self.period, (d,)), np.broadcast_to(self.length_scale, (d,))

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        exponent = np.zeros((len(X), len(Y)))
        for j, (p, length) in enumerate(zip(*self._parameters(X.shape[1]), strict=True)):
            sine = np.sin(np.pi * (X[:, j, None] - Y[None, :, j]) / p)
            exponent += 2.0 * np.square(sine / length)
        return self.variance * np.exp(-exponent)

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`d k / d x_j = -k (2 pi / p_j) sin(2 pi (x_j - y_j) / p_j) / l_j^2`."""
        p, length = self._parameters(X.shape[1])
        angle = 2.0 * np.pi * (X[:, None, :] - Y[None, :, :]) / p
        slope = -(2.0 * np.pi / p) * np.sin(angle) / np.square(length)
        return self.value(X, Y)[:, :, None] * slope

    def typical_lengths(self, d: int) -> PerFeature:
        """Where the factor of a feature has its steepest slope, roughly: `p min(l, 1) / (2 pi)`."""
        p, length = self._parameters(d)
        return p * np.minimum(length, 1.0) / (2.0 * np.pi)

    def node(self, points: Points, frame: Frame) -> LocalPeriodic:
        """Scale, and fold in the fixed features."""
        period, length = self._parameters(points.shape[1])
        rate, weight = math.pi / period, 1.0 / np.square(length)
        free, fixed = frame.free, frame.fixed
        angles = Angles.of((frame.fixed_values - points[:, fixed]).T, rate[fixed][:, None])
        exponents, errors = angles.exponent(weight[fixed][:, None])
        frequency = 2.0 * rate[free] * frame.unit
        if np.any(frequency < SMALLEST_FREQUENCY):
            raise InputError(
                f"kernel: a period of {period[free].max():.3g} beside other parts as short as "
                f"{frame.unit.min():.3g} leaves float64; expected lengths within about 1e300 of "
                "each other: drop the parts that do not matter, or rescale the inputs"
            )
        array = frame.backend.asarray
        return LocalPeriodic(
            points=array(points[:, free].T),
            rate=array(rate[free][:, None]),
            weight=array(weight[free][:, None]),
            frequency=array(frequency[:, None]),
            fixed_exponents=array(exponents),
            fixed_errors=array(errors),
            variance=self.variance,
        )


TRIG_ROUNDING = gamma(4 * SIN_COS_ULPS + 16)
"""Absolute error of `2 s c` and `(c - s)(c + s)` from computed sines and cosines, and of one more
product with a coefficient that carries 8 roundings."""

UNKNOWN = 2.0
"""The error of an angle of which nothing is known: more than a quarter turn."""


class Angles(NamedTuple):
    """`t = pi (x - z) / p`, (..., f, N): sine, cosine, a bound of the error of t."""

    sine: Array
    cosine: Array
    error: Array

    @staticmethod
    def of(difference: Array, rate: Annotated[Array, "f 1"]) -> Angles:
        """Three roundings and that of pi; an angle of which nothing is known is called 0 +- 2."""
        xp = namespace(difference)
        with np.errstate(over="ignore", invalid="ignore"):
            angle = difference * rate
            error = gamma(6) * xp.abs(angle)
            known = error < 1.0
        zero = xp.zeros_like(angle)
        angle = xp.where(known, angle, zero)
        error = xp.where(known, error, zero + UNKNOWN)
        return Angles(xp.sin(angle), xp.cos(angle), error)

    def exponent(self, weights: Annotated[Array, "f 1"]) -> tuple[Reals, Reals]:
        """`X = 2 sum_j q_j sin^2 t_j` and a bound of its error, weights q (f, 1).

        `|sin^2(t + e) - sin^2 t| = |sin(2t + e) sin e| <= (|sin 2t| + e) e`, and at most 1.
        """
        xp = namespace(self.sine)
        f = self.sine.shape[-2]
        total = xp.sum(2.0 * weights * self.sine**2, axis=-2)
        moved = (2.0 * xp.abs(self.sine * self.cosine) + self.error) * self.error
        unknown = self.error >= 1.0
        moved = xp.where(unknown, xp.ones_like(moved), moved)
        error = xp.sum(2.0 * weights * moved, axis=-2)
        return total, up(error + gamma(2 * SIN_COS_ULPS + f + 12) * total, 2 * f + 24)


@dataclass(frozen=True, eq=False)
class LocalPeriodic(LocalNode):
    """The kernel bound to points; `rate`, `weight` and `frequency` are pi/p, q and W, (f, 1).

    Differences are taken in the user's own floats: one rounding each.
    """

    points: Annotated[Array, "N d"]
    """(f, N) free coordinates of the points, as they are."""
    rate: Array
    weight: Array
    frequency: Array
    fixed_exponents: Array
    fixed_errors: Array
    """(N,): `2 sum q sin^2` over the features that the region holds fixed, and its error."""
    variance: float

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """Even spectral moments from cumulants, and R0 exactly.

        `exp(q (cos s - 1))` is the characteristic function of a difference of two independent
        Poisson(q/2) variables, so the cumulants of u are `K_2n = sum_j q_j (W_j d_j)^2n`, and
        `E u^2 = K_2`, `E u^4 = K_4 + 3 K_2^2`, `E u^6 = K_6 + 15 K_4 K_2 + 15 K_2^3`.
        R0^2 = 2 v - 2 min k, and k is least where every |sin| is largest.
        """
        xp = namespace(geometry.half)
        q, W = self.weight[:, 0], self.frequency[:, 0]
        f = len(q)
        with np.errstate(over="ignore"):
            u = _positive(geometry.half, up(W * geometry.half, 6))
            second = geometry.squared_norm(up(q * W**2, 16))
            fourth = _positive(second, up(xp.sum(q * u**4, axis=1), f + 16))
            sixth = _positive(second, up(xp.sum(q * u**6, axis=1), f + 24))
            v = self.variance
            moments = [
                v + xp.zeros_like(second),
                up(v * second, 2),
                up(v * (fourth + 3.0 * second**2), 8),
                up(v * (sixth + 15.0 * (fourth * second + second**3)), POW_ULPS + 12),
            ]
            moments = [moments[0], *(_positive(second, m) for m in moments[1:])]
            quarter = xp.full_like(u, QUARTER_TURN)
            most = xp.sin(xp.minimum(0.5 * u, quarter))
            exponent = up(xp.sum(2.0 * q * most**2, axis=1), 2 * SIN_COS_ULPS + f + 16)
            zeroth = root(-2.0 * v * xp.expm1(-exponent))
        zeroth = _positive(second, up(zeroth, EXP_ULPS + 8))
        infinite = math.inf + xp.zeros_like(zeroth)
        return DerivativeBounds(spectral_gram(moments), (zeroth, infinite, infinite), True)

    def at(self, geometry: ScaledCells) -> PeriodicBatch:
        return PeriodicBatch(self, geometry)


def _positive(size: Array, bound: Array) -> Array:
    """`bound`, and exactly 0 where the size it grows with is 0."""
    xp = namespace(bound)
    return xp.where(size > 0, bound, xp.zeros_like(bound))


class PeriodicBatch(NodeBatch):
    """See `NodeBatch` and the module."""

    def __init__(self, node: LocalPeriodic, geometry: ScaledCells) -> None:
        self.node, self.geometry = node, geometry
        difference = geometry.exact_center[:, :, None] - node.points[None, :, :]
        self.angles = angles = Angles.of(difference, node.rate)
        xp = namespace(difference)
        exponent, error = angles.exponent(node.weight)
        exponent, error = exponent + node.fixed_exponents, error + node.fixed_errors
        v = node.variance
        self.value = value = given(v * xp.exp(-exponent))
        error = up(error + gamma(2) * exponent, 4)
        relative = 1.1 * error + gamma(EXP_ULPS + 4)
        known = error <= LARGEST_EXPONENT_ERROR
        # both lie in [0, v (1 + EXP_ULPS U)], whatever the exponent's error
        self.value_error = xp.where(
            known, up(value * relative, 4) + v * TINY, xp.full_like(value, 1.01 * v)
        )
        self.sizes, self.errors = self._bounds()

    @cached_property
    def first(self) -> Annotated[Array, "B f N"]:
        """(B, f, N): L1."""
        node, angles = self.node, self.angles
        return given(-(node.frequency * node.weight) * (2.0 * angles.sine * angles.cosine))

    @cached_property
    def double_cosine(self) -> Annotated[Array, "B f N"]:
        """`cos 2t`."""
        s, c = self.angles.sine, self.angles.cosine
        return (c - s) * (c + s)

    @cached_property
    def second(self) -> Annotated[Array, "B f N"]:
        """(B, f, N): L2."""
        node = self.node
        return given(-(node.frequency**2 * node.weight) * self.double_cosine)

    def _bounds(self) -> tuple[Triple, Triple]:
        """Sizes and errors: `fl(k) fl(L) - k L = fl(k) (fl(L) - L) + (fl(k) - k) L`, and the same
        for `L1 L1^T + diag(L2)`, whose spectral norm is at most `|L1|^2 + max |L2|`.
        """
        xp = namespace(self.value)
        node, f = self.node, self.first.shape[1]
        with np.errstate(over="ignore"):
            slack = 2.0 * self.angles.error + TRIG_ROUNDING
            W, q = node.frequency, node.weight
            length = root(xp.sum(self.first**2, axis=1))
            d_length = up(root(xp.sum((W * q * slack) ** 2, axis=1)), f + 24)
            curve, d_curve = xp.zeros_like(length), xp.zeros_like(length)
            for j in range(f):
                curve = xp.maximum(curve, xp.abs(self.second[:, j, :]))
                d_curve = xp.maximum(d_curve, (W[j] ** 2 * q[j]) * slack[:, j, :])
            length, curve = up(length, f + 4), up(curve, 1)
            square = length**2 + curve
            d_square = up((2.0 * length + d_length) * d_length + d_curve, 24)
            k, d_k = self.value, self.value_error
            d_gradient = k * d_length + d_k * (length + d_length) + gamma(4) * k * length
            d_hessian = k * d_square + d_k * (square + d_square) + gamma(8) * k * square
            errors = (d_k, up(d_gradient, 8), up(d_hessian, 8))
            sizes = zip((k, k * length, k * square), errors, strict=True)
            return tuple(up(s + e, 8) for s, e in sizes), errors

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """Gradient and Hessian by (batched) matrix products over the points."""
        xp = namespace(coefficients)
        c = coefficients * self.value
        weighted = self.first * c[:, None, :]
        product = weighted @ xp.permute_dims(self.first, (0, 2, 1))
        product = 0.5 * (product + xp.permute_dims(product, (0, 2, 1)))  # exactly symmetric
        diagonal = xp.sum(self.second * c[:, None, :], axis=2)
        return Jet(xp.sum(c, axis=1), xp.sum(weighted, axis=2), product + _diagonal(diagonal))

    def gradients(self) -> Annotated[Array, "B f N"]:
        """`k L1_j`."""
        return self.value[:, None, :] * self.first

    @cached_property
    def swings(self) -> tuple[Annotated[Array, "B f _"], Annotated[Array, "B f _"], Array]:
        """Over each cell, (B, f, N): inf and sup of |sin t|, and the reach of the angle 2t."""
        with np.errstate(over="ignore"):
            half = self.geometry.half[:, :, None]
            reach = _positive(half, up(self.node.frequency * half, 6))
            spread = up(0.5 * reach + self.angles.error, 2)
        low, high = swing(self.angles.sine, self.angles.cosine, spread)
        return low, high, reach

    def exponent_range(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """Certified ends (B, N) of `2 sum_j q_j sin^2` over each cell."""
        xp = namespace(self.value)
        node, (low, high, _) = self.node, self.swings
        n = low.shape[1] + 16
        least = down(xp.sum(2.0 * node.weight * low**2, axis=1), n) + node.fixed_exponents
        most = up(xp.sum(2.0 * node.weight * high**2, axis=1), n) + node.fixed_exponents
        return (
            nonnegative(down(least - node.fixed_errors, 3)),
            up(most + node.fixed_errors, 3),
        )

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """With A_n = sum_j L_n,j d_j^n: `k`, `k A1`, `k (A1^2 + A2)`, `k (A1^3 + 3 A1 A2 + A3)`.

        Each factor by its supremum over the cell: k by the exponent's least value, the A_n by those
        of |sin| and |cos|; over a ball A1 also by Cauchy-Schwarz with the weights q W^2.
        """
        xp = namespace(self.value)
        node, angles = self.node, self.angles
        reach = self.swings[2]
        f = reach.shape[1]
        least, _ = self.exponent_range()
        most = up(node.variance * xp.exp(-least), EXP_ULPS + 4) + node.variance * TINY
        with np.errstate(over="ignore"):
            spread = up(reach + 2.0 * angles.error, 2)
            double = 2.0 * angles.sine * angles.cosine
            sine = swing(double, self.double_cosine, spread)[1]
            cosine = swing(self.double_cosine, double, spread)[1]
            q = node.weight
            A1 = xp.sum(q * reach * sine, axis=1)
            A2 = xp.sum(q * reach**2 * cosine, axis=1)
            A3 = xp.sum(q * reach**3 * sine, axis=1)
            if self.geometry.cells.ball is not None:
                square = self.geometry.squared_norm(up(q * node.frequency**2, 16)[:, 0])
                ball = root(square)[:, None] * root(xp.sum(q * sine**2, axis=1))
                A1 = xp.minimum(A1, ball)
            factors = [A1, A1**2 + A2, A1**3 + 3.0 * A1 * A2 + A3]
            sizes = [_positive(A, up(most * A, 6 * f + 96)) for A in factors]
        return most, *sizes

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """v, 0 and -v q W^2 on the diagonal: the value exact."""
        xp = namespace(self.value)
        node = self.node
        zero = xp.zeros_like(xp.sum(self.geometry.half, axis=1))
        curve = -node.variance * (node.frequency**2 * node.weight)[:, 0]
        hessian = _diagonal(curve[None, :] + zero[:, None])
        jet = Jet(node.variance + zero, xp.zeros_like(self.geometry.half), hessian)
        largest = xp.max(xp.abs(curve)) if len(curve) else xp.sum(xp.abs(curve))
        return jet, (zero, zero, zero + up(16.0 * U * largest, 4))


def _diagonal(rows: Array) -> Array:
    """(B, f, f) diagonal matrices of rows (B, f)."""
    xp = namespace(rows)
    f = rows.shape[1]
    unit = xp.eye(f, dtype=rows.dtype, device=rows.device)
    return rows[:, :, None] * unit[None, :, :]
