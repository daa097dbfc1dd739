"""Features of a reason, marked: pixels of an image, or columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.plots.axes import axes_or_current, blank, legend_above, name_rows, short_name
from gpcert.plots.images import image_shape
from gpcert.plots.style import ACCENT, DARK, LIGHT

LOOKS = (
    ("white", "", "cannot move"),
    ("#DDDDDD", "", "not in the reason"),
    (DARK, "", "in the reason"),
    (LIGHT, "////", "in it, perhaps superfluous"),
)
"""Colour, hatch and name of a feature's part in a reason, by the numbers of `plot_kept_features`;
light, dark and hatched, so that grey print tells them apart."""

MOST_COLUMNS = 30
"""Features whose names are shown."""


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
    ax = axes_or_current(ax)
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
    """One row a point, one column a feature; `marks` (points, features) are places in `LOOKS`."""
    ax = axes_or_current(ax)
    from matplotlib.patches import Patch

    if not marks.size:
        raise InputError("plot: expected at least one reason and one feature that may move")
    columns = marks.shape[1]
    for number, (colour, hatch, _) in enumerate(LOOKS):
        y, x = np.nonzero(marks == number)
        style: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white"}
        ax.bar(x, np.full(len(x), 0.8), 0.86, y - 0.4, **style)
    name_rows(ax, labels)
    step = -(-columns // MOST_COLUMNS)
    shown = np.arange(columns)[::step]
    ax.set_xticks(shown, [short_name(names[j]) for j in shown], rotation=90 if columns > 4 else 0)
    ax.set_xlim(-0.6, columns - 0.4)
    present = [number for number in range(len(LOOKS)) if np.any(marks == number)]
    patches = [
        Patch(facecolor=LOOKS[k][0], hatch=LOOKS[k][1], edgecolor="#777777", label=LOOKS[k][2])
        for k in present
    ]
    legend_above(ax, title=title, handles=patches)
    return ax
