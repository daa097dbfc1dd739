"""Slopes of kernels in ball arithmetic: `D_u k(x, z)` and `D_u D_u' k(x, y)`, from the kernels' own
formulas. Shares no code with `gpcert.kernels`."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any

from gpcert.testing.kernel_references import (
    REFERENCES,
    dot,
    exact,
    exact_vector,
    flint,
    reference_of,
    root_of_series,
    squared_distance,
    total,
)

THETA = ((1,), (1, 1), (3, 3, 1), (15, 15, 6, 1), (105, 105, 45, 10, 1))
"""Reverse Bessel polynomials, lowest coefficient first."""


def _theta(m, t):
    powers, total_ = 1, flint().arb(0)
    for c in THETA[m]:
        total_ = total_ + c * powers
        powers = powers * t
    return total_


def profile(name: str, config: dict[str, Any], order: int, r2: Any) -> Any:
    """F_order of a radial kernel from r^2."""
    arb = flint().arb
    if name == "squared_exponential":
        return (-r2 / 2).exp()
    if name == "rational_quadratic":
        alpha = arb(config["alpha"])
        factor = math.prod((1 + i / alpha for i in range(order)), start=arb(1))
        return factor * ((1 + r2 / (2 * alpha)).log() * (-alpha - order)).exp()
    assert name == "matern", name
    p = round(config["nu"] - 0.5)
    t = arb(2 * p + 1).sqrt() * root_of_series(r2)
    scale = arb(2 * p + 1) ** order / THETA[p][0]
    if order <= p:
        return scale * (-t).exp() * _theta(p - order, t)
    m = order - p - 1
    return scale * (-t).exp() * _theta(m, t) / t ** (2 * m + 1)


def _bent(name: str, config: dict[str, Any], r2: Any, square: Any) -> Any:
    """`F_2(r) square`, which is 0 at r = 0 where F_2 is infinite."""
    if name != "matern" or config["nu"] != 1.5:
        return profile(name, config, 2, r2) * square
    t = flint().arb(3).sqrt() * root_of_series(r2)
    zero = t.is_zero() if isinstance(t, flint().arb) else all(c.is_zero() for c in t.coeffs())
    return 0 * square if zero else 9 * (-t).exp() * (square / t)


def _scaled(config, x, direction):
    lengths = exact_vector(config["length_scale"], len(x))
    return lengths, [u / length for u, length in zip(direction, lengths, strict=True)]


def _apart(config, x, z):
    lengths = exact_vector(config["length_scale"], len(x))
    return [(a - b) / length for a, b, length in zip(x, z, lengths, strict=True)]


def slope(kernel: tuple[str, dict[str, Any]], u: list[Any], x: Any, z: Any) -> Any:
    """`D_u k(x, z)`."""
    name, config = kernel
    if name in {"squared_exponential", "rational_quadratic", "matern"}:
        r2 = squared_distance(config["length_scale"], x, z)
        _, along = _scaled(config, x, u)
        toward = -dot(along, _apart(config, x, z))
        return flint().arb(config["variance"]) * toward * profile(name, config, 1, r2)
    if name == "sum":
        return total(slope(part, u, x, z) for part in config["kernels"])
    if name == "product":
        parts = config["kernels"]
        return total(
            math.prod(
                (reference_of(*other)(x, z) for j, other in enumerate(parts) if j != k),
                start=slope(part, u, x, z),
            )
            for k, part in enumerate(parts)
        )
    if name == "scale":
        return flint().arb(config["factor"]) * slope(config["kernel"], u, x, z)
    if name == "active_dimensions":
        seen = [int(j) for j in config["dimensions"]]
        return slope(config["kernel"], *([v[j] for j in seen] for v in (u, x, z)))
    if name == "linear":
        weights, center = (exact_vector(config[key], len(x)) for key in ("weights", "center"))
        return total(w * a * (b - o) for w, a, b, o in zip(weights, u, z, center, strict=True))
    if name == "polynomial":
        inner = {"weights": config["weights"], "center": config["center"]}
        base = reference_of("linear", inner)(x, z) + flint().arb(config["offset"])
        degree = int(config["degree"])
        return degree * base ** (degree - 1) * slope(("linear", inner), u, x, z)
    assert name in {"constant", "white"}, name
    return flint().arb(0)


def curvature(kernel: tuple[str, dict[str, Any]], u: list[Any], x: Any, z: Any) -> Any:
    """`D_u^2 k(x, z)`."""
    name, config = kernel
    if name in {"squared_exponential", "rational_quadratic", "matern"}:
        r2 = squared_distance(config["length_scale"], x, z)
        _, along = _scaled(config, x, u)
        toward = dot(along, _apart(config, x, z))
        inner = profile(name, config, 2, r2) * toward * toward
        inner = inner - profile(name, config, 1, r2) * dot(along, along)
        return flint().arb(config["variance"]) * inner
    if name == "sum":
        return total(curvature(part, u, x, z) for part in config["kernels"])
    if name == "product":
        parts, terms = config["kernels"], []
        for j, one in enumerate(parts):
            for k, two in enumerate(parts):
                rest = (reference_of(*p)(x, z) for i, p in enumerate(parts) if i not in {j, k})
                both = (
                    [curvature(one, u, x, z)] if j == k else [slope(p, u, x, z) for p in (one, two)]
                )
                terms.append(math.prod(rest, start=math.prod(both, start=flint().arb(1))))
        return total(terms)
    if name == "scale":
        return flint().arb(config["factor"]) * curvature(config["kernel"], u, x, z)
    if name == "active_dimensions":
        seen = [int(j) for j in config["dimensions"]]
        return curvature(config["kernel"], *([v[j] for j in seen] for v in (u, x, z)))
    assert name in {"constant", "white", "linear"}, name
    return flint().arb(0)


def curved_covariance(config: dict[str, Any], name: str, u: list[Any], x: Any, y: Any) -> Any:
    """`<D_u^2 phi(x), D_u^2 phi(y)>` of a radial kernel, its fourth derivative."""
    r2 = squared_distance(config["length_scale"], x, y)
    _, along = _scaled(config, x, u)
    c, square = dot(along, _apart(config, x, y)), dot(along, along)
    two, three, four = (profile(name, config, order, r2) for order in (2, 3, 4))
    inner = four * c**4 - 6 * three * c * c * square + 3 * two * square * square
    return flint().arb(config["variance"]) * inner


def covariance(kernel: tuple[str, dict[str, Any]], u: list[Any], x: Any, y: Any) -> Any:
    """`<D_u phi(x), D_u phi(y)>`."""
    name, config = kernel
    if name in {"squared_exponential", "rational_quadratic", "matern"}:
        r2 = squared_distance(config["length_scale"], x, y)
        _, along = _scaled(config, x, u)
        across = dot(along, _apart(config, x, y))
        inner = profile(name, config, 1, r2) * dot(along, along)
        inner = inner - _bent(name, config, r2, across * across)
        return flint().arb(config["variance"]) * inner
    if name == "sum":
        return total(covariance(part, u, x, y) for part in config["kernels"])
    if name == "product":
        parts = config["kernels"]
        terms = []
        for j, one in enumerate(parts):
            for k, two in enumerate(parts):
                if j == k:
                    factors = [covariance(one, u, x, y)]
                else:
                    factors = [slope(one, u, x, y), slope(two, u, y, x)]
                rest = (reference_of(*p)(x, y) for i, p in enumerate(parts) if i not in {j, k})
                terms.append(math.prod(rest, start=math.prod(factors, start=flint().arb(1))))
        return total(terms)
    if name == "scale":
        return flint().arb(config["factor"]) * covariance(config["kernel"], u, x, y)
    if name == "active_dimensions":
        seen = [int(j) for j in config["dimensions"]]
        return covariance(config["kernel"], *([v[j] for j in seen] for v in (u, x, y)))
    if name == "linear":
        weights = exact_vector(config["weights"], len(x))
        return total(w * a * a for w, a in zip(weights, u, strict=True))
    assert name in {"constant", "white"}, name
    return flint().arb(0)


def directed(config: dict[str, Any]) -> tuple[tuple[str, dict[str, Any]], list[Any]]:
    """Kernel and direction of a `SlopeKernel` by its configuration."""
    return config["kernel"], exact(config["direction"])


@contextmanager
def known_slopes():
    """The formula of a `SlopeKernel`, which is no kernel of the registry, among the others."""
    REFERENCES["slope"] = lambda config, x, z: {1.0: slope, 2.0: curvature}[config["order"]](
        *directed(config), x, z
    )
    try:
        yield
    finally:
        del REFERENCES["slope"]
