"""A kernel times an exact power of two, so that it is of size about one at a posterior's points.

Bounds square, multiply and subtract kernel values, and count what underflows as absolute amounts
(`gpcert.rounding.TINY`): both are harmless on numbers of size about one only. A power of two
changes no mantissa, so nothing is rounded and the model stays what it is.

Proofs: docs/mathematics.md, statement 1.8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.algebra import WITH_VARIANCE
from gpcert.kernels.base import Kernel
from gpcert.kernels.cosine_pair import CosinePair
from gpcert.kernels.exponential_tilt import ExponentialTilt
from gpcert.kernels.expressed import Expressed
from gpcert.kernels.linear import Linear
from gpcert.kernels.polynomial import Polynomial
from gpcert.kernels.product import Product
from gpcert.kernels.scale import Scale
from gpcert.kernels.sum import Sum
from gpcert.kernels.white import White

__all__ = ["even_exponent", "exactly_scaled", "unit_kernel"]

Unit = tuple[Kernel, int]
"""k' and an even e with `k = 2^e k'`."""

ORDINARY = 64
"""Kernels without a factor of their own are left alone while their exponents are below this."""


def even_exponent(value: float) -> int:
    """The even e with `2^-e |value|` in [1/2, 2); 0 for 0.

    >>> even_exponent(1.0), even_exponent(8.0), even_exponent(5e-324)
    (0, 4, -1074)
    """
    if value == 0.0:
        return 0
    exponent = math.frexp(value)[1]
    return exponent - exponent % 2


def exactly_scaled(name: str, values: Any, exponent: int) -> np.ndarray:
    """`2^exponent values`, or an `InputError` where float64 does not hold one of them exactly.

    >>> exactly_scaled("x", [3.0], -1).tolist()
    [1.5]
    """
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(array, exponent)
        exact = np.array_equal(np.ldexp(scaled, -exponent), array)
    if not (exact and np.all(np.isfinite(scaled))):
        raise InputError(
            f"{name}: its parts differ by more orders of magnitude than float64 has (about 1e300); "
            "expected comparable sizes: drop the parts that do not matter, or rescale the inputs"
        )
    return scaled


def unit_kernel(kernel: Kernel, points: np.ndarray) -> Unit:
    """k' and an even e with `k = 2^e k'` exactly, k'(z, z) of size about one at the points.

    Factors of a product are brought to size one each, a sum to that of its largest part; exponents
    are whole numbers, so variances of 1e-300 may be multiplied.

    >>> from gpcert.kernels.squared_exponential import SquaredExponential
    >>> k, e = unit_kernel(SquaredExponential(1.0, 3.0 * 2.0**-998), np.zeros((1, 1)))
    >>> float(k.variance), e
    (0.75, -996)
    """
    if isinstance(kernel, White):
        return kernel, 0
    if isinstance(kernel, WITH_VARIANCE):
        exponent = even_exponent(kernel.variance)
        return _with_factor(kernel, -exponent), exponent
    for kind, rule in _RULES.items():
        if isinstance(kernel, kind):
            return rule(kernel, points)
    return _measured(kernel, kernel.diagonal(points))


def _with_factor(kernel: Kernel, exponent: int) -> Kernel:
    """`2^exponent k`, the factor taken down to the kernels that have one of their own."""
    if exponent == 0 or isinstance(kernel, White):
        return kernel
    if isinstance(kernel, WITH_VARIANCE):
        return replace(kernel, variance=float(exactly_scaled("kernel", kernel.variance, exponent)))
    if isinstance(kernel, Linear):
        return Linear(exactly_scaled("kernel", kernel.weights, exponent), kernel.center)
    if isinstance(kernel, Sum | Product):
        first, *others = kernel.kernels
        if isinstance(kernel, Sum):
            others = [_with_factor(part, exponent) for part in others]
        return type(kernel)((_with_factor(first, exponent), *others))
    if isinstance(kernel, ActiveDimensions | Scale):
        return replace(kernel, kernel=_with_factor(kernel.kernel, exponent))
    return Scale(kernel, float(exactly_scaled("kernel", 1.0, exponent)))


def _sum(kernel: Sum, points: np.ndarray) -> Unit:
    """Every part in the units of the largest; white noise vanishes and has no size."""
    units = [unit_kernel(part, points) for part in kernel.kernels]
    sizes = [e for (_, e), k in zip(units, kernel.kernels, strict=True) if not isinstance(k, White)]
    largest = max(sizes, default=0)
    return Sum(tuple(_with_factor(part, e - largest) for part, e in units)), largest


def _product(kernel: Product, points: np.ndarray) -> Unit:
    """Every factor in units of its own."""
    units = [unit_kernel(part, points) for part in kernel.kernels]
    return Product(tuple(part for part, _ in units)), sum(e for _, e in units)


def _scale(kernel: Scale, points: np.ndarray) -> Unit:
    """The factor's power of two goes, its mantissa stays."""
    part, e = unit_kernel(kernel.kernel, points)
    own = even_exponent(kernel.factor)
    factor = float(exactly_scaled("factor", kernel.factor, -own))
    return (part if factor == 1.0 else Scale(part, factor)), e + own


