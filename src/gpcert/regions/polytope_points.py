"""Points of polytopes, by linear programs and Newton's steps, and proofs that there are none.

What a solver returns is checked by the region or in rational arithmetic, never trusted.

Proofs: docs/mathematics.md, statements 13.10 and 13.12.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import Inputs, PerRow
from gpcert.numerics.rounding import exact_dot

if TYPE_CHECKING:
    from gpcert.regions.polytope import Polytope

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
