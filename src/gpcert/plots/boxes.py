"""Box plots of a number by group and setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpcert.plots.axes import axes_or_current
from gpcert.plots.style import CLASS_PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    ax.set_xlabel("radius of the balls")
    ax.set_ylabel(label)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    if len(groups) > 1:
        ax.legend(fontsize="small", framealpha=0.9)
    return ax
