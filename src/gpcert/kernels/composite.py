"""Sums of kernels (independent parts of one function), products (one modulates the other),
multiples of one, and kernels with parameters of their own that are such an expression."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.base import LocalNode
from gpcert.kernels.nodes.composite import ProductNode, ScaleNode, SumNode, each_answer
from gpcert.kernels.parameters import POSITIVE, Parameter, even_exponent, exactly_scaled
from gpcert.numerics.arrays import Inputs, Points
from gpcert.numerics.pairs import PAIR_ERROR, Pair
from gpcert.numerics.rounding import TINY, gamma, up
from gpcert.regions.cells import Frame


def checked_kernel(name: str, kernel: Any) -> Kernel:
    """The kernel, or an `InputError` that names the argument."""
    if not isinstance(kernel, Kernel):
        raise InputError(f"{name}: expected a kernel, got {kernel!r}")
    return kernel


@dataclass(frozen=True, eq=False)
class Composite(Kernel):
    """One or more kernels of the same inputs; they may be composites themselves."""

    kernels: Any

    several: ClassVar[bool] = True
    joined: ClassVar[np.ufunc]
    """How values are made of the parts' values."""
    local: ClassVar[type[SumNode | ProductNode]]

    def __post_init__(self) -> None:
        if isinstance(self.kernels, Kernel):
            raise InputError(f"kernels: expected several kernels, got one: {self.kernels!r}")
        if not isinstance(self.kernels, Iterable):
            raise InputError(f"kernels: expected a tuple of kernels, got {self.kernels!r}")
        kernels = tuple(checked_kernel(f"kernels[{i}]", k) for i, k in enumerate(self.kernels))
        if not kernels:
            raise InputError("kernels: expected at least one kernel, got none")
        object.__setattr__(self, "kernels", kernels)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.kernels

    def with_parts(self, parts: tuple[Kernel, ...]) -> Self:
        return type(self)(parts)

    def _each(self, method: str, *arguments: Any) -> list[Any]:
        return each_answer(self.kernels, method, *arguments)

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.joined.reduce(self._each("value", X, Y), axis=0)

    def diagonal(self, X: Inputs) -> np.ndarray:
        return self.joined.reduce(self._each("diagonal", X), axis=0)

    def training_covariance(self, X: Inputs) -> np.ndarray:
        """Entries joined: white noise times k is noise of variance `s^2 k(x, x)`."""
        return self.joined.reduce(self._each("training_covariance", X), axis=0)

    def node(self, points: Points, frame: Frame) -> LocalNode:
        return self.local(tuple(self._each("node", points, frame)))

    def sharp_values(self, X: Inputs, Z: Points) -> tuple[np.ndarray, np.ndarray]:
        """Of the parts' values v_i, off by at most e_i: a sum by the sum of the e_i, a product by
        `prod (|v_i| + e_i) - prod |v_i|`, and as many roundings as there are parts."""
        values, errors = zip(*self._each("sharp_values", X, Z), strict=True)
        value = self.joined.reduce(values, axis=0)
        sizes = [np.abs(each) for each in values]
        most = self.joined.reduce([v + e for v, e in zip(sizes, errors, strict=True)], axis=0)
        size = self.joined.reduce(sizes, axis=0)
        return value, np.asarray(up((most - size) + gamma(3 * len(values) + 4) * most, 4) + TINY)

    def pair_values(self, X: Inputs, Z: Points) -> tuple[Pair, np.ndarray]:
        """Of the parts' pairs, one after the other: their errors as in `sharp_values`, and one of
        each operation on pairs."""
        (value, error), *others = self._each("pair_values", X, Z)
        for other, more in others:
            sizes = np.abs(value.high), np.abs(other.high)
            if self.joined is np.add:
                value, size, error = value + other, sizes[0] + sizes[1], error + more
            else:
                value, size = value * other, sizes[0] * sizes[1]
                error = error * sizes[1] + sizes[0] * more + error * more
            error = np.asarray(up(error + PAIR_ERROR * size, 8) + TINY)
        return value, error


