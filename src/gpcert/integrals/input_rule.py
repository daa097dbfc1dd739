"""Rules for integrals over one random input: nodes, weights and a proved error for products of
Gaussians.

Proofs: docs/mathematics.md, statement 22.13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.integrals.marginals import Marginal
from gpcert.numerics.rounding import U, up, up_float

NODES = 20
"""Of the Gauss-Legendre rule on each piece."""

ELLIPSES = np.array([1.5, 2.0, 3.0, 4.0, 5.5, 8.0, 12.0])
"""Sums of half-axes of Bernstein ellipses about [-1, 1]; any above 1 are valid."""

MOST_PIECES = 400

TYPICAL = 0.01
"""Means over the rule are about of this size, where relative errors are weighed against others."""

SHARE = 0.02
"""Pieces whose errors are at least this part of the largest one are halved at a time."""

PerNode = Annotated[np.ndarray, "q"]


@dataclass(frozen=True, eq=False)
class InputRule:
    """Nodes `places + rests`, in order, and positive `weights` with

        |E f(X) - sum_q w_q f(x_q)| <= error

    for `f(x) = exp(-r (x - c)^2 / 2)`, every c and r <= `rate`, with real weights w_q whose
    relative distance from `weights` is `relative` at most."""

    places: PerNode
    rests: PerNode
    weights: PerNode
    relative: float
    error: float
    rate: float


class _Piece(NamedTuple):
    """Rows of nodes, or one node each, in pieces (n,)."""

    places: np.ndarray
    rests: np.ndarray
    low: np.ndarray
    high: np.ndarray
    """Bounds of the weights."""


@cache
def legendre(n: int) -> tuple[tuple[Decimal, Decimal], ...]:
    """Nodes in (-1, 1), in order, and weights of the Gauss-Legendre rule, to 40 digits.

    >>> x, w = legendre(2)[1]
    >>> round(float(x * x), 15), float(w)
    (0.333333333333333, 1.0)
    """
    with localcontext() as context:
        context.prec = 50
        rule = []
        for k in range(n, 0, -1):
            x = Decimal(math.cos(math.pi * (k - 0.25) / (n + 0.5)))
            slope = Decimal(1)
            for _ in range(8):  # Newton doubles the digits of a float that is right to ten
                before, value = Decimal(1), x
                for j in range(2, n + 1):
                    before, value = value, ((2 * j - 1) * x * value - (j - 1) * before) / j
                slope = n * (x * value - before) / (x * x - 1)
                x -= value / slope
            rule.append((x, 2 / ((1 - x * x) * slope * slope)))
        return tuple(rule)


def point_rule(x: float) -> InputRule:
    """That of an input that is a number."""
    one = np.ones(1)
    return InputRule(x * one, 0.0 * one, one, 0.0, 0.0, math.inf)


def input_rule(
    marginal: Marginal, low: float, high: float, rate: float, accuracy: float
) -> InputRule:
    """A rule for an input whose values lie in [low, high], but for those of little probability:
    pieces are halved until their errors together are about `accuracy`, or they are too many."""
    cuts = {low, high, *(end for kink in marginal.kinks for end in kink)}
    edges = np.array(sorted(cut for cut in cuts if low <= cut <= high))
    first, last = edges[:-1], edges[1:]
    while len(first) < MOST_PIECES:
        errors, _ = _errors(marginal, first, last, rate)
        middle = 0.5 * first + 0.5 * last
        errors[~((middle > first) & (middle < last))] = 0.0
        worst = float(errors.max())
        if worst * len(first) <= accuracy:
            break
        chosen = errors >= SHARE * worst
        first = np.concatenate([first, middle[chosen]])
        last = np.concatenate([np.where(chosen, middle, last), last[chosen]])
    errors, smooth = _errors(marginal, first, last, rate)
    fine, plain = _gauss(marginal, first[smooth], last[smooth]), np.flatnonzero(~smooth)
    coarse = _middles(marginal, first[plain], last[plain])
    places, rests, least, most = (
        np.concatenate([a.reshape(-1), b]) for a, b in zip(fine, coarse, strict=True)
    )
    weights = 0.5 * least + 0.5 * most
    off = up(np.maximum(most - weights, weights - least), 2)
    # those that are known least well count with their errors, all others with the largest ratio
    ratio = np.divide(off, weights, out=np.ones_like(off), where=weights > 0)
    order = np.argsort(-ratio)
    cost = np.append(ratio[order], 0.0) * TYPICAL + np.append(0.0, np.cumsum(off[order]))
    dropped, rest = np.split(order, [int(np.argmin(cost))])
    relative = float(ratio[rest].max(initial=0.0))
    parts = [*errors.tolist(), *off[dropped].tolist(), marginal.outside(low, high)]
    order = np.argsort(places, kind="stable")
    return InputRule(
        places[order],
        rests[order],
        weights[order],
        up_float(relative, 2),
        up_float(math.fsum(parts), 4),
        rate,
    )


def _errors(
    marginal: Marginal, low: np.ndarray, high: np.ndarray, rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the errors on pieces, and whether they are those of Gauss-Legendre rules.

    `4 2 M / ((rho - 1) rho^(2n - 1))` times the half-width, M at least the integrand on the ellipse
    rho; or, of the middle with the piece's probability, that times the largest change of f there.
    """
    half = 0.5 * (high - low) * (1.0 + 4.0 * U)
    middle = 0.5 * low + 0.5 * high
    with np.errstate(over="ignore", invalid="ignore"):
        wide = half[:, None] * (0.5 * (ELLIPSES + 1.0 / ELLIPSES))
        tall = half[:, None] * (0.5 * (ELLIPSES - 1.0 / ELLIPSES))
        slack = 8.0 * U * (np.abs(middle) + half)
        ends = (middle - slack)[:, None] - wide, (middle + slack)[:, None] + wide
        size = marginal.size(*ends, tall) * np.exp(0.5 * rate * tall * tall)
        each = 8.08 * size * ELLIPSES ** (1.0 - 2.0 * NODES) / (ELLIPSES - 1.0)
        smooth = half * np.where(np.isnan(each), np.inf, each).min(axis=1)
        for kink in marginal.kinks:
            smooth = np.where((low < kink[1]) & (high > kink[0]), np.inf, smooth)
        most = marginal.mass(low, high)[1]
        change = np.minimum(1.0, 0.61 * math.sqrt(rate) * half)  # sup |t exp(-t^2 / 2)| < 0.607
    plain = up(most * change, 8)
    return np.minimum(smooth, plain), smooth < plain


