"""An image with some of its pixels marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.plots.effects import axes_or_current
from gpcert.plots.style import ACCENT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_kept_pixels"]


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
    from matplotlib.patches import Rectangle

    ax = axes_or_current(ax)
    values = np.asarray(image, dtype=float)
    if values.size != int(np.prod(shape)):
        raise InputError(f"shape: expected {values.size} pixels, got {shape[0]} * {shape[1]}")
    ax.imshow(values.reshape(shape), cmap="gray_r")
    for pixel in pixels:
        row, column = divmod(int(pixel), shape[1])
        style = ":" if pixel in weak else "-"
        ax.add_patch(
            Rectangle(
                (column - 0.42, row - 0.42),
                0.84,
                0.84,
                fill=False,
                edgecolor=ACCENT,
                linewidth=1.6,
                linestyle=style,
            )
        )
    ax.set_title(title, fontsize="small")
    ax.set_xticks([])
    ax.set_yticks([])
    return ax
