"""Nearly noiseless models: ranges of mean +- 2 std, standard deviations of learned dynamics,
allowances at a point and rates; see benchmarks/results/noiseless.md for the last run.

    python benchmarks/noiseless.py [--only ranges allowance ...] [--quick] [--seconds 60]

Ranges: the whole unit cube, to 0.01 of the observations' standard deviation, one core; the models
are fitted by scikit-learn. The noise is the model's own (`alpha`), in units of the standardised
observations, which have none. Problems on which bounds were tuned, and those that are only
reported, are told apart. Allowance: the proved interval of a variance at a point over its value,
which is known to 15 digits from 200 bits (`tests/enclosures/variance_truth.py`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from noiseless_problems import PROBLEMS, QUICK, Problem
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from threadpoolctl import threadpool_limits

import gpcert
from report import Section, command_line, merge

sys.path.append(str(Path(__file__).parents[1]))  # the truth is that of the tests
from tests.enclosures.variance_truth import ExactVariance, contains

TOLERANCE, BETA = 0.01, 2.0

RATIOS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
"""Noise over the kernel's variance."""

SIZES = (100, 300, 1000)
ALLOWED = 0.01
"""Of v, down to a noise of 1e-10."""


def ranges(quick: bool, seconds: float) -> Section:
    """Boxes of a band over the unit cube."""
    section = Section("ranges", "Mean +- 2 std over the unit cube, tol 0.01")
    for problem in [PROBLEMS[k] for k in QUICK] if quick else PROBLEMS:
        section.add(**problem.names, **_range(problem, seconds))
    section.notes = [
        f"At most {seconds:g} s a question, one thread; gap: of the wider of both sides.",
        "Scale: square root of the fitted kernel's variance; the observations' deviation is 1. "
        "Before: boxes (or `open`) as they were with allowances from the factor's norm.",
        "Tuned on: looked at while the bounds were made; reported: never.",
    ]
    return section


def _range(problem: Problem, seconds: float) -> dict[str, Any]:
    model = problem.model
    cube = gpcert.Box([0.0] * problem.dim, [1.0] * problem.dim)
    cpu = time.process_time()
    found = gpcert.prediction_range(
        model,
        cube,
        tol=TOLERANCE,
        quantity="band",
        beta=BETA,
        budget=gpcert.Budget(seconds=seconds),
    )
    cpu = time.process_time() - cpu
    assert found.reason is not None
    target = problem.target
    return {
        "scale": float(np.sqrt(model.kernel_.k1.constant_value)),
        "boxes": found.boxes,
        "target": "converges" if target is None else target,
        "before": problem.before,
        "reached": bool(found.converged and (target is None or found.boxes <= target)),
        "status": found.reason.name,
        "gap": max(side.upper - side.lower for side in (found.minimum, found.maximum)),
        "seconds": found.seconds,
        "cpu_seconds": cpu,
    }


def allowance(quick: bool, seconds: float) -> Section:
    """Proved interval of the variance at a point, over its value."""
    section = Section("allowance", "Width of the proved interval of v at a point, over v; d = 2")
    shapes = {"squared exponential": RBF([0.3, 0.5]), "Matern 5/2": Matern([0.3, 0.5], nu=2.5)}
    for name, shape in shapes.items():
        for N in SIZES[:1] if quick else SIZES:
            rng = np.random.default_rng(N)
            X, y = rng.uniform(size=(N, 2)), rng.normal(size=N)
            near = X[1] + 1e-3 * rng.normal(size=2)
            asked = np.stack([*rng.uniform(size=(6, 2)), X[0], near])
            truth: ExactVariance | None = None
            for ratio in RATIOS:
                model = GaussianProcessRegressor(shape, alpha=ratio, optimizer=None).fit(X, y)
                posterior = gpcert.as_posterior(model)
                if truth is None:
                    truth = ExactVariance(posterior.kernel, posterior.points, ratio)
                section.add(kernel=name, N=N, **_allowance(posterior, truth, ratio, asked))
    section.notes = [
        "At six random points, a training point and one beside another: the median and the largest "
        f"width. Target: the largest at most {ALLOWED:g} down to a noise of 1e-10. Upper: the "
        "largest upper end over v. The kernel's variance is 1.",
    ]
    return section


def _allowance(model: Any, truth: ExactVariance, ratio: float, X: np.ndarray) -> dict[str, Any]:
    balls = truth.with_noise(ratio).variances(X)
    exact = [float(v.mid()) for v in balls]
    found = gpcert.bound_boxes(model, X, X, quantity="variance")["variance"][:, 0]
    widths = (found[:, 1] - found[:, 0]) / exact
    inside = [contains(*ends, ball) for ends, ball in zip(found, balls, strict=True)]
    return {
        "noise": ratio,
        "median_v": float(np.median(exact)),
        "median_width": float(np.median(widths)),
        "largest_width": float(widths.max()),
        "upper": float((found[:, 1] / exact).max()),
        "target": ALLOWED if ratio >= 1e-10 else None,
        "reached": bool(widths.max() <= ALLOWED) if ratio >= 1e-10 else None,
        "contains the truth": all(inside),
    }


SECTIONS: dict[str, Callable[[bool, float], Section]] = {"ranges": ranges, "allowance": allowance}


def main() -> None:
    """The sections that are asked for, all by default."""
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="few problems, small models")
    parser.add_argument("--seconds", type=float, default=60.0, help="most for one range")
    options: Any = parser.parse_args()
    with threadpool_limits(limits=1):
        for name in options.only:
            print(name, flush=True)
            section = SECTIONS[name](options.quick, options.seconds)
            merge(options.results, section, name, "noiseless")


if __name__ == "__main__":
    main()
