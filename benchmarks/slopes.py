"""Slopes, Lipschitz constants, monotony and fairness; see benchmarks/results/slopes.md.

    python benchmarks/slopes.py [--only lipschitz monotone fair predictions] [--quick]

One thread, CPU seconds, the conversion of the model left out. Lipschitz constants (l_2, to 1 %) of
surrogates whose parameters are fitted on 150 points, over the middle half of the unit cube and,
d = 10, over +-0.2 around its middle; against the constant of Lederer, Umlauft and Hirche (2019),
`L_k sqrt(N) |alpha|`, and against the largest of 500 sampled gradients (as Emukit samples them).
Monotony: both directions of every feature. Fairness: a made table of 1000 people.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from noiseless_problems import M52, SE, ackley, hartmann3, hartmann6, rosenbrock, standardised
from report import Section, command_line, merge
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import gpcert

FIRST, NOISE = 150, 1e-2
"""Points that parameters are fitted on, and their noise."""

SAMPLES, REPEATS = 500, 50
"""Emukit's number of sampled gradients, and how often they are drawn."""

FAMILIES = (
    (hartmann3, 3, SE, 500, 0.25, 1.0),
    (hartmann3, 3, M52, 500, 0.25, 1.0),
    (ackley, 4, SE, 500, 0.25, 1.0),
    (ackley, 4, M52, 500, 0.25, 1.0),
    (hartmann6, 6, SE, 500, 0.25, 1.0),
    (hartmann6, 6, M52, 500, 0.25, 1.0),
    (rosenbrock, 10, SE, 1000, 0.2, 10.0),
    (rosenbrock, 10, M52, 1000, 0.2, 10.0),
)


def process(kernel: str, d: int, X: np.ndarray, y: np.ndarray) -> GaussianProcessRegressor:
    """Parameters fitted on the first points, the process of all."""
    start, bounds = [0.5] * d, (0.1, 20.0)
    shape = RBF(start, bounds) if kernel == SE else Matern(start, bounds, nu=2.5)
    covariance = ConstantKernel(1.0, (1e-3, 1e4)) * shape
    first = GaussianProcessRegressor(covariance, alpha=NOISE, random_state=0)
    first.fit(X[:FIRST], y[:FIRST])
    return GaussianProcessRegressor(first.kernel_, alpha=NOISE, optimizer=None).fit(X, y)


def lipschitz(quick: bool) -> Section:
    """Proved and attained constants, and what others say."""
    section = Section("lipschitz", "Lipschitz constants of means, to 1 %")
    for function, d, kernel, N, half, target in FAMILIES[: 2 if quick else None]:
        X, y = standardised(function, N, d, seed=31)
        posterior = gpcert.as_posterior(process(kernel, d, X, y))
        box = gpcert.Box(np.full(d, 0.5 - half), np.full(d, 0.5 + half))
        start = time.process_time()
        found = gpcert.lipschitz(posterior, box, budget=60.0, progress=False)
        spent = time.process_time() - start
        sampled = np.array([largest_sample(posterior, box, seed) for seed in range(REPEATS)])
        section.add(
            problem=f"{function.__name__} d={d} {kernel}",
            N=N,
            half=half,
            target=target,
            seconds=spent,
            boxes=found.boxes,
            attained=found.lower,
            proved=found.upper,
            ratio=found.ratio,
            analytic_ratio=analytic(posterior, kernel) / found.upper,
            samples_too_small=f"{np.sum(sampled < found.lower)} of {REPEATS}",
            sampled_median=float(np.median(sampled)) / found.lower,
        )
    section.notes = [
        f"Parameters fitted on {FIRST} points, noise {NOISE:g}, one model each, seed 31. Analytic "
        "ratio: the constant of Lederer et al. over the proved one. Samples: the largest of "
        f"{SAMPLES} sampled gradients over the attained one, {REPEATS} draws; too small: below it."
    ]
    return section


def largest_sample(posterior: gpcert.Posterior, box: gpcert.Box, seed: int) -> float:
    """The largest gradient at random points."""
    X = np.random.default_rng(seed).uniform(box.lower, box.upper, (SAMPLES, len(box.lower)))
    weights = np.broadcast_to(posterior.weights[0], (len(X), posterior.weights.shape[1]))
    gradients = posterior.kernel.gradient_product(X, posterior.points, weights)
    return float(posterior.scale[0] * np.linalg.norm(gradients, axis=1).max())


