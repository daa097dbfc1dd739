"""The grids of the Gumbel form, its transforms on them, and the proved errors of its two rules.

For latent values f and `y_k(t) = exp(f_k - t)`, `S = sum_k y_k`, a product of n class probabilities
is `p_c1 ... p_cn = 1 / (n-1)! integral y_c1 ... y_cn exp(-S) dt`. Under independent f the mean of
the integrand is a product over classes of `E y^n exp(-y)`, n = 0, 1, 2. Two trapezoidal rules stand
in for integrals: one in t, with the step of a `Grid`, and one for each latent value, which becomes
finitely many nodes with positive weights and one at minus infinity that takes what is missing to 1;
all sums then have positive terms only.

Proofs: docs/mathematics.md, statements 9.9 and 9.10.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from scipy import special

from gpcert.integrals.special import normal_cdf_bounds
from gpcert.numerics.arrays import Array, Index, PerCellAndClass, PerRow, Reals, namespace
from gpcert.numerics.rounding import U, down, gamma, nonnegative, up, up_float

BLOCK = 64
"""Nodes in t that share one window of nodes of the latent value."""

BELOW = 32.0
"""Values f < t - BELOW count as minus infinity: there `y <= exp(-BELOW)`."""

ABOVE = 5.0
"""Values f > t + ABOVE count as plus infinity: there `y^3 exp(-y) < 1e-57`."""

FINEST = 0.25
"""Step of every grid that MAX_NODES nodes suffice for: `aliasing` is below 1e-12 to order 4."""

MAX_NODES = 16384
"""Nodes of the longest grid; beyond `MAX_NODES * FINEST` the step grows."""

COARSEST = 8.0
"""No grid has a larger step: there the rule in t says nothing any more."""

REACH = 7.0
"""Standard deviations of a latent value that a grid covers on its right."""

CUT = 32.0
"""A grid leaves out at either end about `exp(-CUT)` of the integral; what it does is bounded from
the computed values, not from this number."""


@dataclass(frozen=True)
class Grid:
    """Nodes `t_j = j * step`, j < nodes, from a start that every box has of its own.

    Steps have at most three significant bits, so that all multiples of them are exact floats.
    """

    step: float
    blocks: int

    @property
    def nodes(self) -> int:
        """Number of nodes in t."""
        return self.blocks * BLOCK

    @property
    def below(self) -> int:
        """Steps in BELOW, rounded up."""
        return math.ceil(BELOW / self.step)

    @property
    def above(self) -> int:
        """Steps in ABOVE, rounded up."""
        return math.ceil(ABOVE / self.step)

    @property
    def window(self) -> int:
        """Nodes of the latent value that one block of t meets."""
        return BLOCK + self.below + self.above

    @property
    def lattice(self) -> int:
        """Nodes of the latent value that any block meets: `(i - below) * step`, i < lattice."""
        return self.nodes + self.below + self.above


def plan(
    mu: PerCellAndClass, v: PerCellAndClass
) -> Iterator[tuple[Grid, Index, Annotated[np.ndarray, "n"]]]:
    """Grids for means and variances (B, m), box by box, heuristic, on the host: each with the
    indices of its boxes and where it begins. None for boxes that are not finite, or too long.

    A grid begins where the product of all `E exp(-y_k)` is about `exp(-CUT)`, and ends where
    `E S` is. For the lognormal transform the saddle point `-log E exp(-y) ~ (w^2 / 2 + w) / v +
    log(1 + w) / 2`, `w = W(v exp(mu - t))`, is taken (Asmussen, Jensen & Rojas-Nandayapa 2016).
    """
    known = np.all(np.isfinite(mu) & np.isfinite(v) & (v >= 0), axis=1)
    mu, v = np.where(known[:, None], mu, 0.0), np.where(known[:, None], v, 1.0)
    s = np.sqrt(v)
    rise = np.where(s < REACH, 0.5 * v, REACH * s - 0.5 * REACH**2)
    end = np.max(mu + rise, axis=1) + CUT + math.log(mu.shape[1])
    low, high = np.max(mu - 9.0 * s, axis=1) - ABOVE, np.max(mu + 9.0 * s, axis=1) + ABOVE
    for _ in range(16):
        middle = 0.5 * low + 0.5 * high
        small = _exponent(mu - middle[:, None], v) >= CUT
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    length = end - low + 2.0
    # of three significant bits, so that boxes share their grids: steps, and numbers of blocks
    step = np.maximum(length / MAX_NODES, FINEST)
    unit = np.exp2(np.floor(np.log2(step)) - 2.0)
    step = np.ceil(step / unit) * unit
    blocks = np.ceil((length / step + 3.0) / BLOCK)
    unit = np.exp2(np.maximum(np.floor(np.log2(blocks)) - 2.0, 0.0))
    blocks = np.ceil(blocks / unit) * unit
    known &= np.isfinite(length) & (step <= COARSEST)
    start = low - math.log(2.0) - step
    kinds = np.stack([step, blocks], axis=1)
    for kind in np.unique(kinds[known], axis=0):
        rows = np.flatnonzero(known & (kinds == kind).all(axis=1))
        yield Grid(float(kind[0]), int(kind[1])), rows, start[rows]


def _exponent(gap: np.ndarray, v: np.ndarray) -> np.ndarray:
    """About `-log prod_k E exp(-exp(f_k - t))` for `gap = mu - t`."""
    v = np.maximum(v, 1e-12)
    w = special.wrightomega(np.minimum(gap, 600.0 + 10.0 * np.sqrt(v)) + np.log(v))
    saddle = (0.5 * w + 1.0) * (w / v) + 0.5 * np.log1p(w)
    # for wide values the saddle point says too much: f + g is nearly normal, with g's two moments
    normal = -special.log_ndtr((-0.5772 - gap) / np.sqrt(v + 1.645))
    return np.sum(np.where(v > REACH, np.minimum(saddle, normal), saddle), axis=1)


def aliasing(step: float) -> tuple[float, float, float, float]:
    """Errors of the rule in t: `|h sum_j g_n(t_j) - 1| <= theta_n`, `g_n = y^n exp(-y) / (n-1)!`.

    Statement: for `y = exp(c - t)`, any c and grid of step h, n = 1..4,
    `theta_n = 2 sum_{j >= 1} |Gamma(n + i w_j)| / (n-1)!`, `w_j = 2 pi j / h`.
    Reason: Poisson's summation formula (Statement 9.10). Terms beyond `last` fall at least
    geometrically.
    Reference: Abramowitz & Stegun 6.1.15, 6.1.31; Trefethen & Weideman 2014, section 3.

    >>> aliasing(0.25)[0] < 1e-14 < aliasing(0.5)[0] < 1e-7
    True
    """
    last = 64
    frequency = 2.0 * math.pi / step * np.arange(1, last + 1)
    damping = np.exp(-np.pi * frequency)
    size = np.sqrt(2.0 * np.pi * frequency * damping / (1.0 - damping * damping))
    # term j+1 over term j: at most ((j+1)/j)^3.5 exp(-pi w_1 / 2), since sinh a / sinh(a+b) < e^-b
    ratio = (1.0 + 1.0 / last) ** 3.5 * math.exp(-0.5 * math.pi * frequency[0])
    bounds = []
    for n in range(1, 5):
        total = float(np.sum(size)) + float(size[-1]) * ratio / (1.0 - ratio)
        # exp of arguments down to -5,100 with three roundings each, halved by the root
        bounds.append(up_float(2.0 * total, 16_000))
        size = size * np.sqrt(1.0 + (frequency / n) ** 2)
    return bounds[0], bounds[1], bounds[2], bounds[3]


def lattice_error(s: Reals, spacing: Reals) -> Reals:
    """Error of the rule for one latent value: `|E psi(mu + s z) - sum_q p_q psi(mu + s z_q)|`.

    Statement: for nodes z_q of any offset with the given spacing < 1, `p_q` their spacing times
    the normal density, and psi a mean of products of at most three class probabilities, weighted
    by at most 1 in sum, as a function of one latent value: the error is at most
    `2 exp(a^2 / 2) / ((exp(2 pi a / spacing) - 1) cos(a s / 2)^3)` for every a with `a s < pi`.
    Reason: in `|Im f_k| <= eta` psi is at most `cos(eta / 2)^-3` (Statement 9.10).
    Reference: Trefethen & Weideman 2014, "The exponentially convergent trapezoidal rule", Thm 5.1.
    """
    xp = namespace(s)
    best = xp.full_like(s, math.inf)
    gaussian = 2.0 * math.pi / spacing  # the best a for a constant psi
    for eta in (1.0, 1.6, 2.2, 2.6, 2.9, 3.05):
        within = s * gaussian > eta
        a = xp.where(within, eta / xp.where(within, s, xp.ones_like(s)), gaussian)
        cosine = xp.cos(0.5 * a * s)
        decay = xp.exp(0.5 * a * a) / xp.expm1(a * gaussian)
        best = xp.minimum(best, 2.0 * decay / (cosine * cosine * cosine))
    # exponents up to 100 and a cosine above 0.04 lose some hundred units
    return up(best, 2_000)


COARSE = 1.5
"""A standard deviation of so many steps is resolved by the grid's own lattice: with the finest step
`lattice_error` is then below 1e-12."""

SPACING = 0.75
"""Spacing of the nodes of narrow latent values, in standard deviations."""

NODES = SPACING * np.arange(-10, 11)
"""Nodes of narrow latent values; beyond 7.5 lie less than 1e-13."""

LARGEST = 665.0
"""y is cut here: `exp(-y) < 1e-288` may stand for anything smaller."""

WEIGHT_ROUNDING = 40.0 * U
"""Sum of the rounding errors of one value's weights. An exponent z^2/2 has ten roundings, the rest
sixteen, exp included; `sum p z^2/2 <= (2/e)(sqrt 2 + spacing/sqrt(2 pi)) < 1.3`, as
`x exp(-x) <= (2/e) exp(-x/2)`."""


class Transforms(NamedTuple):
    """`values` (N, 3, T): computed sums `sum_q p_q y_q^n exp(-y_q)`, n = 0, 1, 2, positive terms.

    They approximate the true transforms less well than `rule` says: that is for integrals over t
    of products of them, which are analytic in twice their strip.

    `rule` (N,) bounds `lattice_error`, `moved` (N,) the weight of nodes that went to minus infinity
    though they are not below all t, with the rounding of all weights; `last` (N,) bounds the mean
    of y at the grid's last node; `shift` (N,) how far rounding may have moved d.
    """

    values: Array
    rule: Array
    moved: Array
    last: Array
    shift: Array


def transforms(d: PerRow, s: PerRow, grid: Grid) -> Transforms:
    """The transforms of N(d, s^2), arrays (N,), d relative to the grid's start."""
    xp = namespace(d)
    wide = s >= COARSE * grid.step
    if bool(xp.all(wide)):
        return _wide(d, s, grid)
    if not bool(xp.any(wide)):
        return _narrow(d, s, grid)
    (first,), (second,) = xp.nonzero(wide), xp.nonzero(~wide)
    order = xp.argsort(xp.concat([first, second]), stable=True)
    parts = _wide(d[first], s[first], grid), _narrow(d[second], s[second], grid)
    return Transforms(*(xp.concat(same, axis=0)[order] for same in zip(*parts, strict=True)))


