"""An optimum in its domain, and the remaining regret."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.certificates import Optimum, RegretBound
from gpcert.errors import InputError
from gpcert.plots.axes import (
    ACCENT,
    DARK,
    LIGHT,
    axes_or_new,
    legend_above,
    name_rows,
    padded_limits,
)
from gpcert.regions import region_from_dict
from gpcert.utils.optional_imports import Axes

MAX_FEATURES = 40
"""Largest number of features; of more the first ones are drawn."""

POINT: dict[str, Any] = {"marker": "D", "s": 46, "color": ACCENT, "edgecolors": "black"}


def plot_optimum(ax: Axes | None, optimum: Optimum) -> Axes:
    """One row per free feature: the positions of the best point and of the remaining boxes in the
    domain; the title gives the value and the proved bound."""
    ax = axes_or_new(ax)
    if optimum.x is None:
        raise InputError("plot: no point was evaluated before the budget ended")
    region = region_from_dict(optimum.region)
    width = region.upper - region.lower
    free = np.flatnonzero(width > 0)[:MAX_FEATURES]
    if not len(free):
        free, width = np.arange(min(len(width), MAX_FEATURES)), np.ones(len(width))
    names = optimum.features or tuple(f"x{j}" for j in range(len(width)))
    rows = np.arange(len(free))
    bar: Any = {"color": LIGHT, "edgecolor": DARK, "linewidth": 1.0}
    ax.barh(rows, np.ones(len(free)), 0.5, **bar, label="domain")
    if len(optimum.kept):
        ends = (optimum.kept - region.lower) / np.where(width > 0, width, 1.0)
        low, high = ends[:, 0].min(axis=0)[free], ends[:, 1].max(axis=0)[free]
        ax.barh(rows, high - low, 0.3, low, color=DARK, alpha=0.5, label="may hold an optimum")
    place = (optimum.x - region.lower)[free] / width[free]
    ax.scatter(place, rows, zorder=3, **POINT, label=f"x: {optimum.value:.4g}")
    name_rows(ax, [f"{names[j]} = {optimum.x[j]:.4g}" for j in free])
    ax.set(xlim=(-0.03, 1.03), xlabel="place between the lower and the upper end of the domain")
    relation = "at most" if optimum.side == "maximum" else "at least"
    title = f"{optimum.side} of {optimum.quantity}: {optimum.value:.4g}, proved {relation} "
    legend_above(ax, title=f"{title}{optimum.bound:.4g}", columns=3)
    return ax


def plot_regret(ax: Axes | None, regret: RegretBound) -> Axes:
    """The best observed bound, and the proved bound over the domain."""
    ax = axes_or_new(ax)
    ends = [regret.observed, regret.domain]
    low, high = padded_limits(ends)
    clipped = np.clip(ends, low, high)
    ax.barh([0], [clipped[1] - clipped[0]], 0.4, [clipped[0]], color=LIGHT, edgecolor=DARK)
    first, second = ("LCB", "UCB") if regret.side == "maximum" else ("UCB", "LCB")
    ax.scatter([clipped[0]], [0], zorder=3, **POINT, label=f"best {first} of an observed point")
    marks: Any = {"marker": "|", "s": 300, "color": DARK, "zorder": 3}
    ax.scatter([clipped[1]], [0], **marks, label=f"best {second} of the domain, proved")
    name_rows(ax, [""])
    ax.set(xlim=(low, high), xlabel=f"mean with {regret.beta:g} std")
    legend_above(ax, title=f"regret at most {regret.bound:.4g}", columns=1)
    return ax
