"""Nearly noiseless models: ranges of mean +- 2 std, standard deviations of learned dynamics,
allowances at a point and rates; see benchmarks/results/noiseless.md for the last run.

    python benchmarks/noiseless.py [--only ranges allowance ...] [--quick] [--seconds 60]

Ranges: the whole unit cube, to 0.01 of the observations' standard deviation, one core; the models
are fitted by scikit-learn. The noise is the model's own (`alpha`), in units of the standardised
observations, which have none. Problems on which bounds were tuned, and those that are only
reported, are told apart. Dynamics: standard deviations over small boxes beside exact ones inside
them, and a variance at a point with scikit-learn's default bounds. Allowance: the proved interval
of a variance at a point over its value, which is known to 15 digits from 200 bits
(`tests/enclosures/variance_truth.py`). Rates: boxes a second of one core, and a line of rough
observations to 1 %.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from noiseless_problems import (
    DYNAMICS,
    M52,
    PROBLEMS,
    QUICK,
    SE,
    Dynamics,
    Problem,
    fitted,
    hartmann6,
    rough_line,
    shape_of,
    standardised,
)
from report import Section, command_line, merge
from scale import CELL, learned_dynamics
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from threadpoolctl import threadpool_limits

import gpcert

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
    shapes = {SE: RBF([0.3, 0.5]), M52: Matern([0.3, 0.5], nu=2.5)}
    for name, shape in shapes.items():
        for N in SIZES[:1] if quick else SIZES:
            rng = np.random.default_rng(N)
            X, y = rng.uniform(size=(N, 2)), rng.normal(size=N)
            near = X[1] + 1e-3 * rng.normal(size=2)
            asked = np.stack([*rng.uniform(size=(6, 2)), X[0], near])
            for ratio in RATIOS:
                model = fitted(shape, X, y, ratio, optimizer=None)
                posterior: Any = gpcert.as_posterior(model)
                section.add(kernel=name, N=N, **_allowance(posterior, ratio, asked))
    section.notes = [
        "At six random points, a training point and one beside another: the median and the largest "
        "width, which has the target; below a noise of 1e-10 where products are accurate. Upper: "
        "the largest upper end over v. The kernel's variance is 1.",
    ]
    return section


def _allowance(model: Any, ratio: float, X: np.ndarray) -> dict[str, Any]:
    balls = ExactVariance(model.kernel, model.points, ratio).variances(X)
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
        "target": _allowed(ratio),
        "reached": bool(widths.max() <= ALLOWED),
        "contains the truth": all(inside),
    }


def _allowed(ratio: float) -> str:
    return f"{ALLOWED:g}" if ratio >= 1e-10 else f"{ALLOWED:g} with accurate products"


def dynamics(quick: bool, seconds: float) -> Section:
    """Proved standard deviations over small boxes, and a variance at a point."""
    section = Section("dynamics", "Learned dynamics: std over small boxes, variance at a point")
    for case in DYNAMICS[:1] if quick else DYNAMICS:
        section.add(**_boxes_of(case, 2_000 if quick else 20_000))
        section.add(**_at_a_point(case))
    section.notes = [
        "Boxes: a fortieth of the domain a side. Proved / sampled: upper end over the largest of "
        f"13 exact stds in the box, median over {COMPARED} boxes. Hyper-parameters are those of "
        "the evidence (GPRegressor), or of scikit-learn's fit within its default bounds.",
    ]
    return section


COMPARED = 40
"""Boxes in which the exact process is sampled."""


def _boxes_of(case: Dynamics, count: int) -> dict[str, Any]:
    model, rng = case.model, np.random.default_rng(1)
    posterior = model.posterior_
    sides = np.array(case.sides)
    half = sides / 40.0
    centers = rng.uniform(half - sides, sides - half, (count, 3))
    cpu = time.process_time()
    found = gpcert.bound_boxes(model, centers - half, centers + half, quantity="std")["std"][:, 0]
    cpu = time.process_time() - cpu
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3)
    places = np.concatenate([corners, np.zeros((1, 3)), rng.uniform(-1.0, 1.0, (4, 3))])
    X = (centers[:COMPARED, None] + half * places).reshape(-1, 3)
    noise = model.noise_ + model.fit_.jitter
    exact = ExactVariance(posterior.kernel, posterior.points, noise).variances(X)
    most = np.sqrt([float(v.mid()) for v in exact]).reshape(COMPARED, -1).max(axis=1)
    ratio = float(np.median(found[:COMPARED, 1] / most))
    return {
        **_about(case, float(posterior.kernel.diagonal(X[:1])[0]), noise),
        "boxes": count,
        "median proved std": float(np.median(found[:, 1])),
        "median sampled std": float(np.median(most)),
        "proved / sampled": ratio,
        "target": 1.5,
        "reached": ratio <= 1.5,
        "cpu_seconds": cpu,
        "twice as before": 2.0 * case.before * count / 20_000,
    }


def _about(case: Dynamics, variance: float, noise: float) -> dict[str, Any]:
    return {
        "dynamics": case.name,
        "use": "tuned on" if case.tuned else "reported",
        "N": case.points,
        "kernel variance": variance,
        "noise": noise,
    }


def _at_a_point(case: Dynamics) -> dict[str, Any]:
    X, y = case.data
    noise = case.noise_std**2
    model = fitted(ConstantKernel() * RBF([1.0] * 3), X, y, noise)
    posterior: Any = gpcert.as_posterior(model)
    x = np.full((1, 3), 0.1)
    found = gpcert.bound_boxes(model, x, x, quantity="variance")["variance"][0, 0]
    [ball] = ExactVariance(posterior.kernel, posterior.points, noise).variances(x)
    exact = float(ball.mid())
    width = float(found[1] - found[0]) / exact
    return {
        **_about(case, float(posterior.kernel.diagonal(x)[0]), noise),
        "variance at a point": f"[{found[0]:.4g}, {found[1]:.4g}]",
        "exact": exact,
        "width / exact": width,
        "target": _allowed(noise / float(posterior.kernel.diagonal(x)[0])),
        "reached": width <= ALLOWED,
        "contains the truth": contains(*found, ball),
    }


def rates(quick: bool, seconds: float) -> Section:
    """Boxes a CPU second."""
    section = Section("rates", "Boxes a second of one core")
    models = learned_dynamics()
    count = 4096 if quick else 16_384
    low = np.random.default_rng(2).uniform(0.0, 1.0 - CELL, (count, 3))
    for quantity, target in BOUND_BOXES.items():
        asked: Any = tuple(quantity.split(", "))
        cpu = time.process_time()
        gpcert.bound_boxes(models, low, low + CELL, quantity=asked)
        rate = count / (time.process_time() - cpu)
        row = {"question": "bound_boxes, N = 1000, d = 3, three outputs", "quantity": quantity}
        section.add(**row, boxes=count, rate=rate, target=target, reached=rate >= target)
    for name, model, quantity, target in _six_dimensions():
        N = len(model.X_train_)
        row = {"question": f"whole cube, {name}, N = {N}, d = 6", "quantity": quantity}
        section.add(**row, **_rate(model, quantity, target, 4.0 if quick else 15.0))
    section.add(**_line(2.0))
    section.notes = [
        "Per CPU second of one process with one thread. Targets of bound_boxes: half of what it "
        "did before on two cores, 21 800 and 4160 boxes a second. Whole cube: a search that is "
        "not to end, of models of Hartmann's function with noise 1e-4; N = 200 fitted by "
        "scikit-learn, N = 600 with lengths 0.5. The squared exponential is for comparison.",
        "Line: 510 points, Matern 3/2, standard deviations over 30 % of it to 1 % of the smallest; "
        "target: 2 s.",
    ]
    return section


BOUND_BOXES = {"mean": 10_900, "mean, std": 2_080}
"""Boxes a second of one core."""


def _six_dimensions() -> Iterator[tuple[str, Any, str, int | None]]:
    """Models with what is asked of them, and how many boxes a second there should be."""
    few, many = (standardised(hartmann6, N, 6, seed=5) for N in (200, 600))
    for name, target in ((SE, None), (M52, 4000)):
        model = fitted(shape_of(name, 6), *few, 1e-4)
        for quantity in ("std", "band"):
            yield name, model, quantity, target
    for name, nu in (("Matern 3/2", 1.5), ("Matern 1/2", 0.5)):
        yield name, fitted(Matern([0.5] * 6, nu=nu), *many, 1e-4, optimizer=None), "std", 1000


def _rate(model: Any, quantity: Any, target: int | None, seconds: float) -> dict[str, Any]:
    cube, cpu = gpcert.Box([0.0] * 6, [1.0] * 6), time.process_time()
    budget = gpcert.Budget(seconds=seconds, boxes=200_000)
    found = gpcert.prediction_range(
        model, cube, tol=1e-6, quantity=quantity, sides="maximum", budget=budget
    )
    rate = found.boxes / (time.process_time() - cpu)
    reached = None if target is None else rate >= target
    return {"boxes": found.boxes, "rate": rate, "target": target, "reached": reached}


def _line(target: float) -> dict[str, Any]:
    model = rough_line()
    inside = np.linspace(0.35, 0.65, 2001)[:, None]
    tol = 0.01 * float(model.predict(inside, return_std=True)[1].min())
    box, budget = gpcert.Box([0.35], [0.65]), gpcert.Budget(seconds=10.0)
    cpu = time.process_time()
    found = gpcert.prediction_range(model, box, tol=tol, quantity="std", budget=budget)
    cpu = time.process_time() - cpu
    low, high = found.minimum, found.maximum
    return {
        "question": "line, Matern 3/2, N = 510, to 1 %",
        "quantity": "std",
        "boxes": found.boxes,
        "rate": found.boxes / cpu,
        "seconds": found.seconds,
        "cpu_seconds": cpu,
        "smallest": f"[{low.lower:.4g}, {low.upper:.4g}]",
        "largest": f"[{high.lower:.4g}, {high.upper:.4g}]",
        "target seconds": target,
        "reached": bool(found.converged and cpu <= target),
    }


SECTIONS: dict[str, Callable[[bool, float], Section]] = {
    "ranges": ranges,
    "allowance": allowance,
    "dynamics": dynamics,
    "rates": rates,
}


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
