"""What leaving out the least likely classes gains and costs; see benchmarks/results/tightness.md.

    python benchmarks/tightness_dropped.py [--points 3] [--dropped 1 3]

By Bonferroni's inequalities a class k that is left out moves every other probability by at most
that of k: the range of a class over a box widens by the greatest share that the dropped classes
may have on it, which is the sum of their proved greatest probabilities. The reduced model is the
same posterior without those outputs. Points from 1000 on of the shuffled digits (N = 300), on
which the bounds were chosen, and as many beyond the training points of 26 Gaussian clouds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from report import Row, Section, command_line, merge
from tightness_classes import RADIUS, fitted_model, timed

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier

CLOUDS, CLOUD_FEATURES, CLOUD_POINTS = 26, 16, 312
"""Classes, features and training points of the clouds."""


def clouds() -> tuple[np.ndarray, gpcert.Posterior]:
    """Points of Gaussian clouds in the unit cube, and the posterior of the first of them."""
    rng = np.random.default_rng(0)
    centres = rng.random((CLOUDS, CLOUD_FEATURES))
    y = np.arange(2 * CLOUD_POINTS) % CLOUDS
    X = centres[y] + 0.15 * rng.normal(size=(len(y), CLOUD_FEATURES))
    kernel = SquaredExponential(1.0, variance=10.0)
    model = GPClassifier(kernel, likelihood="softmax", max_epochs=0)
    posterior = gpcert.as_posterior(model.fit(X[:CLOUD_POINTS], y[:CLOUD_POINTS]))
    assert isinstance(posterior, gpcert.Posterior)
    return X[CLOUD_POINTS:], posterior


def without(posterior: gpcert.Posterior, dropped: np.ndarray) -> gpcert.Posterior:
    """The posterior of the other classes."""
    keep = np.setdiff1d(np.arange(posterior.outputs), dropped)
    names = ("weights", "factor", "offset", "scale", "noise", "negative_factor", "slope")
    parts = {name: getattr(posterior, name)[keep] for name in names}
    assert posterior.classes is not None
    return replace(posterior, **parts, classes=tuple(posterior.classes[c] for c in keep))


def one_box(posterior: gpcert.Posterior, x: np.ndarray, label: int) -> tuple[float, float, float]:
    """Proved range of a class by the first box, and its seconds."""
    found, seconds = timed(
        lambda: gpcert.prediction_range(posterior, x, radius=RADIUS, output=label, tol=1.0)
    )
    return found.minimum.lower, found.maximum.upper, seconds


def compared(posterior: gpcert.Posterior, points: np.ndarray, count: int) -> Row:
    """Widths and seconds with all classes and without the `count` least likely ones."""
    widths, seconds = [], []
    for x in points:
        order = np.argsort(posterior.prediction(x[None])[0])
        dropped, label = order[:count], int(order[-1])
        low, high, spent = one_box(posterior, x, label)
        share = sum(one_box(posterior, x, int(c))[1] for c in dropped)
        reduced = without(posterior, dropped)
        gpcert.certify(reduced, points[0], radius=1e-3)  # what is proved once per model
        low_r, high_r, spent_r = one_box(reduced, x, label)
        widths.append((high - low, high_r - low_r, share))
        seconds.append((spent, spent_r))
    whole, reduced_width, share = np.median(widths, axis=0)
    spent, spent_r = np.median(seconds, axis=0)
    tighter = sum(a > b + s for a, b, s in widths)
    return {
        "dropped": count,
        "width": float(whole),
        "width_without": float(reduced_width),
        "cost": float(share),
        "tighter": f"{tighter} of {len(points)}",
        "seconds": float(spent),
        "seconds_without": float(spent_r),
    }


def main() -> None:
    """Digits and clouds."""
    parser = command_line(__doc__)
    parser.add_argument("--points", type=int, default=3)
    parser.add_argument("--dropped", type=int, nargs="*", default=[1, 3])
    options = parser.parse_args()
    title = "Ranges by one box with all classes and without the least likely, radius 0.02"
    section = Section("dropped classes", title)
    X, digits, _ = fitted_model(10, 300)
    beyond, many = clouds()
    for name, posterior, points in (
        ("digits", digits, X[1000 : 1000 + options.points]),
        ("clouds", many, beyond[: options.points]),
    ):
        gpcert.certify(posterior, points[0], radius=1e-3)
        for count in options.dropped:
            row = compared(posterior, points, count)
            section.add(data=name, classes=posterior.outputs, **row)
    section.notes.append(
        "medians; `cost`: the proved greatest share of the dropped classes, by which the width "
        "without them grows; `tighter`: points at which both together are less than the width with "
        "all classes. CPU seconds, set-up apart"
    )
    merge(options.results, section, "dropped classes", "tightness")


if __name__ == "__main__":
    main()
