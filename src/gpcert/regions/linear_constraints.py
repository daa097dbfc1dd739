"""Linear constraints `low <= A x <= high` over cells: smaller cells, and minima by duality.

Statement 13.10: for every vector y, and every x of a cell with `low_i <= a_i.x <= high_i`,

    g.(x - c)  >=  sum_j min over the cell of (g - A^T y)_j (x_j - c_j)
                   +  sum_i min(y_i (low_i - a_i.c), y_i (high_i - a_i.c)).

Reason: `g.(x - c) = (g - A^T y).(x - c) + sum_i y_i a_i.(x - c)`, each part at least its minimum.
Every y is valid, so whatever chose it is not trusted; the best y is exact by the duality of linear
programs. Where the right side is above 0 for g = 0 the cell holds no point.

Statement 13.11: for a coordinate j of a row a, every x of the cell with `a.x <= high` has
`a_j x_j <= high - sum_(k != j) min a_k x_k`, which bounds x_j on one side. Proofs:
docs/mathematics.md.

Points of polytopes are found by linear programs and Newton's steps, with proofs where there are
none. What a solver returns is checked by the region or in rational arithmetic, never trusted.

Proofs: docs/mathematics.md, statements 13.10 and 13.12.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import Array, Inputs, PerRow, PerVector, Rows, Vectors, namespace
from gpcert.numerics.rounding import TINY, down, exact_dot, gamma, up
from gpcert.regions.cells import Cells

if TYPE_CHECKING:
    from gpcert.regions.polytope import Polytope


PASSES = 2
"""Passes over all constraints when cells are contracted."""

SWEEPS = 3
"""Passes over all multipliers when a minimum is sought."""


REPAIRS = 40
"""Rounds of `LinearConstraints.repaired`."""

PerConstraint = Annotated[Array, "n m"]
"""A number per point, or cell, and constraint."""


class LinearConstraints(NamedTuple):
    """`low <= A x <= high`: A (m, f), low and high (m,), which may be infinite."""

    A: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def holds(self, X: Inputs) -> PerRow:
        """(n,) whether every constraint is satisfied by points X (n, f), in real arithmetic: in
        floating point where its error decides nothing, else in exact arithmetic."""
        if len(self.A) == 0:
            return np.ones(len(X), dtype=bool)
        value = X @ self.A.T
        error = up(gamma(X.shape[1] + 4) * (np.abs(X) @ np.abs(self.A).T), X.shape[1] + 4)
        inside = (up(value + error) <= self.high) & (down(value - error) >= self.low)
        outside = (down(value - error) > self.high) | (up(value + error) < self.low)
        open_ = ~(inside | outside) & ~outside.any(axis=1)[:, None]
        for n, i in np.argwhere(open_).tolist():
            exact = exact_dot(self.A[i].tolist(), X[n].tolist())
            inside[n, i] = self.low[i] <= exact <= self.high[i]
        return inside.all(axis=1)

    def violations(self, X: Inputs) -> PerConstraint:
        """(n, m) by how much points miss the constraints, above or (negative) below them; in plain
        floating point."""
        value = X @ self.A.T
        return np.maximum(value - self.high, 0.0) - np.maximum(self.low - value, 0.0)

    def contract(self, lower: Rows, upper: Rows, passes: int = PASSES) -> tuple[Rows, Rows, PerRow]:
        """Boxes [lower, upper] (B, f) without parts that a constraint excludes, and a mask (B,) of
        those without any point that satisfies all (whose boxes are returned as they were).

        Statement 13.11. A sum of f terms carries f + 2 roundings of their sizes, which are added
        outwards; the quotient is rounded outwards.
        """
        xp = namespace(lower)
        old, empty = (lower, upper), xp.zeros_like(xp.sum(lower, axis=-1)) > 0
        for i in list(range(len(self.A))) * passes:
            a = _placed(self.A[i], lower)
            first, second = a * lower, a * upper
            least, most = xp.minimum(first, second), xp.maximum(first, second)
            sizes = xp.sum(xp.maximum(xp.abs(least), xp.abs(most)), axis=-1)
            error = up(gamma(len(self.A[i]) + 4) * sizes, len(self.A[i]) + 4)[:, None]
            for limit, terms, side in ((self.high[i], least, 1.0), (self.low[i], most, -1.0)):
                if not np.isfinite(limit):
                    continue
                # side a_j x_j <= side (limit - sum of the others)
                slack = side * (float(limit) - (xp.sum(terms, axis=-1)[:, None] - terms))
                slack = up(up(slack, 4) + error + 4.0 * abs(float(limit)) * 2.0**-53, 2)
                empty = empty | xp.any(slack < down(side * terms, 2), axis=-1)
                with np.errstate(all="ignore"):
                    end = slack / (side * xp.where(a == 0, xp.ones_like(a), a))
                rises = (side * a > 0) & xp.isfinite(end)
                falls = (side * a < 0) & xp.isfinite(end)
                upper = xp.where(rises, xp.minimum(upper, up(end, 2)), upper)
                lower = xp.where(falls, xp.maximum(lower, down(end, 2)), lower)
            crossed = xp.any(lower > upper, axis=-1)
            empty = empty | crossed
            lower = xp.where(crossed[:, None], old[0], lower)
            upper = xp.where(crossed[:, None], old[1], upper)
        return (
            xp.where(empty[:, None], old[0], lower),
            xp.where(empty[:, None], old[1], upper),
            empty,
        )

    def linear_minimum(self, cells: Cells, g: Vectors) -> PerVector:
        """Certified lower bound of `min g.(x - c)` over the points of the cells that satisfy the
        constraints; the better of the cell's box and of `dual_bound` at `multipliers`."""
        xp = namespace(g)
        f = g.shape[-1]

        def rows(a: Array) -> Array:
            wide = a[:, None, :] if g.ndim == 3 else a
            return xp.reshape(xp.broadcast_to(wide, (*g.shape[:-1], a.shape[-1])), (-1, a.shape[1]))

        flat = xp.reshape(g, (-1, f))
        low, high, least, most = map(rows, self.relative(cells))
        with np.errstate(all="ignore"):
            y = self.multipliers(flat, low, high, least, most)
            plain = self.dual_bound(flat, 0.0 * y, low, high, least, most)
            best = xp.maximum(plain, self.dual_bound(flat, y, low, high, least, most))
        return xp.reshape(best, g.shape[:-1])

    def relative(self, cells: Cells) -> tuple[Rows, Rows, PerConstraint, PerConstraint]:
        """The cells' ends from their centres (B, f), rounded outwards, and the constraints' (B, m):
        `low - A c` rounded down, `high - A c` rounded up."""
        xp, c = namespace(cells.lower), cells.center
        # differences of floats are off by at most a factor 1 + U: see `Cells.half`
        low = (cells.lower - c) * (1.0 + 2.0**-51)
        high = (cells.upper - c) * (1.0 + 2.0**-51)
        A = _placed(self.A, c)
        f = self.A.shape[1]
        at = c @ xp.matrix_transpose(A)
        error = up(gamma(f + 4) * (xp.abs(c) @ xp.matrix_transpose(xp.abs(A))), f + 4)
        least = down(_placed(self.low, c) - at, 2) - error
        most = up(_placed(self.high, c) - at, 2) + error
        return low, high, down(least, 1), up(most, 1)

    @np.errstate(over="ignore", invalid="ignore")
    def dual_bound(
        self,
        g: Rows,
        y: PerConstraint,
        low: Rows,
        high: Rows,
        least: PerConstraint,
        most: PerConstraint,
    ) -> PerRow:
        """The right side of Statement 13.10 at multipliers y (n, m), rounded down.

        The slopes `g - A^T y` carry m + 2 roundings of their terms' sizes, and what underflows in
        them, below TINY, meets `|x - c|`. An undefined bound is minus infinity.
        """
        xp = namespace(g)
        m, f = self.A.shape
        A = _placed(self.A, g)
        slope = g - y @ A
        size = xp.abs(g) + xp.abs(y) @ xp.abs(A)
        half = xp.maximum(-low, high)
        box = xp.sum(xp.minimum(slope * low, slope * high), axis=-1)
        zero = xp.zeros_like(y)
        ends = xp.where(y > 0, y * least, xp.where(y < 0, y * most, zero))
        lost = TINY * xp.sum(half, axis=-1)
        error = gamma(m + f + 8) * xp.sum(size * half, axis=-1)
        error = error + gamma(m + f + 8) * xp.sum(xp.abs(ends), axis=-1)
        bound = box + xp.sum(ends, axis=-1)
        bound = down(bound - up(error + lost, m + f + 8), 2)
        return xp.where(xp.isnan(bound), xp.full_like(bound, -xp.inf), bound)

    def multipliers(
        self, g: Rows, low: Rows, high: Rows, least: PerConstraint, most: PerConstraint
    ) -> PerConstraint:
        """Multipliers (n, m) with a large dual bound: ascent along one after another (heuristic).

        Along y_i the bound is concave and piecewise linear: minus its slope is the row's value at
        the minimiser over the box, which grows by `|a_j| (high_j - low_j)` where y_i passes
        `r_j / a_j`. The best y_i is 0, or where that value enters `[least, most]`.
        """
        xp = namespace(g)
        m, f = self.A.shape
        y = xp.zeros_like(least)
        if f == 0:
            return y
        residual = g + 0.0
        for i in list(range(m)) * (SWEEPS if m > 1 else 1):
            a = _placed(self.A[i], g)
            residual = residual + y[:, i, None] * a
            used = xp.broadcast_to(a != 0, g.shape)
            at = xp.where(used, residual / xp.where(a == 0, xp.ones_like(a), a), xp.inf)
            gains = xp.where(used, xp.abs(a) * (high - low), 0.0)
            start = xp.sum(xp.minimum(a * low, a * high), axis=-1)
            order = xp.argsort(at, axis=-1)
            at = xp.take_along_axis(at, order, axis=-1)
            value = start[:, None] + xp.cumulative_sum(
                xp.take_along_axis(gains, order, axis=-1), axis=-1
            )
            passed = used & (residual * xp.sign(a) < 0)
            here = start + xp.sum(xp.where(passed, gains, 0.0), axis=-1)
            down_to, up_to = (
                xp.take_along_axis(at, xp.clip(index, 0, f - 1)[:, None], axis=-1)[:, 0]
                for index in (
                    xp.sum(xp.astype(value <= most[:, i, None], xp.int64), axis=-1),
                    xp.sum(xp.astype(value < least[:, i, None], xp.int64), axis=-1),
                )
            )
            zero = xp.zeros_like(here)
            best = xp.where(here > most[:, i], xp.minimum(down_to, zero), zero)
            best = xp.where(here < least[:, i], xp.maximum(up_to, zero), best)
            best = xp.where(xp.isfinite(best), best, zero)
            y[:, i] = best
            residual = residual - best[:, None] * a
        return y

    def repaired(
        self,
        X: Inputs,
        low: np.ndarray,
        high: np.ndarray,
        movable: np.ndarray,
        spread: int = REPAIRS // 2,
    ) -> Inputs:
        """Points X (n, f) moved towards the constraints inside [low, high] (f,), in the coordinates
        that are `movable` (f,) only: `spread` rounds along the constraints (Kaczmarz' steps,
        clipped), then along single coordinates (heuristic)."""
        X = np.clip(X, low, high)
        rows = self.A * movable
        sizes = np.sum(rows**2, axis=1)
        for step in range(REPAIRS):
            missed = self.violations(X)
            if not np.any(missed):
                break
            for i in np.flatnonzero((sizes > 0) & np.any(missed != 0, axis=0)):
                gap = self.violations(X)[:, i]
                if step < spread:
                    X = np.clip(X - (gap / sizes[i])[:, None] * rows[i], low, high)
                else:  # one coordinate takes all of it: the one with the most room
                    X = _one_takes_all(X, gap, rows[i], low, high)
        return X


