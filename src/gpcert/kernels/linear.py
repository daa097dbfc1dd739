"""k(x, y) = sum_j w_j (x_j - o_j)(y_j - o_j), Bayesian linear regression, and its powers
(k + offset)^degree.

In frame coordinates y with centres c, `t_j = (c_j - o_j) / unit_j`, `metric_j = w_j unit_j^2`:

    k(x, z_i) = k(c, z_i) + slope_i.d,   slope_ij = unit_j w_j (z_ij - o_j).

Centres are taken as the floats of the user, so t carries one rounding and a slope two.

Proofs: docs/mathematics.md, statements 2.11 and 2.13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Expressed, Product, Sum
from gpcert.kernels.constant import Constant, ConstantNode
from gpcert.kernels.nodes.base import (
    DerivativeBounds,
    FirstOrder,
    Jet,
    KnownBatch,
    LocalNode,
    Triple,
)
from gpcert.kernels.nodes.composite import SumNode
from gpcert.kernels.nodes.power import PowerNode
from gpcert.kernels.parameters import (
    NONNEGATIVE,
    Parameter,
    exactly_scaled,
    number,
    numbers,
)
from gpcert.kernels.sizes import euclidean, times
from gpcert.numerics.arrays import Array, Inputs, PerCellAndPoint, PerFeature, Points, namespace
from gpcert.numerics.rounding import TINY, gamma, given, up
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells

WEIGHTS = numbers("a number or a vector of numbers >= 0", lambda x: x >= 0)
CENTER = numbers("a number or a vector of numbers")


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    """Linear (dot product) kernel with a weight w_j >= 0 and a centre o_j for each feature.

    Its feature map `phi(x) = sqrt(w) (x - o)` is affine: remainders of order 1 and more are zero.

    >>> Linear([1.0, 2.0], center=1.0).value(np.zeros((1, 2)), np.array([[3.0, 2.0]])).tolist()
    [[-4.0]]
    """

    weights: Any
    center: Any = 0.0

    name: ClassVar[str] = "linear"
    parameters: ClassVar[dict[str, Parameter]] = {"weights": WEIGHTS, "center": CENTER}

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`sum_j w_j (x_j - o_j)(y_j - o_j)` in plain floating point."""
        # what is as large as Y is copied only where a centre moves it
        moved = Y - self.center if np.any(self.center) else Y
        return ((X - self.center) * self.weights) @ moved.T

    def diagonal(self, X: Inputs) -> np.ndarray:
        apart = X - self.center
        return (self.weights * apart * apart).sum(axis=1)

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`w_j (y_j - o_j)`, whatever x is."""
        slopes = self.weights * (Y - self.center)
        return np.broadcast_to(slopes, (len(X), *slopes.shape)).copy()

    def gradient_product(self, X: Inputs, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """One matrix product: the slopes do not depend on x."""
        return C @ (self.weights * (Y - self.center))

    def typical_lengths(self, d: int) -> PerFeature:
        """`1 / sqrt(w_j)`: the unit of the feature map."""
        with np.errstate(divide="ignore"):
            return np.broadcast_to(1.0 / np.sqrt(self.weights), (d,)).copy()

    @np.errstate(over="ignore", under="ignore")
    def node(self, points: Points, frame: Frame) -> LinearNode:
        d = points.shape[1]
        weights, center = (np.broadcast_to(a, (d,)) for a in (self.weights, self.center))
        free, fixed, place = frame.free, frame.fixed, frame.backend.asarray
        slopes = frame.unit * (weights * (points - center))[:, free]
        metric = weights[free] * frame.unit * frame.unit
        offsets = frame.fixed_values - center[fixed]
        terms = offsets * (weights * (points - center))[:, fixed]
        return LinearNode(
            center=place(center[free]),
            unit=place(frame.unit),
            metric=place(metric),
            metric_bound=place(np.where(weights[free] > 0, up(metric, 2), 0.0)),
            slopes=place(slopes),
            fixed=place(terms.sum(axis=1)),
            fixed_sizes=place(up(np.abs(terms).sum(axis=1), len(fixed) + 4)),
            fixed_itself=float((weights[fixed] * offsets * offsets).sum()),
            roundings=points.shape[1] + 12,
        )

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """By the largest `w_j (z_j - o_j)^2`, in exponents: the square may not be a float."""
        weights = np.broadcast_to(self.weights, points.shape[1:])
        with np.errstate(over="ignore"):
            reach = np.abs(points - self.center).max(axis=0)
        pairs = [(w, r) for w, r in zip(weights.tolist(), reach.tolist(), strict=True) if w > 0]
        sizes = [math.frexp(w)[1] + 2 * math.frexp(r)[1] for w, r in pairs if 0 < r < math.inf]
        if not sizes:
            sizes = [math.frexp(w)[1] for w, _ in pairs] or [0]
        exponent = max(sizes) - max(sizes) % 2
        return self.with_factor(-exponent), exponent

    def with_factor(self, exponent: int) -> Linear:
        return Linear(exactly_scaled("kernel", self.weights, exponent), self.center)

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> Linear:
        """Weights `w / scale^2`, centre `o scale + shift`."""
        factor = np.asarray(scale, dtype=np.float64)
        return Linear(self.weights / factor / factor, self.center * factor + np.asarray(shift))


@dataclass(frozen=True, eq=False)
class LinearNode(LocalNode):
    """See the module. Arrays live on the backend of the frame."""

    center: Array
    """(f,) o in the user's units."""

    unit: Array
    metric: Array
    """(f,) w unit^2: one rounding each."""

    metric_bound: Array
    """(f,) upper bounds of the same, zero where w is."""

    slopes: Array
    """(N, f): two roundings each."""

    fixed: Array
    """(N,) what the features that are held fixed contribute to k(x, z_i)."""

    fixed_sizes: Array
    """(N,) upper bounds of the sums of the terms' sizes in `fixed`."""

    fixed_itself: float
    """The same features' part of k(x, x), a sum of numbers >= 0."""

    roundings: int
    """Of a sum over all features of products of three."""

    @cached_property
    def slope_sizes(self) -> Annotated[Array, "N f"]:
        """`|slopes|`."""
        return abs(self.slopes)

    @cached_property
    @np.errstate(over="ignore", under="ignore")
    def lengths(self) -> Annotated[Array, "N"]:
        """Upper bounds of the slopes' lengths."""
        return up(euclidean(self.slopes), 4)

    def offsets(self, geometry: ScaledCells) -> Annotated[Array, "B f"]:
        """t (B, f)."""
        return (geometry.exact_center - self.center) / self.unit

    @np.errstate(over="ignore", under="ignore")
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """`phi(x) = sqrt(w) (x - o)`: the first derivative is constant, the others are zero.

        `|phi(x)|^2 = sum w (x - o)^2` at the corner farthest from o, or by the triangle inequality;
        `<phi, D_d phi> = sum w (x - o) d`, or by Cauchy-Schwarz; `|D_d phi|^2 = sum w d^2`.
        """
        xp, n = namespace(geometry.half), self.roundings
        metric, offsets = self.metric_bound, abs(self.offsets(geometry))
        far = up(offsets + geometry.half, 2)
        second = geometry.squared_norm(metric)
        length = xp.where(second > 0, up(xp.sqrt(second), 2), xp.zeros_like(second))
        at_center = xp.sum(metric * offsets * offsets, axis=1) + self.fixed_itself
        by_triangle = up((up(xp.sqrt(up(at_center, n)), 2) + length) ** 2, 4)
        by_corner = up(xp.sum(metric * far * far, axis=1) + self.fixed_itself, n)
        zeroth = xp.minimum(by_triangle, by_corner)
        crossed = xp.sum(metric * far * geometry.half, axis=1)
        moves = xp.any((metric > 0) & (geometry.half > 0), axis=1)
        crossed = xp.where(moves, up(crossed, n), xp.zeros_like(crossed))
        first = xp.minimum(crossed, times(up(xp.sqrt(zeroth), 2), length))
        none = xp.zeros_like(second)
        gram = (
            (zeroth, first, None, None),
            (first, second, None, None),
            (None, None, none, None),
            (None, None, None, none),
        )
        return DerivativeBounds(gram, (length, none, none), stationary=False)

    @np.errstate(over="ignore", under="ignore")
    def at(self, geometry: ScaledCells) -> LinearBatch:
        """Values from the raw centres: their error is relative to the sizes of the terms."""
        xp = namespace(geometry.half)
        offsets = self.offsets(geometry)
        value = given(offsets @ self.slopes.T + self.fixed)
        terms = abs(offsets) @ self.slope_sizes.T + self.fixed_sizes
        lost = TINY * (1.0 + xp.sum(abs(offsets), axis=1))[:, None]
        error = up(gamma(self.roundings) * terms + lost, 4)
        length = self.lengths[None, :]
        slope_error = up(gamma(4) * length, 2)
        none = xp.zeros_like(length)
        return LinearBatch(
            value=value,
            sizes=(up(abs(value) + error, 2), length, none),
            errors=(error, slope_error, none),
            node=self,
            geometry=geometry,
        )


