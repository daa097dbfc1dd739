"""The adversarial gap against the number of pixels that may change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpcert.errors import InputError
from gpcert.plots.axes import axes_or_current
from gpcert.plots.style import ACCENT, DARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = ((DARK, "o", "-"), (ACCENT, "s", "--"), ("#009E73", "^", "-."), ("#777777", "D", ":"))
"""Colour, marker and line of each ranking: any one of them tells them apart."""

Gaps = tuple[str, Sequence[int], np.ndarray, np.ndarray]


def plot_gaps(ax: Axes | None, rows: Sequence[Gaps]) -> Axes:
    """For each ranking the smallest gap that is attained, above the band of what is proved.

    Below the dashed grey line, 0, an adversarial image is known.
    """
    ax = axes_or_current(ax)
    if not rows:
        raise InputError("rows: expected at least one ranking, got none")
    for k, (name, betas, lower, upper) in enumerate(rows):
        colour, marker, line = LOOKS[k % len(LOOKS)]
        ax.fill_between(betas, lower, upper, color=colour, alpha=0.2, linewidth=0)
        ax.plot(betas, upper, color=colour, marker=marker, linestyle=line, ms=4, label=name)
    ax.axhline(0.0, color="#777777", linestyle="--", linewidth=1.2, label="decision changes below")
    ax.set_xlabel("pixels that may change (β)")
    ax.set_ylabel("smallest gap π_gap")
    ax.legend(fontsize="small", framealpha=0.9)
    return ax
