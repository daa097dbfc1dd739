"""The picture of docs/multiclass.md: three classes in the plane, and what is proved of boxes.

    .venv/bin/python docs/make_multiclass_picture.py [file]

writes docs/pictures/multiclass.png (or the file given). Needs matplotlib, no screen.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_blobs

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier
from gpcert.plots import plot_decision_regions, plot_range

FILE = Path(__file__).parent / "pictures" / "multiclass.png"
DPI = 110
CENTERS = [[0.0, 0.0], [3.0, 0.2], [1.3, 2.4]]
LABELS = np.asarray(["a", "b", "c"])
BOXES = {
    "A": gpcert.Box([-0.5, -0.4], [0.7, 0.8]),
    "B": gpcert.Box([1.48, -0.9], [1.78, 1.0]),
    "C": gpcert.Box([2.2, 1.2], [2.8, 1.8]),
}
"""Far from other classes; beside a border, where ranges overlap; across a border."""


def model() -> tuple[GPClassifier, np.ndarray, np.ndarray]:
    """Sixty points of three overlapping clusters, and the softmax model of them."""
    found = make_blobs(60, centers=CENTERS, cluster_std=0.65, random_state=3)
    X, y = np.asarray(found[0]), LABELS[np.asarray(found[1], dtype=int)]
    kernel = SquaredExponential(1.2, variance=6.0)
    return GPClassifier(kernel, likelihood="softmax", max_epochs=0).fit(X, y), X, y


def draw_plane(ax: Axes, certificates: list[gpcert.Certificate]) -> None:
    """Areas of the classes, training points, and the boxes with their names."""
    fitted, X, y = model()
    plot_decision_regions(ax, fitted, certificates, X=X, y=y)
    for name, box in BOXES.items():
        corner = (box.upper[0], box.lower[1])
        ax.annotate(name, corner, (-11, 4), textcoords="offset points", weight="bold")
    ax.set_aspect("equal")


def draw_ranges(ax: Axes, fitted: GPClassifier, name: str, certificate: gpcert.Certificate) -> None:
    """The proved range of every class probability in one box."""
    plot_range(ax, gpcert.prediction_ranges(fitted, BOXES[name], tol=0.01))
    verdict = {"ROBUST": "proved", "NOT_ROBUST": "refuted"}[certificate.status.name]
    ax.set_title(f"{name}: class {certificate.decision} {verdict}", fontsize="medium")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylabel("class")
    if name != min(BOXES):
        ax.set_ylabel("")
        ax.set_yticklabels([])


def move_legends(figure: Figure, axes: list[Axes]) -> None:
    """One legend below the panels: inside them it would hide points and bars."""
    handles = {}
    for ax in axes:
        legend = ax.get_legend()
        assert legend is not None
        names = [text.get_text() for text in legend.get_texts()]
        handles |= dict(zip(names, legend.legend_handles, strict=True))
        legend.remove()
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=8,
        frameon=False,
        fontsize=8,
    )


def picture() -> Figure:
    """The plane on the left, one panel a box on the right."""
    fitted, _, _ = model()
    certificates = {n: gpcert.certify(fitted, box.center, region=box) for n, box in BOXES.items()}
    figure = Figure(figsize=(10.0, 4.9), layout="constrained")
    axes = figure.subplot_mosaic([["plane", *BOXES]], width_ratios=(3.1, 1.0, 1.0, 1.0))
    draw_plane(axes["plane"], list(certificates.values()))
    for name, certificate in certificates.items():
        draw_ranges(axes[name], fitted, name, certificate)
    move_legends(figure, list(axes.values()))
    return figure


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    picture().savefig(target, dpi=DPI)
