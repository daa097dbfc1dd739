"""Prediction ranges as bars: what is proved, and what is attained inside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.certificates import PredictionRange
from gpcert.errors import InputError
from gpcert.plots.style import ACCENT, DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_range"]


def plot_range(
    ax: Axes,
    ranges: Iterable[PredictionRange],
    *,
    labels: Sequence[Any] | None = None,
    threshold: float | None = None,
) -> Axes:
    """One bar a range: light, `[minimum.lower, maximum.upper]`, which holds every prediction.

    Dark inside it, `[minimum.upper, maximum.lower]`: both ends are attained. Where the search
    converged the light rims are thinner than the tolerance. An infinite end is drawn as an arrow.
    `labels` name the bars; by default the ranges' outputs (the classes of `prediction_ranges`)
    where they differ, else numbers.
    """
    ranges = list(ranges)
    names = [str(n) for n in (_names(ranges) if labels is None else labels)]
    if not ranges or len(names) != len(ranges):
        raise InputError(
            f"labels: expected one for each of 1 or more ranges, got {len(names)} for {len(ranges)}"
        )
    outer = np.array([[r.minimum.lower, r.maximum.upper] for r in ranges])
    inner = np.array([[r.minimum.upper, r.maximum.lower] for r in ranges])
    finite = np.concatenate([outer, inner])[np.isfinite(np.concatenate([outer, inner]))]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    room = 0.05 * max(high - low, 1e-12)  # a bar of no height still gets a frame
    rows = np.arange(len(ranges))
    shown = np.clip(outer, low - room, high + room)
    ax.bar(rows, shown[:, 1] - shown[:, 0], 0.6, shown[:, 0], color=LIGHT, label="proved range")
    inside = np.clip(inner, low - room, high + room)
    height = np.maximum(inside[:, 1] - inside[:, 0], 0.0)
    ax.bar(rows, height, 0.3, inside[:, 0], color=DARK, label="attained")
    for side, marker in ((0, "v"), (1, "^")):
        endless = ~np.isfinite(outer[:, side])
        ax.scatter(rows[endless], shown[endless, side], marker=marker, color=LIGHT, s=80)
    if threshold is not None:
        ax.axhline(threshold, color=ACCENT, linestyle="--", linewidth=1.2, label="decision")
    ax.set_xticks(rows, names)
    ax.set_ylabel(ranges[0].quantity)
    ax.legend(fontsize="small", framealpha=0.9)
    return ax


def _names(ranges: Sequence[PredictionRange]) -> list[str]:
    outputs = [str(r.output) for r in ranges]
    return outputs if len(set(outputs)) == len(ranges) else [str(k) for k in range(len(ranges))]
