"""Slopes feature by feature, verdicts on monotony and fairness, and Lipschitz constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.certificates import Fairness, LipschitzBound, Monotonicity, SlopeTable
from gpcert.certificates.text import STATUS_COLOURS
from gpcert.plots.axes import (
    ACCENT,
    DARK,
    LIGHT,
    axes_or_new,
    legend_above,
    name_rows,
    padded_limits,
)
from gpcert.utils.optional_imports import Axes

MAX_ROWS = 40
"""Rows that are drawn; of more the first ones."""

SIGN_COLOURS = {"+": "#009E73", "-": "#0072B2", "0": LIGHT, "+-": "#E69F00", "?": "#BBBBBB"}
"""Colours of slopes by their sign."""

SIGN_TEXTS = {
    "+": "never falls",
    "-": "never rises",
    "0": "constant",
    "+-": "both signs occur",
    "?": "not decided",
}


def plot_slopes(ax: Axes | None, table: SlopeTable) -> Axes:
    """One bar for each feature, which holds all values of its slope; triangles are attained."""
    ax = axes_or_new(ax)
    rows, signs = list(table)[:MAX_ROWS], list(table.signs.values())[:MAX_ROWS]
    ends = np.array([[row.minimum.lower, row.maximum.upper] for row in rows]).reshape(-1, 2)
    low, high = padded_limits([*ends[np.isfinite(ends)].tolist(), 0.0])
    for sign in dict.fromkeys(signs):
        places = [k for k, each in enumerate(signs) if each == sign]
        left, right = np.clip(ends[places, 0], low, high), np.clip(ends[places, 1], low, high)
        look: Any = {"color": SIGN_COLOURS[sign], "edgecolor": DARK, "linewidth": 0.8}
        ax.barh(places, right - left, 0.5, left, **look, label=SIGN_TEXTS[sign])
    attained = [(k, row.minimum.upper, row.maximum.lower) for k, row in enumerate(rows)]
    for marker, column in (("<", 1), (">", 2)):
        points = [(each[column], each[0]) for each in attained if np.isfinite(each[column])]
        x, y = np.array(points).reshape(-1, 2).T
        ax.scatter(x, y, marker=marker, s=26, color="black", zorder=3)
    ax.axvline(0.0, color=DARK, linewidth=1.0)
    name_rows(ax, [str(label) for label in table.labels[:MAX_ROWS]])
    ax.set(xlim=(low, high), xlabel="slope in the region: change of the mean per unit of a feature")
    legend_above(ax, title="", columns=3)
    return ax


def plot_monotonicities(ax: Axes | None, rows: Sequence[Monotonicity], labels: Any) -> Axes:
    """The bounds of the least slope in the wanted direction of each feature, against 0."""
    ax = axes_or_new(ax)
    rows, labels = list(rows)[:MAX_ROWS], list(labels)[:MAX_ROWS]
    ends = np.array([[row.slope.lower, row.slope.upper] for row in rows]).reshape(-1, 2)
    _bars(ax, rows, ends)
    pairs = zip(rows, labels, strict=True)
    name_rows(ax, [f"{label} {row.direction}" for row, label in pairs])
    ax.set(xlabel="least slope in the wanted direction")
    legend_above(ax, title="", columns=3)
    return ax


def plot_lipschitz(ax: Axes | None, rows: Sequence[LipschitzBound], labels: Any) -> Axes:
    """The proved upper bound of each constant, and the attained one."""
    ax = axes_or_new(ax)
    rows, labels = list(rows)[:MAX_ROWS], list(labels)[:MAX_ROWS]
    lower, upper = (np.array([getattr(row, end) for row in rows]) for end in ("lower", "upper"))
    upper = np.where(np.isfinite(upper), upper, 2.0 * lower + 1.0)
    places = np.arange(len(rows))
    ax.barh(places, upper, 0.4, color=LIGHT, edgecolor=DARK, label="proved")
    look: Any = {"marker": "D", "s": 46, "color": ACCENT, "edgecolors": "black", "zorder": 3}
    ax.scatter(lower, places, **look, label="attained")
    name_rows(ax, [str(label) for label in labels])
    ax.set(xlim=(0.0, 1.05 * float(upper.max()) or 1.0), xlabel="Lipschitz constant in the region")
    title = f"proved: at most {rows[0].upper:.4g}" if len(rows) == 1 else ""
    legend_above(ax, title=title, columns=2)
    return ax


def plot_fairness(ax: Axes | None, rows: Sequence[Fairness], labels: Any) -> Axes:
    """The proved bounds of each least margin, against 0."""
    ax = axes_or_new(ax)
    rows, labels = list(rows)[:MAX_ROWS], list(labels)[:MAX_ROWS]
    ends = np.array([[row.margin.lower, row.margin.upper] for row in rows]).reshape(-1, 2)
    _bars(ax, rows, ends)
    name_rows(ax, [str(label) for label in labels])
    ax.set(xlabel="least margin of equal treatment in the region")
    legend_above(ax, title="", columns=3)
    return ax


def _bars(ax: Axes, rows: Sequence[Any], ends: np.ndarray) -> None:
    """Intervals against 0, in the colours of the rows' verdicts, the proved ends marked."""
    low, high = padded_limits([*ends[np.isfinite(ends)].tolist(), 0.0])
    ends = np.clip(ends, low, high)
    for status in dict.fromkeys(row.status for row in rows):
        places = [k for k, row in enumerate(rows) if row.status is status]
        left, right = ends[places, 0], np.maximum(ends[places, 1], ends[places, 0])
        look: Any = {"color": STATUS_COLOURS[status.name], "linewidth": 2.0}
        ax.barh(places, right - left, 0.4, left, **look, label=status.name)
        ax.scatter(left, places, marker="|", s=200, color=look["color"], zorder=3)
    ax.axvline(0.0, color=DARK, linewidth=1.0)
    ax.set(xlim=(low, high))
