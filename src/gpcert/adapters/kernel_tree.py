"""Kernel expressions of other libraries as kernels of ours: one walk, and a converter a class.

White noise is zero in `k(X, Z)` even at x = z, and counts in `k(X, X)` and on the diagonal: at new
points it is an addition to the variance, the `noise` of a `Posterior`. In a product it is
multiplied by the other's k(x, x):

    (k1 + w1) (k2 + w2) = k1 k2 + [ w1 k2(x, x) + k1(x, x) w2 + w1 w2 ] on the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import ActiveDimensions, Constant, Kernel, Linear, Matern, Periodic, Polynomial
from gpcert.kernels.algebra import product_of, sum_of
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.spectral import symmetric_eigh
from gpcert.regions import LinearMap


@dataclass(frozen=True, eq=False)
class Converted:
    """An expression: its smooth part (None if it has none) and the variance of its white part."""

    features: int
    kernel: Kernel | None
    white: float = 0.0

    def plus(self, other: Converted) -> Converted:
        """The sum of two expressions."""
        parts = [k for k in (self.kernel, other.kernel) if k is not None]
        kernel = sum_of(parts) if parts else None
        return Converted(self.features, kernel, self.white + other.white)

    def times(self, other: Converted) -> Converted:
        """The product of two expressions; see the module."""
        white = self.white * other.white
        white += self.white * other.height() if self.white else 0.0
        white += other.white * self.height() if other.white else 0.0
        if self.kernel is None or other.kernel is None:
            return Converted(self.features, None, white)
        return Converted(self.features, product_of([self.kernel, other.kernel]), white)

    def height(self) -> float:
        """k(x, x) of the smooth part, which must not depend on x."""
        if self.kernel is None:
            return 0.0
        # two places with nothing in common: a kernel whose diagonal varies shows it
        X = np.stack([np.zeros(self.features), np.sqrt(2.0 + np.arange(self.features))])
        low, high = self.kernel.diagonal(X)
        if low != high:
            raise UnsupportedModelError(
                "white noise times a kernel whose k(x, x) varies is not supported: its noise would "
                "depend on the input"
            )
        return float(low)

    def on(self, dimensions: Sequence[int], features: int) -> Converted:
        """The same expression, of some of so many features."""
        if self.kernel is None or list(dimensions) == list(range(features)):
            return Converted(features, self.kernel, self.white)
        return Converted(features, ActiveDimensions(self.kernel, dimensions), self.white)


Converter = Callable[[Any, int], Kernel | Converted]
"""From a library's kernel, and the number of features that it sees."""


_ADVICE = {
    "RFFKernel": "its random features approximate an RBFKernel: fit with that one",
    "GridInterpolationKernel GridKernel": (
        "it approximates its base kernel on a grid: fit with that one, or an InducingPointKernel"
    ),
    "WienerKernel": "away from its origin Exponential (Matern 1/2) is as rough",
    "MLP ArcCosine NeuralNetworkKernel": "it is not stationary and has no bounds here",
    "PairwiseKernel": "metric='rbf' is RBF, and 'laplacian' a KernelRidge's",
    "ChangePoints": "fit a model for each side of the change",
    "HammingIMQKernel": "BoTorch's CategoricalKernel is, for columns of categories",
    "CylindricalKernel ArcKernel": "transform the inputs first, and fit with its base kernel",
}
INSTEAD = {name: f"; {advice}" for names, advice in _ADVICE.items() for name in names.split()}
"""Kernels of the libraries by name, and what to do."""


@dataclass(frozen=True, eq=False)
class CategoryBlock:
    """What a kernel of categories is of one input: `constant + E[a].E[b]` for categories a and b,
    the rows of E (labels, r) in the order of `labels`."""

    column: int
    labels: tuple[float, ...]
    embedding: np.ndarray
    constant: float = 0.0

    @staticmethod
    def of_covariance(column: int, covariance: np.ndarray) -> CategoryBlock:
        """Of the categories 0, 1, ... with this covariance (T, T), of the rank that it has."""
        values, U = symmetric_eigh(0.5 * (covariance + covariance.T), "covariance of categories")
        felt = values > RANK * max(values.max(), 0.0)
        labels = tuple(map(float, range(len(values))))
        return CategoryBlock(column, labels, U[:, felt] * np.sqrt(values[felt]))


RANK = 1e-15
"""Eigenvalues of a covariance of categories below this part of the largest are rounding."""


