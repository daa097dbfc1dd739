"""Certified radii: proved up to here, open from there to the counter-example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.certificates import Radius, Status
from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.plots.axes import axes_or_current, legend_above, name_rows, room_around
from gpcert.plots.style import LOOKS, MARKED


def plot_radii(ax: Axes | None, radii: Sequence[Radius], labels: Sequence[Any]) -> Axes:
    """One row a point, from the top: green up to the proved radius, hatched what is open, a cross
    where a counter-example is known; an arrow where none is."""
    ax = axes_or_current(ax)
    rows = list(radii)
    if not rows or len(labels) != len(rows):
        raise InputError(f"expected 1 or more radii with a label each, got {len(rows)}")
    lower, upper = np.array([r.lower for r in rows]), np.array([r.upper for r in rows])
    _, high = room_around([0.0, *lower, *upper])
    rank, known = np.arange(len(rows)), np.isfinite(upper)
    end, start = np.where(known, upper, high), np.minimum(lower, high)
    proved, refuted = LOOKS[Status.ROBUST], LOOKS[Status.NOT_ROBUST]
    ax.barh(rank, start, 0.56, color=proved.colour, label=proved.label)
    bar: Any = {"facecolor": "white", "edgecolor": "#777777", "hatch": "////", "linewidth": 0.8}
    ax.barh(rank, end - start, 0.56, start, **bar, label="undecided")
    if known.any():
        mark = {"marker": "X", "color": refuted.colour, **MARKED}
        ax.scatter(upper[known], rank[known], **mark, label="counter-example")
    ends = end[~known], rank[~known]
    ax.scatter(*ends, marker=">", s=60, color="#777777", zorder=3, clip_on=False)
    ax.set_xlim(0.0, high)
    name_rows(ax, labels)
    norms = {r.norm for r in rows}
    ax.set_xlabel("radius" + (f" (l_{norms.pop():g})" if len(norms) == 1 else ""))
    legend_above(ax)
    return ax
