"""D_u k(x, z): what the slope of a mean along a fixed direction u is made of.

`SlopeKernel` stands for a kernel in a `Posterior`: `sum_i t_i D_u k(x, z_i)` is the slope of
`sum_i t_i k(x, z_i)`, and both are functions of one space, so the Gram matrix is that of k. It is
no covariance: a posterior with it has a mean and no variance.

Proofs: docs/mathematics.md, statements 19.1 to 19.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.active_dimensions import ActiveDimensions, ActiveNode
from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Expressed, Product, Scale, Sum, checked_kernel
from gpcert.kernels.constant import Constant, ConstantNode, White
from gpcert.kernels.linear import Linear
from gpcert.kernels.nodes.base import LocalNode
from gpcert.kernels.nodes.composite import ProductNode, ScaleNode, SumNode
from gpcert.kernels.nodes.curvature import RadialCurvature
from gpcert.kernels.nodes.slopes import FlatSlope, RadialSlope, slope_sum
from gpcert.kernels.parameters import Parameter, numbers
from gpcert.kernels.radial import RadialKernel
from gpcert.numerics.arrays import Inputs, PerFeature, Points
from gpcert.numerics.rounding import TINY, gamma, up
from gpcert.regions.cells import Frame

STEP = 1e-5
"""Of differences that stand for second derivatives in plain floating point, in typical lengths."""


@dataclass(frozen=True, eq=False)
class SlopeKernel(Kernel):
    """`D_u k(., z)` for the direction u (d,), or `D_u^2 k(., z)` for `order` 2; see the module.

    >>> from gpcert.kernels.radial import SquaredExponential
    >>> slope = SlopeKernel(SquaredExponential(1.0), [1.0])
    >>> float(slope.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])  # exp(-1/2)
    0.6065306597126334
    """

    kernel: Kernel
    direction: Any
    order: Any = 1.0

    name: ClassVar[str] = "slope"
    parameters: ClassVar[dict[str, Parameter]] = {
        "direction": numbers("a vector of numbers, one per feature", ndim=1),
        "order": numbers("1 or 2", ndim=0),
    }

    def __post_init__(self) -> None:
        checked_kernel("kernel", self.kernel)
        super().__post_init__()
        check_smooth(self.kernel)
        if self.order == 2.0:
            check_curved(self.kernel)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def value(self, X: Inputs, Y: Points) -> Annotated[np.ndarray, "n N"]:
        if self.order == 2.0:
            moved = self._step * self.direction
            ahead, behind = (
                slope_values(self.kernel, self.direction, x, Y) for x in (X + moved, X - moved)
            )
            return (ahead - behind) / (2.0 * self._step)
        return slope_values(self.kernel, self.direction, X, Y)

    def diagonal(self, X: Inputs) -> Annotated[np.ndarray, "n"]:
        """`|D_u phi(x)|^2`, about."""
        entry = self.derivative_bounds(np.zeros((len(X), len(self.direction))), X).gram[0][0]
        return np.asarray(entry)

    @property
    def _step(self) -> np.ndarray:
        """A small displacement along the direction, and its share of it."""
        lengths = self.kernel.typical_lengths(len(self.direction))
        size = float(np.max(np.abs(self.direction) / lengths, initial=0.0))
        return np.asarray(STEP / size if 0.0 < size < math.inf else STEP)

    def gradient(self, X: Inputs, Y: Points) -> Annotated[np.ndarray, "n N d"]:
        """The slope of the gradient, by a difference: it says where to look, and proves nothing."""
        return self._moved(lambda x: self.kernel.gradient(x, Y), X)

    def _moved(self, gradient: Callable[[Inputs], np.ndarray], X: Inputs) -> np.ndarray:
        """The difference of order `order` of a gradient along the direction."""
        if self.order == 2.0:
            step = self._step * STEP**-0.4
            ahead, here, behind = (gradient(X + k * step * self.direction) for k in (1, 0, -1))
            return (ahead - 2.0 * here + behind) / (step * step)
        moved = self._step * self.direction
        return (gradient(X + moved) - gradient(X - moved)) / (2.0 * self._step)

    def gradient_product(self, X: Inputs, Y: Points, C: np.ndarray) -> Inputs:
        return self._moved(lambda x: self.kernel.gradient_product(x, Y, C), X)

    def node(self, points: Points, frame: Frame) -> LocalNode:
        if self.order == 2.0:
            return curvature_node(self.kernel, self.direction, points, frame)
        return slope_node(self.kernel, self.direction, points, frame)

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """Those of k: the functions are the same."""
        part, e = self.kernel.in_units(points)
        return SlopeKernel(part, self.direction, self.order), e

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> Kernel:
        direction = self.direction * np.asarray(scale)
        return SlopeKernel(self.kernel.rescaled(scale, shift), direction, self.order)

    def gram_with_error(
        self, points: Points, rows: slice = slice(None), columns: slice = slice(None)
    ) -> tuple[np.ndarray, np.ndarray]:
        """That of k, which norms are made of."""
        return self.kernel.gram_with_error(points, rows, columns)


def smooth(kernel: Kernel) -> bool:
    """Whether the slopes of a kernel's functions are bounded here."""
    if isinstance(kernel, Expressed):
        return smooth(kernel.expression)
    if kernel.parts:
        known = isinstance(kernel, Sum | Product | Scale | ActiveDimensions)
        return known and all(map(smooth, kernel.parts))
    if isinstance(kernel, RadialKernel):
        return not kernel.rough
    return isinstance(kernel, Constant | White | Linear)


