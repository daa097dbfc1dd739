"""Level sets and invariant sets of fitted models; see benchmarks/results/sets.md.

    python benchmarks/sets.py [--only level grid invariant sobol] [--quick] [--seconds 60]

`level`: CPU seconds until 99 % of the unit cube's volume is proved to be inside or outside, of the
mean and of mean - 2 std against the median of the observations. `grid`: the same models with a
check at the points of a grid, as SafeOpt does: a cell counts as safe where mean - 2 std at its
middle is above the level; how many such cells hold a point that is proved to be below it.
`invariant`: an abstraction of 20,000 cells of learned dynamics, and the set that they keep inside.
`sobol`: Sobol' indices of a surrogate of a product of the inputs' functions (Sobol' g) to 0.01, and
how far Saltelli's estimator in the same processor time is from the proved interval.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from noiseless_problems import (
    M52,
    SE,
    ackley,
    branin,
    fitted,
    hartmann3,
    rosenbrock,
    shape_of,
    standardised,
)
from report import Section, command_line, merge
from scipy.stats import uniform
from threadpoolctl import threadpool_limits

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.models import GPRegressor

SEEDS = range(51, 53)
"""Of two fitted models each; nothing was tuned on them."""

GRID_CELLS = 10_000
"""Cells of the grid check."""

SIZES = ((2, 50), (3, 100), (5, 200), (8, 300))
"""Features and points of the surrogates whose Sobol' indices are asked for."""

PROBES = 64
"""Points of each cell that counts as safe, looked up in the level set."""


class Family(NamedTuple):
    """Surrogates of one function, and the seconds that the level set of a mean may take."""

    function: Callable[[np.ndarray], np.ndarray]
    dim: int
    kernel: str
    points: int
    target: float


FAMILIES = (
    Family(branin, 2, SE, 50, 1.0),
    Family(branin, 2, M52, 50, 1.0),
    Family(hartmann3, 3, SE, 100, 3.0),
    Family(hartmann3, 3, M52, 100, 3.0),
    Family(rosenbrock, 4, SE, 100, 10.0),
    Family(rosenbrock, 4, M52, 100, 10.0),
    Family(ackley, 4, SE, 100, 10.0),
    Family(ackley, 4, M52, 100, 10.0),
)


def surrogate(family: Family, seed: int) -> Any:
    """A model fitted by scikit-learn; noise 1e-3 of the observations' variance."""
    X, y = standardised(family.function, family.points, family.dim, seed)
    model = fitted(shape_of(family.kernel, family.dim), X, y, 1e-3, n_restarts_optimizer=1)
    return gpcert.as_posterior(model), float(np.median(y))


def level(family: Family, models: list[Any], quantity: str, seconds: float) -> dict[str, Any]:
    """One row: medians over the models."""
    spent, found = [], []
    for model, threshold in models:
        start = time.process_time()
        words: dict[str, Any] = {"quantity": quantity, "tol": 0.01, "budget": seconds}
        found.append(
            gpcert.level_set(model, [(0, 1)] * family.dim, threshold, **words, progress=False)
        )
        spent.append(time.process_time() - start)
    return {
        "quantity": quantity,
        "target": family.target,
        "seconds": statistics.median(spent),
        "most": max(spent),
        "boxes": int(statistics.median(each.boxes for each in found)),
        "undecided": max(each.undecided for each in found),
        "reached": f"{sum(each.converged for each in found)} of {len(found)}",
    }


def grid_check(family: Family, models: list[Any], seconds: float) -> dict[str, Any]:
    """How many cells a check at their middles calls safe, and how many of these are not."""
    count = round(GRID_CELLS ** (1.0 / family.dim))
    safe = false = 0
    rng = np.random.default_rng(0)
    for model, threshold in models:
        found = gpcert.level_set(
            model, [(0, 1)] * family.dim, threshold, quantity="lcb", tol=0.01, budget=seconds,
            progress=False,
        )  # fmt: skip
        edges = (np.arange(count) + 0.5) / count
        middles = np.stack(np.meshgrid(*[edges] * family.dim), -1).reshape(-1, family.dim)
        mean, variance = model.predict(middles)
        inside = middles[(mean - 2.0 * np.sqrt(variance))[:, 0] >= threshold]
        wrong = np.zeros(len(inside), dtype=bool)
        for _ in range(PROBES):
            points = inside + (rng.random(inside.shape) - 0.5) / count
            wrong |= found.contains(np.clip(points, 0.0, 1.0)) == np.False_
        safe, false = safe + len(inside), false + int(wrong.sum())
    return {"cells": count**family.dim * len(models), "called safe": safe, "false": false}


def pendulum(seed: int, n: int = 120) -> list[Any]:
    """Models of what a step of 0.1 s adds to angle and speed, with a torque as input."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform([-1.0, -2.0, -3.0], [1.0, 2.0, 3.0], (n, 3))
    torque = 2.0 * np.sin(Z[:, 0]) - 0.2 * Z[:, 1] + Z[:, 2]
    added = 0.1 * np.stack([Z[:, 1], torque], axis=1) + 0.001 * rng.normal(size=(n, 2))
    kernel = SquaredExponential([1.0, 2.0, 4.0])
    return [GPRegressor(kernel).fit(Z, column) for column in added.T]


def turning(seed: int, n: int = 150) -> list[Any]:
    """Models of the next state of a damped rotation in three dimensions with a bend."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1.2, 1.2, (n, 3))
    turn = np.array([[0.5, 0.3, 0.0], [-0.3, 0.5, 0.2], [0.0, -0.2, 0.5]])
    after = Z @ turn.T + 0.1 * np.sin(2.0 * Z) + 0.001 * rng.normal(size=(n, 3))
    return [GPRegressor(SquaredExponential([1.0] * 3)).fit(Z, column) for column in after.T]


