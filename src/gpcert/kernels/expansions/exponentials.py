"""Sums of exponentials `sum_i a_i exp(u_i.d)` on a cell: their terms of degree three and more, what
the remainder point by point.

Degree n is the form `sum_i a_i (u_i.d)^n / n!` with the tensor `T_n = sum_i a_i u_i^(x n)`; on
|d_j| <= w_j, |d| <= rho it is at most `min(sum |T_n| w...w, |T_n|_F rho^n) / n!`, and
`|T_n|_F^2 = sum_ij a_i a_j (u_i.u_j)^n`. Knowing some degrees leaves only the tail beyond them to
Cauchy-Schwarz, and the norm left for it is what those degrees do not use up.

The form is the same with d'_j = delta_j d_j and T' made of u'_ij = u_ij / delta_j, for any
delta > 0. Features along which the points hardly differ (the margin of an image) count in |d| but
not in T: small delta_j there take them out of both (`BoxMetric`).

Before them: remainders of the exponential series, chords of the weight exp(rate |d|^2), values of
the squared exponential, and the errors of all values that a table computes.

Proofs: docs/mathematics.md, statements 4.4 to 4.8, 12.4, 16.5 and 16.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.nodes.base import CubicPart
from gpcert.kernels.nodes.moments import sorted_index
from gpcert.kernels.sizes import spectral_norm
from gpcert.numerics.arrays import (
    Array,
    PerCell,
    PerCellAndFeature,
    PerCellAndPoint,
    PerOrder,
    Reals,
    dot,
    fused,
    namespace,
)
from gpcert.numerics.rounding import (
    EXP_ULPS,
    POW_ULPS,
    TINY,
    U,
    gamma,
    given,
    nonnegative,
    root,
    up,
)

LARGEST_EXPONENT = 200.0
"""Beyond |d|^2 = 200 the weighted expansion is useless (its tail exceeds e^100): all remainders
are reported as infinite, and weighted models of such cells are void. Squares of e^200 do not
overflow."""

LARGEST_EXPONENT_ERROR = 0.1
"""exp(e) - 1 <= 1.1 e holds up to here (convexity, and at 0.1)."""

# numbers, as torch compiles no calls of `math`
_FACTORIALS = tuple(float(math.factorial(k)) for k in range(20))


@fused
def exponential_tail(x: Reals, order: int) -> Reals:
    """Upper bound of `sum_{k > order} x^k / k!` for x >= 0; inf beyond `LARGEST_EXPONENT`.

    For x <= 1 four terms and the Lagrange remainder `x^4 (n+1)!/(n+5)! e^x`; else `e^x` less its
    Taylor polynomial, with the rounding of both added.

    >>> import numpy as np
    >>> float(exponential_tail(np.asarray(1.0), 1)) >= math.e - 2
    True
    """
    xp = namespace(x)
    n = order
    small = xp.minimum(x, xp.ones_like(x))
    inner = 1.0 + small / (n + 4) * (1.0 + small / (n + 5) * math.e)
    inner = 1.0 + small / (n + 2) * (1.0 + small / (n + 3) * inner)
    series = small ** (n + 1) / _FACTORIALS[n + 1] * inner
    large = xp.minimum(x, xp.full_like(x, LARGEST_EXPONENT))
    polynomial = sum(large**k / _FACTORIALS[k] for k in range(n + 1))
    whole = xp.exp(large)
    direct = (whole - polynomial) + whole * ((EXP_ULPS + 32) * U)
    result = xp.where(x <= 1.0, up(series, 24 + n), up(direct, 2))
    return xp.where(x <= LARGEST_EXPONENT, result, xp.full_like(x, math.inf))


@fused
def growth_chord(rate: float, rho2: PerCell) -> PerCell:
    """`(exp(rate rho2) - 1) / rho2`, rounded up: exp(rate r) - 1 <= chord * r for 0 <= r <= rho2.

    For rate <= 1 and rho2 <= LARGEST_EXPONENT; beyond, weighted models are void.

    Reason: exp is convex, so the chord lies above; at rho2 = 0 the limit is `rate`.
    """
    xp = namespace(rho2)
    x = xp.minimum(rate * rho2, xp.full_like(rho2, LARGEST_EXPONENT))
    safe = xp.where(x > 1e-8, x, xp.ones_like(x))
    # below 1e-8 the quotient expm1(x)/x is at most 1 + x
    quotient = xp.where(x > 1e-8, xp.expm1(safe) / safe, 1.0 + x)
    return up(rate * quotient, EXP_ULPS + 8)


FARTHEST = 2.0**20
"""Squared distances in the fixed features end here: k is below TINY there and beyond, which every
value allows, and an infinite one would make NaN of a slope of 0."""

UNDERFLOW_RADIUS = 40.0
"""A point further than 40 scaled units has k < s^2 exp(-800) < s^2 TINY."""

LARGEST_DISTANCE_ERROR = 0.1
"""exp(e/2) - 1 <= 0.6 e holds for absolute errors e of r^2 up to here (convexity, and at 0.1)."""


def subtraction_error(extent: Reals, f: int) -> Reals:
    """Error of the squared distance in f free features by subtracting coordinates first.

    Both coordinates carry 3 roundings and `|c| + |z_i| <= extent`: the difference, at most r long,
    is off by 3 U extent, its square by `6 U r extent + 9 U^2 extent^2`, and r <= UNDERFLOW_RADIUS
    where k is not below TINY.
    """
    r = UNDERFLOW_RADIUS
    return (f + 12) * U * r**2 + 6 * U * r * extent + 9 * U**2 * np.square(extent)


def kernel_errors(distance_error: Reals, fixed_distances: Reals, d: int, extent: Reals) -> Reals:
    """`relative_error` of the table, from the error of r^2 in the free features.

    The fixed features add gamma(d + 8) of their share, of which no more than twice
    UNDERFLOW_RADIUS^2 matters; `exp(e/2) - 1 <= 0.6 e` for errors e up to LARGEST_DISTANCE_ERROR.
    """
    share = np.minimum(fixed_distances, 2 * UNDERFLOW_RADIUS**2)
    distance_error = distance_error + gamma(d + 8) * share
    relative = np.where(
        distance_error <= LARGEST_DISTANCE_ERROR,
        0.6 * distance_error + gamma(EXP_ULPS + 4),
        np.inf,
    )
    if not np.all(np.isfinite(relative)):
        raise InputError(
            f"region: it and the points span {extent.max():.3g} length-scales, too many for "
            "float64 to tell the points apart; expected at most about 1e12: take a smaller "
            "region, or check the kernel's length-scales"
        )
    return np.asarray(up(relative, 8))


@fused
def expanded_values(
    scaled: Array, opposite: Array, squares: Array, fixed: Array, scale: Array
) -> tuple[PerCellAndPoint, PerCellAndPoint]:
    """`values` by expanding the square."""
    xp = namespace(scaled)
    product = scaled @ opposite
    product += squares[None, :]
    product += xp.sum(scaled**2, axis=1)[:, None]
    if isinstance(product, np.ndarray):  # in place: new memory costs more than the arithmetic
        np.maximum(product, 0.0, out=product)
        K = -0.5 * (product + fixed)
        np.exp(K, out=K)
        K *= scale
        return product, K
    distances = nonnegative(product)
    return distances, scale * xp.exp(-0.5 * (distances + fixed))


@fused
def length_below(x: Array, dims: int) -> PerCell:
    """Lower bound of the Euclidean (Frobenius) norm over the last `dims` axes."""
    xp = namespace(x)
    axes = tuple(range(1, 1 + dims))
    total = xp.sqrt(xp.sum(x**2, axis=axes))
    return total * (1.0 - gamma(x.shape[-1] ** dims + 8))


HIGHEST_DEGREE = 6
"""Highest degree taken from the Gram matrix of the points; beyond it the tail is negligible."""

UNDERFLOW = 2.0**-400
"""Added to every size: squares below 2^-1074 vanish, so roots of their sums lose up to 2^-537 times
the number of terms and powers of the extents. Far above that, far below any bound that matters."""


@dataclass(frozen=True, eq=False)
class HigherTerms:
    """Degrees 3 (or 2, see `gram_terms`) to `order`: `size` (B,) bounds their sum on each cell;
    `known` (B,) is a lower bound of the sum of `|T_n|_F^2 / n!`, their share of the squared RKHS
    norm times s^2. `cubic`: degree 3 itself, if that is all, with what its errors leave."""

    order: int
    size: PerCell
    known: PerCell
    cubic: CubicPart | None = None

    @staticmethod
    def joined(parts: Sequence[HigherTerms | None], copies: int) -> HigherTerms | None:
        """Those of all cells from some cells at a time, without degree 3 itself; the cells' copies
        stand one batch of them after the other."""
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        xp, rows = namespace(known[0].size), (copies, -1)
        size, share = (
            xp.reshape(xp.concat([xp.reshape(each, rows) for each in every], axis=1), (-1,))
            for every in zip(*((part.size, part.known) for part in known), strict=True)
        )
        return HigherTerms(known[0].order, size, share)


class Triples(NamedTuple):
    """The sorted triples j <= k <= l of f features: each (n,), a pair by its place in f^2."""

    features: tuple[Array, Array, Array]
    pairs: tuple[Array, Array, Array]
    orders: Array

    @staticmethod
    def of(features: int, like: Reals) -> Triples:
        """Where the array `like` is."""
        entries, orders = sorted_index(features, 3)
        j, k, m = entries.T.astype(np.int32)  # compiled, half as many steps as with 64 bits
        xp, device = namespace(like), like.device
        first, second, third, jk, jm, km, orders = (
            xp.asarray(part, device=device)
            for part in (j, k, m, j * features + k, j * features + m, k * features + m, orders)
        )
        return Triples((first, second, third), (jk, jm, km), orders)


def cubic_terms(
    third: Array,
    scaled: Array,
    lower: tuple[Array, Array, Array],
    triples: Triples,
    error: PerCell,
    box: tuple[Array, Array],
) -> HigherTerms:
    """From the raw third moments `sum a z_j z_k z_l` over sorted triples (B, n).

    `lower` are the centred moments 0, 1, 2; `error` (B,) bounds the Frobenius error of T_3; `box`
    is (half-widths, rho). With z = u + c, `sum a zzz = T_3 + sym(H c) + sym(g c c) + a0 ccc`.
    """
    xp, (half, rho) = namespace(third), box
    T, frobenius, weighted = _centred_third(third, *lower, (scaled, half), triples)
    count = triples.orders.shape[0]
    roundings = count + 64
    weighted = up(weighted, count + 32)
    lost = error * rho**3
    size = xp.minimum(weighted, frobenius * rho**3) + lost
    known = nonnegative(frobenius * (1.0 - gamma(roundings)) - error) ** 2 / 6.0
    cubic = CubicPart(T, up(lost / 6.0, POW_ULPS + 8) + UNDERFLOW, up(weighted / 6.0, 1))
    size = up(size / 6.0, roundings) + UNDERFLOW
    return HigherTerms(3, size, known * (1.0 - gamma(8)), cubic)


@fused
def _centred_third(
    third: Array, zeroth: Array, g: Array, H: Array, cells: tuple[Array, Array], triples: Triples
) -> tuple[Array, Array, Array]:
    """T_3 (B, n) as in `cubic_terms`, its Frobenius norm and its entries' sum on the `cells`
    (centres, half-widths)."""
    c, half = cells
    j, k, m = triples.features
    jk, jm, km = triples.pairs
    xp = namespace(third)
    H = xp.reshape(H, (H.shape[0], -1))
    cj, ck, cm = c[:, j], c[:, k], c[:, m]
    T = third - H[:, jk] * cm - H[:, jm] * ck - H[:, km] * cj
    T = T - g[:, j] * (ck * cm) - g[:, k] * (cj * cm) - g[:, m] * (cj * ck)
    T = given(T - zeroth[:, None] * (cj * ck * cm))  # off by `error` of `cubic_terms`
    widths = half[:, j] * half[:, k] * half[:, m]
    return T, xp.sqrt(dot(T**2, triples.orders)), dot(xp.abs(T) * widths, triples.orders)


def gram_terms(
    coefficients: Array, points: Array, error: PerOrder, drift: Array, rho: PerCell, first: int = 3
) -> HigherTerms:
    """Degrees `first` to 6 from the products of the `points` u_i (B, N, f), for few cells.

    `coefficients` (J B, N) of J functions on the same cells, one batch of them after the other.
    Degree 3 of one function by the spectral norm of the matrix (f, f^2) of T_3, whose square is
    `sum_ij a_i a_j (u_i.u_j)^2 u_i u_j^T`, where that is less (Statement 4.7). `error`
    (J B, 7 - first) bounds the absolute error of `|T_n|_F^2`, and that of this matrix, for the
    coefficients as given; `drift`, alike, bounds the Frobenius error of T_n from the coefficients'
    own errors.
    """
    xp, (B, N, _) = namespace(coefficients), points.shape
    a = xp.permute_dims(xp.reshape(coefficients, (-1, B, N)), (1, 2, 0))
    products = points @ xp.matrix_transpose(points)
    power = products ** (first - 1)
    shorter = xp.full_like(rho, math.inf)
    if first == 3 and a.shape[2] == 1:
        weighted = a * points
        shorter = spectral_norm(xp.matrix_transpose(weighted) @ (power @ weighted))
    size, known = 0.0 * rho, 0.0 * rho
    for n in range(first, HIGHEST_DEGREE + 1):
        power *= products  # in place: new memory costs as much as the arithmetic
        square = xp.reshape(xp.sum(a * (power @ a), axis=1).T, (-1,))  # |T_n|_F^2
        largest = xp.where(shorter < square, shorter, square) if n == first else square
        slack, shift, factor = error[:, n - first], drift[:, n - first], math.factorial(n)
        size = size + (xp.sqrt(nonnegative(largest + slack)) + shift) * rho**n / factor
        least = xp.sqrt(nonnegative(square - slack)) * (1.0 - gamma(8)) - shift
        known = known + nonnegative(least) ** 2 / factor
    return HigherTerms(HIGHEST_DEGREE, up(size, 64) + UNDERFLOW, known * (1.0 - gamma(32)))


@fused
def exponential_remainder(
    distances: PerCellAndPoint, fixed: Array, weights: Array, relative_error: Array, rho: PerCell
) -> tuple[Array, Array]:
    """What degrees three and more of `sum_i t_i e^(-r_i^2/2) e^(u_i.d)` take at most, and add.

    `distances` (B, N) are |u_i|^2, `fixed` (N,) the rest of r_i^2, known up to `relative_error` as
    in `LocalSquaredExponential`; |d| <= rho (B,), so |u_i.d| <= Y_i = |u_i| rho. Statement:
    `e^y - 1 - y - y^2/2` lies in [-Y^3/6, psi(Y)] with
    `psi(Y) = (Y^3/6) min(1 + Y/4 + Y^2/20 + Y^3 e^Y/120, e^Y)` (Taylor with Lagrange remainder),
    so positive weights take at most k Y^3/6 and negative ones |t| k psi(Y). `k e^Y` is formed as
    one exponential, as k alone may underflow. Infinite beyond `LARGEST_EXPONENT`, like the tails.
    """
    xp = namespace(distances)
    spread = 2.0 * (relative_error + U)  # r^2 is known up to this, and then some
    Y = up(xp.sqrt(distances + spread * (1.0 + distances)), 4) * rho[:, None]
    half = 0.5 * (distances + fixed)
    exponent = Y - half
    usable = (exponent < LARGEST_EXPONENT) & (rho * rho <= LARGEST_EXPONENT)[:, None]
    exponent = xp.where(usable, exponent, xp.full_like(exponent, LARGEST_EXPONENT))
    far, near = xp.exp(exponent), xp.exp(-half)
    cube = Y * Y * Y  # a power is far slower than products
    cubic = cube / 6.0
    psi = xp.minimum(near * (1.0 + Y / 4.0 + Y**2 / 20.0) + far * (cube / 120.0), far)
    # the exponent is rounded: |Y| + r^2/2 <= 2 Y + 800 where the result does not underflow
    slack = (1.0 + relative_error) * (1.0 + (2.0 * Y + 800.0) * (8.0 * U))
    rises, falls = cubic * psi * slack, cubic * near * slack
    rises = xp.where(usable, rises, xp.full_like(rises, math.inf))
    gains, losses = nonnegative(weights), nonnegative(-weights)
    count = len(weights) + 32
    below = up(falls @ gains + _sum_to_infinity(rises, losses), count)
    return below, up(falls @ losses + _sum_to_infinity(rises, gains), count)


def _sum_to_infinity(terms: Array, weights: Array) -> Array:
    """`terms @ weights` for terms in [0, inf] and weights >= 0, with inf * 0 counted as inf."""
    xp = namespace(terms)
    finite = xp.isfinite(terms)
    total = xp.where(finite, terms, xp.zeros_like(terms)) @ weights
    return xp.where(xp.all(finite, axis=1), total, xp.full_like(total, math.inf))


Box = tuple[Array, Array]
"""Half-widths (B, f) of cells, and (B,) bounds of |d|."""

LEAST_SQUARE = 2.0**-8
"""Smallest delta^2 beside the largest, 1: what is left of a feature in |d'|^2; errors of the
coefficients grow with 1 / delta^n."""

WORTHWHILE = 0.9
"""The metric is taken where it shortens linear forms, about, to this part: the share of higher
degrees in the norm is not known in it."""


@dataclass(frozen=True, eq=False)
class BoxMetric:
    """`delta` (B, f) in (0, 1], `rho` (B,) >= |d'| on each cell, `plain` (B,): delta is 1."""

    delta: Array
    rho: PerCell
    plain: Array

    def lengths(self, sizes: Annotated[Array, "B N f"]) -> PerCellAndPoint:
        """Upper bounds (B, N) of |u'_i|, for `sizes` (B, N, f) of the coordinates u_ij."""
        xp = namespace(sizes)
        parts = sizes / self.delta[:, None, :]
        return up(root(xp.sum(parts * parts, axis=2)), sizes.shape[2] + 12)

    @property
    def growth(self) -> PerCell:
        """(B,): the largest 1 / delta_j."""
        return 1.0 / namespace(self.delta).min(self.delta, axis=1)


