"""Which of many independent Gaussians is the largest: one integral, with a certified error.

For `y_k ~ N(mu_k, s_k^2)` with densities g_k and distribution functions Phi_k, `P = prod_k Phi_k`,
`r_k = g_k / Phi_k`, `R = sum r_k`, `S = sum w_k r_k`, `x_k = (t - mu_k) / s_k`, value, gradient and
Hessian of `sum_c w_c pi_c` are integrals of P times sums of these in O(m), and a matrix product.

Proofs: docs/mathematics.md, statement 9.11.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Annotated, NamedTuple

import array_api_compat
import numpy as np

from gpcert.integrals.moments import IndependentMoments
from gpcert.integrals.sectors import DERIVATIVE_BOUNDS
from gpcert.integrals.special import normal_cdf, normal_pdf
from gpcert.numerics.arrays import Array, PerCell, PerCellAndClass, namespace, to_numpy
from gpcert.numerics.rounding import NORMAL_CDF_ULPS, U
from gpcert.utils.processes import checkpoint

REACH = 9.5
"""Standard deviations that the nodes cover: from `max_k (mu_k - 9.5 s_k)` to the largest
`mu_k + 9.5 s_k`."""

TAIL = 1e-17
"""Upper bound of `1.2 * REACH * phi(REACH - 1/8) < 4e-19`, what the nodes left out may carry, in
units of `2 max|w|` and 1 / s_min a derivative, for each of m + 2 terms.
Reason: right of the reach every `x_k > REACH`, and `h sum g_c <= Phi(-(REACH - 1/8))` since g_c
falls there (likewise x g_c). Left of it `x_k < -REACH` for one k, and every term has a factor
Phi_k, g_k or x_k g_k, each at most `REACH phi(REACH)` over powers of s_k and growing in t; another
g_c sums to at most 1.05, the rest are below 1 / s each."""

LEFT_END = -12.0
"""Nodes where some `x_k` is below it are left out: they lie left of the reach."""

FAR_BELOW = 80.0
"""Means further below the largest than this many `s_k + s_max` are moved there: class k and its
derivatives stay below `Phi(-80)` times powers of 80 and 1 / s."""

MAX_NODES = 65536
"""Cells that need more get the trivial bounds: those with `s_max / s_min` above about 200."""

UNDERFLOW = 2.0**-500
"""Above what underflow and the cut at `FAR_BELOW` can lose, for s and 1 / s up to 2^100."""

CHUNK = 1.0e6
"""Numbers in the arrays of one chunk of nodes."""

STRIPS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""Half-widths of strips, in units of s_min, that the error of the rule is bounded by; the best
counts."""


def independent_maximum(mu: Array, s: Array, weights: PerCellAndClass) -> IndependentMoments:
    """Certified `sum_c w_c pi_c` for `y_k ~ N(mu_k, s_k^2)`, with its gradient and Hessian in mu.

    mu, s, weights (B, m); s within 2 U of the real standard deviations, relative; s > 0. The errors
    are those of the trapezoidal rule (`aliasing_error`), of the nodes left out (`TAIL`), of
    rounding (`_Sums`) and of the shift of the means (`_shifted`); order by order, where they are
    worse than knowing nothing that counts.
    """
    xp = namespace(mu)
    shift, shift_error = _shifted(mu, s)
    step, start, counts = _nodes(shift, s)
    usable = counts <= MAX_NODES
    size = xp.max(xp.abs(weights), axis=1)
    classes = mu.shape[1]
    smallest = xp.min(s, axis=1)
    count = int(xp.max(xp.where(usable, counts, xp.ones_like(counts))))
    sums = node_sums((shift, s, weights), step, start, count)
    rule = aliasing_error(s, step, smallest) + (classes + 3.0) * TAIL + shift_error
    rule = xp.where(usable, rule, xp.full_like(rule, float("inf")))
    units = xp.stack([xp.ones_like(smallest), 1.0 / smallest, 1.0 / smallest**2], axis=1)
    errors = 1.01 * (sums.errors + ((2.0 * size + UNDERFLOW) * rule)[:, None] * units) + UNDERFLOW
    middle, trivial = _trivial(weights, smallest)
    good = errors < trivial
    hessian = hessian_of(sums, weights)
    return IndependentMoments(
        xp.where(good[:, 0], sums.value, middle),
        xp.where(good[:, 1][:, None], sums.gradient, xp.zeros_like(weights)),
        xp.where(good[:, 2][:, None, None], hessian, xp.zeros_like(hessian)),
        xp.where(good, errors, trivial),
    )