def analytic(posterior: gpcert.Posterior, kernel: str) -> float:
    """`L_k sqrt(N) |alpha|` with the largest derivative of k, along the shortest length-scale."""
    lengths = np.asarray(posterior.kernel.typical_lengths(posterior.dim))
    variance = float(posterior.kernel.diagonal(posterior.points[:1])[0])
    # of exp(-r^2 / 2) at 1; of Matern 5/2, 5/3 r (1 + a r) exp(-a r), at a r = (1 + sqrt 5) / 2
    t = 0.5 * (1.0 + 5.0**0.5)
    steepest = np.exp(-0.5) if kernel == SE else 5.0**0.5 / 3.0 * t * (1.0 + t) * np.exp(-t)
    size = np.linalg.norm(posterior.weights[0]) * np.sqrt(len(posterior.points))
    return float(posterior.scale[0] * variance * steepest / lengths.min() * size)


def tables() -> list[tuple[str, Any, np.ndarray, np.ndarray]]:
    """Fitted models of tables, with the data."""
    X, y = load_diabetes(return_X_y=True)
    kernel = ConstantKernel() * RBF([3.0] * 10, (0.3, 1e3)) + WhiteKernel(0.5)
    found = [("diabetes, RBF", kernel, X, y)]
    X, y = make_friedman1(1000, 10, noise=1.0, random_state=0)
    kernel = ConstantKernel() * Matern([3.0] * 10, (0.3, 1e3), nu=2.5) + WhiteKernel(0.1)
    return [*found, ("friedman1, Matern 5/2", kernel, X, y)]


def monotone(quick: bool) -> Section:
    """Both directions of every feature, around the middle of the data."""
    section = Section("monotone", "Monotony of means, both directions of every feature")
    for name, kernel, X, y in tables()[: 1 if quick else None]:
        process = GaussianProcessRegressor(clone(kernel), normalize_y=True, random_state=0)
        first = make_pipeline(StandardScaler(), process).fit(X[: 2 * FIRST], y[: 2 * FIRST])
        fixed = GaussianProcessRegressor(first[-1].kernel_, optimizer=None, normalize_y=True)
        model = gpcert.as_posterior(make_pipeline(StandardScaler(), fixed).fit(X, y))
        for part in (0.25, 0.5, 1.0):
            half, statuses = part * X.std(axis=0), []
            box = gpcert.Box(np.median(X, axis=0) - half, np.median(X, axis=0) + half)
            start, boxes = time.process_time(), 0
            for sign in "+-":
                asked = dict.fromkeys(range(10), sign)
                table = gpcert.certify_monotone(model, box, asked, budget=30.0, progress=False)
                statuses += [row.status.name for row in table]
                boxes += sum(row.boxes for row in table)
            section.add(
                model=name,
                N=len(X),
                half_width=f"{part:g} std",
                target=10.0,
                seconds=time.process_time() - start,
                boxes=boxes,
                proved=statuses.count("ROBUST"),
                refuted=statuses.count("NOT_ROBUST"),
                open=statuses.count("UNKNOWN"),
            )
    section.notes = [
        f"Parameters fitted on {2 * FIRST} rows, 20 questions a row, boxes in all ten features "
        "around the medians; 30 s of wall clock for each direction's ten at most."
    ]
    return section


