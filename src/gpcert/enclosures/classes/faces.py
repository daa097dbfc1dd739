"""Positive lower bounds of latent functions over a box, from smaller and smaller faces of it.

With omega = exp(|d|^2 / 2) the function `f = b + sum_i t_i k(., z_i) - T k W k` has

    omega f = b omega + sum_i a_i e^(u_i.d) - T omega^-1 sum_ik B_ik e^((u_i + u_k).d).

Where a slope of that has one sign on the cell, f is positive on the cell if it is on one of its
faces. That is smaller, has a centre of its own, and on it f is monotone in more features: a few
rounds lead to a face on which a quadratic model leaves next to nothing. The sign of a slope is that
of `e^(-v.d)` times it, for any v: the exponents are then `(u_i - v).d`, which are small for v in
the middle of the points, wherever the cell lies.

Proofs: docs/mathematics.md, statements 4.9, 5.11 and 6.11.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from gpcert.arrays import Array, PerCell, PerRow, Rows, namespace
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.local_posterior import LocalCommittee
from gpcert.kernels.expansions.higher_degrees import BoxMetric, box_metric
from gpcert.kernels.expansions.squared_exponential import (
    LocalSquaredExponential,
    WeightedExpansion,
)
from gpcert.regions import Cells
from gpcert.rounding import EXP_ULPS, TINY, down, gamma, nonnegative, root, up

DEGREE = 9
"""Highest degree of a slope that is bounded by itself; what is beyond is bounded point by point."""

MOST_FEATURES, MOST_POINTS, MOST_FORM_POINTS = 128, 2048, 512
"""Up to so many the slopes are worth their time: N f^3 operations, of a form 16 N^3 more."""

LARGEST = 30.0
"""Exponents beyond which a cell is too large for slopes of one sign."""


@dataclass(frozen=True, eq=False)
class FormFunction:
    """`b + sum_i t_i k(., z_i) - T k W k`: `weights` t (N,) to sixteen roundings of their `sizes`,
    W (N, N) symmetric, as stored, or None, `share` T >= 0, `constant` at least |b|."""

    weights: Array
    sizes: Array
    W: Array | None = None
    share: float = 0.0
    constant: float = 0.0


@dataclass(frozen=True, eq=False)
class _Cell:
    """One cell in the features that move: `u` (N, f) the points from its centre, `sizes` of what
    they are made of, `tilt` v (f,), `half` (f,), `rho` >= |d|, K (N,), `eta` the relative error of
    everything that is computed."""

    u: Array
    sizes: Array
    tilt: Array
    half: Array
    rho: Array
    K: Array
    eta: Array
    floor: float

    def moved(self, part: float) -> tuple[Rows, Rows, PerRow]:
        """`u_i - part v`, their sizes, and bounds (N,) of `|(u_i - part v).d|`."""
        xp = namespace(self.u)
        sizes = self.sizes + xp.abs(self.tilt)
        return self.u - part * self.tilt, sizes, up(sizes @ self.half, sizes.shape[1] + 8)


def monotone_signs(
    kernel: LocalSquaredExponential, expansion: WeightedExpansion, function: FormFunction
) -> Annotated[Array, "f"]:
    """(f,): 1 where the function, weighted, rises on the one cell of the expansion, -1 where it
    falls, 0 where that is not known or the cell has no width."""
    xp, geometry = namespace(expansion.K), expansion.geometry
    found = xp.zeros_like(geometry.half[0])
    (active,) = xp.nonzero(geometry.half[0] > 0)
    N = len(kernel.points)
    large = (MOST_POINTS if function.W is None else MOST_FORM_POINTS) < N
    if large or not 0 < len(active) <= MOST_FEATURES:
        return found
    a = expansion.K[0] * function.weights
    cell = _cell(kernel, expansion, active, xp.abs(a))
    if not bool(xp.max(cell.moved(1.0)[2]) < LARGEST) or not bool(cell.rho**2 < LARGEST):
        return found
    low, high = _sum_slopes(cell, a, function.sizes)
    terms = xp.abs(low) + xp.abs(high)
    half_square = 0.5 * up(cell.rho * cell.rho, 2)
    if function.constant > 0.0:
        most = half_square + xp.sum(xp.abs(cell.tilt) * cell.half)
        size = up(function.constant * cell.half * xp.exp(up(most, len(active) + 8)), 16)
        low, high, terms = low - size, high + size, terms + size
    if function.W is not None and function.share > 0.0:
        least, most = _form_slopes(cell, function.W)
        shrink = xp.exp(-half_square) * (1.0 - gamma(32))
        most = xp.where(most > 0, most, most * shrink)
        least = xp.where(least < 0, least, least * shrink)
        low = low - function.share * most
        high = high - function.share * least
        terms = terms + function.share * (xp.abs(most) + xp.abs(least))
    # what was added may cancel: its rounding is that of the terms
    rounding = up(gamma(16) * terms, 8)
    low, high = low - rounding, high + rounding
    one = xp.ones_like(low)
    found[active] = xp.where(low > 0, one, xp.where(high < 0, -one, 0.0 * one))
    return found


def _cell(
    kernel: LocalSquaredExponential, expansion: WeightedExpansion, active: Array, magnitudes: Array
) -> _Cell:
    """The tilt is the points' mean, each with its magnitude (N,); any would do."""
    xp, geometry = namespace(expansion.K), expansion.geometry
    points, center = kernel.points[:, active], expansion.scaled[0, active]
    N, f = points.shape
    u = points - center
    total = xp.sum(magnitudes)
    tilt = (magnitudes @ u) / xp.where(total > TINY, total, xp.ones_like(total))
    return _Cell(
        u,
        xp.abs(points) + xp.abs(center),
        tilt,
        geometry.half[0, active],
        geometry.rho[0],
        expansion.K[0],
        gamma(6 * N + 16 * f + 256) + 4.0 * xp.max(kernel.relative_error),
        kernel.floor,
    )