def _one_takes_all(
    X: Inputs, gap: np.ndarray, a: np.ndarray, low: np.ndarray, high: np.ndarray
) -> Inputs:
    """`a.x` lowered by the gaps (n,), as far as the coordinate that can take most of it can."""
    X, rows = X.copy(), np.arange(len(X))
    safe = np.where(a == 0, 1.0, a)
    wanted = X - gap[:, None] / safe
    moved = np.where(a == 0, X, np.clip(wanted, low, high))
    j = np.argmax(np.abs((moved - X) * a), axis=1)
    X[rows, j] = moved[rows, j]
    return X


def _placed(host: np.ndarray, like: Array) -> Array:
    """An array of the host where another is."""
    if isinstance(like, np.ndarray):
        return host
    return namespace(like).asarray(np.array(host), device=like.device)


NEWTON_STEPS = 12
"""Steps of `refined`."""


def _program(region: Polytope, g: np.ndarray, margin: bool) -> Any:
    """SciPy's result of `min g.x` over the region; with `margin`, of the largest s <= 1 such that
    every constraint and bound that is no equation holds with s to spare (in its own size)."""
    from scipy.optimize import linprog

    A, low, high = region.A, region.low, region.high
    least, most = region.bounds if margin else (region.lower, region.upper)
    width = most - least
    spans = np.abs(A) @ width
    thin = (high - low) <= 1e-9 * spans
    one = (~thin)[:, None] * spans[:, None] if margin else np.zeros((len(A), 0))
    upper = np.isfinite(high)
    lower = np.isfinite(low)
    blocks = [np.hstack([A, one])[upper], np.hstack([-A, one])[lower]]
    ends = [high[upper], -low[lower]]
    cost, bounds = g, list(zip(least.tolist(), most.tolist(), strict=True))
    if margin:
        eye = np.eye(len(g))
        blocks += [np.hstack([eye, 0.5 * width[:, None]]), np.hstack([-eye, 0.5 * width[:, None]])]
        ends += [most, -least]
        cost, bounds = np.append(0.0 * g, -1.0), [*bounds, (None, 1.0)]
    return linprog(cost, np.concatenate(blocks), np.concatenate(ends), bounds=bounds)