@np.errstate(over="ignore", under="ignore")
def _wide(d: Array, s: Array, grid: Grid) -> Transforms:
    """Nodes on the grid's own lattice: differences f - t are its multiples, one table serves all.

    Only nodes between BELOW and ABOVE of a block of t count there; those farther below have joined
    minus infinity, where `y = 0`.
    """
    xp, N = namespace(d), d.shape[0]
    x = xp.asarray(grid.step * (np.arange(grid.lattice) - grid.below), device=d.device)
    z = (x[None, :] - d[:, None]) * (1.0 / s)[:, None]
    p = xp.exp(-0.5 * z * z) * (grid.step / (math.sqrt(2.0 * math.pi) * s))[:, None]
    total = xp.sum(p, axis=1)
    far = rest = nonnegative(1.0 - total)
    table = xp.asarray(_table(grid.step), device=d.device)
    blocks = []
    for first in range(0, grid.nodes, BLOCK):
        block = xp.reshape(p[:, first : first + grid.window] @ table, (N, 3, BLOCK))
        zero = xp.zeros_like(far)
        blocks.append(block + xp.stack([far, zero, zero], axis=1)[:, :, None])
        far = far + xp.sum(p[:, first : first + BLOCK], axis=1)
    end = grid.step * (grid.nodes - 1)
    growth = np.exp(grid.step * (np.arange(grid.lattice) - grid.below) - end)
    growth = xp.asarray(growth, device=d.device)
    # weights with z^2/2 up to 745 are right to 7,500 units, and what they leave of 1 to as many
    rest = rest + gamma(grid.lattice + 8_000)
    last = up(p @ growth + rest * math.exp(-BELOW), grid.lattice + 8_000)
    z_end = down(z[:, -1], 4)
    beyond = normal_cdf_bounds(-xp.clip(z_end, 0.0, None))[1]
    beyond = xp.where(z_end > 0, beyond, xp.full_like(beyond, 2.0))
    rule = lattice_error(s, grid.step / s)
    moved = up(2.0 * beyond + rule + (2.0 * WEIGHT_ROUNDING + gamma(grid.lattice + 4)), 4)
    return Transforms(xp.concat(blocks, axis=2), rule, moved, last, _shift(d, s, U * abs(d)))


