"""Laplace transforms of lognormal values on a grid: `E y^n exp(-y)`, `y = exp(f - t)`, n = 0, 1, 2.

A latent value `f ~ N(d, s^2)` is replaced by finitely many nodes with positive weights and one at
minus infinity that takes what is missing to 1; all sums then have positive terms only.

Proofs: docs/mathematics.md, statement 9.10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpcert.arrays import Array, PerRow, namespace
from gpcert.integrals.gumbel_rule import BELOW, BLOCK, Grid, lattice_error
from gpcert.integrals.special import normal_cdf_bounds
from gpcert.rounding import U, down, gamma, nonnegative, up

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


@dataclass(frozen=True, eq=False)
class Transforms:
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
    order = xp.argsort(xp.concat([first, second]))
    parts = _wide(d[first], s[first], grid), _narrow(d[second], s[second], grid)

    def joined(name: str) -> Array:
        return xp.concat([getattr(part, name) for part in parts], axis=0)[order]

    names = ("values", "rule", "moved", "last", "shift")
    return Transforms(*(joined(name) for name in names))


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
    # weights with z^2/2 up to 745 are right to 7,500 units
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
    sums = [xp.full_like(d, c)[:, None] for c in (rest, 0.0, 0.0)]
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
            if n < 2:
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