def minimizer(region: Polytope, g: np.ndarray) -> Annotated[np.ndarray, "d"]:
    """About where `g.x` is least; the centre where the program was not solved."""
    largest = float(np.max(np.abs(g), initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return region.center
    result = _program(region, g / largest, margin=False)
    return region.center if result.x is None else np.asarray(result.x)


def point_inside(region: Polytope) -> Annotated[np.ndarray, "d"]:
    """A point that the region contains; an `InputError` with a proof where there is none.

    The proof: multipliers of a linear program for which the right side of Statement 13.10 with
    g = 0 is above 0.
    """
    middle = np.clip(0.5 * region.lower + 0.5 * region.upper, region.lower, region.upper)
    result = _program(region, np.zeros(region.dim), margin=True)
    start = middle if result.x is None else np.asarray(result.x)[: region.dim]
    ones = np.ones(region.dim)
    for point in (start, middle):
        near = region.constraints.repaired(point[None], region.lower, region.upper, ones)
        for each in (
            near[0],
            np.round(near[0], 12),
            refined(region, point),
            region.coarse(near)[0],
        ):
            if bool(region.contains(each)):
                return each
    if _proved_empty(region, result):
        raise InputError(
            "the region is empty: no point of its bounds satisfies all constraints (proved by "
            "multipliers of the constraints whose sum excludes it)"
        )
    raise InputError(
        "the region may be empty: neither a point that satisfies all constraints exactly was "
        "found, nor a proof that there is none; of equations that no floats satisfy exactly, give "
        "a larger slack="
    )


def refined(region: Polytope, x: np.ndarray) -> Annotated[np.ndarray, "d"]:
    """About the nearest point of the region to x, a solver's point that misses it by a little:
    Newton's steps onto the constraints that are tight there, away from their ends."""
    A, low, high = region.A, region.low, region.high
    span = np.abs(A) @ (region.upper - region.lower) + 1e-300
    margin = np.minimum(0.25 * (high - low), 1e-13 * span)
    movable = region.lower < region.upper
    x = np.clip(x, region.lower, region.upper)
    for _ in range(NEWTON_STEPS):
        if bool(region.contains(x)):
            break
        value = A @ x
        gap = np.clip(value, low + margin, high - margin) - value
        tight = (gap != 0) | (np.minimum(high - value, value - low) < 1e-6 * span)
        step = np.linalg.lstsq(A[tight][:, movable], gap[tight], rcond=1e-12)[0]
        moved = x.copy()
        moved[movable] += step
        outside = (moved < region.lower) | (moved > region.upper)
        x = np.clip(moved, region.lower, region.upper)
        movable = movable & ~outside if np.any(movable & ~outside) else movable
    return x


def _proved_empty(region: Polytope, result: Any) -> bool:
    """Whether the multipliers of the program prove that the region has no point."""
    if result.x is None:
        return False
    marginals = np.asarray(result.ineqlin.marginals)
    upper, lower = np.isfinite(region.high), np.isfinite(region.low)
    y = np.zeros(len(region.A))
    y[upper] += marginals[: upper.sum()]
    y[lower] -= marginals[upper.sum() : upper.sum() + lower.sum()]
    units = np.eye(len(region.A))
    return any(_excess(region, each) > 0 for each in (y, *units, *-units))


def _excess(region: Polytope, y: np.ndarray) -> Fraction:
    """The right side of Statement 13.10 with g = 0 over all of the bounds, exactly; multipliers of
    infinite ends count as 0."""
    total = Fraction(0)
    y = np.where(np.isfinite(np.where(y > 0, region.low, region.high)), y, 0.0)
    for j, (low, high) in enumerate(zip(*region.bounds, strict=True)):
        slope = -exact_dot(region.A[:, j].tolist(), y.tolist())
        total += min(slope * Fraction(float(low)), slope * Fraction(float(high)))
    for weight, low, high in zip(
        y.tolist(), region.low.tolist(), region.high.tolist(), strict=True
    ):
        if weight:
            total += Fraction(weight) * Fraction(low if weight > 0 else high)
    return total


def directions(region: Polytope) -> Annotated[np.ndarray, "k d"]:
    """(k, d): a basis of the directions in which the region may have a width, in units of its
    box's widths."""
    width = region.upper - region.lower
    free = np.flatnonzero(width > 0)
    spans = np.abs(region.A) @ width
    thin = (region.high - region.low) <= 1e-9 * np.maximum(spans, 1e-300)
    rows = region.A[thin][:, free] * width[free]
    if len(free) == 0:
        return np.zeros((0, region.dim))
    _, sizes, right = (
        np.linalg.svd(rows, full_matrices=True)
        if len(rows)
        else (0, np.zeros(0), np.eye(len(free)))
    )
    rank = int(np.sum(sizes > 1e-12 * max(sizes.max(initial=0.0), 1e-300)))
    basis = np.zeros((len(free) - rank, region.dim))
    basis[:, free] = right[rank:] * width[free]
    return basis


def chord(region: Polytope, x: Inputs, along: Inputs) -> tuple[PerRow, PerRow]:
    """Ends (n,), (n,) of the steps from x along directions that stay in the region, about."""
    A = np.concatenate([region.A, np.eye(region.dim)])
    low = np.concatenate([region.low, region.lower])
    high = np.concatenate([region.high, region.upper])
    value, slope = x @ A.T, along @ A.T
    flat = np.abs(slope) <= 1e-12 * (np.abs(along) @ np.abs(A).T)
    with np.errstate(all="ignore"):
        first, second = (low - value) / slope, (high - value) / slope
    least = np.where(flat, -np.inf, np.minimum(first, second)).max(axis=1)
    most = np.where(flat, np.inf, np.maximum(first, second)).min(axis=1)
    least, most = np.nan_to_num(least), np.nan_to_num(most)
    return np.minimum(least, 0.0), np.maximum(most, 0.0)
