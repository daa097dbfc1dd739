"""The paper's method beside Taylor's: the same problems, the same search, in one run.

    python benchmarks/methods.py --data FOLDER [--cache FOLDER] [--seconds 60] [--only NAME ...]

FOLDER holds `spambase.npz` and `mnist_358.npz`. Sections `ranges` and `wide`: probability ranges
(both sides, tol 0.01) of Laplace classifiers on subsets of the data, with the hyperparameters of
the fit to 1000 points, for the paper's radii and for larger ones. Section `kernels`: root bounds of
mean and variance for other kernels. Last results: benchmarks/results/methods.md.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from classification import steepest_pixels
from report import Section, command_line, merge
from sklearn.gaussian_process import GaussianProcessClassifier

import gpcert
from gpcert import kernels as k
from gpcert.api.running import Method
from gpcert.enclosures.goals import QuantityGoal
from gpcert.quantities import Mean, Variance
from gpcert.search import Problem, solve
from gpcert.testing.arb_reference import regression_posterior
from models import fitted

SECTIONS = ("ranges", "wide", "kernels")
TOLERANCE = 0.01
FINE = 1e-3
"""Tolerance of the reference that says how wide the true range is."""

METHODS: dict[str, dict[str, Any]] = {
    "taylor": {},
    "both": {"name": "both"},
    "paper (analytic)": {"name": "paper", "variance_bound": "analytic"},
    "paper (solver)": {"name": "paper", "variance_bound": "solver"},
}
"""Arguments of `gpcert.api.options.Method`; the verbs call the name `method`."""


class Question(NamedTuple):
    """A model, its number of training points, the ball's radius and the number of test points."""

    name: str
    N: int
    gamma: float
    points: int


QUESTIONS = [
    Question("synthetic2d-3", 50, 0.1, 3),
    Question("synthetic2d-3", 200, 0.1, 2),
    Question("synthetic2d-3", 1000, 0.1, 1),
    Question("spam", 100, 0.1, 2),
    Question("spam", 500, 0.1, 1),
    Question("mnist38", 200, 0.15, 2),
]
WIDE = [Question("synthetic2d-3", N, 0.5, 1) for N in (50, 200)]
"""Larger balls, where one box does not settle it."""


def posterior_of(
    question: Question, data: Path, cache: Path | None
) -> tuple[gpcert.Posterior, np.ndarray]:
    """The model on the first N training points, and test points."""
    whole, split = fitted(question.name, data, cache)
    X, y = split.X_train[: question.N], split.y_train[: question.N]
    model = GaussianProcessClassifier(whole.kernel_, optimizer=None).fit(X, y)
    posterior = gpcert.as_posterior(model)
    _ = posterior.norms, posterior.excess
    return posterior, split.X_test[: question.points]


def ball(question: Question, posterior: gpcert.Posterior, x: np.ndarray) -> gpcert.Ball:
    """All features, or the ten steepest pixels."""
    if question.name != "mnist38":
        return gpcert.Ball(x, question.gamma)
    pixels = steepest_pixels(posterior, x, 0)
    return gpcert.Ball(x, question.gamma, features=pixels, domain=(0.0, 1.0))


def width(found: gpcert.PredictionRange) -> float:
    """From the proved lower end of the minimum to the proved upper end of the maximum."""
    return found.maximum.upper - found.minimum.lower


def ranges(name: str, data: Path, cache: Path | None, seconds: float) -> Section:
    """Root width over true width, boxes and seconds of every method."""
    title = "larger balls" if name == "wide" else "radii of the paper"
    section = Section(name, f"Probability ranges by both families, tol 0.01: {title}")
    for question in WIDE if name == "wide" else QUESTIONS:
        posterior, points = posterior_of(question, data, cache)
        regions = [ball(question, posterior, x) for x in points]
        exact = [
            gpcert.prediction_range(
                posterior, region, tol=FINE, budget=gpcert.Budget(seconds=seconds)
            )
            for region in regions
        ]
        true = [e.maximum.lower - e.minimum.upper for e in exact]
        reference: dict[str, float] = {}
        for method, how in METHODS.items():
            options = {"method" if key == "name" else key: value for key, value in how.items()}
            row = _measured(posterior, regions, true, options, seconds / question.points)
            if not reference:
                reference = {key: row[key] for key in ("boxes", "seconds")}
            section.add(
                model=question.name,
                N=question.N,
                features=len(regions[0].free),
                gamma=question.gamma,
                points=question.points,
                method=method,
                **row,
                boxes_over_taylor=row["boxes"] / reference["boxes"],
                seconds_over_taylor=row["seconds"] / reference["seconds"],
            )
    section.notes = [
        "Medians over the test points. Root width: proved width of the range after one box, over "
        "the attained width (Taylor, tol 0.001). `gap`: proved width less attained width at the "
        "end; where not all converged, boxes and seconds are those of the time limit, and the "
        "ratios are lower bounds.",
        f"{seconds:g} s a problem and method, shared by its points; a solver's box may exceed it.",
        "Hyperparameters of scikit-learn's fit to 1000 points; the first N points of that sample.",
        "Paper (solver): Clarabel and HiGHS, bounds from safe duals; its relaxation shares the "
        "squares of the displacements between the points, which is tighter than the paper's own.",
    ]
    return section


