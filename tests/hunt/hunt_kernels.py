"""Every kernel from its formula (docs/kernels.md and the textbooks), in either arithmetic.

`covariance(kernel, x, z, ops)` takes the coordinates of x and z as lists and reads nothing of a
kernel but its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as pairs
from math import factorial
from typing import Any

import numpy as np

Coordinates = Sequence[Any]
Formula = Callable[[Any, Coordinates, Coordinates, Any], Any]


def covariance(kernel: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    """k(x, z)."""
    return FORMULAS[type(kernel).__name__](kernel, x, z, ops)


def _each(parameter: Any, d: int) -> list[float]:
    """One number per feature, from one for all or one each."""
    return np.broadcast_to(np.asarray(parameter, dtype=float), (d,)).tolist()


def _distance2(lengths: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    total = ops.number(0.0)
    for length, a, b in zip(_each(lengths, len(x)), x, z, strict=True):
        step = (a - b) / ops.number(length)
        total = total + step * step
    return total


def _dot(rates: Any, x: Coordinates, ops: Any) -> Any:
    total = ops.number(0.0)
    for rate, a in zip(_each(rates, len(x)), x, strict=True):
        total = total + ops.number(rate) * a
    return total


def _difference(x: Coordinates, z: Coordinates) -> list[Any]:
    return [a - b for a, b in zip(x, z, strict=True)]


def _squared_exponential(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    return ops.number(k.variance) * ops.exp(-_distance2(k.length_scale, x, z, ops) / 2)


def _rational_quadratic(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    alpha = ops.number(k.alpha)
    ratio = _distance2(k.length_scale, x, z, ops) / (2 * alpha)
    return ops.number(k.variance) * ops.exp(-alpha * ops.log(1 + ratio))


def _matern(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    p = int(k.nu - 0.5)
    t = ops.sqrt((2 * p + 1) * _distance2(k.length_scale, x, z, ops))
    total = ops.number(0.0)
    for i in range(p + 1):
        weight = factorial(p + i) // (factorial(i) * factorial(p - i))
        power = ops.number(1.0)
        for _ in range(p - i):
            power = power * (2 * t)
        total = total + weight * power
    front = ops.number(factorial(p)) / ops.number(factorial(2 * p))
    return ops.number(k.variance) * ops.exp(-t) * front * total


def _periodic(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    total = ops.number(0.0)
    d = len(x)
    rows = zip(_each(k.period, d), _each(k.length_scale, d), x, z, strict=True)
    for period, length, a, b in rows:
        sine = ops.sin(ops.pi() * (a - b) / ops.number(period)) / ops.number(length)
        total = total + sine * sine
    return ops.number(k.variance) * ops.exp(-2 * total)


def _cosine(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    return ops.number(k.variance) * ops.cos(_dot(k.frequency, _difference(x, z), ops))


def _spectral_mixture(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    total = ops.number(0.0)
    for v, w, lengths in zip(k.variances, k.frequencies, k.length_scales, strict=True):
        size = ops.exp(-_distance2(lengths, x, z, ops) / 2)
        total = total + ops.number(v) * size * ops.cos(_dot(w, _difference(x, z), ops))
    return total


def _four_cosines(rates: Any, phases: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    left = [_dot(w, x, ops) + ops.number(p) for w, p in zip(rates, phases, strict=True)]
    right = [_dot(w, z, ops) + ops.number(p) for w, p in zip(rates, phases, strict=True)]
    total = ops.number(0.0)
    for a, b in pairs(left, right):
        total = total + ops.cos(a - b)
    return total


def _cosine_pair(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    return _four_cosines((k.first, k.second), k.phases, x, z, ops)


def _exponential_tilt(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    sums = [a + b for a, b in zip(x, z, strict=True)]
    return ops.exp(_dot(k.theta, sums, ops) + ops.number(k.log_factor))


def _generalised_spectral(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    total = ops.number(0.0)
    sums = [a + b for a, b in zip(x, z, strict=True)]
    for v, theta, w1, w2, p in zip(k.variances, k.thetas, k.first, k.second, k.phases, strict=True):
        tilt = ops.exp(_dot(theta, sums, ops))
        total = total + ops.number(v) * tilt * _four_cosines((w1, w2), p, x, z, ops)
    return total


def _linear(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    total = ops.number(0.0)
    d = len(x)
    for w, o, a, b in zip(_each(k.weights, d), _each(k.center, d), x, z, strict=True):
        centre = ops.number(o)
        total = total + ops.number(w) * (a - centre) * (b - centre)
    return total


def _polynomial(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    base = _linear(k, x, z, ops) + ops.number(k.offset)
    total = ops.number(1.0)
    for _ in range(k.degree):
        total = total * base
    return total


def _constant(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    return ops.number(k.variance) + 0 * (x[0] + z[0])  # of the inputs' shape


def _white(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    del k, ops
    return 0 * (x[0] + z[0])


def _sum(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    total = ops.number(0.0)
    for part in k.kernels:
        total = total + covariance(part, x, z, ops)
    return total


def _product(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    total = ops.number(1.0)
    for part in k.kernels:
        total = total * covariance(part, x, z, ops)
    return total


def _scale(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    return ops.number(k.factor) * covariance(k.kernel, x, z, ops)


def _active_dimensions(k: Any, x: Coordinates, z: Coordinates, ops: Any) -> Any:
    seen = [[c[j] for j in k.dimensions] for c in (x, z)]
    return covariance(k.kernel, *seen, ops)


FORMULAS: dict[str, Formula] = {
    "SquaredExponential": _squared_exponential,
    "RationalQuadratic": _rational_quadratic,
    "Matern": _matern,
    "Periodic": _periodic,
    "Cosine": _cosine,
    "SpectralMixture": _spectral_mixture,
    "CosinePair": _cosine_pair,
    "ExponentialTilt": _exponential_tilt,
    "GeneralisedSpectral": _generalised_spectral,
    "Linear": _linear,
    "Polynomial": _polynomial,
    "Constant": _constant,
    "White": _white,
    "Sum": _sum,
    "Product": _product,
    "Scale": _scale,
    "ActiveDimensions": _active_dimensions,
}
