"""A failure region with its paving and the density of the inputs; proved intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.certificates import Expectation, FailureProbability, Quantile, SobolIndices
from gpcert.plots.axes import (
    ACCENT,
    DARK,
    LIGHT,
    axes_or_new,
    legend_above,
    name_rows,
    padded_limits,
)
from gpcert.utils.optional_imports import Axes, optional

SHOWN = 1e-9
"""Cells of less probability, all together, are not drawn."""

COLOURS = {1: ACCENT, 2: "#77AADD", 0: "#333333"}
TEXTS = {1: "in the event", 2: "not in it", 0: "in parts"}


def plot_failure(ax: Axes | None, record: FailureProbability) -> Axes:
    """Of two random inputs found with `paving=True` the cells of the event, those outside, and
    those that its surface crosses; the denser the inputs, the darker. Cells of next to no
    probability are left out. Of others the proved interval."""
    free = np.flatnonzero(np.ptp(record.cells, axis=(0, 1))) if len(record.cells) else []
    if len(free) != 2:
        return plot_interval(ax, record)
    ax = axes_or_new(ax)
    order = np.argsort(record.mass)
    drawn = order[np.cumsum(record.mass[order]) > SHOWN * min(1.0, max(record.lower, 1e-300))]
    low, high = record.cells[drawn, 0][:, free], record.cells[drawn, 1][:, free]
    status, mass = record.status[drawn].astype(int), record.mass[drawn]
    density = mass / np.prod(high - low, axis=1)
    shade = np.log10(np.maximum(density, 1e-300))
    least, most = float(shade.min()), float(shade.max())
    strength = 0.15 + 0.8 * (shade - least) / (most - least if most > least else 1.0)
    patches, lines = (optional(f"matplotlib.{name}", "plot") for name in ("patches", "collections"))
    colour = optional("matplotlib.colors", "plot").to_rgb
    boxes = [
        patches.Rectangle(corner, *(far - corner)) for corner, far in zip(low, high, strict=True)
    ]
    faces = [(*colour(COLOURS[s]), a) for s, a in zip(status, strength, strict=True)]
    kind: Any = {"facecolors": faces, "edgecolors": (0.2, 0.2, 0.2, 0.35), "linewidths": 0.3}
    ax.add_collection(lines.PatchCollection(boxes, match_original=False, **kind))
    ends = low.min(axis=0), high.max(axis=0)
    names = record.features or tuple(f"x{j}" for j in range(record.cells.shape[2]))
    ax.set(
        xlim=(ends[0][0], ends[1][0]),
        ylim=(ends[0][1], ends[1][1]),
        xlabel=names[free[0]],
        ylabel=names[free[1]],
    )
    for key in sorted(set(status.tolist())):
        ax.fill([], [], color=COLOURS[key], label=TEXTS[key], edgecolor=DARK)
    title = f"{record.lower:.4g} <= P <= {record.upper:.4g}"
    legend_above(ax, title=title, columns=3)
    return ax


def plot_interval(ax: Axes | None, record: FailureProbability | Expectation | Quantile) -> Axes:
    """The proved interval as a bar."""
    ax = axes_or_new(ax)
    low, high = padded_limits([record.lower, record.upper])
    ends = np.clip([record.lower, record.upper], low, high)
    bar: dict[str, Any] = {"color": LIGHT, "edgecolor": DARK, "label": "proved"}
    ax.barh([0], [ends[1] - ends[0]], 0.4, [ends[0]], **bar)
    name_rows(ax, [record.quantity])
    kind = {"failure_probability": "P", "expectation": "E", "quantile": "q"}[record.kind]
    ax.set(xlim=(low, high), xlabel="proved interval")
    legend_above(ax, title=f"{record.lower:.4g} <= {kind} <= {record.upper:.4g}", columns=1)
    return ax


def plot_sobol(ax: Axes | None, record: SobolIndices) -> Axes:
    """For every input a bar for the first and one for the total index: what is proved to be there
    full, what may be there besides pale."""
    ax = axes_or_new(ax)
    rows = np.arange(len(record.features), dtype=float)
    for shift, colour, name in ((-0.2, ACCENT, "first"), (0.2, DARK, "total")):
        low, high = getattr(record, name).T
        ax.barh(rows + shift, low, 0.36, color=colour, label=name)
        ax.barh(rows + shift, high - low, 0.36, left=low, color=colour, alpha=0.35)
    name_rows(ax, list(record.features))
    ax.set(xlim=(0.0, 1.0), xlabel="part of the variance")
    legend_above(ax, title="Sobol' indices, pale: not decided", columns=2)
    return ax
