"""Decisions of support vector machines; see benchmarks/results/svm.md for the last run.

    python benchmarks/svm.py [--data FOLDER] [--points 20]

Ten classes, 784 inputs, about 900 support vectors, rbf: the shape of SAVer's MNIST model. Ten-class
MNIST is not among our data, so scikit-learn's 8 x 8 digits are enlarged to 28 x 28 (bilinear). With
`--data` also real MNIST pixels of the three classes of `mnist_358.npz`. One box a point, all pixels
free: `proved` is the strength of the root bound. Times are the best of three runs over all points,
on one thread. Target: at most 50 ms per point.
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
from gpcert.study.datasets import mnist

RADII = (0.05, 0.07, 0.10)
RUNS = 3
SIDE = 28


def enlarged_digits(points: int) -> tuple[SVC, np.ndarray]:
    """A machine of ten classes on enlarged digits, and test points."""
    digits = load_digits()
    images = np.stack([zoom(image / 16.0, SIDE / 8, order=1) for image in digits.images])
    X = images.clip(0.0, 1.0).reshape(len(images), -1)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:-points], order[-points:]
    return SVC(C=0.4, gamma="scale").fit(X[train], digits.target[train]), X[test]


def three_of_mnist(folder: Path, points: int) -> tuple[SVC, np.ndarray]:
    """A machine of three classes on MNIST pixels, and test points."""
    data = mnist((3, 5, 8), folder, size=SIDE)
    model = SVC(C=1.0, gamma="scale").fit(data.X_train[:3000], data.y_train[:3000])
    return model, data.X_test[:points]


def measure(section: Section, name: str, model: SVC, X: np.ndarray) -> None:
    """Share proved with one box, and milliseconds a point."""
    posterior = gpcert.as_posterior(model)
    gpcert.certify(posterior, X[0], 0.01, budget=gpcert.Budget(boxes=1))  # what is done once
    for radius in RADII:
        names, wall, cpu = [], math.inf, math.inf
        for _ in range(RUNS):
            start = time.perf_counter(), time.process_time()
            found = [gpcert.certify(posterior, x, radius, budget=gpcert.Budget(boxes=1)) for x in X]
            wall = min(wall, time.perf_counter() - start[0])
            cpu = min(cpu, time.process_time() - start[1])
            names = [certificate.status.name for certificate in found]
        section.add(
            model=name,
            classes=len(model.classes_),
            support_vectors=len(model.support_),
            radius=radius,
            proved=names.count("ROBUST"),
            refuted=names.count("NOT_ROBUST"),
            open=names.count("UNKNOWN"),
            ms_per_point=1e3 * wall / len(X),
            cpu_ms_per_point=1e3 * cpu / len(X),
        )


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--points", type=int, default=20)
    options: Any = parser.parse_args()
    section = Section("svm", "Decisions of support vector machines, one box a point", [])
    measure(section, "digits at 28 x 28", *enlarged_digits(options.points))
    if options.data is not None:
        measure(section, "MNIST 3, 5, 8", *three_of_mnist(options.data, options.points))
    merge(options.results, section, "svm", "svm")


if __name__ == "__main__":
    main()