class _Sums(NamedTuple):
    """Sums over nodes: value, gradient, the Hessian's diagonal and its two products; errors (B, 3).

    Rounding: every term is a product over k of `Phi_k`, `g_k` or `x_k g_k`, relative errors below
    `U (70 + 8 min(x, 0)^2)`, and `U (26 + 5 x^2)` more for the latter two (x itself errs by 4 U),
    and of m + 60 factors and sums besides; a division by the computed Phi_k undoes it to 1 U. With
    E the sum over k of the former, `r (1 + e / E)` for r with relative error e covers products.
    """

    value: Array
    gradient: Array
    diagonal: Array
    bend: Array
    """`sum P r_j r_i (x_i / s_i + r_i)`."""
    turn: Array
    """`sum P r_j (w_j R - S) r_i`."""
    errors: Array


def _shifted(mu: Array, s: Array) -> tuple[Array, Array]:
    """Means relative to the largest, cut at `FAR_BELOW`, and what their rounding costs.

    Statement: derivatives of order 1, 2, 3 in the means, times s each, are at most
    `DERIVATIVE_BOUNDS` (< 1) times the spread of the weights; the shifted mean k errs by
    `U |shift_k|`, so that `sum_k U |shift_k| / s_k` times the spread (and 1 / s_min for each
    further derivative) bounds the effect. Only differences of means matter.
    """
    xp = namespace(mu)
    shift = mu - xp.max(mu, axis=1, keepdims=True)
    lowest = -FAR_BELOW * (s + xp.max(s, axis=1, keepdims=True))
    shift = xp.maximum(shift, lowest)
    return shift, 1.01 * U * xp.sum(xp.abs(shift) / s, axis=1)


def _nodes(mu: Array, s: Array) -> tuple[Array, Array, Array]:
    """Step (a power of two, at most s_min / 8), first node in steps, nodes needed, all (B,).

    Multiples of a power of two by integers below 2^53 are exact: the nodes carry no error. The
    integers are made on the host, where powers of two are exact.
    """
    xp = namespace(mu)
    low = to_numpy(xp.max(mu - REACH * s, axis=1))
    high = to_numpy(xp.max(mu + REACH * s, axis=1))
    exponent = np.frexp(to_numpy(xp.min(s, axis=1)))[1] - 1  # 2^exponent <= s_min
    step = np.ldexp(1.0, exponent - 3)
    start = np.floor(low / step)
    # one more at either end for the rounding of the ends
    counts = np.ceil(high / step) - start + 3.0
    device = array_api_compat.device(mu)
    step, start, counts = (xp.asarray(x, device=device) for x in (step, start - 1.0, counts))
    return step, start, counts


def node_sums(
    law: tuple[PerCellAndClass, PerCellAndClass, PerCellAndClass],
    step: PerCell,
    start: PerCell,
    count: int,
) -> _Sums:
    """Sums over all nodes, in chunks; of means below 0, deviations and weights (B, m)."""
    xp = namespace(step)
    length = max(8, int(CHUNK / (law[0].shape[0] * law[0].shape[1] + 1)))
    index = xp.arange(count, dtype=step.dtype, device=array_api_compat.device(step))
    nodes = (start[:, None] + index[None, i : i + length] for i in range(0, count, length))
    parts = (_chunk(*law, t * step[:, None], step, count) for t in nodes)
    return reduce(lambda total, part: _Sums(*map(operator.add, total, part)), parts)


def _chunk(mu: Array, s: Array, weights: Array, t: Array, step: Array, count: int) -> _Sums:
    """Sums over the nodes t (B, T)."""
    checkpoint()
    xp = namespace(mu)
    s, w = s[:, None, :], weights[:, None, :]
    x = (t[:, :, None] - mu[:, None, :]) / s
    usable = xp.min(x, axis=2) >= LEFT_END
    x = xp.clip(x, LEFT_END, None)
    below = normal_cdf(x)
    r = normal_pdf(x) / (s * below)
    product = xp.where(usable, xp.prod(below, axis=2), xp.zeros_like(t)) * step[:, None]
    rate = xp.sum(r, axis=2)  # R
    weighted = xp.sum(w * r, axis=2)  # S
    pull = w * rate[:, :, None] - weighted[:, :, None]
    lean = r * x / s
    outer = product[:, :, None] * r
    sloped = outer * pull
    return _Sums(
        value=xp.sum(product * weighted, axis=1),
        gradient=xp.sum(sloped, axis=1),
        diagonal=xp.sum(sloped * (x / s), axis=1),
        bend=xp.matmul(xp.matrix_transpose(outer), lean + r * r),
        turn=xp.matmul(xp.matrix_transpose(sloped), r),
        errors=_rounding(x, r, lean, product, xp.max(xp.abs(w), axis=2), count),
    )


