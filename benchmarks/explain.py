"""Seconds of the effects of features; see benchmarks/results/explain.md for the last ones.

    python benchmarks/explain.py --data FOLDER --cache FOLDER [--jobs 2]

FOLDER holds `spambase.npz` and `mnist_358.npz`. Targets: all 196 pixels of an image at N = 1000 in
2 s, 57 features of 100 points in 5 s, on two cores.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from multiclass_models import prepared_images
from report import Section, command_line, merge

import gpcert
from gpcert import explain
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier
from gpcert.study.datasets import Dataset, spambase
from models import fitted, sampled

REPEATS = 2


def spam57(folder: Path, cache: Path | None) -> tuple[Any, Dataset]:
    """A Laplace classifier of all 57 features with 1000 points, and its data."""
    data = sampled(spambase(folder))
    path = None if cache is None else cache / "spam57-kernel.joblib"
    epochs = 20
    kernel: Any = SquaredExponential(np.full(57, 5.0))
    if path is not None and path.exists():
        kernel, epochs = joblib.load(path), 0
    model = GPClassifier(
        kernel, likelihood="logistic", max_epochs=epochs, parameter_bounds=(0.1, 1e3)
    )
    model.fit(data.X_train, data.y_train)
    if path is not None:
        joblib.dump(model.kernel_, path)
    return model, data


def measure(section: Section, name: str, model: Any, X: np.ndarray, **options: Any) -> None:
    """Best wall and CPU seconds of a few runs, and what came out."""
    target = options.pop("target")
    posterior = gpcert.as_posterior(model)
    walls, cpus, found = [], [], None
    for _ in range(REPEATS):
        start = time.process_time()
        found = explain.effects(posterior, X, **options)
        walls.append(found.seconds)
        cpus.append(time.process_time() - start)
    assert found is not None
    section.add(
        model=name,
        points=len(np.atleast_2d(X)),
        features=len(found.features),
        outputs=len(found.outputs),
        radius=options["radius"],
        jobs=options["n_jobs"],
        seconds=min(walls),
        cpu_seconds=min(cpus),
        target_seconds=target,
        reached=None if target is None else bool(min(walls) <= target),
        boxes=found.boxes,
        widest=float(np.max(found.upper - found.lower)),
        largest_effect=float(np.abs(found.values).max()),
        outcome=found.reason.name,
    )


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--points", type=int, default=100)
    given = parser.parse_args()
    section = Section("effects", "Effects of features, N = 1000, intervals of width 0.001")
    images = {"n_jobs": given.jobs, "domain": (0.0, 1.0)}
    model, data = fitted("mnist38", given.data, given.cache)
    for radius in (0.1, 0.5):
        measure(section, "mnist38", model, data.X_test[0], radius=radius, target=2.0, **images)
    model, data = spam57(given.data, given.cache)
    X = data.X_test[: given.points]
    for radius in (0.1, 0.5):
        measure(section, "spam57", model, X, radius=radius, n_jobs=given.jobs, target=5.0)
    posterior, X_test, _, _ = prepared_images("mnist358", given.data, given.cache)
    measure(section, "mnist358", posterior, X_test[0], radius=0.1, target=None, **images)
    section.notes = [
        f"Best of {REPEATS} runs; CPU seconds are those of all threads together: half of them is "
        "what two free cores would take. Other work on the machine (see its load) adds to "
        "wall-clock seconds above all, and some to CPU seconds.",
        "mnist38: scikit-learn's Laplace classifier; spam57: logistic Laplace, all 57 features "
        "standardised; mnist358: softmax Laplace, all three classes are explained.",
    ]
    merge(given.results, section, "effects", "explain")


if __name__ == "__main__":
    main()
