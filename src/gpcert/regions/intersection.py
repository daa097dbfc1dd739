"""Over a box intersected with a p-ball: the minimum of a linear function, by its dual, and the
maximum of a weighted squared distance.

Statement 13.2: for every vector v, and every x with `low <= x - c <= high` (low <= 0 <= high) and
`||D^-1 (x - x0)||_p <= r`, D = diag(u) the units, and 1/p + 1/q = 1,

    g.(x - c)  >=  sum_j min((g-v)_j low_j, (g-v)_j high_j)  +  v.(x0 - c)  -  r ||D v||_q.

Reason: g - v is bounded over the box, v by Hölder's inequality over the ball. v = 0 is the bound of
the box, v = g that of the ball; the best v is exact where the cell meets the ball's interior
(Rockafellar, *Convex Analysis*, 1970, corollary 16.4.1). Since every v is valid, the search for the
best one is not trusted: only `split_bound` is.

Statement 13.3: let `z = x - c` with `|z_j| <= h_j`, and `e = x0 - c`. For every theta with
`0 <= theta_j <= w_j`, and s = infinity for p <= 2, `s = p / (p - 2)` for p > 2,

    sum_j w_j z_j^2  <=  r^2 ||theta u^2||_s + sum_j (w_j h_j^2 - theta_j (h_j - |e_j|)^2),

and it is at most `(r sqrt(||w u^2||_s) + ||e||_w)^2`. Reason: Hölder's inequality, and that
`w z^2 - theta (z - e)^2` is convex in z, so largest at an end; the second by the triangle
inequality. theta = 0 is the bound of the box. Proofs: docs/mathematics.md.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from gpcert.numerics.arrays import Array, PerRow, Reals, Rows, namespace
from gpcert.numerics.rounding import TINY, U, down, dual_exponent, nonnegative, norm, norm_upper, up
from gpcert.regions.cells import box_maximum

STEPS = 50
"""Bisections of `log2 mu` in [-60, 40], which leaves a relative error of 1e-13 in mu."""


class BoxAndBall(NamedTuple):
    """Cells `low <= x - c <= high` (rounded outwards, so low <= 0 <= high) intersected with
    `||(x - x0) / unit||_p <= radius`; rows (n, f), `unit` (f,), or None for units of 1. `half` is
    the larger of -low and high."""

    low: Rows
    high: Rows
    offset: Rows
    """`x0 - c` with one rounding."""
    radius: float
    p: float
    unit: Array | None = None

    def in_units(self, lengths: Rows) -> Rows:
        """Lengths over the units, where there are some, with one more rounding."""
        return lengths if self.unit is None else lengths / self.unit

    def raised(self, v: Rows) -> Rows:
        """v, or numbers >= `|v| unit` where there are units; an underflow is rounded up too."""
        if self.unit is None:
            return v
        return up(namespace(v).abs(v) * self.unit, 1)

    def in_lengths_of(self, length: Reals) -> BoxAndBall:
        """The same set with lengths counted in `length`, a power of two: exact, but for what leaves
        the range of floats (see `Cells.squared_norm_maximum`).

        Reason: with `y = (x - c) / length` and `u = unit / length` the ball is
        `||(y - y0) / u||_p <= radius`, and without units `||y - y0||_p <= radius / length`.
        """
        low, high, offset = self.low / length, self.high / length, self.offset / length
        if self.unit is None:
            return BoxAndBall(low, high, offset, self.radius / float(length), self.p)
        return BoxAndBall(low, high, offset, self.radius, self.p, self.unit / length)

    @property
    def half(self) -> Rows:
        """Half-widths of the symmetric box about c that holds the cell."""
        return namespace(self.low).maximum(-self.low, self.high)


def cell_minimum(g: Rows, cells: BoxAndBall) -> PerRow:
    """Certified minimum of `g.z` over `low <= z <= high`; all its terms are <= 0."""
    xp = namespace(g)
    f = int(g.shape[-1])
    return -up(xp.sum(xp.maximum(-g * cells.low, -g * cells.high), axis=-1), f + 3)


def split_bound(g: Rows, v: Rows, cells: BoxAndBall) -> PerRow:
    """The certified bound of this module at v, rows (n, f).

    Reason: `g - v` and `offset` carry one rounding each, a dot product f more; the error of
    `v.offset` is bounded by `4 (f + 3) U sum |v_j offset_j|`, and what is subtracted is rounded up.
    An overflow gives minus infinity, which bounds nothing.
    """
    xp = namespace(g, v)
    f = int(g.shape[-1])
    along = v * cells.offset
    box = -cell_minimum(g - v, cells)
    error = xp.sum(xp.abs(along), axis=-1) * (4.0 * (f + 3) * U) + TINY
    ball = up(cells.radius * norm_upper(cells.raised(v), dual_exponent(cells.p)), 2)
    bound = down(xp.sum(along, axis=-1) - up(box + error + ball, 3), 2)
    return xp.where(xp.isnan(bound), xp.full_like(bound, -xp.inf), bound)


def ball_minimum(g: Rows, cells: BoxAndBall) -> PerRow:
    """The best of v = 0 (the box), of v = g (the ball) and, where both matter, of the best v.

    Only `split_bound` is certified; what decides where to search can lose tightness, never truth.
    """
    xp = namespace(g)
    low, high, offset, r, p, unit = cells
    q = dual_exponent(p)
    best = xp.maximum(cell_minimum(g, cells), split_bound(g, g, cells))
    # y = (x - x0) / units lies in the ball of radius r, and its slopes are g * units
    slopes = g if unit is None else g * unit
    size = norm(slopes, q)
    slopes = slopes / xp.where(size > 0, size, xp.ones_like(size))[:, None]
    corner = cells.in_units(xp.where(g > 0, low, high) - offset)  # minimiser over the box, from x0
    sphere = xp.sign(g) * (r * xp.abs(slopes) ** (q - 1.0))  # over the ball, from x0
    sphere = offset - (sphere if unit is None else sphere * unit)  # from c
    both = (norm(corner, p) > r) & xp.any((sphere < low) | (sphere > high), axis=-1) & (size > 0)
    index = xp.nonzero(both)[0]
    if index.shape[0] == 0:
        return best
    g, slopes, size = g[index], slopes[index], size[index]
    some = cells._replace(low=low[index], high=high[index], offset=offset[index])
    a, b = (some.in_units(end - some.offset) / r for end in (some.low, some.high))
    v = dual_vector(slopes, a, b, p)
    # v is g itself where it was not clipped: scaling back would round that away
    scaled = v * size[:, None] if unit is None else v * size[:, None] / unit
    v = xp.where(v == slopes, g, scaled)
    best[index] = xp.maximum(best[index], split_bound(g, v, some))
    return best


def response(g: Rows, mu: Annotated[Array, "n 1"], a: Rows, b: Rows, p: float) -> Rows:
    """`argmin_{a <= y <= b} g.y + (mu / p) sum |y_j|^p`, by coordinates; mu is (n, 1)."""
    xp = namespace(g)
    if p == 1.0:
        rest = _between(xp.zeros_like(g), a, b)
        return xp.where(g > mu, a, xp.where(g < -mu, b, rest))
    if p == 2.0:
        return _between(-g / mu, a, b)
    return _between(-xp.sign(g) * (xp.abs(g) / mu) ** (1.0 / (p - 1.0)), a, b)


def multiplier(g: Rows, a: Rows, b: Rows, p: float) -> Annotated[Array, "n 1"]:
    """The mu (n, 1) at which `||response||_p = 1`, or about; `||g||_q = 1` (heuristic).

    Reason: `||response||_p` does not increase in mu; without the box it is 1 at mu = 1.
    """
    xp = namespace(g)
    zero = xp.zeros_like(g[:, :1])
    low, high = zero - 60.0, zero + 40.0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        y = response(g, 2.0**middle, a, b, p)
        outside = xp.sum(xp.abs(y) ** p, axis=-1, keepdims=True) > 1.0
        low, high = xp.where(outside, middle, low), xp.where(outside, high, middle)
    return 2.0**high


def dual_vector(g: Rows, a: Rows, b: Rows, p: float) -> Rows:
    """The best v for g of dual norm 1 on `[a, b]` in units of the radius (heuristic).

    Reason: at the minimiser y, `v_j = -mu sign(y_j) |y_j|^(p-1)`; where y_j is strictly inside the
    box that is g_j, so v is g clipped to the values at the ends.
    """
    xp = namespace(g)
    # |y_j| <= 1 at the minimiser: ends beyond 2 say nothing and could overflow
    a, b = xp.clip(a, -2.0, 2.0), xp.clip(b, -2.0, 2.0)
    mu = multiplier(g, a, b, p)
    if p == 1.0:
        one = xp.ones_like(g)  # at y_j = 0 every slope in [-mu, mu] is a subgradient
        at_a, at_b = xp.where(a > 0, one, -one), xp.where(b < 0, -one, one)
    else:
        at_a = xp.sign(a) * xp.abs(a) ** (p - 1.0)
        at_b = xp.sign(b) * xp.abs(b) ** (p - 1.0)
    return _between(g, -mu * at_b, -mu * at_a)


def _between(x: Array, low: Array, high: Array) -> Array:
    xp = namespace(x)
    return xp.minimum(xp.maximum(x, low), high)


def hoelder_exponent(p: float) -> float:
    """`s = p / (p - 2)`, rounded down since `||theta||_s` decreases in s; infinite for p <= 2."""
    if p <= 2.0:
        return math.inf
    return max(1.0, p / (p - 2.0) * (1.0 - 8 * U))


def threshold(weights: Array, cells: BoxAndBall) -> Rows:
    """`theta_j = min(w_j, t)` (B, f) with the best t of each cell for s = infinity (heuristic).

    Reason: the bound is piecewise linear and convex in t with slope
    `r^2 - sum_{w_j > t} (h_j - |e_j|)^2`; t is where that changes sign, one of the weights.
    """
    xp = namespace(cells.half)
    unit = cells.unit
    seen = weights if unit is None else weights * unit * unit
    order = xp.argsort(-seen, stable=True)
    gains = (cells.in_units(cells.half - xp.abs(cells.offset)) / cells.radius) ** 2
    reached = xp.cumulative_sum(gains[:, order], axis=-1) >= 1.0
    first = xp.argmax(xp.astype(reached, cells.half.dtype), axis=-1)
    t = xp.where(xp.any(reached, axis=-1), seen[order][first], xp.zeros_like(gains[:, 0]))
    each = t[:, None] if unit is None else t[:, None] / unit / unit
    each = xp.where(xp.isnan(each), xp.zeros_like(each), each)
    return xp.minimum(weights[None, :], each)


def split_maximum(weights: Array, theta: Rows, cells: BoxAndBall) -> PerRow:
    """The certified bound of this module at theta (B, f), `0 <= theta <= weights`.

    Reason: `offset` and the difference `h - |e|` carry a rounding each, so
    `|h - |e|| >= (1 - 4U) |fl| - 4 U |e|`, which is squared and rounded down; the positive terms
    are rounded up, and so is the final difference. Multiplying by the radius twice, not by its
    square, keeps an underflow from being magnified.
    """
    xp = namespace(cells.half)
    half, offset, r, p = cells.half, cells.offset, cells.radius, cells.p
    f = int(half.shape[-1])
    size = xp.abs(offset)
    gap = nonnegative(down(xp.abs(half - size) - 8.0 * U * size, 4))
    gain = nonnegative(down(xp.sum(theta * gap * gap, axis=-1), f + 4))
    reach = up(r * (r * norm_upper(_raised(theta, cells), hoelder_exponent(p))), 4)
    return up(up(reach + box_maximum(weights, half), 2) - gain, 2)


def triangle_maximum(weights: Array, cells: BoxAndBall) -> PerRow:
    """Certified `(r sqrt(||w||_s) + ||e||_w)^2`, every step rounded up; `offset` counts once."""
    xp = namespace(cells.offset)
    offset, r, p = cells.offset, cells.radius, cells.p
    shift = up(xp.sum(weights * offset * offset, axis=-1), int(offset.shape[-1]) + 5)
    reach = r * up(xp.sqrt(norm_upper(_raised(weights, cells), hoelder_exponent(p))), 2)
    return up(up(reach + up(xp.sqrt(shift), 2), 4) ** 2, 2)


def _raised(theta: Array, cells: BoxAndBall) -> Array:
    """theta >= 0, or numbers >= `theta unit^2` where there are units.

    Where `theta unit` underflows, theta >= 2^-1074 leaves `unit < 2^52`, so that what is lost grows
    to 2^-1023 at most: the 2^-1000 of `up` covers it.
    """
    return theta if cells.unit is None else up(theta * cells.unit * cells.unit, 2)
