"""Parts of the variance of a sum of Gaussians at independent inputs: what one input explains alone,
and what is left without it; with rules for integrals over one random input: nodes, weights and a
proved error for products of Gaussians.

Proofs: docs/mathematics.md, statements 22.13 and 22.14.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.errors import SoundnessError
from gpcert.integrals.input_law import Marginal
from gpcert.numerics.rounding import EXP_ULPS, TINY, U, gamma, two_product, two_sum, up, up_float
from gpcert.utils.processes import checkpoint

NODES = 20
"""Of the Gauss-Legendre rule on each piece."""

ELLIPSES = np.array([1.5, 2.0, 3.0, 4.0, 5.5, 8.0, 12.0])
"""Sums of half-axes of Bernstein ellipses about [-1, 1]; any above 1 are valid."""

MOST_PIECES = 1200

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


PART = 16
"""Terms of a sum that are rounded; the sums of so many are added exactly."""

BEYOND = 1490.0
"""Exponents of which `exp(-x / 2)` is below `TINY`."""

BLOCK = 2**21
"""Numbers of a block of pairs."""

Range = tuple[float, float]
"""Proved bounds of a number."""

PerTerm = Annotated[np.ndarray, "n"]
PerTermAndFeature = Annotated[np.ndarray, "n f"]


@dataclass(frozen=True, eq=False)
class GaussianTerms:
    """`g(x) = sum_b weights_b exp(-sum_k rates_bk (x_k - centers_bk)^2 / 2)`, whose real weights
    are at most `roundings` relative roundings away."""

    weights: PerTerm
    rates: PerTermAndFeature
    centers: PerTermAndFeature
    roundings: int


class VarianceParts(NamedTuple):
    """Bounds of E g, Var g, and for each input of `Var E[g | x_k]` and `E Var[g | all others]`."""

    mean: Range
    whole: Range
    first: list[Range]
    total: list[Range]


def variance_parts(terms: GaussianTerms, rules: Sequence[InputRule]) -> VarianceParts | None:
    """Of a sum at inputs with these rules; None where these are too coarse to say anything."""
    f, v = len(rules), terms.weights
    error = up_float(math.fsum(rule.error for rule in rules), 4)
    if not error < 0.01:
        return None
    inputs = [
        _Input.of(terms.rates[:, k], terms.centers[:, k], rule) for k, rule in enumerate(rules)
    ]
    # relative errors of a product of means, or of means of products, of weights and partial sums
    own = [each.relative for each in inputs]
    relative = math.fsum(own) + max(own) + gamma(4 * f + 2 * terms.roundings + PART + 8)
    relative *= 1.001
    # of the measure: a mean of squares changes by so much of itself (Statement 22.14)
    measure = 1.001 * up_float(math.fsum(rule.relative for rule in rules), 4)
    size = up_float(float(np.abs(v).sum()), len(v) + 2)
    lost = up_float(2.1 * error * size, 4)  # of a mean of g, of g given an input; of pairs times it
    tiny = TINY * (f + 2.0) * (len(v) + size) ** 2
    pairs = [_around(value, relative * bulk + tiny) for value, bulk in _pair_sums(v, inputs)]
    root = math.sqrt(max(pairs[0][1], 0.0)) * 1.001 * measure  # of means, and of roots of pairs
    room = 1.001 * lost * size
    pairs = [
        (low - room, high + room)
        for low, high in (_reweighted(each, root, measure) for each in pairs)
    ]
    mean_terms = v * np.prod([each.means for each in inputs], axis=0)
    bulk = up_float(float(np.abs(mean_terms).sum()), len(v) + 2)
    middle = math.fsum(mean_terms)
    off = up_float(relative * bulk + lost + root + tiny, 4)
    mean = _around(middle, off)
    first = []
    for k, each in enumerate(inputs):
        others = [a.means for j, a in enumerate(inputs) if j != k]
        u = v * np.prod(others, axis=0) if others else v
        far = np.abs(u @ each.values - middle)
        near = np.abs(u) @ each.values
        slack = (relative + gamma(len(v) + 4)) * near * 1.001 + lost + 2.0 * U * far + tiny
        count, ends = 8.0 * gamma(len(far) + 8), (np.maximum(far - slack, 0.0), far + slack)
        least, most = (float(each.weights @ end**2) for end in ends)
        low, high = _reweighted((least * (1.0 - count), most * (1.0 + count)), root, measure)
        room = 1.001 * rules[k].error * (size + abs(middle)) ** 2
        first.append((max(low - room - 1.001 * off * off - tiny, 0.0), high + room + tiny))
    whole = _difference(pairs[0], _square(mean))
    return VarianceParts(mean, whole, first, [_difference(pairs[0], each) for each in pairs[1:]])


class _Input(NamedTuple):
    """One input: the factors of all terms at the nodes (n, q), the nodes' weights, the means of the
    factors, and the relative rounding error of means of products of two of them."""

    values: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    relative: float

    @staticmethod
    def of(rates: PerTerm, centers: PerTerm, rule: InputRule) -> _Input:
        """Factors `exp(-rate (x - c)^2 / 2)`, whose exponents are as good as exact."""
        with np.errstate(under="ignore", over="ignore"):
            places, scale = rule.places[None, :], rates[:, None]
            high, low = two_sum(places, -centers[:, None])
            beyond = scale * high * high > BEYOND
            high = np.where(beyond, 0.0, high)
            low = np.where(beyond, 0.0, low + rule.rests[None, :])
            square, rest = two_product(high, high)
            exponent, rounding = two_product(square, np.broadcast_to(scale, square.shape))
            # squares that are too small to be split exactly are far below one rounding of 1
            rounding = rounding + (rest + 2.0 * high * low) * scale
            values = np.exp(-0.5 * exponent) * (1.0 - 0.5 * rounding)
            values = np.where(beyond, 0.0, values)
        # exp, the last product, the second order of its argument, twice; weights; partial sums
        nodes = len(rule.weights)
        count = 2 * (EXP_ULPS + 6) + min(nodes, PART) + -(-nodes // PART) + 4
        means = values @ rule.weights
        count = max(count, EXP_ULPS + 8 + nodes)
        return _Input(values, rule.weights, means, gamma(count))

    def products(self, rows: slice) -> Annotated[np.ndarray, "m n"]:
        """Means of products of the rows' factors and of those from the first row on."""
        left, right = self.values[rows] * self.weights, self.values[rows.start :]
        total = np.zeros((len(left), len(right)))
        for first in range(0, len(self.weights), PART):
            part = slice(first, first + PART)
            total += left[:, part] @ right[:, part].T
        return total


