"""The mode of a posterior of latent values under a log-concave likelihood: Newton's method.

With `f = K a` the objective is `log p(y | f) - a^T f / 2`, and at the mode `a = grad log p(y | f)`.
Steps are taken in a, as corrections `(I + W K)^-1 (grad log p - a)`: their rounding error is
relative to the gap, so that the iteration corrects it; the book's form for the next a itself (GPML
Alg. 3.1 and 3.3) does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gpcert.rounding import U

MODE_TOLERANCE = 1e-10
"""On `|a - grad log p(y | K a)|`, relative to `Problem.size`. Newton is quadratic: the gap is
mostly far smaller when it passes the test."""

_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Problem:
    """Covariances and targets of one or several classes; latent values f and a are arrays alike.

    `variances`: prior variances of the latent values; `times(a)` is K a; `at(f)` what the others
    are told of the likelihood at f; `gradient(local)` is `grad log p`; `step(local, gap, steps)` is
    `(I + W K)^-1 gap`, after so many steps; `rounding(local, a)` the size of the terms of K a,
    times the slope of the gradient in f; `size(local)` the unit of the tolerance.
    """

    label: str
    variances: np.ndarray
    times: Callable[[np.ndarray], np.ndarray]
    log_likelihood: Callable[[np.ndarray], np.ndarray]
    at: Callable[[np.ndarray], Any]
    gradient: Callable[[Any], np.ndarray]
    step: Callable[[Any, np.ndarray, int], np.ndarray]
    rounding: Callable[[Any, np.ndarray], float]
    size: Callable[[Any], float] = lambda local: 1.0


@dataclass(frozen=True, eq=False)
class Mode:
    """Where Newton stopped: the objective and the likelihood there."""

    objective: float
    local: Any
    steps: int
    converged: bool


def find_mode(problem: Problem, start: Any, max_iterations: int) -> Mode:
    """Climb from the start, or from 0 where that is higher; steps are halved until the objective
    does not decrease."""

    def objective(a: np.ndarray, f: np.ndarray) -> float:
        return float(problem.log_likelihood(f).sum() - 0.5 * np.vdot(a, f))

    a = f = np.zeros_like(problem.variances)
    if start is not None and np.shape(start) == a.shape:
        first = np.array(start, dtype=np.float64)
        moved = problem.times(first)
        a, f = (first, moved) if objective(first, moved) > objective(a, f) else (a, f)
    largest_variance, steps = float(problem.variances.max()), 0
    while True:
        height, local = objective(a, f), problem.at(f)
        residual = problem.gradient(local) - a
        gap = float(np.abs(residual).max())
        floor = MODE_TOLERANCE * problem.size(local) + 4.0 * U * problem.rounding(local, a)
        if gap <= floor or steps == max_iterations:
            break
        step = problem.step(local, residual, steps)
        # rounding of a^T K a: a decrease below it means nothing
        size = float(np.abs(a).sum() + np.abs(step).sum())
        least = height - 4.0 * U * (abs(height) + largest_variance * size**2)
        moved, length = problem.times(step), 1.0
        for _ in range(_HALVINGS):
            if objective(a + length * step, f + length * moved) >= least:
                a = a + length * step
                break
            length *= 0.5
        f = problem.times(a)
        steps += 1
    if gap > floor:
        warnings.warn(
            f"{problem.label}: Newton stopped after {steps} steps with |a - grad log p| = "
            f"{gap:.3g} (tolerance {floor:.3g})",
            ConvergenceWarning,
            stacklevel=5,
        )
    return Mode(height, local, steps, converged=gap <= floor)