def _rounding(x: Array, r: Array, lean: Array, product: Array, size: Array, count: int) -> Array:
    """Bounds (B, 3) of the rounding of one chunk's sums; see `_Sums`."""
    xp = namespace(x)
    left = xp.clip(x, None, 0.0)
    classes = x.shape[2]
    base = xp.sum(NORMAL_CDF_ULPS + 6.0 + 8.0 * left * left, axis=2)
    base = base + (count + 8.0 * classes + 80.0)
    square = xp.clip(x * x, None, 1600.0)  # phi(40) underflows
    inflate = 1.0 + (26.0 + 5.0 * square) / base[:, :, None]
    r, lean = r * inflate, xp.abs(lean) * inflate
    rate, top, slope = xp.sum(r, axis=2), xp.max(r, axis=2), xp.max(lean, axis=2)
    scale = 1.01 * U * product * base * size
    value = xp.sum(scale * rate, axis=1)
    gradient = xp.sum(2.0 * scale * rate * top, axis=1)
    hessian = xp.sum(2.0 * scale * (slope * (rate + top) + top * top * (top + rate)), axis=1)
    return xp.stack([value, gradient, hessian], axis=1)


def hessian_of(sums: _Sums, weights: PerCellAndClass) -> Annotated[Array, "B m m"]:
    """The Hessian (B, m, m), symmetric: the mean of the two forms of every entry."""
    xp = namespace(weights)
    gap = weights[:, :, None] - weights[:, None, :]
    matrix = gap * sums.bend - sums.turn
    matrix = 0.5 * (matrix + xp.matrix_transpose(matrix))
    eye = xp.eye(weights.shape[1], dtype=weights.dtype, device=array_api_compat.device(weights))
    return xp.where(eye[None] > 0.0, sums.diagonal[:, :, None] * eye[None], matrix)


def aliasing_error(s: PerCellAndClass, step: PerCell, smallest: PerCell) -> PerCell:
    """Error of the trapezoidal rule in units of `2 max|w|` and 1 / s_min a derivative (B,).

    Statement: for f analytic in `|Im t| <= A`, `|h sum f(jh) - int f| <= 2 M / (e^(2 pi A/h) - 1)`,
    M above the integral of |f| along every line of the strip. With `q_k = A / s_k <= q = A / s_min`
    and `I(q) = int_0^q exp(u^2 / 2) du`, M is at most
    `(m + 1) (1 + q) e^(3 q^2 / 2) prod_k (1 + 0.4 I(q_k))` times `2 max|w| s_min^-j`, order j <= 2.
    Reason: `|g_k|` grows by exp(q_k^2/2), `|Phi|` by `0.4 I` (Statement 9.11), and every term has
    1 to 3 factors g. I is bounded by the trapezoidal rule of a convex function.
    Reference: Trefethen & Weideman 2014, "The exponentially convergent trapezoidal rule", Thm 5.1.
    """
    xp = namespace(s)
    classes = s.shape[1]
    best = xp.full_like(step, float("inf"))
    for strip in STRIPS:
        q = strip * smallest[:, None] / s
        panel = q / 16.0
        area = 0.5 + 0.5 * xp.exp(0.5 * q * q)
        for j in range(1, 16):
            area = area + xp.exp(0.5 * (j * panel) ** 2)
        growth = xp.sum(xp.log1p(0.4 * panel * area), axis=1) + 1.5 * strip * strip
        decay = 2.0 * np.pi * strip * smallest / step
        # 2 / (e^y - 1) <= 2.01 e^-y for y > 6; the factor 1.01 for rounding, far above it
        bound = 2.04 * (classes + 1.0) * (1.0 + strip) * xp.exp(growth - decay)
        best = xp.minimum(best, bound)
    return best


def _trivial(weights: Array, smallest: Array) -> tuple[Array, Array]:
    """The middle of the weights, and the errors (B, 3) of it and of no derivatives, which always
    hold.

    Derivatives in the means are `E (w(y) - middle) z_k / s_k` and alike for independent standard z:
    at most half the spread times `E|z| = 0.8`, `E|z^2 - 1| = 0.97` or `E|z z'| = 0.64`, over s.
    """
    xp = namespace(weights)
    low, high = xp.min(weights, axis=1), xp.max(weights, axis=1)
    spread = 1.01 * (high - low) + 1e-15 * xp.max(xp.abs(weights), axis=1)
    bounds = [0.5, DERIVATIVE_BOUNDS[1], DERIVATIVE_BOUNDS[2]]
    errors = [spread * b / smallest**j for j, b in enumerate(bounds)]
    return 0.5 * low + 0.5 * high, xp.stack(errors, axis=1)
