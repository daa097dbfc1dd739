"""The pictures of docs/sets.md: a design space with its largest box, the safe set of a pendulum.

    .venv/bin/python docs/make_sets_pictures.py

writes docs/pictures/sets/*.png. Needs matplotlib, no screen.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

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


def main() -> None:
    """Draw both."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length at its bound is no news
        for draw in (design_space, pendulum):
            draw().savefig(FOLDER / f"{draw.__name__}.png", dpi=DPI)


if __name__ == "__main__":
    main()
