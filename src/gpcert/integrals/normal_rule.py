"""Means over standard normals by the trapezoidal rule, Hermite factors included, proved errors.

For z standard normal in k dimensions and a function f that the rule's class contains,
`E[f(z) He_alpha(z)]` is approximated by `sum_q weights[q, alpha] f(nodes[q])`; He_alpha is the
product of the probabilists' Hermite polynomials of degrees alpha_1, ..., alpha_k. These means are
the derivatives at 0 of `z0 -> E f(z + z0)` (integrate by parts).

Proofs: docs/mathematics.md, statements 9.2 and 9.6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpcert.integrals.moments import HIGHEST_ORDER
from gpcert.numerics.rounding import gamma, up, up_float

REACH = 7.0
"""Nodes lie in the ball of this radius: the normal has mass 3e-12 (k = 1), 3e-11 (k = 2) beyond."""

SPREADS = tuple(0.5 * 2.0 ** (0.5 * i) for i in range(41))
"""The spreads (see `normal_rule`) that rules are made for: few, so that rules are found again."""

MAX_NODES = {0: 1, 1: 100_000, 2: 200_000}
"""By dimension. Beyond, the steps grow, and the error that is reported with them."""

_VALUE_TARGET = 1e-10
_FOURTH_TARGET = 1e-8
"""Errors of one coordinate's rule for orders 0 and 4 that the steps are chosen for."""

_ANGLES = (1.58, 2.0, 2.4, 2.7, 2.85, 3.0, 3.07, 3.11)
"""Arguments that the exponentials may reach when a coordinate turns complex; all below pi."""

_DESIGN_ANGLE = 3.0
_LARGEST_SHIFT = 6.0
"""Of a coordinate into the complex plane; exp(y^2 / 2) makes larger ones useless."""

_LONG_END = 12.0
BEYOND = 1e-21
"""`>= h sum phi |He_r|` over the nodes beyond `_LONG_END`, both sides, r <= 4 and h <= 1: there
`|He_r(x)| <= x^4` and `phi(x) x^4` falls, so the sum is at most its integral from 11."""

_HERMITE = ((1.0,), (0.0, 1.0), (-1.0, 0.0, 1.0), (0.0, -3.0, 0.0, 1.0), (3.0, 0.0, -6.0, 0.0, 1.0))
"""Coefficients of He_0..He_4, rising powers."""

WEIGHT_ROUNDINGS = 256
"""For a product of two factors `h phi(x) He_r(x)`, |x| <= 12, x exact, relative to the sizes of the
terms: 72 for the rounded square in the exponent, 8 for exp, 4 for the constants, 16 for the
polynomial (5 for x^6, 1 for its coefficient, 7 for the sum), twice, and 1 for the product; together
201."""


@dataclass(frozen=True, eq=False)
class NormalRule:
    """`|E[f He_alpha] - sum_q weights[q, alpha] f(nodes[q])| <= errors[alpha]`, weights as stored.

    `nodes` (Q, k); `weights` (Q, A), columns in the order of `indices` (graded: |alpha| rises).
    `sizes[alpha] >= sum_q |weights[q, alpha]|`, for the rounding of the sum.
    """

    nodes: np.ndarray
    weights: np.ndarray
    indices: tuple[tuple[int, ...], ...]
    errors: np.ndarray
    sizes: np.ndarray


@lru_cache(maxsize=32)
def graded_indices(dimension: int, order: int) -> tuple[tuple[int, ...], ...]:
    """Multi-indices alpha with |alpha| <= order, by rising |alpha|.

    >>> graded_indices(2, 1)
    ((0, 0), (0, 1), (1, 0))
    """
    everything = itertools.product(range(order + 1), repeat=dimension)
    return tuple(sorted((i for i in everything if sum(i) <= order), key=lambda i: (sum(i), i)))


def trapezoid_error(degree: int, step: float, spread: float) -> float:
    """Upper bound of the infinite trapezoidal rule's error for `phi(t) He_degree(t) g(t)`.

    Statement: let g be analytic where `|Im t| spread < pi`, with `|g| <= 1 / sin(a)` where
    `|Im t| spread <= a`, `pi/2 <= a < pi`. For every y > 0 with `y spread <= a` the error is
    at most `2 / (exp(2 pi y / step) - 1) * exp(y^2 / 2) / sin(a) * sum_j C(r, j) y^j sqrt((r-j)!)`.
    Reason: Poisson's summation formula, Fourier integrals moved to `Im t = -+y` (Statement 9.6).
    Reference: Trefethen & Weideman 2014, "The exponentially convergent trapezoidal rule", thm 5.1.

    >>> trapezoid_error(0, 0.25, 1.0) < 1e-25
    True
    """
    best = math.inf
    for angle in _ANGLES:
        y = min(angle / up_float(spread, 4), _LARGEST_SHIFT, 2.0 * math.pi / step)
        exponent = min(2.0 * math.pi * y / step, 600.0)
        if exponent > 1e-6:
            decay = 2.0 / math.expm1(exponent)
            best = min(best, decay * strip_factor(degree, y) / math.sin(angle))
    # the exponent's relative error of a few U moves the exponential by 600 times as much
    return up_float(best, 4096) if best < math.inf else best


def strip_factor(degree: int, y: float) -> float:
    """Bound of a Hermite function on the line of imaginary part y, over its Gaussian."""
    terms = (
        math.comb(degree, j) * y**j * math.sqrt(math.factorial(degree - j))
        for j in range(degree + 1)
    )
    return math.exp(0.5 * y * y) * sum(terms)


