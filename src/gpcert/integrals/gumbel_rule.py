"""The grids of the Gumbel form, and the proved errors of its two trapezoidal rules.

For latent values f and `y_k(t) = exp(f_k - t)`, `S = sum_k y_k`, a product of n class probabilities
is `p_c1 ... p_cn = 1 / (n-1)! integral y_c1 ... y_cn exp(-S) dt`. Under independent f the mean of
the integrand is a product over classes. Two rules stand in for integrals: one in t, with the step
of a `Grid`, and one for each latent value.

Proofs: docs/mathematics.md, statement 9.10.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from gpcert.arrays import Index, PerCellAndClass, Reals, namespace
from gpcert.rounding import up, up_float

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


@dataclass(frozen=True, eq=False)
class Plan:
    """Where the grid of every box begins, its step and its blocks; heuristic, on the host.

    `step` is 0 where no grid is long enough or the inputs are not finite.
    """

    start: np.ndarray
    step: np.ndarray
    blocks: np.ndarray

    def groups(self) -> Iterator[tuple[Grid, Index]]:
        """Every grid in use, with the indices of its boxes."""
        for step, blocks in sorted({*zip(self.step.tolist(), self.blocks.tolist(), strict=True)}):
            if step > 0:
                rows = np.flatnonzero((self.step == step) & (self.blocks == blocks))
                yield Grid(step, blocks), rows


def plan(mu: PerCellAndClass, v: PerCellAndClass) -> Plan:
    """Grids for means and variances (B, m), box by box: no box depends on another.

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
    step = _steps(length / MAX_NODES)
    blocks = np.ceil((length / step + 3.0) / BLOCK)
    # few different numbers of blocks, so that boxes share their grids: three significant bits
    unit = np.exp2(np.maximum(np.floor(np.log2(blocks)) - 2.0, 0.0))
    blocks = np.ceil(blocks / unit) * unit
    known &= np.isfinite(length) & (step <= COARSEST)
    start = np.where(known, low - math.log(2.0) - step, 0.0)
    return Plan(start, np.where(known, step, 0.0), np.where(known, blocks, 0.0).astype(int))


def _exponent(gap: np.ndarray, v: np.ndarray) -> np.ndarray:
    """About `-log prod_k E exp(-exp(f_k - t))` for `gap = mu - t`."""
    v = np.maximum(v, 1e-12)
    w = special.wrightomega(np.minimum(gap, 600.0 + 10.0 * np.sqrt(v)) + np.log(v))
    saddle = (0.5 * w + 1.0) * (w / v) + 0.5 * np.log1p(w)
    # for wide values the saddle point says too much: f + g is nearly normal, with g's two moments
    normal = -special.log_ndtr((-0.5772 - gap) / np.sqrt(v + 1.645))
    return np.sum(np.where(v > REACH, np.minimum(saddle, normal), saddle), axis=1)


def _steps(least: np.ndarray) -> np.ndarray:
    """The smallest step of three significant bits that is >= `least` and FINEST."""
    least = np.maximum(least, FINEST)
    unit = np.exp2(np.floor(np.log2(least)) - 2.0)
    return np.ceil(least / unit) * unit


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
