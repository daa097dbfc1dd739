"""The course of training: evidence against epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpcert.errors import InputError
from gpcert.plots.style import ACCENT, DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpcert.models.hyperparameters import Trace


def plot_training(ax: Axes, trace: Trace) -> Axes:
    """A dot for each evaluation of the evidence, and the best so far as a line.

    `trace` is `model.trace_`. Restarts are divided by thin lines; parameters at which inference
    failed are crosses on the lower rim.
    """
    if len(trace) == 0:
        raise InputError("trace: expected at least one evaluation, got none")
    evidence, epochs = trace.evidence, np.arange(1, len(trace) + 1)
    works = np.isfinite(evidence)
    best = np.maximum.accumulate(np.where(works, evidence, -np.inf))
    known = np.isfinite(best)
    ax.scatter(epochs[works], evidence[works], color=LIGHT, s=18, label="evaluation")
    ax.step(epochs[known], best[known], where="post", color=DARK, label="best so far")
    if not np.all(works):
        floor = evidence[works].min() if np.any(works) else 0.0
        ax.scatter(
            epochs[~works],
            np.full(int((~works).sum()), floor),
            color=ACCENT,
            marker="x",
            label="inference failed",
        )
    for start in epochs[1:][np.diff(trace.runs) != 0]:
        ax.axvline(start - 0.5, color="#777777", linestyle=":", linewidth=0.8)
    ax.set_xlabel("epochs (evaluations of the evidence)")
    ax.set_ylabel("log evidence")
    ax.legend(fontsize="small", framealpha=0.9)
    return ax
