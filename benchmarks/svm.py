"""Decisions of support vector machines; see benchmarks/results/svm.md for the last run.

    python benchmarks/svm.py [--data FOLDER] [--points 60]

Ten classes, 784 inputs: the shape of SAVer's MNIST models. Ten-class MNIST is not among our data,
so scikit-learn's 8 x 8 digits are enlarged to 28 x 28 (bilinear). With `--data` also the pixels of
three classes of MNIST and of Fashion-MNIST, with more support vectors. One box a point, all pixels
free: `proved` is the strength of the root bound. `ms per point` is `certify_many` over all points,
`alone` one `certify` of each, both on one thread, in seconds of the processor: the best of `RUNS`.
Targets: rbf 1.5 times 29 ms per 1000 support vectors, polynomials 20 ms, linear 2 ms.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import Section, command_line, merge
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import gpcert
from gpcert.study.datasets import Dataset, fashion, mnist

RADII = (0.02, 0.05, 0.07)
RUNS = 2
ALONE = 10
"""Points that are also certified one by one."""

SIDE = 28
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear", "C": 0.05},
    "poly 2": {"kernel": "poly", "degree": 2, "coef0": 1.0, "C": 0.05},
    "poly 3": {"kernel": "poly", "degree": 3, "coef0": 0.0, "C": 0.05},
    "poly 9": {"kernel": "poly", "degree": 9, "coef0": 1.0, "C": 1e-4},
    "rbf": {"kernel": "rbf", "C": 0.4},
}

Sample = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Training inputs and classes, and inputs to certify."""


def target(kernel: str, support_vectors: int) -> float:
    """Milliseconds a point."""
    if kernel == "rbf":
        return 1.5 * 29.0 * support_vectors / 1000.0
    return 2.0 if kernel == "linear" else 20.0


def enlarged_digits(points: int) -> Sample:
    """Ten classes of enlarged digits."""
    digits = load_digits()
    images = np.stack([zoom(image / 16.0, SIDE / 8, order=1) for image in digits.images])
    X = images.clip(0.0, 1.0).reshape(len(images), -1)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:-points], order[-points:]
    return X[train], digits.target[train], X[test]


def three_classes(data: Dataset, points: int) -> Sample:
    """Pixels of 3000 images."""
    return data.X_train[:3000], data.y_train[:3000], data.X_test[:points]


def measure(section: Section, name: str, kernel: str, sample: Sample) -> None:
    """Share proved with one box, and milliseconds a point."""
    X_train, y_train, X = sample
    model = SVC(gamma="scale", **KERNELS[kernel]).fit(X_train, y_train)
    posterior, budget = gpcert.as_posterior(model), gpcert.Budget(boxes=1)
    gpcert.certify(posterior, X[0], 0.01, budget=budget)  # what is done once
    for radius in RADII:
        names, together, alone = [], math.inf, math.inf
        for _ in range(RUNS):
            start = time.process_time()
            found = gpcert.certify_many(posterior, X, radius, budget=budget)
            together = min(together, time.process_time() - start)
            names = [certificate.status.name for certificate in found]
            start = time.process_time()
            for x in X[:ALONE]:
                gpcert.certify(posterior, x, radius, budget=budget)
            alone = min(alone, time.process_time() - start)
        section.add(
            model=name,
            kernel=kernel,
            classes=len(model.classes_),
            support_vectors=len(model.support_),
            radius=radius,
            proved=names.count("ROBUST"),
            refuted=names.count("NOT_ROBUST"),
            open=names.count("UNKNOWN"),
            ms_per_point=1e3 * together / len(X),
            alone_ms=1e3 * alone / len(X[:ALONE]),
            target_ms=target(kernel, len(model.support_)),
        )


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--points", type=int, default=60)
    options: Any = parser.parse_args()
    section = Section("svm", "Decisions of support vector machines, one box a point", [])
    samples = {"digits at 28 x 28": enlarged_digits(options.points)}
    if options.data is not None:
        mnist_data = mnist((3, 5, 8), options.data, size=SIDE)
        samples["MNIST 3, 5, 8"] = three_classes(mnist_data, options.points)
        fashion_data = fashion((0, 2, 6), options.data, size=SIDE)
        samples["Fashion 0, 2, 6"] = three_classes(fashion_data, options.points)
    for name, sample in samples.items():
        for kernel in KERNELS:
            measure(section, name, kernel, sample)
    merge(options.results, section, "svm", "svm")


if __name__ == "__main__":
    main()
