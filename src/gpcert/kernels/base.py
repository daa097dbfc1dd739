"""What the engine asks of a kernel: value, gradient, and how far its feature map bends.

Let `phi(x)` be the feature map, `<phi(x), phi(y)> = k(x, y)`. Every enclosure of a Gaussian process
rests on the length of a Taylor remainder of phi, by Cauchy-Schwarz:

    R0(d) = ||phi(c+d) - phi(c)||,   R1(d) = ||phi(c+d) - phi(c) - D_d phi(c)||,
    b2(d) = ||D_d^2 phi||,  b3(d) = ||D_d^3 phi||,  so  R1 <= b2/2,  R2 <= b3/6.

A kernel offers these through its `node`: itself bound to the points of a posterior and to the
coordinates that a region leaves free, which is what runs over batches of boxes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.expansions.base import LocalKernel
from gpcert.kernels.expansions.taylor import LocalTaylor
from gpcert.kernels.nodes.base import DerivativeBounds, LocalNode
from gpcert.kernels.parameters import ORDINARY, Parameter, even_exponent, exactly_scaled
from gpcert.numerics.arrays import Backend, Inputs, PerFeature, PerRow, Points
from gpcert.numerics.pairs import Pair
from gpcert.regions import Box, Cells, Region
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells

LARGEST_GRADIENT = 50_000_000
"""Numbers that `gradient_product` may hold at once."""


GradientProduct = Callable[[np.ndarray], np.ndarray]
"""From C (n, p) to `sum_j C_ij d k(x_i, y_j) / d x_i` (n, d)."""


class Kernel(ABC):
    """A positive-definite function k(x, y) on R^d. Subclasses are frozen records."""

    name: ClassVar[str]
    """Key of the registry; written to saved posteriors."""

    parameters: ClassVar[dict[str, Parameter]] = {}
    """How its fields are checked and stored, those that are no kernels."""

    def __post_init__(self) -> None:
        for name, parameter in self.parameters.items():
            object.__setattr__(self, name, parameter.check(name, getattr(self, name)))

    __array_ufunc__ = None  # an array times a kernel is no array of kernels: `__rmul__` answers

    @abstractmethod
    def value(self, X: Inputs, Y: Points) -> Annotated[np.ndarray, "n N"]:
        """Matrix `k(x_i, y_j)`, shape (n, p), in plain floating point."""

    def diagonal(self, X: Inputs) -> Annotated[np.ndarray, "n"]:
        """`k(x_i, x_i)`, shape (n,); here of a stationary kernel with a variance."""
        self._needs_stationary("diagonal")
        return np.full(len(X), self.variance)  # pyright: ignore[reportAttributeAccessIssue]

    stationary: ClassVar[bool] = False
    """Whether k is a function of x - y, and parameters with a unit are all that scales with it."""

    def _needs_stationary(self, method: str) -> None:
        if not self.stationary:
            raise NotImplementedError(f"{type(self).__name__}: expected `{method}` of its own")

    @abstractmethod
    def gradient(self, X: Inputs, Y: Points) -> Annotated[np.ndarray, "n N d"]:
        """`d k(x_i, y_j) / d x_i`, shape (n, p, d), in plain floating point."""

    def typical_lengths(self, d: int) -> Annotated[np.ndarray, "d"]:
        """(d,) lengths over which k varies in each input; infinite where it does not depend on it.

        Only a choice of units: any positive numbers are valid. The shortest of the parts' lengths,
        of the parameters that are lengths and of a radian of those that are frequencies.
        """
        lengths = [np.full((1, d), np.inf), *(part.typical_lengths(d)[None] for part in self.parts)]
        with np.errstate(divide="ignore", over="ignore"):
            for name, parameter in self.parameters.items():
                if parameter.unit:
                    sizes = np.abs(np.atleast_2d(getattr(self, name)))
                    sizes = np.broadcast_to(sizes, (len(sizes), d))
                    lengths.append(sizes if parameter.unit > 0 else 1.0 / sizes)
        return np.concatenate(lengths).min(axis=0)

    @abstractmethod
    def node(self, points: Points, frame: Frame) -> LocalNode:
        """The kernel bound to points Z (N, d) and to the coordinates of a region."""

    def localize(self, points: Points, region: Region, backend: Backend) -> LocalKernel[Any]:
        """Bind to points Z (N, d) and to the free coordinates of a region, for the enclosures.

        Plain Taylor expansions of the tree of nodes; a kernel with a better one overrides it.
        """
        frame = Frame.of(region, self.typical_lengths(points.shape[1]), backend)
        return LocalTaylor.build(self.node(points, frame), frame, region, len(points))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of, in order; none for a leaf."""
        return ()

    several: ClassVar[bool] = False
    """Whether it may have more parts than one."""

    def with_parts(self, parts: tuple[Kernel, ...]) -> Kernel:
        """The same kernel of other parts, as many as it has; here of one, its field `kernel`."""
        return replace(self, kernel=parts[0]) if parts else self  # pyright: ignore

    @property
    def rough(self) -> bool:
        """Whether the features have no derivative, those of any part."""
        return any(part.rough for part in self.parts)

    def features_seen(self, d: int) -> Annotated[np.ndarray, "d"]:
        """(d,) mask: False where k does not depend on the feature."""
        seen = [part.features_seen(d) for part in self.parts]
        return np.any(seen, axis=0) if seen else np.ones(d, dtype=bool)

    radial: ClassVar[bool] = False
    """Whether it is a variance times a function of the distance, scaled by its `length_scale`."""

    def reordered(self, index: Annotated[np.ndarray, "d"]) -> Kernel | None:
        """The kernel that is this one of the inputs at `index`, all of them in another order; None
        where that is no kernel of its kind."""
        del index
        return None

    white: ClassVar[bool] = False
    """Whether it is noise of observations, zero as a function of the inputs."""

    @property
    def has_white_noise(self) -> bool:
        """Whether `training_covariance` is more than `value`: a white part anywhere in the tree."""
        return self.white or any(part.has_white_noise for part in self.parts)

    def parted(self) -> tuple[float, Kernel]:
        """A factor in front and the kernel behind it; the product is the kernel, up to rounding."""
        variance = getattr(self, "variance", 0.0) if self.has_variance else 0.0
        if variance and math.isfinite(1.0 / variance):
            return variance, replace(self, variance=1.0)  # pyright: ignore[reportArgumentType]
        return 1.0, self

    has_variance: ClassVar[bool] = False
    """Whether the field `variance` is a factor of k."""

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """k' and an even e with `k = 2^e k'` exactly, k'(z, z) of size about one at the points.

        Factors of a product are brought to size one each, a sum to that of its largest part;
        exponents are whole numbers, so variances of 1e-300 may be multiplied. Where a kernel has
        no factor of its own, it is measured by k(z, z), and left alone if that is ordinary.

        >>> from gpcert.kernels import SquaredExponential
        >>> k, e = SquaredExponential(1.0, 3.0 * 2.0**-998).in_units(np.zeros((1, 1)))
        >>> float(k.variance), e
        (0.75, -996)
        """
        if self.has_variance:
            exponent = even_exponent(self.variance)  # pyright: ignore[reportAttributeAccessIssue]
            return self.with_factor(-exponent), exponent
        diagonal = self.diagonal(points)
        sizes = np.abs(diagonal[np.isfinite(diagonal)])
        return self._unless_ordinary(even_exponent(float(sizes.max(initial=0.0))))

    def _unless_ordinary(self, exponent: int) -> tuple[Kernel, int]:
        """In units of 2^exponent, or as it is where that is no extreme number."""
        if abs(exponent) < ORDINARY:
            return self, 0
        return self.with_factor(-exponent), exponent

    def with_factor(self, exponent: int) -> Kernel:
        """`2^exponent k` exactly, the factor taken down to kernels that have one of their own."""
        if exponent == 0:
            return self
        if self.has_variance:
            before = self.variance  # pyright: ignore[reportAttributeAccessIssue]
            variance = float(exactly_scaled("kernel", before, exponent))
            return replace(self, variance=variance)  # pyright: ignore[reportArgumentType]
        if len(self.parts) == 1:
            return self.with_parts((self.parts[0].with_factor(exponent),))
        return _algebra().Scale(self, float(exactly_scaled("kernel", 1.0, exponent)))

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> Kernel:
        """The kernel `k'(x, y) = k((x - shift) / scale, (y - shift) / scale)`, feature by feature.

        Here of parts, or of a stationary kernel, which does not see the shift.
        """
        if self.parts:
            return self.with_parts(tuple(part.rescaled(scale, shift) for part in self.parts))
        self._needs_stationary("rescaled")
        units = {name: p.unit for name, p in self.parameters.items() if p.unit}
        old = {name: getattr(self, name) for name in units}
        factor = np.asarray(scale)
        new = {n: v * factor if units[n] > 0 else v / factor for n, v in old.items()}
        return replace(self, **new)  # pyright: ignore[reportArgumentType]

    def check_dimension(self, d: int) -> None:
        """Raise an `InputError` if the kernel does not fit inputs with d features."""
        for part in self.parts:
            part.check_dimension(d)
        for name, parameter in self.parameters.items():
            shape = np.shape(getattr(self, name))
            if parameter.features and shape and shape[-1] != d:
                raise InputError(
                    f"kernel: expected {d} entries of {name} (one per feature of the points), "
                    f"got {shape[-1]}"
                )

    def config(self) -> dict[str, Any]:
        """Its fields (numbers, lists, nested [name, config]): the registry rebuilds it so."""
        parameters = fields(self)  # pyright: ignore[reportArgumentType]
        return {field.name: _plain(getattr(self, field.name)) for field in parameters}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Kernel:
        """Rebuild the kernel that `config` describes."""
        return cls(**{name: _rebuilt(value) for name, value in config.items()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy or a pickle: NumPy forgets that its arrays can only be read."""
        vars(self).update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __add__(self, other: Kernel | float) -> Kernel:
        """k1 + k2; a number is a constant kernel. In its simplest form, see `kernels.algebra`."""
        return _algebra().sum_of([self, other])

    __radd__ = __add__

    def __mul__(self, other: Kernel | float) -> Kernel:
        """k1 * k2; a number is a factor."""
        return _algebra().product_of([self, other])

    __rmul__ = __mul__

    def __pow__(self, exponent: float) -> Kernel:
        """k^p."""
        return _algebra().power_of(self, exponent)

    def training_covariance(self, X: Inputs) -> Annotated[np.ndarray, "n n"]:
        """Covariance of observations at X: `value(X, X)`, and white noise where there is some."""
        return self.value(X, X)

    def gradient_product(self, X: Inputs, Y: np.ndarray, C: np.ndarray) -> Inputs:
        """`sum_j C_ij d k(x_i, y_j) / d x_i`, shape (n, d)."""
        rows = max(1, LARGEST_GRADIENT // max(1, Y.size))
        parts = [
            np.einsum("ij,ijk->ik", C[i : i + rows], self.gradient(X[i : i + rows], Y))
            for i in range(0, len(X), rows)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, X.shape[1]))

    def with_gradient(
        self, X: Inputs, Y: Points
    ) -> tuple[Annotated[np.ndarray, "n N"], GradientProduct]:
        """`value(X, Y)`, and `gradient_product` as a function of C: what both need is computed once
        where a kernel overrides it."""
        return self.value(X, Y), lambda C: self.gradient_product(X, Y, C)

    def derivative_bounds(self, delta: Any, center: Any = None) -> DerivativeBounds:
        """How far the feature map bends over boxes `|x_j - center_j| <= |delta_j|`, arrays (B, d).

        The centre (default 0) matters to kernels that are not stationary.
        """
        half = np.abs(np.atleast_2d(np.asarray(delta, dtype=np.float64)))
        middle = np.zeros_like(half) if center is None else np.broadcast_to(center, half.shape)
        d = half.shape[1]
        none = np.zeros(0)
        radius = np.abs(middle).max(axis=0, initial=0.0)
        frame = Frame(
            np.arange(d), none.astype(int), none, np.zeros(d), np.ones(d), radius, Backend()
        )
        largest = np.full(d, np.finfo(np.float64).max)
        cells = Cells.around(Box(-largest, largest), middle, half)
        return self.node(middle[:1], frame).derivative_bounds(ScaledCells.in_frame(cells, frame))

    def R0(self, delta: Any, center: Any = None) -> Annotated[np.ndarray, "B"]:
        """Upper bound (B,) of `||phi(c+d) - phi(c)||` for `|d_j| <= |delta_j|`, delta (B, d)."""
        return np.asarray(self.derivative_bounds(delta, center).remainder(0))

    def R1(self, delta: Any, center: Any = None) -> PerRow:
        """Upper bound of the first-order remainder's length; `inf` where it does not exist."""
        return np.asarray(self.derivative_bounds(delta, center).remainder(1))

    def b2(self, delta: Any, center: Any = None) -> PerRow:
        """Upper bound of `||D_d^2 phi(x)||`, x in the box; `inf` where it does not exist."""
        return np.asarray(self.derivative_bounds(delta, center).lengths[2])

    def b3(self, delta: Any, center: Any = None) -> PerRow:
        """Upper bound of `||D_d^3 phi(x)||`, x in the box; `inf` where it does not exist."""
        return np.asarray(self.derivative_bounds(delta, center).lengths[3])

    def gram_with_error(
        self, points: Points, rows: slice = slice(None), columns: slice = slice(None)
    ) -> tuple[np.ndarray, np.ndarray]:
        """`k(z_i, z_j)`, i of the rows and j of the columns, and a bound of the absolute error of
        each entry."""
        return self._node_values(points[rows], points[columns])

    def sharp_values(
        self, X: Inputs, Z: Points
    ) -> tuple[Annotated[np.ndarray, "n N"], Annotated[np.ndarray, "n N"]]:
        """`k(x_i, z_j)` and a bound of the absolute error of each entry, as small as is to be had
        by several passes over the matrix more."""
        return self._node_values(X, Z)

    def pair_values(self, X: Inputs, Z: Points) -> tuple[Pair, Annotated[np.ndarray, "n N"]]:
        """The same, each value the sum of two floats: about 20 digits where the kernel and all its
        parts know how, else those of `sharp_values`."""
        value, error = self.sharp_values(X, Z)
        return Pair(value, np.zeros_like(value)), error

    def _node_values(self, X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = np.concatenate([X, Z])
        region = Box(both.min(axis=0), both.max(axis=0))
        frame = Frame.of(region, self.typical_lengths(Z.shape[1]), Backend())
        centers = X[:, frame.free]
        cells = Cells(region, centers, centers)
        batch = self.node(Z, frame).at(ScaledCells.in_frame(cells, frame))
        return batch.value, np.broadcast_to(batch.errors[0], batch.value.shape)


def _plain(value: Any) -> Any:
    """A field as files hold it: arrays and tuples as lists, a kernel as its name and config."""
    if isinstance(value, Kernel):
        return [value.name, value.config()]
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _rebuilt(value: Any) -> Any:
    """The kernels of a field by the registry, all else as it is."""
    match value:
        case [str(name), dict(config)]:
            from gpcert.kernels import kernel_from_config  # the registry imports this module

            return kernel_from_config(name, config)
        case [[str(), dict()], *_]:
            return tuple(_rebuilt(part) for part in value)
    return value


def _algebra() -> Any:
    from gpcert.kernels import algebra  # it makes all kinds of kernels, so it imports this module

    return algebra
