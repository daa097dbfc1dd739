"""Numbers by point, and by group: worst predictions, attacks, box plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpcert.extras import Axes, DataFrame
from gpcert.plots.axes import axes_or_current, legend_above, titled
from gpcert.plots.style import ACCENT, CLASS_PALETTE, DARK, LIGHT


def plot_worst_cases(ax: Axes | None, frame: DataFrame) -> Axes:
    """Thin and light: the band that holds mean +- beta std of the whole region; thick and dark: the
    proved range of the mean; the diamond is the prediction at the point itself."""
    ax = axes_or_current(ax)
    order = np.argsort(frame["mean"].to_numpy(), kind="stable")
    rows = frame.iloc[order]
    rank = np.arange(len(rows))
    beta = float(frame["beta"].iloc[0]) if len(frame) else 0.0
    for low, high, colour, width, label in (
        ("band_lower", "band_upper", LIGHT, 3, f"band of {beta:g} std"),
        ("minimum_lower", "maximum_upper", DARK, 5, "range of the mean"),
    ):
        ax.vlines(rank, rows[low], rows[high], color=colour, linewidth=width, label=label)
    mark = {"marker": "D", "s": 18, "color": "white", "edgecolors": ACCENT}
    ax.scatter(rank, rows["mean"], **mark, zorder=3, label="prediction")
    return titled(ax, "points, by their prediction", "mean")


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
    legend_above(ax, columns=3)
    return titled(ax, "points, by their value before the attack", quantity, legend=False)


HATCHES = ("", "//", "..", "xx", "--", "oo")
"""Repeat what the colours of the groups say."""


def plot_boxes(
    ax: Axes | None,
    values: Mapping[tuple[str, str], np.ndarray],
    groups: Sequence[str],
    settings: Sequence[str],
    *,
    label: str,
) -> Axes:
    """Settings (radii) along the axis, the groups (models) beside each other at each of them.

    Boxes are quartiles with the median, whiskers reach to the farthest value within 1.5 times the
    box's height, circles are what lies beyond.
    """
    ax = axes_or_current(ax)
    width = 0.8 / len(groups)
    for g, group in enumerate(groups):
        places = np.arange(len(settings)) + (g - 0.5 * (len(groups) - 1)) * width
        data = [values[group, setting] for setting in settings]
        drawn = ax.boxplot(
            data,
            positions=places,
            widths=0.8 * width,
            patch_artist=True,
            medianprops={"color": "black", "linewidth": 1.6},
            flierprops={"marker": "o", "markersize": 3, "markerfacecolor": "white"},
            manage_ticks=False,
        )
        for box in drawn["boxes"]:
            box.set(facecolor=CLASS_PALETTE[g % len(CLASS_PALETTE)], edgecolor="black")
            box.set_hatch(HATCHES[g % len(HATCHES)])
        drawn["boxes"][0].set_label(group)
    ax.set_xticks(np.arange(len(settings)), settings)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    return titled(ax, "radius of the balls", label, legend=len(groups) > 1)