@dataclass(frozen=True, eq=False)
class Sum(Composite):
    """Sum of kernels.

    >>> from gpcert.kernels.constant import Constant
    >>> Sum([Constant(1.0), Constant(2.0)]).value(np.zeros((1, 1)), np.zeros((1, 1))).tolist()
    [[3.0]]
    """

    name: ClassVar[str] = "sum"
    joined: ClassVar[np.ufunc] = np.add
    local = SumNode

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return np.sum(self._each("gradient", X, Y), axis=0)

    def gradient_product(self, X: Inputs, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.sum(self._each("gradient_product", X, Y, C), axis=0)

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """Every part in the units of the largest; white noise vanishes and has no size."""
        units = self._each("in_units", points)
        each = zip(self.kernels, units, strict=True)
        largest = max((e for part, (_, e) in each if not part.white), default=0)
        return Sum(tuple(part.with_factor(e - largest) for part, e in units)), largest

    def with_factor(self, exponent: int) -> Kernel:
        """Every part has it."""
        return Sum(tuple(self._each("with_factor", exponent)))


@dataclass(frozen=True, eq=False)
class Product(Composite):
    """Product of kernels.

    >>> from gpcert.kernels.constant import Constant
    >>> Product([Constant(3.0), Constant(2.0)]).value(np.zeros((1, 1)), np.zeros((1, 1))).tolist()
    [[6.0]]
    """

    name: ClassVar[str] = "product"
    joined: ClassVar[np.ufunc] = np.multiply
    local = ProductNode

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """Leibniz' rule, one factor after the other (no division: factors may vanish)."""
        value, gradient = self.kernels[0].value(X, Y), self.kernels[0].gradient(X, Y)
        for kernel in self.kernels[1:]:
            other = kernel.value(X, Y)
            gradient = gradient * other[..., None] + value[..., None] * kernel.gradient(X, Y)
            value = value * other
        return gradient

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """Every factor in units of its own."""
        units = self._each("in_units", points)
        return Product(tuple(part for part, _ in units)), sum(e for _, e in units)

    def with_factor(self, exponent: int) -> Kernel:
        """The first factor has it."""
        first, *others = self.kernels
        return Product((first.with_factor(exponent), *others))

    def parted(self) -> tuple[float, Kernel]:
        first, *others = self.kernels
        factor, inside = first.parted()
        return factor, Product((inside, *others))


@dataclass(frozen=True, eq=False)
class Scale(Kernel):
    """A kernel times a positive number.

    >>> from gpcert.kernels.constant import Constant
    >>> Scale(Constant(3.0), 2.0).diagonal(np.zeros((1, 1))).tolist()
    [6.0]
    """

    kernel: Kernel
    factor: float

    name: ClassVar[str] = "scale"
    parameters: ClassVar[dict[str, Parameter]] = {"factor": POSITIVE}

    def __post_init__(self) -> None:
        checked_kernel("kernel", self.kernel)
        super().__post_init__()

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.value(X, Y)

    def diagonal(self, X: Inputs) -> np.ndarray:
        return self.factor * self.kernel.diagonal(X)

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.gradient(X, Y)

    def gradient_product(self, X: Inputs, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.gradient_product(X, Y, C)

    def training_covariance(self, X: Inputs) -> np.ndarray:
        return self.factor * self.kernel.training_covariance(X)

    def node(self, points: Points, frame: Frame) -> ScaleNode:
        return ScaleNode(self.kernel.node(points, frame), self.factor)

    def sharp_values(self, X: Inputs, Z: Points) -> tuple[np.ndarray, np.ndarray]:
        value, error = self.kernel.sharp_values(X, Z)
        value, error = self.factor * value, self.factor * error
        return value, np.asarray(up(error + gamma(4) * np.abs(value), 4) + TINY)

    def pair_values(self, X: Inputs, Z: Points) -> tuple[Pair, np.ndarray]:
        value, error = self.kernel.pair_values(X, Z)
        value, error = value * Pair.of(self.factor), self.factor * error
        return value, np.asarray(up(error + PAIR_ERROR * np.abs(value.high), 4) + TINY)

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """The factor's power of two goes, its mantissa stays."""
        part, e = self.kernel.in_units(points)
        exponent = even_exponent(self.factor)
        factor = float(exactly_scaled("factor", self.factor, -exponent))
        return (part if factor == 1.0 else Scale(part, factor)), e + exponent

    def parted(self) -> tuple[float, Kernel]:
        factor, inside = self.kernel.parted()
        return factor * self.factor, inside


class Expressed(Kernel):
    """Everything but its parameters is that of `expression`."""

    @abstractmethod
    def express(self) -> Kernel:
        """Build the expression that this kernel is."""

    @cached_property
    def expression(self) -> Kernel:
        """The expression, built once."""
        return self.express()

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.expression.value(X, Y)

    def diagonal(self, X: Inputs) -> np.ndarray:
        return self.expression.diagonal(X)

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.expression.gradient(X, Y)

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        return self.expression.in_units(points)

    def node(self, points: Points, frame: Frame) -> LocalNode:
        return self.expression.node(points, frame)

    def sharp_values(self, X: Inputs, Z: Points) -> tuple[np.ndarray, np.ndarray]:
        return self.expression.sharp_values(X, Z)

    def pair_values(self, X: Inputs, Z: Points) -> tuple[Pair, np.ndarray]:
        return self.expression.pair_values(X, Z)
