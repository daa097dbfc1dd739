"""Local minimisation over a region: fast, but proves nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpcert.attacks.functions import PlainFunction
from gpcert.regions import Region
from gpcert.utils.processes import checkpoint

JUMPS = 6
"""Number of Frank-Wolfe steps of full length: with nearly linear functions they reach the
vertex."""

ORDINARY = (2.0**-100, 2.0**100)
"""Range of widths and slopes that optimisers handle without scaling."""

HUGE = 2.0**400
"""Values and slopes are clipped at this size, as optimisers square and divide them."""

FLAT = 1e-150
"""A gradient below this size is treated as 0: a step along it could overflow."""


@np.errstate(all="ignore")  # far away a function may overflow: such points are not accepted
def descend(
    function: PlainFunction,
    region: Region,
    start: np.ndarray,
    *,
    iterations: int = 50,
    enough: float = -np.inf,
) -> np.ndarray:
    """A point of the region with a small value, from `start`: vertex jumps, then descent.

    Stops early at a value below `enough`.

    Boxes: L-BFGS-B in the free coordinates. Others: projected gradient with backtracking.
    The returned point satisfies `region.contains`.
    """
    x = region.project(start)
    if len(region.free) == 0:
        return x
    value, gradient = _single(function, x)
    for _ in range(JUMPS):
        jump = region.linear_minimizer(gradient)
        jumped, slope = _single(function, jump)
        if not jumped < value:
            break
        x, value, gradient = jump, jumped, slope
        if value < enough:
            return x
    is_box = region.is_box_or_ball and region.norm_constraint is None
    better = _quasi_newton if is_box else _projected_gradient
    y = better(function, region, x, iterations)
    return y if _single(function, y)[0] < value else x


@np.errstate(all="ignore")
def attack(
    function: PlainFunction,
    region: Region,
    *,
    starts: int = 3,
    random_state: int | np.random.Generator | None = 0,
    enough: float = -np.inf,
) -> np.ndarray:
    """The best of several descents, from the region's centre and from random points.

    No further descent is tried once a value below `enough` is found.
    """
    best, value = region.center, np.inf
    for point in (region.center, *region.sample(starts - 1, random_state)):
        end = descend(function, region, point, enough=enough)
        reached = _single(function, end)[0]
        if reached < value:
            best, value = end, reached
        if value < enough:
            break
    return best


def _single(function: PlainFunction, x: np.ndarray) -> tuple[float, np.ndarray]:
    checkpoint()
    value, gradient = function(x[None])
    # an overflow has no direction
    return float(value[0]), np.where(np.isfinite(gradient[0]), gradient[0], 0.0)


def _unusual_exponent(size: float) -> int:
    """0 for ordinary sizes, else the exponent to divide by, as optimisers square their numbers."""
    if not 0.0 < size < math.inf or ORDINARY[0] <= size <= ORDINARY[1]:
        return 0
    return math.frexp(size)[1]


def _quasi_newton(
    function: PlainFunction, region: Region, x: np.ndarray, iterations: int
) -> np.ndarray:
    from scipy.optimize import Bounds, minimize

    free = region.free
    width = np.max(region.upper - region.lower, initial=0.0)
    unit = _unusual_exponent(float(width))
    start, slopes = _single(function, x)
    slopes = np.abs(np.ldexp(slopes, unit))
    height = _unusual_exponent(float(np.max(slopes * np.ldexp(width, -unit), initial=0.0)))

    def inside(z: np.ndarray) -> np.ndarray:
        full = region.center.copy()
        full[free] = np.ldexp(z, unit)
        return full

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        # changes are scaled to size one; if the start is flat, other values may be huge
        value, gradient = _single(function, inside(z))
        slope = np.ldexp(gradient[free], unit - height)
        # the difference of infinite values is undefined
        change = np.nan_to_num(np.ldexp(value - start, -height), nan=HUGE)
        return float(np.clip(change, -HUGE, HUGE)), np.clip(slope, -HUGE, HUGE)

    low, high = (np.ldexp(e[free], -unit) for e in (region.inner_lower, region.inner_upper))
    ends: Any = (low, high)  # SciPy's annotations accept numbers only
    how = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": iterations}}
    # `Bounds`: pairs would be read one at a time
    result = minimize(objective, np.ldexp(x[free], -unit), bounds=Bounds(*ends), **how)
    return region.project(inside(np.clip(result.x, low, high)))


def _projected_gradient(
    function: PlainFunction, region: Region, x: np.ndarray, iterations: int
) -> np.ndarray:
    ball, metric = region.norm_constraint, np.ones(region.dim)
    if ball is not None and ball.unit is not None:  # steepest descent in the units of the ball
        metric = np.zeros(region.dim)
        metric[region.free] = np.square(ball.unit / ball.unit.max())
    value, gradient = _single(function, x)
    gradient = metric * gradient
    width = float(np.max(region.upper - region.lower, initial=0.0))
    steepness = _unusual_exponent(float(np.abs(gradient).max(initial=0.0)))
    gradient = np.ldexp(gradient, -steepness)  # only its direction and its relative size matter
    size = float(np.linalg.norm(gradient))
    if size < FLAT:
        return x
    step = width / size
    for _ in range(iterations):
        y = region.project(x - step * gradient)
        new, slope = _single(function, y)
        slope = np.ldexp(slope, -steepness)
        if new < value:
            x, value, gradient, step = y, new, metric * slope, 1.5 * step
        else:
            step *= 0.25
            if step * float(np.linalg.norm(gradient)) < 1e-9 * width:
                break
    return x
