"""Attacks as arrows from the value before to the value after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpcert.plots.axes import axes_or_current, legend_above
from gpcert.plots.style import ACCENT, DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_attacks(
    ax: Axes | None, before: np.ndarray, after: np.ndarray, success: np.ndarray, quantity: str
) -> Axes:
    """One vertical line per point, the points in the order of their values before the attack.

    Circles are the values before, triangles those after that left the decision as it was, crosses
    those that changed it.
    """
    ax = axes_or_current(ax)
    order = np.argsort(before, kind="stable")
    rank = np.arange(len(order))
    start, end, won = before[order], after[order], success[order].astype(bool)
    ax.vlines(rank, start, end, color=LIGHT, linewidth=1.5, zorder=1)
    ax.scatter(rank, start, s=16, color=DARK, label="before", zorder=2)
    ax.scatter(rank[~won], end[~won], s=22, marker="v", facecolors="white", edgecolors=DARK)
    ax.scatter(rank[won], end[won], s=34, marker="x", color=ACCENT, label="decision changed")
    ax.scatter([], [], s=22, marker="v", facecolors="white", edgecolors=DARK, label="after")
    ax.set_xlabel("points, by their value before the attack")
    ax.set_ylabel(quantity)
    legend_above(ax, columns=3)
    return ax