@lru_cache(maxsize=16)
def _table(step: float) -> np.ndarray:
    """`y^n exp(-y)`, y = exp(f - t), for a block's window of f (rows) and t within n (columns)."""
    grid = Grid(step, 1)
    u = step * (np.arange(grid.window)[:, None] - grid.below - np.arange(BLOCK)[None, :])
    y = np.minimum(np.exp(np.minimum(u, 10.0)), LARGEST)
    values = np.exp(-y)
    return np.concatenate([values, y * values, y * y * values], axis=1)


@np.errstate(over="ignore", under="ignore")
def _narrow(d: Array, s: Array, grid: Grid) -> Transforms:
    """Nodes `d + s z_q`, for values that the lattice is too coarse for; s = 0 is allowed."""
    xp, N = namespace(d), d.shape[0]
    weights = SPACING / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * NODES * NODES)
    rest = max(0.0, 1.0 - float(np.sum(weights)))
    starts = xp.asarray(grid.step * BLOCK * np.arange(grid.blocks), device=d.device)
    decay = xp.asarray(np.exp(-grid.step * np.arange(BLOCK)), device=d.device)
    end = grid.step * (grid.nodes - 1)
    sums = [xp.full((N, grid.nodes), c, dtype=d.dtype, device=d.device) for c in (rest, 0.0, 0.0)]
    last = xp.zeros_like(d)
    for node, weight in zip(NODES.tolist(), weights.tolist(), strict=True):
        f = d + node * s
        # within a block the exponent falls by at most BLOCK * COARSEST = 512: cut at 700, y is
        # above LARGEST all the same
        y = xp.exp(xp.clip(f[:, None] - starts, None, 700.0))
        y = xp.reshape(y[:, :, None] * decay, (N, grid.nodes))
        y = xp.clip(y, None, LARGEST)
        term = weight * xp.exp(-y)
        for n in range(3):
            sums[n] = sums[n] + term
            term = term * y
        last = last + weight * xp.exp(xp.clip(f - end, None, 700.0))
    rule = lattice_error(s, xp.full_like(s, SPACING))
    beyond = 4.0 * float(normal_cdf_bounds(np.array([-NODES[-1]]))[1][0])
    moved = up(rule + (beyond + 2.0 * WEIGHT_ROUNDING + gamma(32)), 4)
    shift = _shift(d, s, U * (2.0 * abs(d) + 32.0 * s))
    # f - end is right to 1e-10 where it matters
    return Transforms(xp.stack(sums, axis=1), rule, moved, 1.001 * last, shift)


def _shift(d: Array, s: Array, rounding: Array) -> Array:
    """What the rounding of d can do, in units of d; next to nothing where f is below all t."""
    xp = namespace(d)
    hidden = d + 9.0 * s < -BELOW - 9.0
    return xp.where(hidden, xp.full_like(d, 32.0 * math.exp(-BELOW)), up(rounding, 4))