@dataclass(frozen=True, eq=False)
class LinearBatch(KnownBatch):
    """The linear functions on a batch of cells."""

    node: LinearNode
    geometry: ScaledCells

    @cached_property
    @np.errstate(over="ignore")
    def spread(self) -> PerCellAndPoint:
        """Upper bound (B, N) of `|slope_i.d|` over each cell's box; slopes carry two roundings."""
        half = self.geometry.half
        xp, f = namespace(half), half.shape[1]
        total = half @ self.node.slope_sizes.T
        lost = TINY * xp.sum(half, axis=1)[:, None]
        return xp.where(
            xp.any(half > 0, axis=1)[:, None],
            up(total, f + 8) + lost,
            xp.zeros_like(total),
        )

    def _flat(self) -> Array:
        """A Hessian of zeros (B, f, f)."""
        f = self.geometry.half.shape[1]
        return self._zeros(f, f)

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """Two sums; no curvature."""
        value = namespace(coefficients).sum(coefficients * self.value, axis=1)
        return Jet(value, coefficients @ self.node.slopes, self._flat())

    def first_order(self, coefficients: Annotated[Array, "m N"]) -> FirstOrder:
        """All of them: there is no rest."""
        xp, m, (B, f) = namespace(coefficients), len(coefficients), self.geometry.half.shape
        slopes = xp.broadcast_to(coefficients @ self.node.slopes, (B, m, f))
        none = self._zeros(m)
        return FirstOrder(self.value @ coefficients.T, slopes, none, none)

    def gradients(self) -> Annotated[Array, "B f N"]:
        """The slopes, for every centre the same."""
        xp, slopes = namespace(self.value), self.node.slopes
        N, f = slopes.shape
        return xp.broadcast_to(slopes.T[None, :, :], (self.value.shape[0], f, N))

    @np.errstate(over="ignore")
    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """`S_1 = sup |slope.d|` over the box, or `|slope| |d|`; then zero."""
        xp = namespace(self.value)
        geometry, node = self.geometry, self.node
        distance2 = geometry.squared_norm(xp.ones_like(node.metric))
        distance = xp.where(distance2 > 0, up(xp.sqrt(distance2), 2), xp.zeros_like(distance2))
        first = xp.minimum(self.spread, times(self.sizes[1], distance[:, None]))
        none = xp.zeros_like(first)
        return up(self.sizes[0] + first, 2), first, none, none

    @np.errstate(over="ignore", under="ignore")
    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """`k(x, c) = sum w (x - o)(c - o)` at x = c: no term is negative."""
        xp, node = namespace(self.value), self.node
        offsets = node.offsets(self.geometry)
        value = xp.sum(node.metric * offsets * offsets, axis=1) + node.fixed_itself
        gradient = node.metric * offsets
        reach = 1.0 + xp.sum(abs(offsets), axis=1)
        # what underflows in the metric meets two offsets
        value_error = up(gamma(node.roundings) * value + TINY * reach * reach, 4)
        error = up(gamma(4) * euclidean(gradient) + TINY * reach, 4)
        none = xp.zeros_like(value)
        return Jet(value, gradient, self._flat()), (value_error, error, none)

    def mixed(self) -> tuple[Annotated[Array, "B f f"], Annotated[Array, "B"]]:
        """`diag(w unit^2)`, one rounding of each entry."""
        xp, metric = namespace(self.value), self.node.metric
        same = xp.eye(len(metric), dtype=metric.dtype, device=metric.device)
        one = xp.ones_like(self.geometry.half[:, :1].sum(axis=1))
        largest = xp.max(metric) if len(metric) else 0.0
        error = up(one * (gamma(2) * largest), 2)
        return one[:, None, None] * (same * metric), error