def _sum_slopes(cell: _Cell, a: Array, sizes: Array) -> tuple[Array, Array]:
    """Bounds (f,) of `sum_i a_i u_ij e^((u_i - v).d)` on the cell, for every j."""
    xp, half = namespace(a), cell.half
    N, f = cell.u.shape
    moved, moved_sizes, reach = cell.moved(1.0)
    V = a[:, None] * cell.u
    value, linear = xp.sum(V, axis=0), xp.abs(V.T @ moved) @ half
    most = sizes * (cell.K + cell.floor)
    metric = box_metric(most[None], moved[None], half[None], cell.rho[None])
    lengths = metric.lengths(moved_sizes[None])[0]
    scaled = moved / metric.delta[0]
    P = scaled @ scaled.T
    power, radius = P * P, linear
    for n in range(2, DEGREE + 1):
        square = xp.sum(V * (power @ V), axis=0)
        size = (most * lengths**n) @ cell.sizes
        length = root(nonnegative(square + 32.0 * cell.eta * size**2)) * metric.rho[0] ** n
        if n == 2:
            second = [half @ (xp.abs((moved.T * V[:, j]) @ moved) @ half) for j in range(f)]
            length = xp.minimum(length, xp.stack(second))
        radius = radius + length / math.factorial(n)
        power = power * P
    along = up(xp.abs(moved) @ half, f + 8)
    tail = most * along ** (DEGREE + 1) * xp.exp(along) / math.factorial(DEGREE + 1)
    rounding = sizes * (cell.eta * (cell.K + cell.floor) + cell.floor) * xp.exp(reach)
    radius = radius + tail @ cell.sizes + 8.0 * rounding @ (cell.sizes + 1.0)
    radius = up(radius, 8 * N + 8 * f + 64)
    return value - radius, value + radius


def _form_slopes(cell: _Cell, W: Array) -> tuple[Array, Array]:
    """Bounds (f,) of `e^(-v.d) (d_j Q - d_j' Q)`, that is of
    `2 sum_ik B_ik u_ij e^((u_i + u_k - v).d) - d_j sum_ik B_ik e^((u_i + u_k - v).d)`, for every j.
    """
    xp, half, u = namespace(W), cell.half, cell.u
    N, f = u.shape
    moved, moved_sizes, reach = cell.moved(0.5)
    B = W * (cell.K[:, None] * cell.K[None, :])
    rows, turned, plain = xp.sum(B, axis=1), B @ moved, B @ u
    total = xp.sum(rows)
    value = 2.0 * (rows @ u)
    first = 2.0 * ((u * rows[:, None]).T @ moved + u.T @ turned)
    first = first - total * xp.eye(f, dtype=first.dtype, device=first.device)
    second = []
    for j in range(f):
        cross = (moved.T * u[:, j]) @ turned
        M = (moved.T * (rows * u[:, j] + plain[:, j])) @ moved + cross + cross.T
        second.append(half @ (xp.abs(M) @ half))
    bend = xp.abs((moved.T * rows) @ moved + moved.T @ turned)
    change = 2.0 * (xp.abs(rows @ moved) @ half) + half @ (bend @ half)
    metric = box_metric(xp.sum(xp.abs(B), axis=1)[None], moved[None], half[None], cell.rho[None])
    higher, whole = _higher_degrees(cell, B, moved / metric.delta[0], metric, moved_sizes)
    along = up(xp.abs(moved) @ half, f + 8)
    both = along[:, None] + along[None, :]
    beyond = xp.sum(
        xp.abs(B) * (both ** (DEGREE + 1) * xp.exp(both) / math.factorial(DEGREE + 1)), axis=1
    )
    far, floor = (cell.K + cell.floor) * xp.exp(reach), cell.floor * xp.exp(reach)
    size = xp.abs(W) @ far
    rounding = far * size * cell.eta + floor * size + far * (xp.abs(W) @ floor)
    lost = 2.0 * beyond + 16.0 * rounding
    change = change + whole + xp.sum(lost)
    radius = xp.abs(first) @ half + xp.stack(second) + higher + lost @ (cell.sizes + 1.0)
    radius = up(radius + half * change, 8 * N + 8 * f + 64)
    return value - radius, value + radius


