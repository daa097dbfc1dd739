"""Pictures of explanations: effects, reasons, pixel budgets."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_digits

import gpcert
from gpcert import explain
from gpcert.errors import MissingExtraError
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier
from gpcert.plots import plot_effects, plot_gaps

SHAPE = (8, 8)


@cache
def digits() -> tuple[gpcert.Posterior, np.ndarray]:
    """Threes and eights of 8 x 8 pixels in [0, 1], and a test image of each."""
    X, y = (np.asarray(part) for part in load_digits(return_X_y=True))
    kept = np.isin(y, (3, 8))
    X, y = X[kept] / 16.0, y[kept]
    kernel = SquaredExponential(2.0, variance=20.0)
    model = GPClassifier(kernel, likelihood="logistic", max_epochs=0).fit(X[:250], y[:250])
    posterior = gpcert.as_posterior(model)
    assert isinstance(posterior, gpcert.Posterior)
    test = X[250:]
    sure = [np.flatnonzero(y[250:] == label)[2] for label in (3, 8)]
    return posterior, test[sure]


@cache
def tumours() -> tuple[gpcert.Posterior, np.ndarray]:
    """Breast cancer data, ten mean measurements in standard deviations, and 50 test points."""
    data = load_breast_cancer(as_frame=True)
    X, y = data.data.iloc[:, :10], np.asarray(data.target_names)[data.target]
    X = (X - X.mean()) / X.std()
    model = GPClassifier(SquaredExponential([3.0] * 10), likelihood="logistic", max_epochs=20)
    model.fit(X.iloc[:200], y[:200])
    posterior = gpcert.as_posterior(model)
    assert isinstance(posterior, gpcert.Posterior)
    return replace(posterior, feature_names=tuple(X.columns)), X.iloc[200:250].to_numpy()


def effects() -> Figure:
    """Mean effects with intervals, LIME's weights beside them; one digit's pixels."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    posterior, X = tumours()
    found = explain.effects(posterior, X, radius=1.0).mean()
    try:
        beside = ("LIME", explain.lime(posterior, X).mean().values[0, 1])
    except MissingExtraError:
        beside = None
    label = f"mean effect on the probability of {found.outputs[1]}"
    bounds = found.lower[0, 1], found.upper[0, 1]
    plot_effects(left, found.feature_names, *bounds, label=label, beside=beside)
    model, images = digits()
    pixels = explain.effects(model, images[1], radius=0.5, domain=(0, 1))
    pixels.heat_map(SHAPE, right)
    return figure


def reasons() -> Figure:
    """A sufficient and a contrastive reason of two digits."""
    figure = Figure(figsize=(9, 2.9), layout="constrained")
    axes = figure.subplots(1, 4)
    model, images = digits()
    for k, x in enumerate(images):
        explain.sufficient(model, x, 0.3, domain=(0, 1)).plot(axes[2 * k], shape=SHAPE)
        explain.contrastive(model, x, 1.0, domain=(0, 1)).plot(axes[2 * k + 1], shape=SHAPE)
    return figure


def pixels() -> Figure:
    """The gap against the number of pixels for several rankings, and the adversarial image."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(2, 1, 1))
    model, images = digits()
    x, rows, first = images[0], [], None
    for name in ("effects", "lime", "gradient"):
        try:
            found = explain.pixel_budget(
                model, x, range(0, 17, 2), ranking=name, radius=1.0, domain=(0, 1), tol=0.02
            )
        except MissingExtraError:
            continue
        rows.append((name, found.betas, found.lower, found.upper))
        first = first or found
    plot_gaps(axes[0], rows)
    assert first is not None
    assert first.adversarial is not None
    titles = (f"decided {first.decision}", f"{first.least_beta} pixels changed")
    for ax, pixels_shown, title in zip(axes[1:], (x, first.adversarial), titles, strict=True):
        ax.imshow(pixels_shown.reshape(SHAPE), cmap="gray_r", vmin=0, vmax=1)
        ax.set_title(title, fontsize="small")
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


PICTURES = {"effects": effects, "reasons": reasons, "pixels": pixels}
