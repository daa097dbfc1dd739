"""The trainable parameters of any kernel as one vector, and contracted gradients in them.

    L(theta) = sum_ij W_ij k_theta(x_i, y_j)   has the gradient   LogParameters.gradient(X, Y, W).

Positive parameters (variances, length-scales, periods, weights, ...) enter by their logarithm;
frequencies and tilts, which have a sign, as they are. Orders, degrees, dimensions, centres and
phases are no parameters, and a weight or variance of exactly 0 stays 0. Kernels are trees: a sum
hands W to its parts, a product W times the values of the other factors; `kernel_gradients` has a
rule for every leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from gpcert import kernels as k
from gpcert.errors import InputError
from gpcert.kernels import Kernel
from gpcert.models.kernel_gradients import Pairs, rule_of


@dataclass(frozen=True, eq=False)
class LogParameters:
    """A kernel and its trainable parameters in the order of its tree.

    `entries` of the vector: the name, the value there, and whether that is a logarithm.

    >>> parameters = LogParameters.of(k.SquaredExponential([1.0, 1.0], variance=2.0))
    >>> parameters.names
    ('variance', 'length_scale[0]', 'length_scale[1]')
    >>> float(parameters.rebuild([0.0, 0.0, 0.0]).variance)
    1.0
    """

    kernel: Kernel
    entries: tuple[tuple[str, float, bool], ...]

    @staticmethod
    def of(kernel: Kernel) -> LogParameters:
        """Read the parameters of a kernel."""
        return LogParameters(kernel, tuple(_parameters(kernel, "")))

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each entry: the path in the tree and the field."""
        return tuple(name for name, _, _ in self.entries)

    @property
    def values(self) -> np.ndarray:
        """The vector at this kernel."""
        return np.array([value for _, value, _ in self.entries], dtype=np.float64)

    @property
    def logarithmic(self) -> np.ndarray:
        """True for entries that are logarithms."""
        return np.array([logarithmic for _, _, logarithmic in self.entries], dtype=bool)

    def rebuild(self, vector: Any) -> Kernel:
        """The kernel with other parameters; every other field is as it was."""
        vector = np.asarray(vector, dtype=np.float64)
        if vector.shape != (len(self.entries),):
            raise InputError(
                f"vector: expected {len(self.entries)} parameters, got shape {vector.shape}"
            )
        return _rebuilt(self.kernel, iter(vector.tolist()))

    def gradient(
        self, X: np.ndarray, Y: np.ndarray, W: np.ndarray, values: Any = None
    ) -> np.ndarray:
        """`sum_ij W_ij dk(x_i, y_j) / dtheta`, W (n, p).

        `values`: `kernel.value(X, Y)`, where it is known already.
        """
        return self._contracted(Pairs(X, Y, (self.kernel, values)), W)

    def training_gradient(self, X: np.ndarray, W: np.ndarray, values: Any = None) -> np.ndarray:
        """The same for `kernel.training_covariance(X)`, which has white noise too; W (n, n)."""
        return self._contracted(Pairs(X, X, (self.kernel, values), observed=True), W)

    def diagonal_gradient(self, X: np.ndarray, w: np.ndarray) -> np.ndarray:
        """`sum_i w_i dk(x_i, x_i) / dtheta`, w (n,)."""
        return self._contracted(Pairs(X, X, single=True), w)

    def _contracted(self, pairs: Pairs, W: np.ndarray) -> np.ndarray:
        return np.array(list(_contractions(self.kernel, pairs, W)), dtype=np.float64)


def _field_scales(kernel: Any) -> list[tuple[str, bool]]:
    """The fields that are trained, those of the parts apart, and whether by their logarithm."""
    if kernel.parts:
        return [(field, True) for field in kernel.parameters]
    rule = rule_of(kernel)
    return [(field, field in rule.logarithmic) for field in rule.fields]


def _entries(kernel: Any) -> Iterator[tuple[str, tuple[int, ...], float, bool]]:
    """Field, index, value and whether by its logarithm, of every number of its own that is trained:
    one that must be positive and is 0 stays 0."""
    for field, logarithmic in _field_scales(kernel):
        for index, value in np.ndenumerate(np.asarray(getattr(kernel, field), dtype=np.float64)):
            if not logarithmic or value > 0.0:
                yield field, index, float(value), logarithmic


def _parameters(kernel: Any, path: str) -> Iterator[tuple[str, float, bool]]:
    """Name, entry of the vector and whether that is a logarithm."""
    for field, index, value, logarithmic in _entries(kernel):
        place = f"[{', '.join(map(str, index))}]" if index else ""
        trained = float(np.log(value)) if logarithmic else value
        yield f"{path}{field}{place}", trained, logarithmic
    for i, part in enumerate(kernel.parts):
        inner = f"{i + 1}." if kernel.several else ""
        yield from _parameters(part, path + inner)


def _rebuilt(kernel: Any, vector: Iterator[float]) -> Any:
    fields = [field for field, _ in _field_scales(kernel)]
    changes = {field: np.array(getattr(kernel, field), dtype=np.float64) for field in fields}
    for field, index, _, logarithmic in _entries(kernel):
        trained = next(vector)
        changes[field][index] = np.exp(trained) if logarithmic else trained
    plain = {name: value if value.ndim else float(value) for name, value in changes.items()}
    parts = tuple(_rebuilt(part, vector) for part in kernel.parts)
    return replace(kernel.with_parts(parts), **plain)


def _contractions(kernel: Any, pairs: Pairs, W: np.ndarray) -> Iterator[float]:
    """In the order of `_parameters`; a part sees W times what its kernel makes of it."""
    weights = [W] * len(kernel.parts)
    if type(kernel) is k.Scale:
        if kernel.factor > 0.0:
            yield float(kernel.factor * np.vdot(W, pairs.covariances(kernel.kernel)))
        weights = [kernel.factor * W]
    elif type(kernel) is k.Product:
        # every factor sees the others (no division: factors may vanish)
        values = [pairs.covariances(part) for part in kernel.parts]
        others = [values[:i] + values[i + 1 :] for i in range(len(values))]
        weights = [reduce(np.multiply, each, W) for each in others]
    elif type(kernel) is k.ActiveDimensions:
        pairs = pairs.columns(kernel.dimensions)
    elif type(kernel) is not k.Sum:
        derivatives = rule_of(kernel).derivatives(kernel, pairs, W)
        for field, index, _, _ in _entries(kernel):
            yield float(
                np.broadcast_to(derivatives[field], np.shape(getattr(kernel, field)))[index]
            )
    for part, V in zip(kernel.parts, weights, strict=True):
        yield from _contractions(part, pairs, V)