def _measured(
    posterior: gpcert.Posterior,
    regions: list[gpcert.Ball],
    true: list[float],
    how: dict[str, Any],
    seconds: float,
) -> dict[str, Any]:
    roots, boxes, walls, gaps, done = [], [], [], [], 0
    for region, exact in zip(regions, true, strict=True):
        one = gpcert.Budget(seconds=None, boxes=1)
        root = gpcert.prediction_range(posterior, region, tol=0.0, budget=one, **how)
        start = time.perf_counter()
        found = gpcert.prediction_range(
            posterior, region, tol=TOLERANCE, budget=gpcert.Budget(seconds=seconds), **how
        )
        walls.append(time.perf_counter() - start)
        roots.append(width(root) / exact)
        boxes.append(found.boxes)
        gaps.append(width(found) - (found.maximum.lower - found.minimum.upper))
        done += found.converged
    return {
        "root_width": float(np.median(roots)),
        "boxes": float(np.median(boxes)),
        "seconds": float(np.median(walls)),
        "converged": f"{done}/{len(regions)}",
        "gap": float(np.median(gaps)),
    }


KERNELS: dict[str, k.Kernel] = {
    "squared exponential": k.SquaredExponential([0.7, 1.0]),
    "Matern 1/2": k.Matern([0.7, 1.0], 0.5),
    "Matern 3/2": k.Matern([0.7, 1.0], 1.5),
    "Matern 5/2": k.Matern([0.7, 1.0], 2.5),
    "rational quadratic": k.RationalQuadratic([0.7, 1.0], 1.0),
    "periodic": k.Periodic([2.0, 3.0], [1.0, 1.0]),
    "SE + linear": k.SquaredExponential(0.7) + k.Linear([0.3, 0.3]),
    "SE * cosine": k.SquaredExponential(0.7) * k.Cosine([0.3, 0.3]),
    "polynomial, degree 2": k.Polynomial(2, [0.3, 0.5], 0.5),
}


def kernels() -> Section:
    """Root widths of mean and variance, each over the true width."""
    section = Section("kernels", "Root bounds of regressions, N = 50, two features")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (50, 2))
    targets = (np.sin(2 * X[:, 0]) * X[:, 1])[None]
    for name, kernel in KERNELS.items():
        posterior = regression_posterior(kernel, X, targets, 1e-2)
        for half in (0.02, 0.1, 0.3):
            box = gpcert.Box([0.05 - half, 0.25 - half], [0.05 + half, 0.25 + half])
            for quantity in ("mean", "variance"):
                row: dict[str, float] = {}
                for method, how in METHODS.items():
                    row[method] = _root(posterior, box, quantity, how)
                section.add(kernel=name, half=half, quantity=quantity, **row)
    section.notes = [
        "Proved width after one box over the attained width; `both` takes the better end of each. "
        "Mean bounds of Taylor's method include the paper's lines already.",
    ]
    return section


def _root(
    posterior: gpcert.Posterior, box: gpcert.Box, quantity: str, how: dict[str, Any]
) -> float:
    """Proved over attained width after one box; the plain goals, without what the verbs add."""
    kind = Mean if quantity == "mean" else Variance
    asked = [kind(0, sign) for sign in (1, -1)]
    goals = Method(**how).goals(asked, 0, posterior) if how else [QuantityGoal(q) for q in asked]
    one = gpcert.Budget(seconds=None, boxes=1)
    low, high = solve(Problem(posterior, box, goals, tol=0.0, budget=one)).goals
    return (-high.lower - low.lower) / (-high.upper - low.upper)


def main() -> None:
    """Run the sections that were asked for."""
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the .npz files of real data")
    parser.add_argument("--cache", type=Path, help="folder for fitted models")
    parser.add_argument("--seconds", type=float, default=60.0, help="of a problem and method")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, metavar="NAME")
    given = parser.parse_args()
    if given.data is None and {"ranges", "wide"} & set(given.only):
        parser.error("the sections ranges and wide need --data FOLDER")
    for name in given.only:
        print(name)
        if name == "kernels":
            section = kernels()
        else:
            section = ranges(name, given.data, given.cache, given.seconds)
        merge(given.results, section, name, "methods")


if __name__ == "__main__":
    main()
