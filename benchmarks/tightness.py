"""Ranges of means with rough kernels and with ten inputs; see benchmarks/results/tightness.md.

    python benchmarks/tightness.py [--seeds 5] [--sections means] [--data FOLDER --cache FOLDER]

Means: N = 1000 points, length-scales 0.3 to 0.5, noise 0.01, observations drawn from the prior,
both sides to 0.01. Probabilities: a probit Laplace classifier on such points. Images: the certified
radius of MNIST38 with all pixels free, by one box each. Beside each figure stands its target.

Reported are problems 1 to 5 and the first 20 test images. The bounds were chosen on means of a sum
of sines (d = 4 to 10), on problems 11 to 15 of the same kinds and on test images 20 to 40.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.linalg
from report import Row, Section, command_line, merge

import gpcert
from gpcert.kernels import Kernel, Matern, SquaredExponential
from gpcert.models import GPClassifier
from models import fitted

N, NOISE, TOLERANCE, RUNS = 1000, 0.01, 0.01, 3

SHAPES: list[tuple[str, int, float, int | None]] = [
    ("Matern 5/2", 4, 0.2, 1200),
    ("Matern 5/2", 6, 0.1, 700),
    ("Matern 5/2", 8, 0.1, 1100),
    ("Matern 5/2", 10, 0.05, 200),
    ("Matern 5/2", 10, 0.1, 4200),
    ("Matern 3/2", 6, 0.1, None),
    ("squared exponential", 4, 0.2, None),
    ("squared exponential", 6, 0.1, None),
    ("squared exponential", 8, 0.1, None),
    ("squared exponential", 10, 0.05, None),
    ("squared exponential", 10, 0.1, 6000),
    ("squared exponential", 14, 0.04, None),
    ("squared exponential", 20, 0.03, None),
]
"""Kernel, features, half-width, and the most boxes wanted."""


PROBABILITIES: list[tuple[str, int, float, float | None]] = [
    ("Matern 5/2", 4, 0.1, None),
    ("Matern 5/2", 6, 0.1, None),
    ("Matern 5/2", 10, 0.05, 5.0),
    ("squared exponential", 4, 0.1, None),
    ("squared exponential", 6, 0.1, None),
    ("squared exponential", 10, 0.05, None),
]
"""Kernel, features, half-width, and the most seconds wanted."""


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


def answered(model: gpcert.Posterior, box: gpcert.Box, seconds: float) -> Row:
    """Boxes, the larger gap and CPU seconds of one range, the least of a few: a machine's other
    work only adds. Every time the model is a new one, which knows nothing of itself."""
    spent = []
    for _ in range(RUNS):
        fresh = replace(model)
        start = time.process_time()
        found = gpcert.prediction_range(fresh, box, tol=TOLERANCE, budget=seconds)
        spent.append(time.process_time() - start)
    gap = max(found.minimum.width, found.maximum.width)
    return {"boxes": found.boxes, "gap": gap, "seconds": min(spent)}


def summary(answers: list[Row]) -> Row:
    """The median over problems."""
    boxes, gaps, seconds = ([answer[key] for answer in answers] for key in answers[0])
    return {
        "boxes": int(np.median(boxes)),
        "most_boxes": max(boxes),
        "converged": f"{sum(gap <= TOLERANCE for gap in gaps)} of {len(gaps)}",
        "largest_gap": max(gaps),
        "seconds": float(np.median(seconds)),
        "most_seconds": max(seconds),
    }


def means(options: argparse.Namespace) -> Section:
    """All shapes, the median over the problems."""
    section = Section("means", f"Range of a posterior mean, N = {N}, both sides, tol {TOLERANCE}")
    section.notes.append(
        f"problems 1 to {options.seeds}; CPU seconds of one thread, the least of {RUNS} runs"
    )
    section.notes.append("`over se`: seconds over those of the squared exponential; 2 asked")
    shapes = [SHAPES[index] for index in options.shapes]
    answered(*problem("Matern 5/2", 3, 0.05, 0), options.seconds)  # what is made once a process
    found: dict[tuple[str, int, float], Row] = {}
    for name, d, half, _ in shapes:
        problems = [problem(name, d, half, seed) for seed in range(1, options.seeds + 1)]
        found[name, d, half] = summary([answered(*each, options.seconds) for each in problems])
    for name, d, half, most in shapes:
        own, smooth = found[name, d, half], found.get(("squared exponential", d, half))
        over = None
        if name == "Matern 5/2" and smooth is not None:
            over = own["seconds"] / smooth["seconds"]
        parts = {"kernel": name, "features": d, "half_width": half, "target_boxes": most}
        section.add(**parts, **own, over_se=over)
    return section


def probabilities(options: argparse.Namespace) -> Section:
    """Ranges of the probability of a probit classifier in ten features."""
    title = f"Range of a probability, probit Laplace, N = {N}, both sides, tol {TOLERANCE}"
    section = Section("probabilities", title)
    section.notes.append(f"problems 1 to {options.seeds}; CPU seconds of one thread")
    for name, d, half, most in PROBABILITIES:
        problems = [classifier(name, d, half, seed) for seed in range(1, options.seeds + 1)]
        found = summary([answered(*each, options.seconds) for each in problems])
        section.add(kernel=name, features=d, half_width=half, target_seconds=most, **found)
    return section


def classifier(name: str, d: int, half: float, seed: int) -> tuple[gpcert.Posterior, gpcert.Box]:
    """Labels of a latent function of variance 4, and a box."""
    rng = np.random.default_rng([d, seed, 2])
    lengths, points = rng.uniform(0.3, 0.5, d), rng.uniform(0.0, 1.0, (N, d))
    center, kernel = rng.uniform(0.3, 0.7, d), 4.0 * kernel_of(name, lengths)
    latent = np.linalg.cholesky(kernel.value(points, points) + 1e-6 * np.eye(N))
    labels = latent @ rng.normal(size=N) + rng.normal(size=N) > 0
    model = GPClassifier(kernel, likelihood="probit", max_epochs=0).fit(points, labels)
    posterior = gpcert.as_posterior(model)
    assert isinstance(posterior, gpcert.Posterior)
    return posterior, gpcert.Box(center - half, center + half)


def images(options: argparse.Namespace) -> Section:
    """Proved over attacked radius of whole images."""
    section = Section("images", "Certified radius, MNIST38, N = 1000, all pixels, one box each")
    section.notes.append("test images 1 to 20; `rad.lower / rad.upper`; CPU seconds of one thread")
    for name, pixels in (("mnist38", 196), ("mnist38-28", 784)):
        model, split = fitted(name, options.data, options.cache)
        posterior = gpcert.as_posterior(model)
        assert isinstance(posterior, gpcert.Posterior)
        _ = posterior.norms, posterior.excess
        quotients, seconds = [], []
        for x in split.X_test[:20]:
            start = time.process_time()
            budget = gpcert.Budget(seconds=options.seconds, boxes=1)
            found = gpcert.certified_radius(posterior, x, domain=(0.0, 1.0), budget=budget)
            seconds.append(time.process_time() - start)
            quotients.append(found.lower / found.upper)
        section.add(
            pixels=pixels,
            accuracy=float(model.score(split.X_test, split.y_test)),
            quotient=float(np.median(quotients)),
            target_quotient=0.98 if pixels == 196 else None,
            least_quotient=min(quotients),
            seconds=float(np.median(seconds)),
            target_seconds=0.3 if pixels == 196 else None,
            most_seconds=max(seconds),
        )
    return section


SECTIONS = {"means": means, "probabilities": probabilities, "images": images}


def main() -> None:
    """Some sections, or all."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--shapes", type=int, nargs="+", default=list(range(len(SHAPES))))
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--data", type=Path, help="folder of the images")
    parser.add_argument("--cache", type=Path, help="folder of fitted models")
    options = parser.parse_args()
    for name in options.sections:
        merge(options.results, SECTIONS[name](options), name, "tightness")


if __name__ == "__main__":
    main()