@dataclass(frozen=True, eq=False)
class CategoryLayout:
    """Where inputs of categories go: of so many `inputs` the `plain` ones come first, then the
    embeddings of every block. `blocks` by the identity of a library's kernel."""

    inputs: int
    blocks: Mapping[int, tuple[CategoryBlock, ...]]

    @property
    def levels(self) -> dict[int, tuple[float, ...]]:
        """Labels of the inputs that hold categories."""
        return {b.column: b.labels for blocks in self.blocks.values() for b in blocks}

    @property
    def plain(self) -> list[int]:
        """The others."""
        return [j for j in range(self.inputs) if j not in self.levels]

    @property
    def places(self) -> dict[int, list[np.ndarray]]:
        """The columns behind the map of each kernel's blocks."""
        first, found = len(self.plain), {}
        for kernel, blocks in self.blocks.items():
            found[kernel] = []
            for block in blocks:
                found[kernel].append(np.arange(first, first + block.embedding.shape[1]))
                first += block.embedding.shape[1]
        return found

    @property
    def total(self) -> int:
        """How many columns there are."""
        return len(self.plain) + sum(
            b.embedding.shape[1] for blocks in self.blocks.values() for b in blocks
        )

    def features(self) -> LinearMap:
        """The map of the inputs."""
        matrix = np.zeros((self.total, self.inputs))
        matrix[np.arange(len(self.plain)), self.plain] = 1.0
        rows = []
        for kernel, blocks in self.blocks.items():
            for block, places in zip(blocks, self.places[kernel], strict=True):
                wide = np.zeros((self.total, len(block.labels)))
                wide[places] = block.embedding.T
                rows.append((block.column, block.labels, wide))
        return LinearMap.of_blocks(matrix, np.zeros(self.total), rows)

    def kernel(self, of: int) -> Kernel:
        """That of one library's kernel: the product over its inputs, each on its columns."""
        parts = []
        for block, places in zip(self.blocks[of], self.places[of], strict=True):
            inner: Kernel = ActiveDimensions(Linear(1.0), tuple(places.tolist()))
            parts.append(sum_of([inner, Constant(block.constant)]) if block.constant else inner)
        return product_of(parts) if len(parts) > 1 else parts[0]

    def columns(self, dimensions: Sequence[int], kernel: Any) -> list[int]:
        """Where inputs that are no categories go."""
        held = [j for j in dimensions if j in self.levels]
        if held:
            raise UnsupportedModelError(
                f"{type(kernel).__name__}: expected a kernel of inputs without categories, got one "
                f"that sees column {held[0]}, which a kernel of categories sees too; give it "
                "active_dims without that column"
            )
        return [self.plain.index(j) for j in dimensions]


LAYOUT: ContextVar[CategoryLayout | None] = ContextVar("layout", default=None)
"""That of the expression that is being converted."""


@dataclass(frozen=True, eq=False)
class KernelTree:
    """A library's kernels: how its expressions are made, and a converter for every other class.

    `sums` and `products` are its classes of those, `parts` gives what they are made of,
    `dimensions(kernel, d)` the features of d that a kernel selects when it is called, and `example`
    is a kernel to train with instead of one that is refused. `computed` are the methods that
    compute a kernel: a class that derives from a supported one and overrides none of them is that
    one. Without them only the supported classes themselves count.
    """

    converters: Mapping[type, Converter]
    sums: type
    products: type
    parts: Callable[[Any], Sequence[Any]]
    example: str
    dimensions: Callable[[Any, int], Sequence[int]] = lambda kernel, d: range(d)
    described: Callable[[Any], str] = lambda kernel: type(kernel).__name__
    computed: tuple[str, ...] = ()
    inner: Callable[[Any], Any] = lambda kernel: kernel
    """What a kernel multiplies by a number."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all classes."""
        return tuple(kind.__name__ for kind in (*self.converters, self.sums, self.products))

    def convert(
        self, kernel: Any, features: int, layout: CategoryLayout | None = None
    ) -> tuple[Kernel, float]:
        """`(k, white)`: the kernel and the variance of its white part, for so many features; with a
        layout the kernel of its columns."""
        LAYOUT.set(layout)
        try:
            converted = self.called(kernel, features)
            if converted.kernel is None:
                raise UnsupportedModelError("an expression without a smooth part is not supported")
        except UnsupportedModelError as error:
            raise UnsupportedModelError(
                f"kernel: {error}; got {self.described(kernel)}. Fit the model with a kernel such "
                f"as {self.example}"
            ) from None
        return converted.kernel, converted.white

    def called(self, kernel: Any, d: int) -> Converted:
        """What calling the kernel computes: its formula on its active features."""
        dimensions, layout = self.dimensions(kernel, d), LAYOUT.get()
        if layout is not None:
            inner = self.inner(kernel)
            if self.kind(inner) in (self.sums, self.products):
                if list(dimensions) != list(range(layout.inputs)):
                    raise UnsupportedModelError(
                        f"{type(inner).__name__} with active_dims beside kernels of categories is "
                        "not supported; give active_dims to its parts"
                    )
                return self.formula(kernel, d)
            if id(inner) in layout.blocks:
                return self.formula(kernel, layout.total)
            columns = layout.columns(dimensions, kernel)
            return self.formula(kernel, len(columns)).on(columns, layout.total)
        return self.formula(kernel, len(dimensions)).on(dimensions, d)

    def formula(self, kernel: Any, d: int) -> Converted:
        """What it computes from the features that it has selected."""
        kind, layout = self.kind(kernel), LAYOUT.get()
        if layout is not None and id(kernel) in layout.blocks:
            return Converted(layout.total, layout.kernel(id(kernel)))
        for joined, join in ((self.sums, Converted.plus), (self.products, Converted.times)):
            if kind is joined:
                return reduce(join, [self.called(part, d) for part in self.parts(kernel)])
        converter = None if kind is None else self.converters.get(kind)
        if converter is None:
            name = type(kernel).__name__
            raise UnsupportedModelError(
                f"{name} is not supported (supported: {', '.join(self.names)})"
                f"{INSTEAD.get(name, '')}"
            )
        converted = converter(kernel, d)
        return converted if isinstance(converted, Converted) else Converted(d, converted)

    def kind(self, kernel: Any) -> type | None:
        """The supported class whose function this kernel computes, if any."""
        return computed_by(kernel, (*self.converters, self.sums, self.products), self.computed)


