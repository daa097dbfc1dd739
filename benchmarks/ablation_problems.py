"""Problems for the ablation: none of them was looked at while the engine was tuned.

The engine's constants were chosen on Synthetic2D, SPAM, MNIST (3/8, 3/5/8), Fashion, scikit-learn's
digits, and on regressions with uniform points and targets from the prior or from sums of sines
(seeds 0 to 5: `problems`, `kernels`, `tightness`, `multiclass_models`, `svm`). Here: clustered
points with targets from random networks of tanh units, scikit-learn's wine and breast cancer data,
and Gaussian classes, all with seeds from `SEED` on; and the fitted surrogates of
`noiseless_problems` that nothing was tuned on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from noiseless_problems import PROBLEMS as SURROGATES
from noiseless_problems import SE as SQUARED_EXPONENTIAL
from noiseless_problems import Problem as Surrogate
from problems import exact
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gpcert
from gpcert import kernels as k
from gpcert.likelihoods import Gaussian, MultinomialProbit, Probit, Softmax
from gpcert.models import GPClassifier

SEED = 7001
NOISE = 0.02
GAUSSIAN = Gaussian()


Question = Callable[[gpcert.Budget], Any]
Source = str | tuple[int, ...]


class Outcome(NamedTuple):
    """`ends` are proved intervals of the same numbers whatever the engine leaves out."""

    boxes: int
    closed: bool
    gap: float
    ends: tuple[tuple[float, float], ...]
    seconds: float


@dataclass(frozen=True)
class Problem:
    """`words` say which pieces may be felt; `make` gives the question, asked with some `boxes`."""

    name: str
    words: str
    make: Callable[[], Question]
    boxes: int = 6000

    @property
    def total(self) -> bool:
        """Whether many searches are made, of which each has the limit."""
        return "radius" in self.name

    def ask(self, question: Question, boxes: int) -> Outcome:
        """One answer, by CPU seconds."""
        start = time.process_time()
        found = question(gpcert.Budget(seconds=None, boxes=boxes))
        seconds = time.process_time() - start
        if isinstance(found, gpcert.PredictionRange):
            ends = tuple((i.lower, i.upper) for i in (found.minimum, found.maximum))
            gap = max(high - low for low, high in ends)
            return Outcome(found.boxes, found.converged, gap, ends, seconds)
        if isinstance(found, gpcert.Radius):
            gap = 1.0 - found.lower / found.upper
            ends = ((found.lower, found.upper),)
            return Outcome(found.boxes, found.reason.name == "CONVERGED", gap, ends, seconds)
        decided = found.status.name != "UNKNOWN"
        ends = ((found.margin.lower, found.margin.upper),)
        return Outcome(found.boxes, decided, 0.0 if decided else 1.0, ends, seconds)


def regression(
    kernel: k.Kernel, d: int, N: int, seed: int, likelihood: Any = GAUSSIAN
) -> tuple[gpcert.Posterior, np.ndarray]:
    """An exact posterior of points around five centres, targets from eight tanh units; and a point
    beside the data."""
    rng = np.random.default_rng(SEED + seed)
    X = rng.normal(size=(5, d))[rng.integers(5, size=N)] + 0.5 * rng.normal(size=(N, d))
    slopes, shifts = rng.normal(size=(d, 8)) / np.sqrt(d), rng.normal(size=8)
    y = np.tanh(2.0 * X @ slopes + shifts) @ rng.normal(size=8) / 2.0
    y = y + np.sqrt(NOISE) * rng.normal(size=N)
    model = gpcert.Posterior(kernel, X, *exact(kernel, X, y, NOISE), likelihood=likelihood)
    return model, X[0] + 0.1 * rng.normal(size=d)


def ranged(
    kernel: k.Kernel,
    d: int,
    N: int,
    half: Any,
    seed: int,
    likelihood: Any = GAUSSIAN,
    **asked: Any,
) -> Callable[[], Question]:
    """A range over a box of the given half-width."""

    def make() -> Question:
        model, x = regression(kernel, d, N, seed, likelihood)
        asked.setdefault("tol", 0.01)
        return lambda budget: gpcert.prediction_range(model, x, half, budget=budget, **asked)

    return make


def data(source: Source) -> tuple[np.ndarray, np.ndarray]:
    """A scikit-learn data set, standardised, in an order of its own; or classes, overlapping unless
    said to be so many standard deviations apart."""
    if not isinstance(source, str):
        m, d, N, seed, *apart = source
        rng, y = np.random.default_rng(SEED + seed), np.arange(N) % m
        far = apart[0] if apart else 1.5
        return (far * rng.normal(size=(m, d))[y] + rng.normal(size=(N, d))) / np.sqrt(d), y
    loads = {"wine": load_wine, "iris": load_iris, "cancer": load_breast_cancer}
    X, y = loads[source](return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(X))
    return StandardScaler().fit_transform(X)[order], y[order]


def fitted(kind: str, X: np.ndarray, y: np.ndarray) -> Any:
    """A classifier with fixed parameters, length-scales near the spread of the points."""
    d = X.shape[1]
    length = 0.8 * float(np.sqrt(np.sum(X.var(axis=0))))
    if kind == "svm":
        return SVC(C=2.0, gamma=0.5).fit(X, y)
    if kind == "softmax":
        kernel = SE(each(d, length), variance=4.0)
        return GPClassifier(kernel, likelihood="softmax", max_epochs=0).fit(X, y)
    if kind == "varying":  # beside the data the variance changes a lot
        kernel = SE(each(d, 0.5 * length), variance=30.0)
        return GPClassifier(kernel, likelihood="softmax", max_epochs=0).fit(X, y)
    if kind == "matern":
        return GPClassifier(Matern(each(d, length), nu=2.5), max_epochs=0).fit(X, y)
    if kind == "mixed":
        return mixed(X, y)
    if kind in ("apart", "probit"):
        return independent(X, y, Softmax() if kind == "apart" else MultinomialProbit())
    if kind == "separable":  # the evidence of such classes grows with the amplitude
        rbf = ConstantKernel(3600.0, "fixed") * RBF(1.5 * length, "fixed")
        return GaussianProcessClassifier(rbf, optimizer=None).fit(X, y)
    rbf = ConstantKernel(4.0, "fixed") * RBF(length, "fixed")
    return GaussianProcessClassifier(rbf, optimizer=None, multi_class=kind).fit(X, y)


def independent(X: np.ndarray, y: np.ndarray, likelihood: Any) -> gpcert.Posterior:
    """Independent latent functions under a link: regressions of the classes' indicators."""
    kernel, m = SE(each(X.shape[1], 1.0), variance=4.0), int(y.max()) + 1
    parts = [exact(kernel, X, 4.0 * (y == c) - 2.0, 0.3) for c in range(m)]
    weights, factor = (np.stack(each) for each in zip(*parts, strict=True))
    return gpcert.Posterior(kernel, X, weights, factor, likelihood=likelihood, classes=range(m))