def _pair_sums(v: PerTerm, inputs: Sequence[_Input]) -> list[tuple[float, float]]:
    """`sum_bc v_b v_c prod_k C_k,bc`, and for every j the same with `a_j,b a_j,c` for `C_j,bc`, a
    and C the means of factors and of products of two; each with the sum of sizes, rounded up.

    Reason: as the pairs are symmetric, those right of the diagonal count twice; sums over PART
    columns are rounded, `math.fsum` of these is exact but for its last step.
    """
    n, f = len(v), len(inputs)
    columns = [v, *(v * each.means for each in inputs)]
    parts: list[list[np.ndarray]] = [[] for _ in range(f + 1)]
    bulks = [0.0] * (f + 1)
    rows = max(1, min(n, BLOCK // n))
    for start in range(0, n, rows):
        end, matrices = min(n, start + rows), []
        for each in inputs:
            checkpoint()
            matrices.append(each.products(slice(start, end)))
        for j, matrix in enumerate(_products(matrices)):
            checkpoint()
            left, right = columns[j][start:end, None], columns[j][start:].copy()
            right[end - start :] *= 2.0
            bulks[j] += float(np.abs(left[:, 0]) @ (matrix @ np.abs(right)))
            padded = np.pad(matrix * right, ((0, 0), (0, -len(right) % PART)))
            parts[j].append((left * padded.reshape(end - start, -1, PART).sum(2)).reshape(-1))
    values = [math.fsum(np.concatenate(part).tolist()) for part in parts]
    return [(x, up_float(1.001 * b, 4)) for x, b in zip(values, bulks, strict=True)]


def _products(matrices: list[np.ndarray]) -> list[np.ndarray]:
    """The product of all, elementwise, and those of all but each."""
    f, ones = len(matrices), np.ones_like(matrices[0])
    before = [ones]
    for matrix in matrices:
        before.append(before[-1] * matrix)
    results, after = [before[f]] + [ones] * f, ones
    for k in range(f - 1, -1, -1):
        results[k + 1] = before[k] * after
        after = after * matrices[k]
    return results


def _around(value: float, error: float) -> Range:
    off = up_float(error + 2.0 * U * abs(value), 8)
    return value - off, value + off


def _reweighted(square: Range, root: float, measure: float) -> Range:
    """Of a mean of squares of means: the latter change by `root` in their own mean square, the
    former by the part `measure` of itself."""
    low, high = (math.sqrt(max(end, 0.0)) for end in square)
    low = max(0.0, low * (1.0 - 4.0 * U) - root) ** 2 * (1.0 - measure - 8.0 * U)
    return min(low, square[0]), (high * (1.0 + 4.0 * U) + root) ** 2 * (1.0 + measure + 8.0 * U)


def _square(ends: Range) -> Range:
    low, high = abs(ends[0]), abs(ends[1])
    least = 0.0 if ends[0] <= 0.0 <= ends[1] else min(low, high)
    return least * least * (1.0 - 4.0 * U), max(low, high) ** 2 * (1.0 + 4.0 * U) + TINY


def _difference(first: Range, second: Range) -> Range:
    """Of two numbers whose difference is not negative."""
    low, high = first[0] - second[1], first[1] - second[0]
    if not high >= 0.0:
        raise SoundnessError("a variance is negative; please report this model")
    return max(0.0, math.nextafter(low, -math.inf)), max(0.0, math.nextafter(high, math.inf))
