"""Pictures of attacks, curves and distributions, for docs/make_analyses_pictures.py."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes, load_digits, make_moons
from sklearn.model_selection import train_test_split

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier, GPRegressor

__all__ = ["PICTURES"]


@cache
def moons(inference: str = "ep", max_epochs: int = 20) -> Any:
    """Two moons and a classifier of them."""
    X, y = make_moons(200, noise=0.25, random_state=0)
    train, test, y_train, y_test = train_test_split(X, y, train_size=100, random_state=0)
    model = GPClassifier(
        SquaredExponential([1.0, 1.0]),
        likelihood="probit",
        inference=inference,
        max_epochs=max_epochs,
        random_state=0,
    ).fit(train, y_train)
    return model, test, y_test


@cache
def digits() -> Any:
    """Threes and eights of 8x8 pixels, between 0 and 1."""
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (3, 8))
    parts = train_test_split(X[chosen] / 16.0, y[chosen], train_size=200, random_state=0)
    train, test, y_train, y_test = parts
    kernel = SquaredExponential(2.0)
    model = GPClassifier(kernel, likelihood="probit", max_epochs=10).fit(train, y_train)
    return model, test, y_test


def attack() -> Figure:
    """GPFGS beside the best of all attacks."""
    model, test, _ = moons()
    figure = Figure(figsize=(10.0, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, method in zip(axes, ("gpfgs", "best"), strict=True):
        found = gpcert.attack(model, test[:60], radius=0.4, method=method)
        found.plot(ax)
        ax.set_title(f"{method}: {int(found.success.sum())} of {len(found)} changed", pad=24)
    return figure


def safety_curve() -> Figure:
    """A point where GPFGS walks the wrong way, and a digit."""
    model, test, _ = moons()
    attacks = [gpcert.attack(model, test, radius=0.6, method=name) for name in ("gpfgs", "best")]
    missed = np.flatnonzero(attacks[1].success & ~attacks[0].success)
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    gpcert.safety_curve(model, test[missed[0]], np.linspace(0, 1.2, 13)).plot(left)
    left.set_title("two moons")
    model, test, y = digits()
    pixels = np.argsort(-test.std(axis=0))[:10]
    x = test[list(y).index(8)]
    gpcert.safety_curve(
        model, x, np.linspace(0, 1, 11), features=pixels, domain=(0, 1), attack="best"
    ).plot(right)
    right.set_title("an 8, the 10 pixels that vary most")
    handles, names = left.get_legend_handles_labels()
    names[4] = "attack (left: gpfgs, right: best)"
    for ax in (left, right):
        ax.get_legend().remove()
    figure.legend(handles, names, loc="outside lower center", ncols=4, fontsize="small")
    return figure


def robustness() -> Figure:
    """Laplace and EP, three radii."""
    _, test, _ = moons()
    models = {"Laplace": moons("laplace")[0], "EP": moons("ep")[0]}
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    found = gpcert.robustness(None, test[:50], radii=[0.05, 0.1, 0.2], compare=models)
    found.plot(figure.subplots())
    return figure


def certified_accuracy() -> Figure:
    """Digits, all pixels."""
    model, test, y = digits()
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    found = gpcert.certified_accuracy(
        model,
        test[:60],
        y[:60],
        np.linspace(0.0, 0.4, 9),
        domain=(0, 1),
        budget=gpcert.Budget(seconds=1.0),
    )
    found.plot(figure.subplots())
    return figure


def worst_case() -> Figure:
    """Diabetes: the measured bmi and blood pressure may be off."""
    X, y = load_diabetes(return_X_y=True)
    model = GPRegressor(SquaredExponential([0.1] * 10), max_epochs=10).fit(X[:200], y[:200])
    radius = 0.01
    found = gpcert.worst_case(model, X[200:240], radius, features=[2, 3], tol=0.5)
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    found.plot(figure.subplots())
    return figure


PICTURES = {
    "attack": attack,
    "safety_curve": safety_curve,
    "robustness": robustness,
    "certified_accuracy": certified_accuracy,
    "worst_case": worst_case,
}
