"""The pictures of docs/sets.md: a design space with its largest box, the safe set of a pendulum;
and that of Sobol' indices in docs/probabilities.md.

    .venv/bin/python docs/make_sets_pictures.py

writes docs/pictures/sets/*.png and docs/pictures/sobol.png. Needs matplotlib, no screen.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import uniform

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.models import GPRegressor
from gpcert.plots.axes import ACCENT

FOLDER = Path(__file__).parent / "pictures" / "sets"
DPI = 110


def design_space() -> Figure:
    """Yield and impurity of a reaction by temperature and time, from 40 noisy experiments."""
    rng = np.random.default_rng(1)
    X = rng.uniform([60.0, 1.0], [120.0, 9.0], (40, 2))
    warm, long = (X[:, 0] - 92.0) / 22.0, (X[:, 1] - 5.5) / 3.0
    noise = 0.004 * rng.normal(size=(2, 40))
    amount = 0.97 * np.exp(-0.35 * warm**2 - 0.3 * long**2 + 0.2 * warm * long) + noise[0]
    impurity = 0.03 + 0.05 * np.exp(0.8 * warm + 0.5 * long) + noise[1]
    kernel = SquaredExponential([30.0, 4.0])
    models = {
        "yield": GPRegressor(kernel).fit(X, amount),
        "impurity": GPRegressor(kernel).fit(X, impurity),
    }
    band = {"quantity": "band", "beta": 2.0}
    asked = [("yield", ">=", 0.8, band), ("impurity", "<=", 0.12, band)]
    good = gpcert.level_set(models, [(60, 120), (1, 9)], asked, tol=0.002)
    figure = Figure(figsize=(10.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    box = good.largest_box()
    good.plot(left, box=box)
    left.set(xlabel="temperature", ylabel="time")
    left.scatter(*X.T, s=12, color="black", linewidths=0)
    good.plot(right, features=[0])
    right.set(xlabel="temperature", ylabel="share of the times that are inside")
    return figure


def pendulum() -> Figure:
    """Angles and speeds that some torque, out of five, is proved to keep near upright."""
    rng = np.random.default_rng(0)
    Z = rng.uniform([-1.0, -2.0, -3.0], [1.0, 2.0, 3.0], (120, 3))
    noise = 0.001 * rng.normal(size=(120, 2))
    added = 0.1 * np.stack([Z[:, 1], _torque(Z)], axis=1) + noise
    models = [GPRegressor(SquaredExponential([1.0, 2.0, 4.0])).fit(Z, y) for y in added.T]
    safe = gpcert.invariant_set(
        models, [(-0.6, 0.6), (-1.5, 1.5)], "delta", inputs=np.linspace(-2, 2, 5), cells=6000
    )
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = safe.plot(figure.subplots())
    for start in ([0.45, 0.3], [-0.45, -0.2], [-0.3, 0.9]):
        x, path = np.array(start), [start]
        for _ in range(60):
            u = safe.input_at(x)
            if u is None:
                break
            x = x + 0.1 * np.array([x[1], _torque(np.append(x, u)[None])[0]])
            path.append(x.tolist())
        ax.plot(*np.array(path).T, color=ACCENT, linewidth=1.2, marker=".", markersize=3)
    ax.set(xlabel="angle", ylabel="angular speed")
    return figure


def _torque(Z: np.ndarray) -> np.ndarray:
    """The angular acceleration, by angle, speed and torque."""
    return 2.0 * np.sin(Z[:, 0]) - 0.2 * Z[:, 1] + Z[:, 2]


def indices() -> Figure:
    """Surrogates of Ishigami's function from few and from many points, and its own indices."""
    figure = Figure(figsize=(10.4, 3.4), layout="constrained")
    for ax, n in zip(figure.subplots(1, 2), (40, 120), strict=True):
        X = np.random.default_rng(2).uniform(-np.pi, np.pi, (n, 3))
        y = np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])
        model = GPRegressor(SquaredExponential([2.0, 1.2, 2.0])).fit(X, y)
        gpcert.sobol_indices(model, [uniform(-np.pi, 2 * np.pi)] * 3).plot(ax)
        truth = [0.3139, 0.4424, 0.0], [0.5576, 0.4424, 0.2437]
        for shift, values in zip((-0.2, 0.2), truth, strict=True):
            ax.plot(values, np.arange(3) + shift, "x", color="black", ms=7)
        ax.set_xlabel(f"part of the variance, {n} points")
    return figure


def main() -> None:
    """Draw all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length at its bound is no news
        for draw in (design_space, pendulum):
            draw().savefig(FOLDER / f"{draw.__name__}.png", dpi=DPI)
        indices().savefig(FOLDER.parent / "sobol.png", dpi=DPI)


if __name__ == "__main__":
    main()
