"""The maximum of a weighted squared distance over a box intersected with a p-ball.

Statement: let `z = x - c` with `|z_j| <= h_j`, `e = x0 - c` and `||x - x0||_p <= r`. For every
theta with `0 <= theta_j <= w_j`, and s = infinity for p <= 2, `s = p / (p - 2)` for p > 2,

    sum_j w_j z_j^2  <=  r^2 ||theta||_s + sum_j (w_j h_j^2 - theta_j (h_j - |e_j|)^2).

Reason: `sum theta_j (x_j - x0_j)^2 <= r^2 ||theta||_s` is Hölder's inequality with exponents s and
p/2 (for p <= 2 use `||y||_2 <= ||y||_p`); and `w z^2 - theta (z - e)^2` is convex in z, so it is
largest at an end of `[-h, h]`, the one on the side of e. theta = 0 is the bound of the box.
A second bound, from the triangle inequality, is `(r sqrt(||w||_s) + ||e||_w)^2`.

With units, `||(x - x0) / u||_p <= r`: then `sum theta_j (x_j - x0_j)^2 = sum theta_j u_j^2 y_j^2`
with `||y||_p <= r`, so that `||theta u^2||_s` and `||w u^2||_s` take the places of those norms.

Proofs: docs/mathematics.md, statement 13.3.
"""

from __future__ import annotations

import math

from gpcert.arrays import Array, PerRow, Rows, namespace
from gpcert.regions.intersection import BoxAndBall
from gpcert.regions.norms import norm_upper
from gpcert.rounding import U, down, nonnegative, up


def box_maximum(weights: Array, half: Array) -> Array:
    """Certified `sum_j weights_j half_j^2`; each term carries two roundings, the sum f."""
    xp = namespace(half)
    f = int(half.shape[-1])
    if f == 0:
        return xp.sum(half, axis=-1)
    return up(xp.sum(weights * half * half, axis=-1), f + 3)


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
    order = xp.argsort(seen, descending=True)
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
    gap = nonnegative(down(xp.abs(half - size), 2) - 8.0 * U * size)
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
