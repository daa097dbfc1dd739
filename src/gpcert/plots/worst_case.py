"""Worst predictions: per point the mean, its proved range and the credible band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpcert.plots.axes import axes_or_current
from gpcert.plots.style import ACCENT, DARK, LIGHT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_worst_cases(ax: Axes | None, frame: pd.DataFrame) -> Axes:
    """Thin and light: the band that holds mean +- beta std of the whole region; thick and dark: the
    proved range of the mean; the diamond is the prediction at the point itself."""
    ax = axes_or_current(ax)
    order = np.argsort(frame["mean"].to_numpy(), kind="stable")
    rows = frame.iloc[order]
    rank = np.arange(len(rows))
    beta = float(frame["beta"].iloc[0]) if len(frame) else 0.0
    ax.vlines(
        rank,
        rows["band_lower"],
        rows["band_upper"],
        color=LIGHT,
        linewidth=3,
        label=f"band of {beta:g} std",
    )
    ax.vlines(
        rank,
        rows["minimum_lower"],
        rows["maximum_upper"],
        color=DARK,
        linewidth=5,
        label="range of the mean",
    )
    ax.scatter(
        rank,
        rows["mean"],
        marker="D",
        s=18,
        color="white",
        edgecolors=ACCENT,
        zorder=3,
        label="prediction",
    )
    ax.set_xlabel("points, by their prediction")
    ax.set_ylabel("mean")
    ax.legend(fontsize="small", framealpha=0.9)
    return ax