def _gauss(marginal: Marginal, low: np.ndarray, high: np.ndarray) -> _Piece:
    """Nodes (n, NODES) and their weights, `half w p(x)`."""
    rule = legendre(NODES)
    w = np.array([float(each) for _, each in rule])
    exact = [[_node(a, b, x) for x, _ in rule] for a, b in zip(low, high, strict=True)]
    places = np.array([[float(x) for x in row] for row in exact]).reshape(len(low), NODES)
    rests = [
        [float(x - Decimal(p)) for x, p in zip(row, line, strict=True)]
        for row, line in zip(exact, places.tolist(), strict=True)
    ]
    rests = np.array(rests).reshape(places.shape)
    around = np.nextafter(places, -np.inf), np.nextafter(places, np.inf)
    density = marginal.density(*around)
    half = (0.5 * (high - low))[:, None] * w
    least, most = half * density[0] * (1.0 - 16.0 * U), half * density[1] * (1.0 + 16.0 * U)
    return _Piece(places, rests, np.maximum(least, 0.0), most)


def _node(low: float, high: float, x: Decimal) -> Decimal:
    """A node in [low, high], to 40 digits."""
    with localcontext() as context:
        context.prec = 50
        a, b = Decimal(float(low)), Decimal(float(high))
        return (a + b) / 2 + (b - a) / 2 * x


def _middles(marginal: Marginal, low: np.ndarray, high: np.ndarray) -> _Piece:
    """The middle of each piece with its probability."""
    least, most = marginal.mass(low, high)
    middle = np.clip(0.5 * low + 0.5 * high, low, high)
    return _Piece(middle, np.zeros_like(middle), least, most)