def computed_by(part: Any, known: Sequence[type], methods: Sequence[str]) -> type | None:
    """The first of the known classes that a part is of, or derives from; None where there is none,
    or where its own class overrides one of the methods that compute it.

    Without methods only the classes themselves count.

    >>> class Length(list):
    ...     pass
    >>> computed_by(Length(), [list], ["append"]), computed_by(Length(), [list], [])
    (<class 'list'>, None)
    """
    own_class = type(part)
    kind = next((base for base in own_class.__mro__ if base in known), None)
    if kind is None or kind is own_class:
        return kind
    inherited = all(getattr(own_class, name) is getattr(kind, name) for name in methods)
    return kind if methods and inherited else None


def vector(kernel: Any, name: str) -> np.ndarray:
    """A parameter: a number, or a vector of one an active feature."""
    values = finite_array(f"{type(kernel).__name__}.{name}", getattr(kernel, name))
    return values.reshape(()) if values.size == 1 else values.reshape(-1)


def number(kernel: Any, name: str) -> float:
    """A parameter that is one number, not negative."""
    values = vector(kernel, name)
    if values.ndim:
        raise UnsupportedModelError(
            f"{type(kernel).__name__}.{name}: expected one number, got {values.size}"
        )
    if values < 0:
        raise InputError(
            f"{type(kernel).__name__}.{name}: expected a number >= 0, got {values}; fit the model "
            "again with positive hyper-parameters"
        )
    return float(values)


@dataclass(frozen=True)
class ParameterNames:
    """How a library names the length-scales and, where it has one, the variance of its kernels."""

    lengths: str
    variance: str = ""

    def radial(self, make: Callable[..., Kernel], factor: float = 1.0, **others: str) -> Converter:
        """Of a kernel `make(factor * lengths, variance=...)`; `others` by our names are theirs."""

        def converter(kernel: Any, d: int) -> Kernel:
            names = {"variance": self.variance, **others} if self.variance else others
            parameters = {ours: number(kernel, theirs) for ours, theirs in names.items()}
            return make(factor * vector(kernel, self.lengths), **parameters)

        return converter

    def materns(self, kinds: Mapping[type, float]) -> dict[type, Converter]:
        """Of Matern kernels whose smoothness nu is in their names."""
        return {kind: self.radial(partial(Matern, nu=nu)) for kind, nu in kinds.items()}

    def periodic(self, factor: float = 1.0) -> Converter:
        """Of a periodic kernel whose length-scales are ours over the factor."""
        return lambda kernel, d: self.radial(partial(Periodic, vector(kernel, "period")), factor)(
            kernel, d
        )


def constant(name: str) -> Converter:
    """Of a kernel that is this number."""
    return lambda kernel, d: Constant(number(kernel, name))


def white(name: str) -> Converter:
    """Of white noise of this variance."""
    return lambda kernel, d: Converted(d, None, number(kernel, name))


def linear(name: str) -> Converter:
    """Of a linear kernel with these weights."""
    return lambda kernel, d: Linear(vector(kernel, name))


def on_one_feature(converter: Converter, why: str) -> Converter:
    """Of a kernel that is positive definite on one feature only; more are refused."""

    def checked(kernel: Any, d: int) -> Kernel | Converted:
        if d > 1:
            name = type(kernel).__name__
            raise UnsupportedModelError(f"{name} on {d} features is not supported: {why}")
        return converter(kernel, d)

    return checked


def polynomial(kernel: Any, degree: Any, variance: Any, offset: float) -> Kernel:
    """`(variance x.y + offset)^degree`, or a refusal that names the library's class."""
    try:
        return Polynomial(degree, variance, offset)
    except InputError as error:
        raise UnsupportedModelError(f"{type(kernel).__name__}: {error}") from None
