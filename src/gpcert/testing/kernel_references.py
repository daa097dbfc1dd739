"""Every kernel's formula in ball arithmetic, written from its definition and its `config()` alone.

Shares no code with `gpcert.kernels`. Coordinates are balls or power series of balls (see
`gpcert.testing.arb_reference`), so that derivatives of the references come from the same lines.

Ball arithmetic (python-flint): every number is an `arb`, a ball that contains the real value.

Lengths and inner products in feature space come from a kernel's values alone: with
`K(s, t) = k(c + s d, c + t d)`,

    <D_d^i phi(c), D_d^j phi(c)> = i! j! a_ij,       K(s, t) = sum a_ij s^i t^j,

and the a_ij follow from power series of K along the lines t = r s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flint as library
import numpy as np

from gpcert.errors import InputError

BITS = 200
"""Working precision: rounding is then near 1e-60, far below every float64 error bound."""


def flint() -> Any:
    """The module `flint`, its precision raised to `BITS`.

    >>> flint().ctx.prec >= BITS
    True
    """
    library.ctx.prec = max(library.ctx.prec, BITS)
    return library


def exact(values: Any) -> list[Any]:
    """The floats of a vector as exact balls."""
    arb = flint().arb
    return [arb(float(v)) for v in np.asarray(values, dtype=np.float64).ravel()]


@contextmanager
def series_length(terms: int) -> Iterator[None]:
    """Power series are cut after so many terms (ten by default): short ones are cheap."""
    context = flint().ctx
    before, context.cap = context.cap, terms
    try:
        yield
    finally:
        context.cap = before


def coefficients(value: Any, count: int) -> list[Any]:
    """The first coefficients of a power series; of a plain ball, which is constant, too.

    >>> [float(c) for c in coefficients(flint().arb_series([1, 2]) ** 2, 4)]
    [1.0, 4.0, 4.0, 0.0]
    """
    module = flint()
    known = value.coeffs() if isinstance(value, module.arb_series) else [module.arb(value)]
    return [*known, *[module.arb(0)] * count][:count]


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """`sum_j a_j b_j` of balls or power series."""
    return total(s * t for s, t in zip(a, b, strict=True))


def total(parts: Iterable[Any]) -> Any:
    """The sum of balls or power series."""
    return sum(parts, flint().arb(0))


Surface = Callable[[Any, Any], Any]
"""`K(s, t)` for numbers or power series s and t."""


def line_surface(
    kernel: Callable[[Sequence[Any], Sequence[Any]], Any], c: Sequence[Any], d: Sequence[Any]
) -> Surface:
    """`K(s, t)` along d from c."""

    def K(s: Any, t: Any) -> Any:
        x = [a + s * b for a, b in zip(c, d, strict=True)]
        y = [a + t * b for a, b in zip(c, d, strict=True)]
        return kernel(x, y)

    return K


def diagonal_coefficients(surface: Surface) -> dict[tuple[int, int], Any]:
    """`a_ij` for i, j <= 3 of a symmetric surface K(s, t) = K(t, s).

    The coefficient of tau^n of `K(tau, r tau)` is `sum_i a_(n-i)i r^i`; its even and odd parts in r
    and the side a_0n give the others.
    """
    tau = flint().arb_series([0, 1])
    side = coefficients(surface(0 * tau, tau), 7)
    line = {r: coefficients(surface(tau, r * tau), 7) for r in (1, -1, 2, -2)}

    def odd(r: int, n: int) -> Any:
        return (line[r][n] - line[-r][n]) / 2

    def even(r: int, n: int) -> Any:
        return (line[r][n] + line[-r][n]) / 2

    a = {(0, n): side[n] for n in range(4)}
    a[1, 1] = line[1][2] - 2 * side[2]
    a[1, 2] = even(1, 3) - side[3]  # a_30 + a_12
    a[2, 2] = even(1, 4) - 2 * side[4]  # a_40 + a_22 + a_04
    a[1, 3] = odd(1, 4) / 2  # a_31 + a_13
    # odd_r = a_41 r + a_23 r^3 + a_05 r^5, a_41 = a_14
    a[2, 3] = ((odd(2, 5) - 32 * side[5]) - 2 * (odd(1, 5) - side[5])) / 6
    # odd_r = a_51 r + a_33 r^3 + a_15 r^5, a_51 = a_15
    a[3, 3] = (17 * odd(1, 6) - odd(2, 6)) / 9
    return {**a, **{(j, i): value for (i, j), value in a.items()}}


def remainder_length(
    surface: Surface, order: int, a: dict[tuple[int, int], Any] | None = None
) -> Any:
    """`||Phi(1) - sum_{i <= order} Phi^(i)(0) / i!||` where `<Phi(s), Phi(t)> = K(s, t)`."""
    module = flint()
    one, tau = module.arb(1), module.arb_series([0, 1])
    a = diagonal_coefficients(surface) if a is None else a
    at_end = coefficients(surface(tau, one + 0 * tau), 3)
    known = total(a[i, j] for i in range(order + 1) for j in range(order + 1))
    square = coefficients(surface(one, one), 1)[0] - 2 * total(at_end[: order + 1]) + known
    return square.max(module.arb(0)).sqrt()


Point = Sequence[Any]
Formula = Callable[[dict[str, Any], Point, Point], Any]


def reference_of(name: str, config: dict[str, Any]) -> Callable[[Point, Point], Any]:
    """`k(x, z)` of the kernel that `kernel_from_config(name, config)` would build.

    >>> k = reference_of("squared_exponential", {"length_scale": 1.0, "variance": 2.0})
    >>> round(float(k(exact([0]), exact([1]))), 6)
    1.213061
    """
    if name not in REFERENCES:
        raise InputError(f"kernel: expected one of {sorted(REFERENCES)}, got {name!r}")
    formula = REFERENCES[name]
    return lambda x, z: formula(config, x, z)


def exact_vector(value: Any, d: int) -> list[Any]:
    """One exact ball per feature, from a number or d numbers."""
    return exact(np.broadcast_to(np.asarray(value, dtype=np.float64), (d,)))


def _difference(x: Point, z: Point) -> list[Any]:
    return [a - b for a, b in zip(x, z, strict=True)]


def squared_distance(length_scale: Any, x: Point, z: Point) -> Any:
    """`r^2 = sum_j ((x_j - z_j) / l_j)^2`."""
    lengths = exact_vector(length_scale, len(x))
    scaled = [d / length for d, length in zip(_difference(x, z), lengths, strict=True)]
    return dot(scaled, scaled)


def root_of_series(square: Any) -> Any:
    """`sqrt`; of a power series in tau that begins with tau^2n, its branch for tau >= 0.

    Through a point where r = 0 a function of r then gives its one-sided expansion; a coefficient
    below the order at which the function of r stops being smooth is that of both sides.
    """
    module = flint()
    if not isinstance(square, module.arb_series):
        return square.sqrt()
    coefficients = square.coeffs()
    first = next(
        (n for n, c in enumerate(coefficients) if not (c.is_exact() and c.is_zero())), None
    )
    if first is None:
        return 0 * square
    if first == 0:
        return square.sqrt()
    assert first % 2 == 0, "a squared distance begins with an even power"
    tau = module.arb_series([0, 1])
    return module.arb_series(coefficients[first:], square.prec - first).sqrt() * tau ** (first // 2)


def radial(shape: Callable[[dict[str, Any], Any], Any]) -> Formula:
    """`s^2 F_0` from `shape(config, r^2)`, the formula of a radial kernel without its variance."""

    def formula(config: dict[str, Any], x: Point, z: Point) -> Any:
        square = squared_distance(config["length_scale"], x, z)
        return flint().arb(config["variance"]) * shape(config, square)

    return formula


def _rational_quadratic(config: dict[str, Any], r2: Any) -> Any:
    alpha = flint().arb(config["alpha"])
    return (-alpha * (1 + r2 / (2 * alpha)).log()).exp()


def _matern(config: dict[str, Any], r2: Any) -> Any:
    arb = flint().arb
    p = round(float(config["nu"]) - 0.5)
    assert float(config["nu"]) == p + 0.5, "half-integer smoothness"
    t = arb(2 * p + 1).sqrt() * root_of_series(r2)

    def term(i: int) -> Any:
        weight = math.factorial(p + i) // math.factorial(i)
        weight = arb(weight * math.factorial(p)) / (math.factorial(p - i) * math.factorial(2 * p))
        return weight * (2 * t) ** (p - i)

    return total(map(term, range(p + 1))) * (-t).exp()


def _periodic(config: dict[str, Any], x: Point, z: Point) -> Any:
    arb, d = flint().arb, len(x)
    periods, lengths = exact_vector(config["period"], d), exact_vector(config["length_scale"], d)
    each = zip(_difference(x, z), periods, lengths, strict=True)
    squares = total(((arb.pi() * gap / period).sin() / length) ** 2 for gap, period, length in each)
    return arb(config["variance"]) * (-2 * squares).exp()


def _cosine(config: dict[str, Any], x: Point, z: Point) -> Any:
    angle = dot(exact_vector(config["frequency"], len(x)), _difference(x, z))
    return flint().arb(config["variance"]) * angle.cos()


def _spectral_mixture(config: dict[str, Any], x: Point, z: Point) -> Any:

    def term(variance: float, frequency: Any, lengths: Any) -> Any:
        angle = dot(exact_vector(frequency, len(x)), _difference(x, z))
        return flint().arb(variance) * (-squared_distance(lengths, x, z) / 2).exp() * angle.cos()

    return total(map(term, config["variances"], config["frequencies"], config["length_scales"]))


def _exponential_tilt(config: dict[str, Any], x: Point, z: Point) -> Any:
    theta = exact_vector(config["theta"], len(x))
    return (dot(theta, x) + dot(theta, z) + flint().arb(config.get("log_factor", 0.0))).exp()


def _cosine_pair(config: dict[str, Any], x: Point, z: Point) -> Any:
    """`sum_{a, b in {1, 2}} cos(w_a.x + p_a - w_b.z - p_b)`."""
    d, phases = len(x), config.get("phases")
    shifts = exact([0.0, 0.0] if phases is None else phases)
    pair = [exact_vector(config["first"], d), exact_vector(config["second"], d)]
    left = [dot(w, x) + p for w, p in zip(pair, shifts, strict=True)]
    right = [dot(w, z) + p for w, p in zip(pair, shifts, strict=True)]
    return total((a - b).cos() for a in left for b in right)


def _generalised_spectral(config: dict[str, Any], x: Point, z: Point) -> Any:
    phases = config.get("phases")

    def term(q: int) -> Any:
        pair = {name: config[name][q] for name in ("first", "second")}
        pair["phases"] = None if phases is None else phases[q]
        tilt = _exponential_tilt({"theta": config["thetas"][q]}, x, z)
        return flint().arb(config["variances"][q]) * tilt * _cosine_pair(pair, x, z)

    return total(map(term, range(len(config["variances"]))))


def _linear(config: dict[str, Any], x: Point, z: Point) -> Any:
    d = len(x)
    weights, center = exact_vector(config["weights"], d), exact_vector(config.get("center", 0.0), d)
    left, right = _difference(x, center), _difference(z, center)
    return dot([w * a for w, a in zip(weights, left, strict=True)], right)


def _polynomial(config: dict[str, Any], x: Point, z: Point) -> Any:
    return (_linear(config, x, z) + flint().arb(config["offset"])) ** int(config["degree"])


def _product(config: dict[str, Any], x: Point, z: Point) -> Any:
    values = (reference_of(*part)(x, z) for part in config["kernels"])
    return math.prod(values, start=flint().arb(1))


def _active_dimensions(config: dict[str, Any], x: Point, z: Point) -> Any:
    dimensions = [int(j) for j in config["dimensions"]]
    return reference_of(*config["kernel"])([x[j] for j in dimensions], [z[j] for j in dimensions])


REFERENCES: dict[str, Formula] = {
    "squared_exponential": radial(lambda config, r2: (-r2 / 2).exp()),
    "rational_quadratic": radial(_rational_quadratic),
    "matern": radial(_matern),
    "periodic": _periodic,
    "cosine": _cosine,
    "spectral_mixture": _spectral_mixture,
    "generalised_spectral": _generalised_spectral,
    "exponential_tilt": _exponential_tilt,
    "cosine_pair": _cosine_pair,
    "linear": _linear,
    "polynomial": _polynomial,
    "constant": lambda c, x, z: flint().arb(c["variance"]),
    # as a function of the inputs it is 0: its noise belongs to the training covariance
    "white": lambda c, x, z: flint().arb(0),
    "sum": lambda c, x, z: total(reference_of(*part)(x, z) for part in c["kernels"]),
    "product": _product,
    "scale": lambda c, x, z: flint().arb(c["factor"]) * reference_of(*c["kernel"])(x, z),
    "active_dimensions": _active_dimensions,
}
"""Formulas by `Kernel.name`: a kernel of the registry without one fails the completeness test."""


def partner_configs(d: int) -> dict[str, dict[str, Any]]:
    """One kernel of each class, on d features of size about one, by name."""
    ramp = [1.0 + 0.25 * j for j in range(d)]
    smooth: list[Any] = ["squared_exponential", {"length_scale": ramp, "variance": 1.5}]
    constant: list[Any] = ["constant", {"variance": 0.5}]
    pair = {"first": [0.7] * d, "second": [-0.4] * d}
    return {
        "squared_exponential": smooth[1],
        "rational_quadratic": {"length_scale": ramp, "alpha": 0.8, "variance": 0.7},
        "matern": {"length_scale": 1.3, "nu": 1.5, "variance": 1.2},
        "periodic": {"period": 3.0, "length_scale": ramp, "variance": 0.9},
        "cosine": {"frequency": [1.1] * d, "variance": 0.8},
        "spectral_mixture": {
            "variances": [0.6, 0.3],
            "frequencies": [[0.5] * d, [1.5] * d],
            "length_scales": [ramp, [0.8] * d],
        },
        "generalised_spectral": {
            "variances": [0.4],
            "thetas": [[-0.2] * d],
            "first": [pair["first"]],
            "second": [pair["second"]],
            "phases": [[0.3, -0.2]],
        },
        "exponential_tilt": {"theta": [0.15] * d},
        "cosine_pair": {**pair, "phases": [0.1, 0.4]},
        "linear": {"weights": ramp, "center": 0.3},
        "polynomial": {"degree": 3, "weights": [0.4] * d, "offset": 0.5, "center": -0.2},
        "constant": constant[1],
        "white": {"variance": 0.3},
        "sum": {"kernels": [smooth, constant]},
        "product": {"kernels": [smooth, ["linear", {"weights": ramp, "center": 0.3}]]},
        "scale": {"kernel": smooth, "factor": 2.5},
        "active_dimensions": {
            "kernel": ["squared_exponential", {"length_scale": 0.9, "variance": 1.1}],
            "dimensions": [d - 1],
        },
    }
