"""Certified accuracy over the radius."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpcert.plots.axes import axes_or_current
from gpcert.plots.style import ACCENT, LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from gpcert.certificates import Status


def plot_accuracy(
    ax: Axes | None,
    radii: np.ndarray,
    certified: np.ndarray,
    attacked: np.ndarray,
    *,
    label: str = "",
) -> Axes:
    """Solid: right and proved robust. Dashed: right and not known to break; shaded between them is
    what is undecided. `label` is put before the names in the legend."""
    ax = axes_or_current(ax)
    start = f"{label}: " if label else ""
    proved = LOOKS[Status.ROBUST]
    ax.fill_between(
        radii,
        certified,
        attacked,
        color="#BBBBBB",
        alpha=0.6,
        linewidth=0,
        label=f"{start}undecided",
    )
    look = {"color": proved.colour, "linestyle": "-", "linewidth": 3.0}
    ax.plot(radii, certified, **look, label=f"{start}proved robust")
    # thin and on top: where the two agree both are seen
    above = {"color": ACCENT, "linestyle": "--", "linewidth": 1.2}
    ax.plot(radii, attacked, **above, label=f"{start}no attack known")
    ax.set_xlabel("radius of the balls")
    ax.set_ylabel("share of the test points, right and robust")
    ax.set_ylim(-0.02, 1.02)
    ax.legend(fontsize="small", framealpha=0.9)
    return ax
