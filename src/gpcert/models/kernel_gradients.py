"""The trainable parameters of any kernel as one vector, and contracted gradients in them.

    L(theta) = sum_ij W_ij k_theta(x_i, y_j)   has the gradient   LogParameters.gradient(X, Y, W).

Positive parameters (variances, length-scales, periods, weights, ...) enter by their logarithm;
frequencies and tilts, which have a sign, as they are. Orders, degrees, dimensions, centres and
phases are no parameters, and a weight or variance of exactly 0 stays 0. Kernels are trees: a sum
hands W to its parts, a product W times the values of the other factors, and a leaf has a rule of
`gpcert.models.leaf_gradients`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels import ActiveDimensions, Kernel, Product, Scale, Sum
from gpcert.models.leaf_gradients import Pairs, rule_of


@dataclass(frozen=True)
class TrainedParameter:
    """One entry of the vector: its name, its value there, and whether that is a logarithm."""

    name: str
    value: float
    logarithmic: bool


@dataclass(frozen=True, eq=False)
class LogParameters:
    """A kernel and its trainable parameters in the order of its tree.

    >>> from gpcert.kernels import SquaredExponential
    >>> found = LogParameters.of(SquaredExponential([1.0, 1.0], variance=2.0))
    >>> found.names
    ('variance', 'length_scale[0]', 'length_scale[1]')
    >>> float(found.rebuild([0.0, 0.0, 0.0]).variance)
    1.0
    """

    kernel: Kernel
    parameters: tuple[TrainedParameter, ...]

    @staticmethod
    def of(kernel: Kernel) -> LogParameters:
        """Read the parameters of a kernel."""
        return LogParameters(kernel, tuple(_parameters(kernel, "")))

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each entry: the path in the tree and the field."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def values(self) -> np.ndarray:
        """The vector at this kernel."""
        return np.array([parameter.value for parameter in self.parameters], dtype=np.float64)

    @property
    def logarithmic(self) -> np.ndarray:
        """True for entries that are logarithms."""
        return np.array([parameter.logarithmic for parameter in self.parameters], dtype=bool)

    def rebuild(self, vector: Any) -> Kernel:
        """The kernel with other parameters; every other field is as it was."""
        vector = np.asarray(vector, dtype=np.float64)
        if vector.shape != (len(self.parameters),):
            raise InputError(
                f"vector: expected {len(self.parameters)} parameters, got shape {vector.shape}"
            )
        return _rebuilt(self.kernel, iter(vector.tolist()))

    def at(self, vector: Any) -> LogParameters:
        """The same parameters at another kernel."""
        return LogParameters.of(self.rebuild(vector))

    def gradient(
        self, X: np.ndarray, Y: np.ndarray, W: np.ndarray, values: np.ndarray | None = None
    ) -> np.ndarray:
        """`sum_ij W_ij dk(x_i, y_j) / dtheta`, W (n, p).

        `values`: `kernel.value(X, Y)`, where it is known already.
        """
        return self._contracted(Pairs(X, Y, self._known(values)), W)

    def training_gradient(
        self, X: np.ndarray, W: np.ndarray, values: np.ndarray | None = None
    ) -> np.ndarray:
        """The same for `kernel.training_covariance(X)`, which has white noise too; W (n, n)."""
        return self._contracted(Pairs(X, X, self._known(values), observed=True), W)

    def diagonal_gradient(self, X: np.ndarray, w: np.ndarray) -> np.ndarray:
        """`sum_i w_i dk(x_i, x_i) / dtheta`, w (n,)."""
        return self._contracted(Pairs(X), w)

    def _known(self, values: np.ndarray | None) -> tuple[Kernel, np.ndarray] | None:
        return None if values is None else (self.kernel, values)

    def _contracted(self, pairs: Pairs, W: np.ndarray) -> np.ndarray:
        return np.array(list(_contractions(self.kernel, pairs, W)), dtype=np.float64)


def _parameters(kernel: Any, path: str) -> Iterator[TrainedParameter]:
    for field, logarithmic in _own_fields(kernel):
        yield from _field(kernel, field, path, logarithmic)
    for i, part in enumerate(kernel.parts):
        inner = f"{i + 1}." if kernel.several else ""
        yield from _parameters(part, path + inner)


def _own_fields(kernel: Any) -> list[tuple[str, bool]]:
    """The fields that are trained, those of the parts apart, and whether by their logarithm."""
    if kernel.parts:
        return [(field, True) for field in kernel.parameters]
    rule = rule_of(kernel)
    return [(field, field in rule.logarithmic) for field in rule.fields]


def _field(kernel: Any, field: str, path: str, logarithmic: bool) -> Iterator[TrainedParameter]:
    values = np.asarray(getattr(kernel, field), dtype=np.float64)
    for index, value in np.ndenumerate(values):
        place = f"[{', '.join(map(str, index))}]" if index else ""
        if not logarithmic:
            yield TrainedParameter(f"{path}{field}{place}", float(value), logarithmic=False)
        elif value > 0.0:
            yield TrainedParameter(f"{path}{field}{place}", float(np.log(value)), logarithmic=True)


def _rebuilt(kernel: Any, vector: Iterator[float]) -> Any:
    changes = {f: _new_field(kernel, f, vector, log) for f, log in _own_fields(kernel)}
    parts = tuple(_rebuilt(part, vector) for part in kernel.parts)
    return replace(kernel.with_parts(parts), **changes)


def _new_field(kernel: Any, field: str, vector: Iterator[float], logarithmic: bool) -> Any:
    values = np.array(getattr(kernel, field), dtype=np.float64)
    for index, value in np.ndenumerate(values):
        if not logarithmic:
            values[index] = next(vector)
        elif value > 0.0:
            values[index] = np.exp(next(vector))
    return values if values.ndim else float(values)


def _contractions(kernel: Any, pairs: Pairs, W: np.ndarray) -> Iterator[float]:
    if kernel.parts:
        yield from _COMPOSITES[type(kernel)](kernel, pairs, W)
        return
    found = rule_of(kernel).derivatives(kernel, pairs, W)
    for field, logarithmic in _own_fields(kernel):
        yield from _trained(kernel, field, found[field], logarithmic)


def _trained(kernel: Any, field: str, found: Any, logarithmic: bool) -> Iterator[float]:
    values = np.asarray(getattr(kernel, field), dtype=np.float64)
    derivatives = np.broadcast_to(np.asarray(found, dtype=np.float64), values.shape)
    for index, value in np.ndenumerate(values):
        if not logarithmic or value > 0.0:
            yield float(derivatives[index])


def _sum(kernel: Any, pairs: Pairs, W: np.ndarray) -> Iterator[float]:
    for part in kernel.kernels:
        yield from _contractions(part, pairs, W)


def _product(kernel: Any, pairs: Pairs, W: np.ndarray) -> Iterator[float]:
    """Every factor sees W times the others (no division: factors may vanish)."""
    values = [pairs.covariances(part) for part in kernel.kernels]
    for i, part in enumerate(kernel.kernels):
        others = W
        for j, value in enumerate(values):
            if j != i:
                others = others * value
        yield from _contractions(part, pairs, others)


def _scale(kernel: Any, pairs: Pairs, W: np.ndarray) -> Iterator[float]:
    if kernel.factor > 0.0:
        yield float(kernel.factor * np.vdot(W, pairs.covariances(kernel.kernel)))
    yield from _contractions(kernel.kernel, pairs, kernel.factor * W)


def _active(kernel: Any, pairs: Pairs, W: np.ndarray) -> Iterator[float]:
    yield from _contractions(kernel.kernel, pairs.columns(kernel.dimensions), W)


_COMPOSITES: dict[type[Kernel], Callable[[Any, Pairs, np.ndarray], Iterator[float]]] = {
    Sum: _sum,
    Product: _product,
    Scale: _scale,
    ActiveDimensions: _active,
}