def check_smooth(kernel: Kernel) -> None:
    """An `InputError` that names the part whose slopes do not exist, or are not bounded here."""
    if isinstance(kernel, Expressed):
        check_smooth(kernel.expression)
    for part in kernel.parts:
        check_smooth(part)
    if smooth(kernel):
        return
    if isinstance(kernel, RadialKernel) and kernel.rough:
        raise InputError(
            f"kernel: {type(kernel).__name__} with these parameters has no derivative at its "
            "points, so that its functions have no slopes there; ask for differences instead, as "
            "in difference_range, or fit a smoother kernel (Matern with nu of 1.5 or more)"
        )
    raise InputError(
        f"kernel: slopes are known for squared exponential, Matern (nu >= 1.5), rational "
        "quadratic, linear, polynomial and constant kernels, their sums and products and some of "
        f"the inputs, got {type(kernel).__name__}; ask for differences instead, as in "
        "difference_range"
    )


def check_curved(kernel: Kernel) -> None:
    """An `InputError` that names the part whose second derivatives are not bounded here."""
    for part in [kernel.expression] if isinstance(kernel, Expressed) else kernel.parts:
        check_curved(part)
    if isinstance(kernel, RadialKernel) and not math.isfinite(kernel.profile.at_zero[2]):
        raise InputError(
            f"kernel: {type(kernel).__name__} with these parameters has functions without second "
            "derivatives at its points, so that nothing can be said of their curvature there; fit "
            "a smoother kernel (Matern with nu of 2.5 or more)"
        )


@singledispatch
def slope_values(
    kernel: Kernel, direction: PerFeature, X: Inputs, Y: Points
) -> Annotated[np.ndarray, "n N"]:
    """`D_u k(x_i, y_j)`, in plain floating point; here of kernels that do not depend on x."""
    return np.zeros((len(X), len(Y)))


@slope_values.register
def _radial_values(
    kernel: RadialKernel, direction: PerFeature, X: Inputs, Y: Points
) -> Annotated[np.ndarray, "n N"]:
    along = direction / kernel.length_scale / kernel.length_scale
    return kernel.slopes(X, Y) * ((Y @ along)[None, :] - (X @ along)[:, None])


@slope_values.register
def _sum_values(
    kernel: Sum, direction: PerFeature, X: Inputs, Y: Points
) -> Annotated[np.ndarray, "n N"]:
    return np.sum([slope_values(part, direction, X, Y) for part in kernel.parts], axis=0)


@slope_values.register
def _scale_values(
    kernel: Scale, direction: PerFeature, X: Inputs, Y: Points
) -> Annotated[np.ndarray, "n N"]:
    return kernel.factor * slope_values(kernel.kernel, direction, X, Y)


@slope_values.register
def _active_values(
    kernel: ActiveDimensions, direction: PerFeature, X: Inputs, Y: Points
) -> Annotated[np.ndarray, "n N"]:
    seen = list(kernel.dimensions)
    return slope_values(kernel.kernel, direction[seen], X[:, seen], Y[:, seen])


@slope_values.register
def _product_values(
    kernel: Product, direction: PerFeature, X: Inputs, Y: Points
) -> Annotated[np.ndarray, "n N"]:
    """Leibniz' rule; no division, as factors may vanish."""
    values, total = [part.value(X, Y) for part in kernel.parts], np.zeros((len(X), len(Y)))
    for k, part in enumerate(kernel.parts):
        others = math.prod(values[:k] + values[k + 1 :], start=np.ones_like(total))
        total += slope_values(part, direction, X, Y) * others
    return total


@slope_values.register
def _linear_values(
    kernel: Linear, direction: PerFeature, X: Inputs, Y: Points
) -> Annotated[np.ndarray, "n N"]:
    slopes = (Y - kernel.center) @ (kernel.weights * direction)
    return np.broadcast_to(slopes, (len(X), len(Y))).copy()


@slope_values.register
def _expressed_values(
    kernel: Expressed, direction: PerFeature, X: Inputs, Y: Points
) -> Annotated[np.ndarray, "n N"]:
    return slope_values(kernel.expression, direction, X, Y)


