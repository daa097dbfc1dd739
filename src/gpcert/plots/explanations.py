"""Explanations: effects as bars or heat maps, features of a reason marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.plots.axes import (
    ACCENT,
    DARK,
    LIGHT,
    axes_or_new,
    blank,
    image_shape,
    legend_above,
    name_rows,
    short_name,
    titled,
)
from gpcert.utils.optional_imports import Axes

EFFECT_COLOURS = "RdBu_r"
"""Blue lowers, red raises, as in the paper; light in the middle, so that grey print shows the
size."""


VISIBLE = 0.1
"""Least effect with a visible colour, as a fraction of the largest one."""


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
    size, because their units differ.
    """
    ax = axes_or_new(ax)
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
    """Values of pixels: red raises, blue with a dash lowers (the dash distinguishes them in grey
    print); the image's outline is drawn on top."""
    ax = axes_or_new(ax)
    shape = image_shape(shape, values.size)
    largest = float(np.abs(values).max()) or 1.0
    drawn = ax.imshow(values.reshape(shape), cmap=EFFECT_COLOURS, vmin=-largest, vmax=largest)
    # a dash on every pixel that lowers the output by a visible amount
    low = np.flatnonzero(values < -VISIBLE * largest)
    dashes = np.where(values[low] < -0.5 * largest, "white", "#222222")
    ax.scatter(low % shape[1], low // shape[1], marker="_", s=22, color=dashes)
    if image is not None:
        pixels = np.asarray(image, dtype=float).reshape(shape)
        middle = 0.5 * (pixels.min() + pixels.max())
        if pixels.min() < middle < pixels.max() and min(shape) > 1:
            ax.contour(pixels, levels=[middle], colors="#222222", linewidths=0.8)
    figure: Any = ax.figure
    figure.colorbar(drawn, ax=ax, fraction=0.046, pad=0.03, label=label)
    return blank(ax)


LOOKS = (
    ("white", "", "cannot move"),
    ("#DDDDDD", "", "not in the reason"),
    (DARK, "", "in the reason"),
    (LIGHT, "////", "in the reason, possibly superfluous"),
)
"""Colour, hatch and name for each number in the marks of `plot_kept_features`; light, dark and
hatched, to be distinguishable in grey print."""

MAX_COLUMNS = 30
"""Largest number of feature names."""


def plot_kept_pixels(
    ax: Axes | None,
    image: Any,
    pixels: Sequence[int],
    shape: tuple[int, int],
    *,
    title: str = "",
    weak: Sequence[int] = (),
) -> Axes:
    """The image in grey with frames around the pixels; dotted frames around the `weak` ones."""
    ax = axes_or_new(ax)
    from matplotlib.patches import Rectangle

    values = np.asarray(image, dtype=float)
    shape = image_shape(shape, values.size)
    ax.imshow(values.reshape(shape), cmap="gray_r")
    for pixel in pixels:
        row, column = divmod(int(pixel), shape[1])
        line = {"linewidth": 1.6, "linestyle": ":" if pixel in weak else "-"}
        corner = (column - 0.42, row - 0.42)
        ax.add_patch(Rectangle(corner, 0.84, 0.84, fill=False, edgecolor=ACCENT, **line))
    return blank(ax, title)


def plot_kept_features(
    ax: Axes | None,
    marks: np.ndarray,
    labels: Sequence[Any],
    names: Sequence[str],
    *,
    title: str = "",
) -> Axes:
    """One row per point, one column per feature; `marks` (points, features) index `LOOKS`."""
    ax = axes_or_new(ax)
    from matplotlib.patches import Patch

    if not marks.size:
        raise InputError("plot: expected at least one reason and one feature that may move")
    columns, patches = marks.shape[1], []
    for number, (colour, hatch, name) in enumerate(LOOKS):
        y, x = np.nonzero(marks == number)
        style: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white"}
        ax.bar(x, np.full(len(x), 0.8), 0.86, y - 0.4, **style)
        if len(x):
            patches.append(Patch(facecolor=colour, hatch=hatch, edgecolor="#777777", label=name))
    name_rows(ax, labels)
    step = -(-columns // MAX_COLUMNS)
    ticks = np.arange(columns)[::step]
    ax.set_xticks(ticks, [short_name(names[j]) for j in ticks], rotation=90 if columns > 4 else 0)
    ax.set_xlim(-0.6, columns - 0.4)
    legend_above(ax, title=title, handles=patches)
    return ax