CONTROL = (
    (
        "pendulum, 5 torques",
        2,
        pendulum,
        [(-0.8, 0.8), (-1.5, 1.5)],
        "delta",
        np.linspace(-3, 3, 5),
    ),
    ("pendulum, no torque", 2, pendulum, [(-0.8, 0.8), (-1.5, 1.5)], "delta", np.zeros(1)),
    ("damped rotation", 3, turning, [(-1.0, 1.0)] * 3, "next", None),
)


def invariant(case: tuple[Any, ...]) -> dict[str, Any]:
    """One row: an abstraction of about 20,000 cells."""
    name, dim, make, region, step, inputs = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length at its bound is no news
        models = [gpcert.as_posterior(each) for each in make(0)]
    start = time.process_time()
    found = gpcert.invariant_set(
        models, region, step, inputs=inputs, beta=2.0, cells=20_000, refine=0, progress=False
    )
    return {
        "dynamics": name,
        "d": dim,
        "images": found.boxes,
        "target": 10.0,
        "seconds": time.process_time() - start,
        "cells in the set": len(found),
        "share": found.share,
    }


def g_function(X: np.ndarray) -> np.ndarray:
    """Sobol's g, with weights that grow."""
    a = np.arange(X.shape[1], dtype=float)
    return np.prod((np.abs(4.0 * X - 2.0) + a) / (1.0 + a), axis=1)


def sobol(kernel: str, dim: int, n: int) -> dict[str, Any]:
    """One row."""
    X, y = standardised(g_function, n, dim, 51)
    model = gpcert.as_posterior(fitted(shape_of(kernel, dim), X, y, 1e-3, n_restarts_optimizer=1))
    start = time.process_time()
    found = gpcert.sobol_indices(model, [uniform(0, 1)] * dim, progress=False)
    seconds = time.process_time() - start
    rng, sums, count, start = np.random.default_rng(0), np.zeros(dim), 0, time.process_time()
    values: list[np.ndarray] = []
    while count == 0 or time.process_time() - start < seconds:
        A, B = rng.uniform(size=(2, 1000, dim))
        ya, yb = model.mean(A)[:, 0], model.mean(B)[:, 0]
        values += [ya, yb]
        for j in range(dim):
            C = A.copy()
            C[:, j] = B[:, j]
            sums[j] += float(yb @ (model.mean(C)[:, 0] - ya))
        count += 1000
    first = sums / count / np.var(np.concatenate(values))
    low, high = found.first.T
    return {
        "kernel": kernel,
        "d": dim,
        "N": n,
        "seconds": seconds,
        "widest first": float(np.ptp(found.first, axis=1).max()),
        "widest total": float(np.ptp(found.total, axis=1).max()),
        "points": count * (dim + 2),
        "estimate outside": float(np.maximum(low - first, first - high).max()),
    }


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", choices=("level", "grid", "invariant", "sobol"))
    parser.add_argument("--quick", action="store_true", help="one model of each family")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of one level set")
    options = parser.parse_args()
    seeds = list(SEEDS)[:1] if options.quick else list(SEEDS)
    kinds = options.only or ("level", "grid", "invariant", "sobol")
    title = "99 % of the volume classified: a level set at the median, unit cube"
    levels = Section("level", title)
    grids = Section("grid", "A check at the points of a grid, mean - 2 std, as SafeOpt's")
    with threadpool_limits(1):
        for family in FAMILIES if {"level", "grid"} & set(kinds) else ():
            name = f"{family.function.__name__} d={family.dim} {family.kernel}"
            models = [surrogate(family, seed) for seed in seeds]
            for quantity in ("mean", "lcb") if "level" in kinds else ():
                row = level(family, models, quantity, options.seconds)
                levels.add(problem=name, N=family.points, **row)
            if "grid" in kinds:
                grids.add(problem=name, **grid_check(family, models, options.seconds))
        if "level" in kinds:
            levels.notes = [f"{len(seeds)} models each; CPU seconds, one thread."]
            merge(options.results, levels, "level", "sets")
        if "grid" in kinds:
            grids.notes = [
                f"Sums over {len(seeds)} models. False: one of {PROBES} points of the cell is "
                "proved to be outside. Of the cells that level_set calls inside none can be."
            ]
            merge(options.results, grids, "grid", "sets")
        if "invariant" in kinds:
            section = Section("invariant", "Abstractions of about 20,000 cells, mean +- 2 std")
            for case in CONTROL:
                section.add(**invariant(case))
            section.notes = ["CPU seconds, one thread: bounds of all images and the set."]
            merge(options.results, section, "invariant", "sets")
        if "sobol" in kinds:
            section = Section("sobol", "Sobol' indices of surrogates of Sobol's g, to 0.01")
            for kernel, sizes in ((SE, SIZES), (M52, SIZES[:2])):
                for dim, n in sizes:
                    section.add(**sobol(kernel, dim, n))
            section.notes = [
                "CPU seconds, one thread. Points: of Saltelli's estimator in the same time; "
                "outside: how far its worst first index lies beyond the proved interval."
            ]
            merge(options.results, section, "sobol", "sets")


if __name__ == "__main__":
    main()
