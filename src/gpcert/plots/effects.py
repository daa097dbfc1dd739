"""Effects of features: bars with proved intervals, heat maps of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.extras import Axes
from gpcert.plots.axes import axes_or_current, blank, titled
from gpcert.plots.images import image_shape
from gpcert.plots.style import ACCENT, DARK

EFFECT_COLOURS = "RdBu_r"
"""Blue lowers, red raises, as in the paper; light in the middle, so grey print shows the size."""


VISIBLE = 0.1
"""Part of the largest effect from which on a pixel's colour is seen."""


def plot_effects(
    ax: Axes | None,
    names: Sequence[str],
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    label: str = "effect",
    most: int = 20,
    beside: tuple[str, np.ndarray] | None = None,
) -> Axes:
    """One bar per feature, from the largest; whiskers are the proved interval.

    Bars to the right raise the output, hatched bars to the left lower it. `beside` is a second set
    of values with its name (LIME's, the gradient's), drawn as diamonds scaled to the same largest
    size: such numbers have units of their own.
    """
    ax = axes_or_current(ax)
    middle = 0.5 * (lower + upper)
    order = np.argsort(-np.abs(middle), kind="stable")[:most]
    rows = np.arange(len(order))
    raises = middle[order] >= 0
    for chosen, colour, hatch, text in (
        (raises, ACCENT, "", "raises"),
        (~raises, DARK, "///", "lowers"),
    ):
        bars = rows[chosen], middle[order][chosen]
        ax.barh(*bars, 0.7, color=colour, hatch=hatch, edgecolor="white", label=text)
    errors = np.maximum([middle[order] - lower[order], upper[order] - middle[order]], 0.0)
    look: Any = {"fmt": "none", "ecolor": "#222222", "capsize": 3, "linewidth": 1.0}
    ax.errorbar(middle[order], rows, xerr=errors, **look, label="proved interval")
    if beside is not None:
        name, values = beside
        scale = np.abs(middle).max() / (np.abs(values).max() or 1.0)
        mark: Any = {"marker": "D", "s": 28, "facecolor": "white", "edgecolor": "#222222"}
        ax.scatter(scale * values[order], rows, **mark, zorder=3, label=f"{name} (scaled)")
    ax.axvline(0.0, color="#777777", linewidth=0.8)
    ax.set_yticks(rows, [str(names[j]) for j in order])
    ax.invert_yaxis()
    return titled(ax, label, "")


def plot_heat_map(
    ax: Axes | None,
    values: np.ndarray,
    shape: tuple[int, int],
    *,
    label: str = "effect",
    image: Any = None,
) -> Axes:
    """Values of pixels: red raises, blue with a dash lowers (in grey print the dash tells them
    apart); the image's outline is drawn over them."""
    ax = axes_or_current(ax)
    shape = image_shape(shape, values.size)
    largest = float(np.abs(values).max()) or 1.0
    shown = ax.imshow(values.reshape(shape), cmap=EFFECT_COLOURS, vmin=-largest, vmax=largest)
    _mark_lowering(ax, values.reshape(shape), largest)
    if image is not None:
        pixels = np.asarray(image, dtype=float).reshape(shape)
        middle = 0.5 * (pixels.min() + pixels.max())
        if pixels.min() < middle < pixels.max() and min(shape) > 1:
            ax.contour(pixels, levels=[middle], colors="#222222", linewidths=0.8)
    figure: Any = ax.figure
    figure.colorbar(shown, ax=ax, fraction=0.046, pad=0.03, label=label)
    return blank(ax)


def _mark_lowering(ax: Axes, values: np.ndarray, largest: float) -> None:
    """A dash on every pixel that lowers the output by a visible amount."""
    rows, columns = np.nonzero(values < -VISIBLE * largest)
    dark = values[rows, columns] < -0.5 * largest
    ax.scatter(columns, rows, marker="_", s=22, color=np.where(dark, "white", "#222222"))