def _higher_degrees(
    cell: _Cell, B: Array, points: Array, metric: BoxMetric, sizes: Array
) -> tuple[Array, Array]:
    """Bounds of degrees 3 to `DEGREE` on the cell: (f,) of `2 sum_ik B_ik u_ij e^(y_i + y_k)`, and
    of the same without `2 u_ij`.

    `F_a^2 = u_j^T [(B P^a B) o P^(n-a)] u_j`, P the points' products, powers entry by entry.
    """
    xp = namespace(B)
    lengths = metric.lengths(sizes[None])[0]
    P, absolute, slack = points @ points.T, xp.abs(B), 32.0 * cell.eta
    powers = [xp.ones_like(P)]
    for _ in range(DEGREE):
        powers.append(powers[-1] * P)
    slopes, whole = xp.zeros_like(cell.half), xp.zeros_like(cell.rho)
    for a in range(DEGREE + 1):
        joined, spread = B @ (powers[a] @ B), absolute @ lengths**a
        for n in range(max(a, 3), DEGREE + 1):
            inner = joined * powers[n - a]
            factor = math.comb(n, a) / math.factorial(n) * metric.rho[0] ** n
            most = spread * lengths ** (n - a)
            square = xp.sum(cell.u * (inner @ cell.u), axis=0)
            square = nonnegative(square + slack * (most @ cell.sizes) ** 2)
            slopes = slopes + 2.0 * factor * root(square)
            whole = whole + factor * root(nonnegative(xp.sum(inner) + slack * xp.sum(most) ** 2))
    return slopes, whole


ROUNDS = 12
"""Faces of faces that are looked at; mostly three or four do."""


def has_faces(latent: LatentOutputs) -> bool:
    """Whether faces are looked for: of one box, for functions of one squared exponential."""
    evaluation = latent.evaluation
    return (
        latent.together
        and len(latent.cells) == 1
        and latent.cells.is_box
        and latent.geometry.is_plain
        and isinstance(evaluation.local.kernel, LocalSquaredExponential)
        and evaluation.local.trend is None
    )


def least_on_faces(
    latent: LatentOutputs, function: FormFunction, bound: Callable[[LatentOutputs], Array]
) -> PerCell:
    """A positive lower bound (1,) of the function over the one cell, or some number <= 0.

    `bound` gives certified lower bounds of it over cells. With omega the weight about a cell's
    centre and x' the point of the face below x, `omega f(x) >= omega f(x')`, so that f(x) is at
    least `f(x') exp(-rho2 / 2)`, if that is positive.
    """
    xp = namespace(latent.cells.lower)
    found, kept = bound(latent), xp.ones_like(latent.geometry.rho2)
    for _ in range(ROUNDS):
        if bool(found[0] > 0):
            break
        local, expansion = latent.evaluation.local, latent.evaluation.expansion
        assert isinstance(local.kernel, LocalSquaredExponential), "asked for by has_faces"
        assert isinstance(expansion, WeightedExpansion), "of the squared exponential"
        signs = monotone_signs(local.kernel, expansion, function)
        if not bool(xp.any(signs != 0)):
            break
        kept = down(kept * xp.exp(-0.5 * latent.geometry.rho2), EXP_ULPS + 8)
        latent = face_of(latent, signs)
        found = bound(latent)
    return xp.where(found > 0, down(found * kept, 2), found)


def face_of(latent: LatentOutputs, signs: Annotated[Array, "f"]) -> LatentOutputs:
    """The cell's lower end where a sign (f,) is positive, the upper one where it is negative."""
    xp, cells = namespace(signs), latent.cells
    lower = xp.where((signs < 0)[None], cells.upper, cells.lower)
    upper = xp.where((signs > 0)[None], cells.lower, cells.upper)
    evaluation = latent.evaluation
    face = Cells(cells.region, lower, upper)
    return LatentOutputs(
        Evaluation(LocalCommittee(evaluation.members), face, learnt=evaluation.portfolio)
    )