def box_metric(magnitudes: Array, points: Array, half: PerCellAndFeature, rho: Array) -> BoxMetric:
    """Of cells with half-widths `half` (B, f) and |d| <= rho, for |a_i| (B, N), u_i (B, N, f).

    With b_j^2 = sum_i |a_i| u_ij^2 the bound of a linear form, `sqrt(sum b_j^2 / delta_j^2) |d'|`,
    is least for delta_j^2 w_j in proportion to b_j. Any choice is valid.
    """
    xp = namespace(points)
    b2 = (magnitudes[:, None, :] @ points**2)[:, 0, :]
    moves = half > 0
    wanted = xp.sqrt(b2) / xp.where(moves, half, xp.ones_like(half))
    wanted = xp.where(moves, wanted, xp.zeros_like(half))
    largest = xp.max(wanted, axis=1, keepdims=True)
    square = wanted / xp.where(largest > TINY, largest, xp.ones_like(largest))
    square = xp.clip(square, LEAST_SQUARE, 1.0)
    square = xp.where(moves & (largest > TINY), square, xp.ones_like(square))
    delta = xp.sqrt(square)
    short = up(root(xp.sum((delta * half) ** 2, axis=1)), half.shape[1] + 8)
    before, after = xp.sum(b2, axis=1) * rho**2, xp.sum(b2 / square, axis=1) * short**2
    plain = ~(after < WORTHWHILE**2 * before)
    delta = xp.where(plain[:, None], xp.ones_like(delta), delta)
    return BoxMetric(delta, xp.where(plain, rho, xp.minimum(short, rho)), plain)
