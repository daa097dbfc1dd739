"""An image, its counter-example, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.arrays import finite_array
from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.plots.axes import blank
from gpcert.plots.style import PROBABILITY_COLOURS


def image_shape(shape: Any, pixels: int) -> tuple[int, int]:
    """Rows and columns of an image of so many pixels, or an `InputError`.

    >>> image_shape([2, 3], 6)
    (2, 3)
    """
    given = np.asarray(shape)
    if given.shape != (2,) or given.dtype.kind not in "iu" or np.any(given < 1):
        raise InputError(f"shape: expected (rows, columns) of the image, got {shape!r}")
    rows, columns = map(int, given)
    if rows * columns != pixels:
        raise InputError(f"shape: expected {pixels} pixels, got {rows} * {columns}")
    return rows, columns


def plot_image_counterexample(
    axes: Sequence[Axes],
    x: Any,
    counterexample: Any,
    shape: tuple[int, int],
    *,
    labels: tuple[Any, Any] | None = None,
) -> Sequence[Axes]:
    """Draw x, the counter-example and their difference on three Axes; returns the Axes.

    `shape` is (rows, columns) of the image; `labels` the decisions before and after, for the
    titles. Both images share one grey scale; the difference is centred at zero.
    """
    if len(axes) != 3:
        raise InputError(f"axes: expected three Axes, got {len(axes)}")
    before, after = finite_array("x", x, ndim=1), finite_array("counterexample", counterexample, 1)
    if after.size != before.size:
        raise InputError(
            f"counterexample: expected {before.size} pixels, as many as in x, got {after.size}"
        )
    shape = image_shape(shape, before.size)
    change = after - before
    top = max(float(before.max()), float(after.max()))
    bottom = min(float(before.min()), float(after.min()))
    largest = float(np.abs(change).max()) or 1.0  # equal images: any scale shows the zeros
    for ax, pixels in zip(axes[:2], (before, after), strict=True):
        ax.imshow(pixels.reshape(shape), cmap="gray_r", vmin=bottom, vmax=top)
    axes[2].imshow(change.reshape(shape), cmap=PROBABILITY_COLOURS, vmin=-largest, vmax=largest)
    titles = ["image", "counter-example", f"change (up to {largest:.3g})"]
    if labels is not None:
        titles[:2] = [f"decided {labels[0]}", f"decided {labels[1]}"]
    for ax, title in zip(axes, titles, strict=True):
        blank(ax, title)
    return axes