HIGHEST_DEGREE = 12
"""Beyond, k varies over so many orders of magnitude that its small values are lost in float64."""


@dataclass(frozen=True, eq=False)
class Polynomial(Expressed):
    """Power of a linear kernel plus a constant: polynomials of this degree in the inputs.

    >>> k = Polynomial(2, weights=1.0, offset=1.0)
    >>> k.value(np.array([[1.0, 2.0]]), np.array([[3.0, 0.5]])).tolist()  # (3 + 1 + 1)^2
    [[25.0]]
    """

    degree: int
    weights: Any
    offset: float
    center: Any = 0.0

    name: ClassVar[str] = "polynomial"
    parameters: ClassVar[dict[str, Parameter]] = {
        "degree": number(
            f"an integer from 1 to {HIGHEST_DEGREE}",
            lambda degree: degree in range(1, HIGHEST_DEGREE + 1),
            kind=int,
        ),
        "weights": WEIGHTS,
        "offset": NONNEGATIVE,
        "center": CENTER,
    }

    @property
    def base(self) -> Kernel:
        """The kernel whose power this is."""
        linear = Linear(self.weights, self.center)
        return Sum((linear, Constant(self.offset))) if self.offset else linear

    def express(self) -> Product:
        """A product whose factors are one and the same kernel, which is then asked once."""
        return Product((self.base,) * self.degree)

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """The power of the base in its units: still a polynomial."""
        base, exponent = self.base.in_units(points)
        linear, *offset = base.parts or (base,)
        assert isinstance(linear, Linear), "which stays what it is"
        constant = offset[0].variance if offset else 0.0  # pyright: ignore
        kernel = Polynomial(self.degree, linear.weights, constant, linear.center)
        return kernel, self.degree * exponent

    def node(self, points: Points, frame: Frame) -> LocalNode:
        """The power of an affine function, which has an expansion of its own."""
        linear = Linear(self.weights, self.center).node(points, frame)
        base: LocalNode = linear
        if self.offset:
            base = SumNode((linear, ConstantNode(self.offset, len(points))))
        return PowerNode(base, linear.slopes, self.degree)

    def gradient_product(self, X: Inputs, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """The gradient of base does not depend on x: one matrix product."""
        slope = self.degree * self.base.value(X, Y) ** (self.degree - 1)
        return (C * slope) @ (self.weights * (Y - self.center))

    def typical_lengths(self, d: int) -> PerFeature:
        return self.base.typical_lengths(d)

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> Polynomial:
        linear = Linear(self.weights, self.center).rescaled(scale, shift)
        return Polynomial(self.degree, linear.weights, self.offset, linear.center)