def mixed(X: np.ndarray, y: np.ndarray) -> gpcert.Posterior:
    """Classes that mix fewer outputs: regressions of codes, and links along the same codes."""
    kernel, m = SE(each(X.shape[1], 1.0), variance=4.0), int(y.max()) + 1
    codes = np.random.default_rng(SEED).normal(size=(m, m // 2 + m % 2))
    parts = [exact(kernel, X, 2.0 * code[y], 0.3) for code in codes.T]
    weights, factor = (np.stack(each) for each in zip(*parts, strict=True))
    link = Softmax(mixing=codes)
    return gpcert.Posterior(kernel, X, weights, factor, likelihood=link, classes=range(m))


def classified(
    kind: str,
    source: Source,
    index: int,
    radius: float | None,
    asked: Any,
    features: int | None = None,
) -> Callable[[], Question]:
    """About a point that is not trained on, and its first features only if so many are named.

    A decision where nothing is `asked`, a radius where none is given, else a range.
    """

    def make() -> Question:
        X, y = data(source)
        model, x = gpcert.as_posterior(fitted(kind, X[20:, :features], y[20:])), X[index, :features]
        if radius is None:
            return lambda budget: gpcert.certified_radius(model, x, budget=budget, **asked)
        verb = gpcert.prediction_range if asked else gpcert.certify
        return lambda budget: verb(model, x, radius, budget=budget, **asked)

    return make


SE, Matern, RQ = k.SquaredExponential, k.Matern, k.RationalQuadratic


def each(d: int, value: float) -> np.ndarray:
    """Length-scales."""
    return np.full(d, value)


def uneven(d: int, largest: float) -> np.ndarray:
    """Half-widths, each of another size."""
    return np.geomspace(0.1 * largest, largest, d)


SUM = SE(each(2, 1.0)) + 0.3 * Matern(each(2, 1.0), nu=1.5)
NESTED = RQ(each(3, 2.0), 2.0) * k.Linear(each(3, 1.0)) + Matern(each(3, 2.0), nu=2.5)
MEAN: dict[str, Any] = {"quantity": "mean"}
SLICE: dict[str, Any] = {"quantity": "mean", "features": [1, 5, 9]}
SLICE_PROBIT: dict[str, Any] = {"likelihood": Probit(), "features": [0, 6, 11]}
VARIANCE: dict[str, Any] = {"quantity": "variance"}
STD: dict[str, Any] = {"quantity": "std"}
BAND: dict[str, Any] = {"quantity": "band", "beta": 2.0}
PROBIT: dict[str, Any] = {"likelihood": Probit()}
ROUND: dict[str, Any] = {"quantity": "mean", "norm": 2}
ROUND_PROBIT: dict[str, Any] = {"likelihood": Probit(), "norm": 2}

RANGES: list[tuple[str, str, k.Kernel, int, int, Any, dict[str, Any]]] = [
    ("mean SE, huge", "mean se wide", SE(0.2), 1, 50, 20.0, MEAN),
    ("mean SE, wide", "mean se wide", SE(each(2, 0.4)), 2, 300, 1.5, MEAN),
    ("mean SE", "mean se", SE(each(5, 1.5)), 5, 1000, 0.6, MEAN),
    ("mean SE", "mean se", SE(each(10, 2.0)), 10, 200, 0.4, MEAN),
    ("mean SE", "mean many", SE(each(20, 4.0)), 20, 500, 0.2, MEAN),
    ("mean Matern 1/2", "mean rough", Matern(1.0, nu=0.5), 1, 50, 1.0, MEAN),
    ("mean Matern 1/2", "mean rough", Matern(each(2, 2.0), nu=0.5), 2, 200, 0.5, MEAN),
    ("mean Matern 3/2", "mean rough", Matern(each(3, 1.5), nu=1.5), 3, 500, 0.5, MEAN),
    ("mean Matern 3/2", "mean rough", Matern(each(6, 2.5), nu=1.5), 6, 200, 0.35, MEAN),
    ("mean Matern 5/2, wide", "mean rough", Matern(each(2, 0.8), nu=2.5), 2, 1000, 1.0, MEAN),
    ("mean Matern 5/2", "mean rough", Matern(each(5, 2.0), nu=2.5), 5, 500, 0.45, MEAN),
    ("mean Matern 5/2", "mean rough", Matern(each(10, 3.0), nu=2.5), 10, 300, 0.3, MEAN),
    ("mean Matern 5/2", "mean rough", Matern(each(20, 5.0), nu=2.5), 20, 200, 0.1, MEAN),
    ("mean RQ", "mean rough", RQ(each(4, 1.5), 1.5), 4, 200, 0.5, MEAN),
    ("mean SE + Matern 3/2", "mean rough", SUM, 2, 200, 0.8, MEAN),
    ("mean SE * periodic", "mean rough", SE(2.0) * k.Periodic(1.5, 1.0), 1, 100, 2.0, MEAN),
    ("mean RQ * linear + Matern 5/2", "mean rough", NESTED, 3, 150, 0.3, MEAN),
    ("mean SE, 3 free", "mean se slice", SE(each(20, 2.0)), 20, 400, 1.2, SLICE),
    ("variance SE, wide", "latent se wide", SE(each(2, 0.4)), 2, 300, 0.8, VARIANCE),
    ("variance SE", "latent se", SE(each(6, 2.0)), 6, 100, 0.8, VARIANCE),
    ("std Matern 5/2", "latent rough", Matern(each(3, 1.5), nu=2.5), 3, 200, 0.5, STD),
    ("variance Matern 3/2", "latent rough", Matern(each(2, 1.0), nu=1.5), 2, 500, 0.2, VARIANCE),
    ("variance RQ", "latent rough", RQ(each(3, 1.0), 2.0), 3, 200, 0.6, VARIANCE),
    ("band SE", "latent se", SE(each(3, 1.0)), 3, 300, 0.9, BAND),
    ("band Matern 3/2", "latent rough", Matern(each(2, 1.5), nu=1.5), 2, 100, 0.5, BAND),
    ("probit SE, wide", "latent se wide", SE(0.3), 1, 50, 3.0, PROBIT),
    ("probit SE, wide", "latent se wide", SE(each(3, 0.8)), 3, 100, 1.3, PROBIT),
    ("probit SE", "latent se", SE(each(5, 1.5)), 5, 500, 0.8, PROBIT),
    ("probit SE", "latent se", SE(each(10, 2.5)), 10, 200, 0.5, PROBIT),
    ("probit Matern 1/2", "latent rough", Matern(1.0, nu=0.5), 1, 50, 0.5, PROBIT),
    ("probit Matern 5/2", "latent rough", Matern(each(6, 2.5), nu=2.5), 6, 300, 0.4, PROBIT),
    ("variance SE, huge", "latent se wide", SE(0.3), 1, 50, 15.0, VARIANCE),
    ("mean SE, ball", "mean se ball", SE(each(5, 1.5)), 5, 300, 0.9, ROUND),
    ("mean Matern 5/2, ball", "mean rough ball", Matern(each(4, 2.0), nu=2.5), 4, 400, 0.7, ROUND),
    ("probit SE, ball", "latent many ball", SE(each(20, 4.0)), 20, 300, 0.5, ROUND_PROBIT),
    ("mean SE, uneven", "mean many", SE(each(20, 4.0)), 20, 400, uneven(20, 1.0), MEAN),
    ("probit SE, uneven", "latent many", SE(each(15, 3.0)), 15, 300, uneven(15, 1.2), PROBIT),
    ("variance Matern 5/2", "latent rough", Matern(each(4, 2.0), nu=2.5), 4, 600, 0.4, VARIANCE),
    ("probit Matern 3/2", "latent rough", Matern(each(3, 1.5), nu=1.5), 3, 500, 0.4, PROBIT),
    ("mean SE, 3 free", "mean se slice", SE(each(12, 1.8)), 12, 300, 1.0, SLICE),
    ("probit SE, 3 free", "latent se slice", SE(each(16, 2.2)), 16, 250, 1.2, SLICE_PROBIT),
]
"""Regressions: words, kernel, features, points, half-width(s) of the box, and what is asked."""

SEEDS = (*range(17), *range(19, 19 + len(RANGES) - 17))
"""Of the regressions, beyond `SEED`."""

FIRST: dict[str, Any] = {"output": 0, "tol": 0.02}
THREE: dict[str, Any] = {"features": [0, 7, 20]}
TIGHT: dict[str, Any] = {"output": 0, "tol": 0.002}
TIGHTER: dict[str, Any] = {"output": 0, "tol": 0.001}
PLAIN: dict[str, Any] = {"tol": 0.01}
CLOSE, COARSE = {"rtol": 0.02}, {"rtol": 0.1}
REST, PAIRS = "one_vs_rest", "one_vs_one"
COUPLED = "classes many_classes coupled"
MANY = f"{COUPLED} many"

CLASSIFIERS: list[tuple[str, str, tuple[Any, ...], int]] = [
    ("cancer, 3 of 30", "latent slice", (REST, "cancer", 0, 4.0, THREE), 6000),
    ("2 separable, wide, d=2", "latent", ("separable", (2, 2, 300, 68, 5), 0, 0.7, PLAIN), 1000),
    ("2 separable, wide, d=3", "latent", ("separable", (2, 3, 300, 69, 5), 0, 0.7, PLAIN), 1000),
    ("cancer, decision, d=30", "latent many", (REST, "cancer", 2, 0.34, {}), 300),
    ("cancer, radius, d=30", "latent many", (REST, "cancer", 1, None, CLOSE), 200),
    (
        "cancer Matern 5/2, radius, d=8",
        "latent rough",
        ("matern", "cancer", 4, None, CLOSE, 8),
        400,
    ),
    ("wine softmax, wide, d=2", "classes wide", ("softmax", "wine", 0, 0.8, FIRST, 2), 1000),
    ("wine softmax, d=13", "classes many", ("softmax", "wine", 1, 0.1, FIRST), 1000),
    ("wine softmax, decision, d=5", "classes", ("softmax", "wine", 7, 0.4, {}, 5), 1000),
    (
        "wine softmax, radius, d=13",
        "classes many",
        ("softmax", "wine", 3, None, COARSE),
        40,
    ),
    ("iris softmax, radius, d=4", "classes", ("softmax", "iris", 7, None, CLOSE), 200),
    ("iris softmax, near radius, d=4", "classes", ("softmax", "iris", 2, None, CLOSE), 200),
    ("3 softmax, radius, d=60", "classes many", ("softmax", (3, 60, 240, 71), 1, None, CLOSE), 12),
    ("4 softmax, d=3", "classes", ("softmax", (4, 3, 120, 31), 0, 0.12, FIRST), 400),
    ("6 softmax, decision, d=2", COUPLED, ("softmax", (6, 2, 120, 32), 0, 0.1, {}), 60),
    (
        "8 independent, d=4",
        "classes many_classes",
        ("apart", (8, 4, 160, 33), 0, 0.1, FIRST),
        400,
    ),
    (
        "10 independent, decision, d=30",
        "classes many many_classes",
        ("apart", (10, 30, 200, 34), 0, 0.03, {}),
        20,
    ),
    ("6 softmax, d=3", COUPLED, ("softmax", (6, 3, 150, 61), 0, 0.2, FIRST), 400),
    ("8 softmax, decision, d=20", MANY, ("softmax", (8, 20, 240, 62), 0, 0.12, {}), 60),
    ("5 softmax, radius, d=6", COUPLED, ("softmax", (5, 6, 150, 63), 1, None, COARSE), 40),
    ("7 softmax apart, d=30", MANY, ("softmax", (7, 30, 420, 64, 3), 0, 0.08, FIRST), 100),
    ("9 softmax, varying, d=5", COUPLED, ("varying", (9, 5, 200, 65), 0, 0.05, FIRST), 100),
    ("3 softmax, wide, d=10", "classes", ("softmax", (3, 10, 300, 66), 0, 0.1, FIRST), 400),
    ("3 softmax, tight, d=2", "classes", ("softmax", (3, 2, 60, 51), 0, 0.3, TIGHT), 1000),
    ("3 softmax, tighter, d=2", "classes", ("softmax", (3, 2, 90, 72), 0, 0.3, TIGHTER), 1000),
    ("5 softmax, tighter, d=2", COUPLED, ("softmax", (5, 2, 100, 73), 0, 0.2, TIGHTER), 1000),
    ("3 probit, wide, d=3", "classes probit", ("probit", (3, 3, 90, 75), 0, 0.8, FIRST), 1000),
    ("3 probit, wide, d=2", "classes probit", ("probit", (3, 2, 90, 76), 0, 1.2, FIRST), 1000),
    ("3 softmax, radius, d=30", "classes many", ("softmax", (3, 30, 200, 74), 2, None, CLOSE), 12),
    ("3 softmax, varying, d=3", "classes", ("varying", (3, 3, 60, 36), 0, 0.25, FIRST), 1000),
    ("3 softmax apart, d=3", "classes", ("varying", (3, 3, 90, 38, 4), 1, 0.3, TIGHT), 1000),
    ("3 one-vs-rest, tight, d=2", "committee", (REST, (3, 2, 60, 37), 0, 0.3, TIGHT), 1000),
    ("wine one-vs-rest, tight, d=3", "committee", (REST, "wine", 4, 0.3, TIGHT, 3), 1000),
    ("wine one-vs-rest, d=4", "committee", (REST, "wine", 4, 0.4, FIRST, 4), 1000),
    (
        "wine one-vs-rest, radius, d=13",
        "committee many",
        (REST, "wine", 5, None, COARSE),
        100,
    ),
    (
        "wine one-vs-one, radius, d=13",
        "committee many",
        (PAIRS, "wine", 6, None, CLOSE),
        100,
    ),
    (
        "SVM, 5 classes, radius, d=60",
        "svm many",
        ("svm", (5, 60, 400, 41), 0, None, CLOSE),
        100,
    ),
    ("SVM, 8 classes, radius, d=4", "svm", ("svm", (8, 4, 400, 42), 1, None, CLOSE), 300),
    ("4 mixed of 2, d=2", "classes mixed", ("mixed", (4, 2, 80, 84), 1, 0.3, FIRST), 1000),
    ("5 mixed of 3, d=3", "classes mixed", ("mixed", (5, 3, 100, 85), 0, 0.2, FIRST), 1000),
    ("wine mixed, d=4", "classes mixed", ("mixed", "wine", 10, 0.4, FIRST, 4), 1000),
    ("iris mixed, radius, d=4", "classes mixed", ("mixed", "iris", 13, None, COARSE), 200),
    ("4 probit, d=2", "classes probit", ("probit", (4, 2, 80, 81), 1, 0.5, FIRST), 1000),
    ("wine probit, d=4", "classes probit", ("probit", "wine", 9, 0.5, FIRST, 4), 1000),
    ("iris one-vs-rest, tight, d=4", "committee", (REST, "iris", 11, 0.25, TIGHT), 1000),
    ("4 one-vs-rest, tight, d=3", "committee", (REST, (4, 3, 100, 82), 2, 0.25, TIGHT), 1000),
    ("SVM, wine, radius, d=13", "svm many", ("svm", "wine", 12, None, CLOSE), 100),
    ("SVM, 3 classes, radius, d=20", "svm many", ("svm", (3, 20, 500, 83), 3, None, CLOSE), 200),
]
"""Words, the arguments of `classified`, and the boxes of a search."""


def surrogate(problem: Surrogate) -> Callable[[], Question]:
    """Mean +- 2 std of a surrogate that was fitted by its evidence, over the unit cube."""

    def make() -> Question:
        model = gpcert.as_posterior(problem.model)
        cube = gpcert.Box(np.zeros(problem.dim), np.ones(problem.dim))
        asked: dict[str, Any] = {"quantity": "band", "beta": 2.0, "tol": 0.01}
        return lambda budget: gpcert.prediction_range(model, cube, budget=budget, **asked)

    return make


def surrogate_name(problem: Surrogate) -> str:
    """Function, kernel, features, points and noise."""
    kernel = "SE" if problem.kernel == SQUARED_EXPONENTIAL else problem.kernel
    name = f"{problem.function.__name__} {kernel}, d={problem.dim} N={problem.points}"
    return f"{name} noise={problem.noise:g}"


PROBLEMS = (
    *(
        Problem(f"{name}, d={d} N={N}", words, ranged(kernel, d, N, half, seed, **asked))
        for seed, (name, words, kernel, d, N, half, asked) in zip(SEEDS, RANGES, strict=True)
    ),
    *(
        Problem(name, words, classified(*arguments), boxes)
        for name, words, arguments, boxes in CLASSIFIERS
    ),
    *(
        Problem(
            surrogate_name(problem),
            f"latent {'se' if problem.kernel == SQUARED_EXPONENTIAL else 'rough'}",
            surrogate(problem),
        )
        for problem in SURROGATES
        if not problem.tuned and problem.function.__name__ != "branin"
    ),
)