def _active(kernel: ActiveDimensions, points: np.ndarray) -> Unit:
    """That of the kernel inside, at what it sees of the points."""
    part, e = unit_kernel(kernel.kernel, points[:, list(kernel.dimensions)])
    return ActiveDimensions(part, kernel.dimensions), e


def _expressed(kernel: Expressed, points: np.ndarray) -> Unit:
    """That of the expression, which has the factors."""
    return unit_kernel(kernel.expression, points)


def _linear(kernel: Linear, points: np.ndarray) -> Unit:
    """By the largest `w_j (z_j - o_j)^2`, in exponents: the square may not be a float."""
    weights = np.broadcast_to(kernel.weights, points.shape[1:])
    with np.errstate(over="ignore"):
        reach = np.abs(points - kernel.center).max(axis=0)
    pairs = [(w, r) for w, r in zip(weights.tolist(), reach.tolist(), strict=True) if w > 0]
    sizes = [math.frexp(w)[1] + 2 * math.frexp(r)[1] for w, r in pairs if 0 < r < math.inf]
    if not sizes:
        sizes = [math.frexp(w)[1] for w, _ in pairs] or [0]
    exponent = max(sizes) - max(sizes) % 2
    return _with_factor(kernel, -exponent), exponent


def _polynomial(kernel: Polynomial, points: np.ndarray) -> Unit:
    """The power of its base in the base's units."""
    _, linear = _linear(Linear(kernel.weights, kernel.center), points)
    exponent = max(linear, even_exponent(kernel.offset)) if kernel.offset else linear
    weights = exactly_scaled("kernel", kernel.weights, -exponent)
    offset = float(exactly_scaled("kernel", kernel.offset, -exponent))
    return Polynomial(kernel.degree, weights, offset, kernel.center), kernel.degree * exponent


def _tilt(kernel: ExponentialTilt, points: np.ndarray) -> Unit:
    """By the largest exponent of e at the points: its factor cannot be changed exactly inside."""
    with np.errstate(over="ignore", invalid="ignore"):
        logs = 2.0 * (points @ kernel.theta) + kernel.log_factor
    known = logs[np.isfinite(logs)]
    exponent = 2 * round(float(known.max()) / math.log(4.0)) if known.size else 0
    exponent = min(max(exponent, -1000), 1000)
    return (kernel, 0) if abs(exponent) < ORDINARY else (_with_factor(kernel, -exponent), exponent)


def _measured(kernel: Kernel, diagonal: np.ndarray) -> Unit:
    """By k(z, z) at the points, for kernels that are not known here."""
    sizes = np.abs(diagonal[np.isfinite(diagonal)])
    exponent = even_exponent(float(sizes.max(initial=0.0)))
    return (kernel, 0) if abs(exponent) < ORDINARY else (_with_factor(kernel, -exponent), exponent)


_RULES: dict[type, Callable[[Any, np.ndarray], Unit]] = {
    ActiveDimensions: _active,
    CosinePair: lambda kernel, _: (kernel, 0),
    ExponentialTilt: _tilt,
    Expressed: _expressed,
    Linear: _linear,
    Polynomial: _polynomial,
    Product: _product,
    Scale: _scale,
    Sum: _sum,
}
