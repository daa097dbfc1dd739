"""Figures of the experiments: panels beside each other, without a window system."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["panels", "save"]

WIDTH, HEIGHT = 4.6, 3.6
PIXELS_AN_INCH = 130


def panels(count: int, columns: int = 2, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes in rows of at most `columns`; options are those of `subplots`.

    >>> figure, axes = panels(3)
    >>> len(axes)
    3
    """
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def save(figure: Figure, place: Path) -> None:
    """Write `place`.svg and `place`.png; the same figure gives the same bytes, without a date."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "gpcert"}):
        figure.savefig(place.with_name(f"{place.name}.svg"), metadata={"Date": None})
    figure.savefig(place.with_name(f"{place.name}.png"), dpi=PIXELS_AN_INCH)
