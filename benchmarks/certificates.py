"""What a check costs beside the search: `python benchmarks/certificates.py DATA` asks questions
about models of the demo, SPAM, MNIST38 (196 pixels), diabetes and Hartmann6 (hyper-parameters are
fixed, so that nothing is fitted for minutes), writes each certificate and checks it."""

from __future__ import annotations

import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import Section, command_line, merge
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import gpcert
from gpcert.study.datasets import Dataset, mnist, spambase, synthetic2d
from gpcert_check.cli import main as check

ROWS = 10
"""Points that each question is asked of."""

ASKED = 30.0
"""The ratio of medians that is asked for at most."""

Ask = Callable[[np.ndarray], Any]


def classifier(data: Dataset, length: float, N: int) -> tuple[Any, np.ndarray]:
    """A Laplace classifier of N points, and the test points."""
    kernel = ConstantKernel(9.0) * RBF(length)
    model = GaussianProcessClassifier(kernel, optimizer=None)
    rows = np.random.default_rng(0).permutation(len(data.X_train))[:N]
    return model.fit(data.X_train[rows], data.y_train[rows]), data.X_test


def regression(X: np.ndarray, y: np.ndarray, length: float) -> Any:
    """A posterior of scaled observations."""
    kernel = gpcert.kernels.SquaredExponential(length)
    K = kernel.value(X, X) + 0.01 * np.eye(len(X))
    return gpcert.Posterior(kernel, X, np.linalg.solve(K, y), training_noise=0.01)


def hartmann6(X: np.ndarray) -> np.ndarray:
    """The function of six inputs in [0, 1], times -1 at its best."""
    A = np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    )
    P = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    inner = np.sum(A * (X[:, None] - P) ** 2, axis=2)
    return -np.exp(-inner) @ np.array([1.0, 1.2, 3.0, 3.2])


def questions(folder: Path) -> Iterator[tuple[str, np.ndarray, Ask]]:
    """What is asked, of which points."""

    def decision(model: Any, radius: float) -> Ask:
        return lambda x: gpcert.certify(model, x, radius, budget=10, proof=True)

    def bounds(model: Any, radius: float, quantity: Any, tol: float) -> Ask:
        about: dict[str, Any] = {"quantity": quantity, "tol": tol, "proof": True}
        return lambda x: gpcert.prediction_range(model, x, radius, **about)

    model, X = classifier(synthetic2d(200, shift=3.0), 1.0, 200)
    yield "demo, N = 200, decision, radius 0.2", X, decision(model, 0.2)
    yield "demo, N = 200, probability to 1 %, radius 0.2", X, bounds(model, 0.2, None, 0.01)
    model, X = classifier(spambase(folder, features="all"), 8.0, 1000)
    yield "SPAM, N = 1000, d = 57, decision, radius 0.05", X, decision(model, 0.05)
    model, X = classifier(mnist((3, 8), folder, size=14), 4.0, 500)
    yield "MNIST38, N = 500, 196 pixels, decision, radius 0.02", X, decision(model, 0.02)
    yield "MNIST38, N = 500, 196 pixels, decision, radius 0.05", X, decision(model, 0.05)
    X, y = load_diabetes(return_X_y=True)
    X = X / X.std(axis=0)
    model = regression(X, (y - y.mean()) / y.std(), 4.0)
    yield "diabetes, N = 442, mean to 0.01, radius 0.3", X, bounds(model, 0.3, "mean", 0.01)
    X = np.random.default_rng(0).uniform(size=(200, 6))
    model = regression(X, hartmann6(X), 0.5)
    yield "Hartmann6, N = 200, mean to 0.01, radius 0.05", X, bounds(model, 0.05, "mean", 0.01)
    yield "Hartmann6, N = 200, std to 0.01, radius 0.02", X, bounds(model, 0.02, "std", 0.01)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and what comes back."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main(arguments: list[str] | None = None) -> None:
    """Ask, write, check; a row for each question."""
    parser = command_line(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args(arguments)
    section, ratios = Section("cost", "CPU seconds of a check beside those of the search"), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.cert")
        for name, X, ask in questions(options.data):
            ask(X[0])  # what is computed of a model once
            times, codes, boxes = [], [], []
            for x in X[1 : 1 + options.rows]:
                search, record = seconds(lambda ask=ask, x=x: ask(x))
                if record.proof is None:
                    continue  # undecided in time: there is nothing to check
                writing, _ = seconds(lambda record=record: record.save(path))
                with contextlib.redirect_stdout(io.StringIO()):
                    checking, code = seconds(lambda: check([str(path)]))
                times.append((search, writing, checking, checking / search))
                codes.append(code)
                boxes.append(record.boxes)
            if not times:
                continue
            ratios += [row[-1] for row in times]
            median = [statistics.median(column) for column in zip(*times, strict=True)]
            section.add(
                question=name,
                certificates=len(times),
                checked=codes.count(0),
                boxes=int(statistics.median(boxes)),
                search=median[0],
                writing=median[1],
                check=median[2],
                ratio=median[3],
                most=max(row[-1] for row in times),
            )
    section.notes.append(
        f"Medians over points; the median of all {len(ratios)} ratios is "
        f"{statistics.median(ratios):.3g} (at most {ASKED:g} asked)."
    )
    merge(options.results, section, "cost", "certificates")


if __name__ == "__main__":
    main()