def rule_step(spread: float) -> float:
    """With which a coordinate meets the targets."""
    y = min(_DESIGN_ANGLE / spread, _LARGEST_SHIFT)
    demand = max(strip_factor(0, y) / _VALUE_TARGET, strip_factor(4, y) / _FOURTH_TARGET)
    return 2.0 * math.pi * y / math.log(1.0 + 2.0 / math.sin(_DESIGN_ANGLE) * demand)


def rule_steps(spreads: Sequence[float]) -> list[float]:
    """Steps of the coordinates, of few binary digits: nodes are exact."""
    steps = [min(rule_step(spread), 1.0) for spread in spreads]
    dimension = len(steps)
    volume = {0: 1.0, 1: 2.0 * REACH, 2: math.pi * REACH**2}[dimension]
    fewest = volume / (0.97 * MAX_NODES[dimension])
    # equal factors keep the exponents 2 pi y / h of the coordinates' errors equal
    while steps and math.prod(steps) < fewest:
        steps = [min(1.05 * step, 1.0) for step in steps]
    parts = [math.frexp(step) for step in steps]
    return [math.ldexp(math.floor(256 * m) / 256, exponent) for m, exponent in parts]


@dataclass(frozen=True, eq=False)
class _Axis:
    """One coordinate: nodes up to `_LONG_END`; `h phi He_r`, its absolute value and size (r, Q)."""

    nodes: np.ndarray
    signed: np.ndarray
    absolute: np.ndarray
    sizes: np.ndarray
    totals: np.ndarray
    """`>= max(h sum phi |He_r| over all nodes, sqrt(r!) >= E|He_r|)`."""
    errors: np.ndarray
    """`trapezoid_error` by degree."""


def axis_of(step: float, spread: float) -> _Axis:
    """The nodes and weights of one axis."""
    last = math.floor(_LONG_END / step)
    x = np.arange(-last, last + 1) * step
    density = np.exp(-0.5 * x * x) * (step / math.sqrt(2.0 * math.pi))
    square = x * x
    powers = [x**0, x, square, x * square, square * square]
    rows = [[c * p for c, p in zip(cs, powers, strict=False)] for cs in _HERMITE]
    signed = np.stack([density * sum(row) for row in rows])
    sizes = up(np.stack([density * sum(abs(p) for p in row) for row in rows]), WEIGHT_ROUNDINGS)
    absolute = abs(signed) + gamma(WEIGHT_ROUNDINGS) * sizes
    degrees = range(HIGHEST_ORDER + 1)
    deviations = np.array([math.sqrt(math.factorial(r)) for r in degrees])
    totals = up(np.maximum(absolute.sum(axis=1) + BEYOND, deviations), len(x) + 8)
    errors = np.array([trapezoid_error(r, step, spread) for r in degrees])
    return _Axis(x, signed, absolute, sizes, totals, errors)


def _grid_sums(tables: Sequence[np.ndarray], mask: np.ndarray) -> np.ndarray:
    """Sums over the grid's nodes in `mask` of the product of one row of each table, all choices;
    fewer roundings than nodes, as every coordinate is summed by itself."""
    result = np.asarray(mask, dtype=float)
    for table in tables:  # contracts the first coordinate and appends its degree
        result = np.tensordot(result, table, axes=([0], [1]))
    return up(result, mask.size + 8)


def rule_error(axes: Sequence[_Axis], alpha: Sequence[int], left_out: float) -> float:
    """Trapezoidal error coordinate by coordinate, the other factors below `totals` (Statement 9.6),
    and the nodes left out."""
    total = left_out
    totals = [float(axis.totals[r]) for axis, r in zip(axes, alpha, strict=True)]
    for j, axis in enumerate(axes):
        others = math.prod(totals[:j] + totals[j + 1 :])
        total += (float(axis.errors[alpha[j]]) + BEYOND) * others
    return up_float(total, 16)


@lru_cache(maxsize=24)
def normal_rule(spreads: tuple[float, ...]) -> NormalRule:
    """The rule in `len(spreads)` dimensions (0, 1 or 2) for functions f of the class of `spreads`.

    The class: `|f| <= 1` for real arguments, and for every coordinate j, the others real, f
    satisfies what `trapezoid_error` demands of g with `spread = spreads[j]`.
    """
    axes = [axis_of(h, spread) for h, spread in zip(rule_steps(spreads), spreads, strict=True)]
    indices = graded_indices(len(axes), HIGHEST_ORDER)
    squares = np.zeros(())
    for axis in axes:
        squares = squares[..., None] + axis.nodes * axis.nodes
    inside = squares <= REACH**2
    places = np.argwhere(inside)
    nodes = np.empty(places.shape)
    weights = np.ones((len(nodes), len(indices)))
    for j, (axis, place) in enumerate(zip(axes, places.T, strict=True)):
        nodes[:, j] = axis.nodes[place]
        weights *= axis.signed[[alpha[j] for alpha in indices]][:, place].T
    sizes = _grid_sums([axis.sizes for axis in axes], inside)
    outside = _grid_sums([axis.absolute for axis in axes], ~inside)
    left_out = up(outside + gamma(WEIGHT_ROUNDINGS) * sizes, 2)
    errors = np.array([rule_error(axes, alpha, float(left_out[alpha])) for alpha in indices])
    return NormalRule(nodes, weights, indices, errors, np.array([sizes[a] for a in indices]))
