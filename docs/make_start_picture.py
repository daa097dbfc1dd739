"""The picture of docs/start.md: how a search proves a bound, on a mean of one feature.

.venv/bin/python docs/make_start_picture.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

import gpcert
from gpcert.plots.axes import ACCENT, DARK, LIGHT, new_figure
from gpcert.utils.optional_imports import Axes

PICTURES = Path(__file__).parent / "pictures"
LEVEL = 0.0
"""The question: is the mean above this at every point of the region?"""

REGION = (0.0, 2.0)
PANELS = {1: "one box: bounds too wide", 2: "after one split: proved"}
"""Numbers of boxes in the panels, and their titles."""


def example() -> GaussianProcessRegressor:
    """A regression on seven points of a line."""
    inputs = np.linspace(-0.5, 2.5, 7)[:, None]
    targets = 0.45 + 0.5 * np.sin(2.6 * inputs[:, 0]) + 0.3 * inputs[:, 0]
    kernel = Matern(0.9, nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=1e-4, optimizer=None).fit(inputs, targets)


def draw(ax: Axes, model: GaussianProcessRegressor, boxes: int) -> None:
    """The mean, and the proved bounds over a number of equal boxes."""
    low, high = REGION
    edges = np.linspace(low, high, boxes + 1)
    bounds = gpcert.bound_boxes(model, edges[:-1, None], edges[1:, None])["mean"][:, 0]
    wide = np.linspace(low - 0.3, high + 0.3, 300)
    ax.plot(wide, model.predict(wide[:, None]), color="black", linewidth=1.6, label="mean")
    for left, right, (least, greatest) in zip(edges[:-1], edges[1:], bounds, strict=True):
        proved = least > LEVEL
        ax.fill_between(
            [left, right],
            least,
            greatest,
            facecolor=LIGHT if proved else "#FDDBC7",
            edgecolor=DARK if proved else ACCENT,
            hatch=None if proved else "///",
            alpha=0.7,
            label="bounds, above the level" if proved else "bounds, not yet above it",
        )
    ax.axhline(LEVEL, color=ACCENT, linestyle="--", linewidth=1.4, label="level")
    ax.set(title=PANELS[boxes], xlabel="feature x")


def main(folder: Path) -> None:
    """Write start.png."""
    model, figure = example(), new_figure(8.0, 3.4)
    axes = figure.subplots(1, len(PANELS), sharey=True)
    labelled = {}
    for ax, boxes in zip(axes, PANELS, strict=True):
        draw(ax, model, boxes)
        handles, labels = ax.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
    axes[0].set_ylabel("posterior mean")
    figure.legend(labelled.values(), labelled, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(folder / "start.png", dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
