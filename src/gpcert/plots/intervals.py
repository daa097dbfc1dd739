"""Prediction ranges as bars: what is proved, what is attained, and the nominal prediction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpcert.certificates import PredictionRange
from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.plots.axes import axes_or_current, legend_above, name_rows, room_around
from gpcert.plots.style import ACCENT, DARK, LIGHT, NOMINAL

HEIGHT = 0.56


def plot_range(
    ax: Axes | None,
    ranges: Iterable[PredictionRange],
    *,
    labels: Sequence[Any] | None = None,
    threshold: float | None = None,
) -> Axes:
    """One bar a range, from the top: `[minimum.lower, maximum.upper]`, which holds every value.

    Triangles are values that points of the region attain, the least and the largest that are known:
    the truth's ends lie between them and those of the bar. The diamond is the prediction at the
    centre of the region. An infinite end is an arrow. `labels` name the bars; by default the
    ranges' outputs (the classes of `prediction_ranges`) where they differ, else numbers.
    """
    ax = axes_or_current(ax)
    ranges = list(ranges)
    names = list(_names(ranges) if labels is None else labels)
    if not ranges or len(names) != len(ranges):
        raise InputError(
            f"labels: expected one for each of 1 or more ranges, got {len(names)} for {len(ranges)}"
        )
    outer = np.array([[r.minimum.lower, r.maximum.upper] for r in ranges])
    inner = np.array([[r.minimum.upper, r.maximum.lower] for r in ranges])
    nominal = np.array([np.nan if r.nominal is None else r.nominal for r in ranges])
    level = np.nan if threshold is None else threshold
    low, high = room_around([*outer.ravel(), *inner.ravel(), *nominal, level])
    shown, rows = np.clip(outer, low, high), np.arange(len(ranges))
    bar: Any = {"color": LIGHT, "edgecolor": DARK, "linewidth": 1.2}  # one of no width is a line
    ax.barh(rows, shown[:, 1] - shown[:, 0], HEIGHT, shown[:, 0], **bar, label="proved: all values")
    carets = (("<", 4), (">", 5))  # their tips are at the value
    for side, (arrow, attained) in enumerate(carets):
        endless = ~np.isfinite(outer[:, side])
        ends = shown[endless, side], rows[endless]
        ax.scatter(*ends, marker=arrow, color=DARK, s=80, zorder=3, clip_on=False)
        known = np.isfinite(inner[:, side])
        style: dict[str, Any] = {"s": 34, "color": DARK, "zorder": 3, "marker": attained}
        style["label"] = "attained" if side == 0 else None
        ax.scatter(inner[known, side], rows[known], **style)
    if np.isfinite(nominal).any():
        ax.scatter(nominal, rows, **NOMINAL, label="at the centre")
    if threshold is not None:
        ax.axvline(threshold, color=ACCENT, linestyle="--", linewidth=1.2, label="decision")
    ax.set_xlim(low, high)
    name_rows(ax, names)
    quantities = {r.quantity for r in ranges}
    ax.set_xlabel(quantities.pop() if len(quantities) == 1 else "prediction")
    legend_above(ax)
    return ax


def _names(ranges: Sequence[PredictionRange]) -> list[str]:
    outputs = [str(r.output) for r in ranges]
    if len(ranges) == 1 and ranges[0].output is None:
        return [""]
    return outputs if len(set(outputs)) == len(ranges) else [str(k) for k in range(len(ranges))]
