"""A safety curve in the paper's look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpcert.plots.axes import axes_or_current
from gpcert.plots.style import ACCENT, DARK

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LOW, ATTACK = "#009E73", "#CC79A7"
"""Bluish green and reddish purple of Okabe and Ito (2008); line styles and markers repeat them."""


def plot_safety(
    ax: Axes | None,
    frame: pd.DataFrame,
    *,
    levels: Sequence[float],
    label: str,
    attack: str,
    first_unsafe: float | None,
) -> Axes:
    """Against the radius: bounds of the maximum (blue) and of the minimum (green).

    Solid lines are proved for the whole ball, dashed ones attained at a point of it; the truth lies
    between a pair of them. Pink with crosses: the attack. Horizontal: the threshold; vertical: the
    first radius at which a counter-example is known. Infinite bounds are left out.
    """
    ax = axes_or_current(ax)
    radius = frame["radius"].to_numpy()
    lines = (
        ("maximum_upper", DARK, "-", "maximum: proved"),
        ("maximum_lower", DARK, "--", "maximum: attained"),
        ("minimum_upper", LOW, "--", "minimum: attained"),
        ("minimum_lower", LOW, "-", "minimum: proved"),
    )
    for column, colour, line, text in lines:
        values = frame[column].to_numpy(dtype=float)
        values = np.where(np.isfinite(values), values, np.nan)
        ax.plot(radius, values, color=colour, linestyle=line, linewidth=1.6, label=text)
    ax.plot(
        radius,
        frame["attack"],
        color=ATTACK,
        marker="x",
        markersize=4,
        linewidth=1.2,
        label=f"attack ({attack.replace('_', ', ')})",
    )
    for number, level in enumerate(levels):
        text = "decision" if number == 0 else None
        ax.axhline(level, color="black", linestyle=":", linewidth=1.2, label=text)
    if first_unsafe is not None:
        ax.axvline(first_unsafe, color=ACCENT, linestyle="-.", linewidth=1.2, label="first unsafe")
    ax.set_xlabel("radius of the ball")
    ax.set_ylabel(label)
    ax.legend(fontsize="small", framealpha=0.9)
    return ax