@singledispatch
def slope_node(kernel: Kernel, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    """`D_u k` bound to points and to a frame."""
    raise NotImplementedError(f"no slopes are known for {type(kernel).__name__}")


@slope_node.register
def _radial(kernel: RadialKernel, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    lengths = np.broadcast_to(kernel.length_scale, points.shape[1:])
    parts = (kernel.variance, kernel.profile)
    return RadialSlope.build(points, lengths, parts, direction, frame)


@slope_node.register
def _constant(kernel: Constant, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    return ConstantNode(0.0, len(points))


@slope_node.register
def _white(kernel: White, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    return ConstantNode(0.0, len(points))


@slope_node.register
def _linear(kernel: Linear, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    """`D_u k = sum_j w_j u_j (z_j - o_j)`, and `|D_u phi|^2 = sum_j w_j u_j^2`."""
    apart, weights = points - kernel.center, kernel.weights * direction
    terms = apart * weights
    size = np.abs(terms).sum(axis=1) + TINY
    d = points.shape[1]
    errors = np.asarray(up(gamma(d + 8) * size + TINY * (1.0 + np.abs(apart).sum(axis=1)), 8))
    squared = np.sum(kernel.weights * direction * direction + np.zeros(d))
    length = float(up(np.sqrt(up(squared, d + 8)), 2)) if squared else 0.0
    place = frame.backend.asarray
    return FlatSlope(place(terms.sum(axis=1)), place(errors), length)


@slope_node.register
def _scale(kernel: Scale, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    return ScaleNode(slope_node(kernel.kernel, direction, points, frame), kernel.factor)


@slope_node.register
def _sum(kernel: Sum, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    return SumNode(tuple(slope_node(part, direction, points, frame) for part in kernel.parts))


@slope_node.register
def _product(kernel: Product, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    """One product for each factor, of which the slope is taken, and the others."""
    factors = [part.node(points, frame) for part in kernel.parts]
    products = []
    for k, part in enumerate(kernel.parts):
        if isinstance(part, Constant | White):
            continue
        slope = slope_node(part, direction, points, frame)
        products.append(ProductNode((slope, *factors[:k], *factors[k + 1 :])))
    return slope_sum(products) if products else ConstantNode(0.0, len(points))


@slope_node.register
def _active(
    kernel: ActiveDimensions, direction: PerFeature, points: Points, frame: Frame
) -> LocalNode:
    seen = np.asarray(kernel.dimensions, dtype=int)
    part = slope_node(kernel.kernel, direction[seen], points[:, seen], frame.restricted(seen))
    return ActiveNode(part, frame.columns(seen))


@slope_node.register
def _expressed(kernel: Expressed, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    return slope_node(kernel.expression, direction, points, frame)


@singledispatch
def curvature_node(
    kernel: Kernel, direction: PerFeature, points: Points, frame: Frame
) -> LocalNode:
    """`D_u^2 k` bound to points and to a frame (Statement 19.16); here of kernels whose functions
    are linear."""
    return ConstantNode(0.0, len(points))


@curvature_node.register
def _curved_radial(
    kernel: RadialKernel, direction: PerFeature, points: Points, frame: Frame
) -> LocalNode:
    lengths = np.broadcast_to(kernel.length_scale, points.shape[1:])
    return RadialCurvature.build(
        points, lengths, (kernel.variance, kernel.profile), direction, frame
    )


@curvature_node.register
def _curved_scale(kernel: Scale, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    return ScaleNode(curvature_node(kernel.kernel, direction, points, frame), kernel.factor)


@curvature_node.register
def _curved_sum(kernel: Sum, direction: PerFeature, points: Points, frame: Frame) -> LocalNode:
    return SumNode(tuple(curvature_node(part, direction, points, frame) for part in kernel.parts))


@curvature_node.register
def _curved_product(
    kernel: Product, direction: PerFeature, points: Points, frame: Frame
) -> LocalNode:
    """Leibniz' rule; products of two slopes count twice."""
    factors = [part.node(points, frame) for part in kernel.parts]
    moving = [k for k, part in enumerate(kernel.parts) if not isinstance(part, Constant | White)]
    slopes = {k: slope_node(kernel.parts[k], direction, points, frame) for k in moving}
    products = []
    for k in moving:
        if not isinstance(kernel.parts[k], Linear):
            curved = curvature_node(kernel.parts[k], direction, points, frame)
            products.append(ProductNode((curved, *factors[:k], *factors[k + 1 :])))
        for j in moving[: moving.index(k)]:
            others = [factor for i, factor in enumerate(factors) if i not in {j, k}]
            products += 2 * [ProductNode((slopes[j], slopes[k], *others))]
    return slope_sum(products) if products else ConstantNode(0.0, len(points))


@curvature_node.register
def _curved_active(
    kernel: ActiveDimensions, direction: PerFeature, points: Points, frame: Frame
) -> LocalNode:
    seen = np.asarray(kernel.dimensions, dtype=int)
    part = curvature_node(kernel.kernel, direction[seen], points[:, seen], frame.restricted(seen))
    return ActiveNode(part, frame.columns(seen))


@curvature_node.register
def _curved_expressed(
    kernel: Expressed, direction: PerFeature, points: Points, frame: Frame
) -> LocalNode:
    return curvature_node(kernel.expression, direction, points, frame)
