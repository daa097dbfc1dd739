"""Ranges of means with rough kernels and with ten inputs; see benchmarks/results/tightness.md.

    python benchmarks/tightness.py [--seeds 5] [--shapes 3] [--seconds 40]

N = 1000 points, length-scales 0.3 to 0.5, noise 0.01, observations drawn from the prior, both sides
to 0.01. The bounds were chosen on means of a sum of sines (d = 4 to 10); these problems were not
looked at. Beside each count stands its target.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.linalg

import gpcert
from gpcert.kernels import Kernel, Matern, SquaredExponential
from report import Section, command_line, merge

N, NOISE, TOLERANCE = 1000, 0.01, 0.01

SHAPES: list[tuple[str, int, float, int | None]] = [
    ("Matern 5/2", 4, 0.2, 1200),
    ("Matern 5/2", 6, 0.1, 700),
    ("Matern 5/2", 8, 0.1, 1100),
    ("Matern 5/2", 10, 0.05, 200),
    ("Matern 5/2", 10, 0.1, 4200),
    ("Matern 3/2", 6, 0.1, None),
    ("squared exponential", 4, 0.2, None),
    ("squared exponential", 10, 0.1, 6000),
]
"""Kernel, features, half-width, and the most boxes wanted."""


def kernel_of(name: str, lengths: np.ndarray) -> Kernel:
    """By its name in the table."""
    if name == "squared exponential":
        return SquaredExponential(lengths)
    return Matern(lengths, nu=2.5 if name == "Matern 5/2" else 1.5)


def problem(name: str, d: int, half: float, seed: int) -> tuple[gpcert.Posterior, gpcert.Box]:
    """A mean and a box."""
    rng = np.random.default_rng([d, seed])
    lengths, points = rng.uniform(0.3, 0.5, d), rng.uniform(0.0, 1.0, (N, d))
    center = rng.uniform(0.3, 0.7, d)
    kernel = kernel_of(name, lengths)
    K = kernel.value(points, points) + NOISE * np.eye(N)
    L = scipy.linalg.cholesky(K, lower=True)
    weights = scipy.linalg.cho_solve((L, True), L @ rng.normal(size=N))
    return gpcert.Posterior(kernel, points, weights), gpcert.Box(center - half, center + half)


def main() -> None:
    """All shapes, the median over the seeds."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--shapes", type=int, nargs="+", default=list(range(len(SHAPES))))
    options = parser.parse_args()
    section = Section("means", f"Range of a posterior mean, N = {N}, both sides, tol {TOLERANCE}")
    section.notes.append(f"problems 1 to {options.seeds}; CPU seconds of one thread")
    for name, d, half, most in (SHAPES[index] for index in options.shapes):
        boxes, seconds, gaps = [], [], []
        for seed in range(1, options.seeds + 1):
            model, box = problem(name, d, half, seed)
            start = time.process_time()
            found = gpcert.prediction_range(model, box, tol=TOLERANCE, budget=options.seconds)
            seconds.append(time.process_time() - start)
            boxes.append(found.boxes)
            gaps.append(max(found.minimum.width, found.maximum.width))
        section.add(
            kernel=name,
            features=d,
            half_width=half,
            boxes=int(np.median(boxes)),
            target=most,
            most_boxes=max(boxes),
            converged=f"{sum(gap <= TOLERANCE for gap in gaps)} of {len(gaps)}",
            largest_gap=max(gaps),
            seconds=float(np.median(seconds)),
        )
    merge(options.results, section, "means", "tightness")


if __name__ == "__main__":
    main()
