"""Certified softmax probabilities of independent latent outputs, in time linear in the classes.

With independent Gumbel noise g_k, `softmax_c(f) = P(f_c + g_c is the largest)`: one integral over t
of a product over the classes, whatever their number, and so are all derivatives (`gumbel_rule`).

Proofs: docs/mathematics.md, statements 9.9 and 9.10.
"""

from __future__ import annotations

import math

import numpy as np

from gpcert.integrals.gumbel_rule import BELOW, BLOCK, Grid, Transforms, aliasing, plan, transforms
from gpcert.integrals.moments import IndependentMoments
from gpcert.numerics.arrays import (
    Array,
    PerCellAndClass,
    PerClass,
    finite_array,
    namespace,
    to_numpy,
)
from gpcert.numerics.rounding import TINY, U, gamma, up, up_float
from gpcert.utils.processes import checkpoint

CHUNK = 2**18
"""Numbers (boxes x classes x nodes) worked on at a time; they should fit into a cache."""

FLOOR = 2.0**-200
"""Least `E exp(-y_k)` that is divided by. Smaller ones are raised to it."""

NEGLIGIBLE = 2.0**-150
"""More than FLOOR, ABOVE and underflow can do together: each node and class at most 2^-185."""


def gumbel_moments(
    mu: PerCellAndClass, v: PerCellAndClass, weights: PerClass
) -> IndependentMoments:
    """Moments of `G = sum_c w_c E softmax_c(f)`, `f_k ~ N(mu_k, v_k)` independent, from (B, m).

    Statement: value, gradient and Hessian in mu are within `errors` of the true ones. With p the
    softmax and `a_i = sum_c (w_i - w_c) p_c`, they are `E sum_c w_c p_c`, `E p_i a_i`,
    `-E p_i p_j (a_i + a_j)` for i != j and `E p_i (1 - 2 p_i) a_i` on the diagonal; each product of
    probabilities is an integral over t of a product over classes, by the trapezoidal rule.
    Reason: `_errors` adds up what the rules, their ends and rounding leave.
    Reference: the Gumbel form is Yellott 1977, "The relationship between Luce's choice axiom...".

    About 1e-10 of the weights' range for v <= 1e4 and |mu| <= 1e12; where nothing is known, the
    range itself. Inputs that are not finite get infinite errors.

    >>> mu, v = np.array([[1.0, 0.0]]), np.array([[0.5, 1.5]])
    >>> moments = gumbel_moments(mu, v, np.array([1.0, 0.0]))
    >>> round(float(moments.value[0]), 10), bool(moments.errors[0, 0] < 1e-10)
    (0.6750567023, True)
    """
    xp, place = namespace(mu), mu.device
    # what is found is put into arrays like mu: whole numbers, or fewer digits, would cut it
    mu, v = (xp.astype(x, xp.float64, copy=False) for x in (mu, v))
    weights = finite_array("weights", to_numpy(weights), ndim=1)
    low, high = float(np.min(weights)), float(np.max(weights))
    middle = 0.5 * low + 0.5 * high
    # a power of two >= the range, so that scaling is exact; above TINY: nothing underflows
    scale = math.ldexp(1.0, math.frexp(max(0.5 * high - 0.5 * low, TINY))[1] + 1)
    w = xp.asarray((weights - middle) / scale, device=place)
    host_mu, host_v = to_numpy(mu), to_numpy(v)
    # where nothing is known, zeros that err by the range, taken as 1; infinitely if not a number
    good = np.all(np.isfinite(host_mu) & np.isfinite(host_v) & (host_v >= 0), axis=1)
    errors = xp.asarray(np.where(good, 1.0, math.inf)[:, None] * np.ones(3), device=place)
    zero = xp.zeros_like(mu)
    totals = (xp.sum(zero, axis=1), zero, zero[:, :, None] + zero[:, None, :], errors)
    for grid, rows, start in plan(host_mu, host_v):
        size = max(1, CHUNK // (mu.shape[1] * grid.nodes))
        for first in range(0, len(rows), size):
            checkpoint()
            index = xp.asarray(rows[first : first + size], device=place)
            d = mu[index] - xp.asarray(start[first : first + size], device=place)[:, None]
            parts = _grid_moments(d, xp.sqrt(v[index]), w, grid)
            for whole, part in zip(totals, parts, strict=True):
                whole[index] = part
    value, gradient, hessian, errors = totals
    # G lies within the weights' range, the entries of gradient and Hessian within half of it on
    # either side of 0: clipped values err by at most the range
    width = up_float(high - low, 2)
    value = xp.clip(middle + scale * value, low, high)
    gradient = xp.clip(scale * gradient, -0.5 * width, 0.5 * width)
    hessian = xp.clip(scale * hessian, -0.5 * width, 0.5 * width)
    # w - middle, and the sum above: one rounding each, and as many again
    rounding = np.array([max(abs(low), abs(high)), 0.0, 0.0]) + scale
    rounding = xp.asarray(4.0 * U * rounding + TINY, device=place)
    # inputs that are no numbers have infinite errors, which a width of 0 must not undo
    bounds = xp.where(xp.isfinite(errors), width * errors, errors)
    return IndependentMoments(value, gradient, hessian, up(bounds + rounding, 4))


def _grid_moments(d: Array, s: Array, w: Array, grid: Grid) -> tuple[Array, Array, Array, Array]:
    """Value, gradient, Hessian and errors for means d (B, m) from the grid's start, `|w| <= 1/2`.

    With `M_n = E y^n exp(-y)` of every class, `P = prod M_0`, `r = M_1 / M_0`, `q = M_2 / M_0` and
    `a_i = sum_c (w_i - w_c) r_c`, sums over t of `P sum_c w_c r_c`; `P r_i a_i`; and
    `-(P r_i r_j (a_i + a_j) - (w_i - w_j) P ((q_i - r_i^2) r_j - (q_j - r_j^2) r_i)) / 2`: where
    the class c in a_i is i or j itself, its second moment q takes the place of r^2.
    """
    xp, h = namespace(d), grid.step
    B, m = d.shape
    single = transforms(xp.reshape(d, (-1,)), xp.reshape(s, (-1,)), grid)
    M = xp.reshape(single.values, (B, m, 3, grid.nodes))
    M0 = xp.clip(M[:, :, 0, :], FLOOR, None)
    r, q = M[:, :, 1, :] / M0, M[:, :, 2, :] / M0
    P = xp.prod(M0, axis=1)[:, None, :]
    mean = xp.sum(w[:, None] * r, axis=1)[:, None, :]
    a = w[:, None] * xp.sum(r, axis=1)[:, None, :] - mean
    value = h * xp.sum((P * mean)[:, 0, :], axis=1)
    slope = P * r * a
    gradient = h * xp.sum(slope, axis=2)
    diagonal = gradient - h * xp.sum(P * q * a, axis=2)
    across = xp.matrix_transpose(r)
    pairs = slope @ across
    excess = (P * (q - r * r)) @ across
    excess = (w[:, None] - w[None, :]) * (excess - xp.matrix_transpose(excess))
    hessian = (-0.5 * h) * (pairs + xp.matrix_transpose(pairs) - excess)
    one = xp.eye(m, dtype=d.dtype, device=d.device)
    hessian = hessian * (1.0 - one) + diagonal[:, :, None] * one
    return value, gradient, hessian, _errors(single, M0, grid)


@np.errstate(over="ignore")
def _errors(single: Transforms, M0: Array, grid: Grid) -> Array:
    """Errors (B, 3) of value, gradient and Hessian for weights of range 1.

    Statement: with `theta_n` of `aliasing` and every bracket below summed over classes, at most
    `theta_1`, `theta_2` and `theta_3 + theta_2`, times mass, plus mass times (1 + theta) times
    `sum_k (rule + moved + 3 (1 + h) exp(-BELOW) + 2 shift) + 4.5 prod_k M_0(log 2) + 2.1 last +`
    rounding.
    Reason: replace one thing after the other; each mean of products of up to three probabilities
    that occurs here is at most 0.55. (1) One latent value after the other by its lattice: `rule`.
    (2) The integral over t by a sum over an infinite grid: `theta`, at every f. (3) Nodes on the
    far right go to minus infinity: `moved`. (4) The sum ends on either side (Statement 9.10). (5) y
    below `exp(-BELOW)` becomes 0: in the exponent and as a factor it counts once each, and its sum
    over t is geometric. (6) Rounding: all terms are positive but for differences of weights, and
    `r^2 <= q` by Cauchy-Schwarz. Reference: Trefethen & Weideman 2014 for (1) and (2).
    """
    xp = namespace(M0)
    B, m, T = M0.shape
    theta = aliasing(grid.step)
    rule, moved, last, shift = (xp.reshape(x, (B, m)) for x in single[1:])
    # lattices weigh at most 1 + rule each, so products of them at most this
    mass = xp.exp(xp.sum(up(rule + moved, 4), axis=1)) * (1.0 + max(theta)) * 1.01
    near = math.ceil(math.log(2.0) / grid.step)
    # y itself, an exponential, has an error of 64 units and of the length of a block
    y_rounding = U * (64.0 + BLOCK * grid.step)
    left = xp.prod(up(M0[:, :, near], grid.lattice + 100) + (moved + y_rounding), axis=1)
    each = rule + moved + 2.0 * shift
    each = xp.sum(each, axis=1) + 3.0 * m * (1.0 + grid.step) * math.exp(-BELOW)
    ends = 4.5 * left + 2.1 * xp.sum(last, axis=1)
    # M_0..2 lose lattice + 40 units each, in m + 6 factors at most, the sums the rest; an error of
    # y counts n times in y^n and S <= n times, on average over the grid, in exp(-S)
    rounding = 3.0 * gamma((m + 6) * (grid.lattice + 40) + T + 4 * m + 100)
    rounding = rounding + 20.0 * y_rounding + NEGLIGIBLE
    common = mass * (each + ends + rounding)
    alias = (theta[0], theta[1], theta[1] + theta[2])
    errors = xp.stack([up(common + mass * x, 4 * m + 64) for x in alias], axis=1)
    return xp.clip(errors, None, 1.0)  # `gumbel_moments` clips what they belong to