def people() -> tuple[pd.DataFrame, np.ndarray]:
    """A made table of applicants: whether they are given credit depends a little on their sex."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20.0, 70.0, 1000),
            "income": rng.lognormal(1.0, 0.5, 1000),
            "amount": rng.lognormal(0.5, 0.6, 1000),
            "months": rng.uniform(6.0, 60.0, 1000),
            "savings": rng.exponential(1.0, 1000),
            "sex": rng.choice(["f", "m"], 1000),
            "housing": rng.choice(["own", "rent", "free"], 1000),
        }
    )
    score = frame["income"] - frame["amount"] + 0.3 * frame["savings"] + 0.01 * frame["age"]
    score = score - 0.01 * frame["months"] + 0.15 * (frame["sex"] == "m")
    return frame, np.asarray(score - score.median() + rng.normal(0.0, 0.3, 1000))


def fair(quick: bool) -> Section:
    """Verdicts for 100 people: their neighbourhood, and similar ones of the other sex."""
    section = Section("fair", "Fairness of 100 individuals")
    frame, score = people()
    numbers = ["age", "income", "amount", "months", "savings"]
    columns = [("n", StandardScaler(), numbers), ("c", OneHotEncoder(), ["sex", "housing"])]
    gp = GaussianProcessRegressor(ConstantKernel() * RBF(3.0) + WhiteKernel(0.1), optimizer=None)
    models = {"rbf SVM": (SVC(gamma=0.2), score > 0, {}), "GP": (gp, score, {"delta": 0.5})}
    unit = frame[numbers].std()
    for name, (model, target, rule) in models.items():
        pipe = make_pipeline(ColumnTransformer(columns), model).fit(frame, target)
        posterior = gpcert.as_posterior(pipe)
        for similar in (None, 0.1):
            alike = None if similar is None else (similar * unit).to_dict()
            start, found = time.process_time(), []
            for _, row in frame.head(10 if quick else 100).iterrows():
                ends = {n: (row[n] - 0.05 * unit[n], row[n] + 0.05 * unit[n]) for n in numbers}
                held = {"sex": 0.0, "housing": ["free", "own", "rent"].index(row["housing"])}
                how: dict[str, Any] = {"similar": alike, "budget": 5.0, "progress": False, **rule}
                found.append(gpcert.certify_fair(posterior, ends | held, ["sex"], **how))
            statuses = [each.status.name for each in found]
            section.add(
                model=name,
                points=len(posterior.points),
                similar="the same" if similar is None else f"within {similar:g} std",
                individuals=len(found),
                target=10.0,
                seconds=time.process_time() - start,
                boxes=sum(each.boxes for each in found),
                fair=statuses.count("ROBUST"),
                unfair=statuses.count("NOT_ROBUST"),
                open=statuses.count("UNKNOWN"),
            )
    section.notes = [
        "A made table, 1000 people, five numbers, sex and housing one-hot. Everyone's region is "
        "+-0.05 standard deviations in all numbers; SVM: decisions, GP: scores that differ by 0.5."
    ]
    return section


def predictions(quick: bool) -> Section:
    """Slopes of probabilities and standard deviations, and curvature, of table models."""
    section = Section("predictions", "Slopes of probabilities and deviations, curvature")
    X, y = load_diabetes(return_X_y=True)
    y, features = (y > np.median(y)).astype(int), ["bmi", "bp", "s5"]
    columns = [2, 3, 8]
    kernel = ConstantKernel(4.0) * RBF([4.0] * 10)
    classifier = GaussianProcessClassifier(kernel, optimizer=None)
    model = gpcert.as_posterior(make_pipeline(StandardScaler(), classifier).fit(X, y))
    for part in (0.1,) if quick else (0.1, 0.3):
        half = part * X.std(axis=0) * np.isin(np.arange(10), columns)
        box = gpcert.Box(np.median(X, axis=0) - half, np.median(X, axis=0) + half)
        asked = {
            "probability rises": lambda box: gpcert.certify_monotone(
                model, box, dict.fromkeys(columns, "+"), quantity="probability", progress=False
            ),
            "mean convex": lambda box: gpcert.certify_monotone(
                model, box, dict.fromkeys(columns, "convex"), progress=False
            ),
            "Lipschitz of std": lambda box: gpcert.lipschitz(model, box, of="std", progress=False),
            "Lipschitz of probability": lambda box: gpcert.lipschitz(
                model, box, of="probability", progress=False
            ),
        }
        for name, ask in asked.items():
            start = time.process_time()
            answer = ask(box)
            seconds = time.process_time() - start
            rows = [answer] if isinstance(answer, gpcert.LipschitzBound) else list(answer)
            section.add(
                question=name,
                half_width=f"{part:g} std of {', '.join(features)}",
                seconds=seconds,
                boxes=sum(row.boxes for row in rows),
                answer=f"{answer.ratio:.4f}" if rows[0] is answer else answer.summary,
            )
    section.notes = [
        "A Gaussian process classifier of diabetes, 442 rows, above or below the median, squared "
        "exponential, ten features of which three move. Ratio: proved over attained constant."
    ]
    return section


SECTIONS = {"lipschitz": lipschitz, "monotone": monotone, "fair": fair, "predictions": predictions}


def main() -> None:
    """All sections, or those chosen."""
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="a part of each")
    options = parser.parse_args()
    with threadpool_limits(1):
        for name in options.only:
            merge(options.results, SECTIONS[name](options.quick), name, "slopes")


if __name__ == "__main__":
    main()
