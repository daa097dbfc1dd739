"""Figures of the experiments: panels beside each other, without a window system."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["logarithmic", "panels", "save"]

WIDTH, HEIGHT = 4.6, 3.6
PIXELS_AN_INCH = 130
MOST_NUMBERS = 8


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


def logarithmic(ax: Axes, ticks: Any) -> None:
    """Both axes logarithmic, with plain numbers at these ticks along the horizontal one; of many
    every second or third has its number."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    ax.set_xscale("log")
    ax.set_yscale("log")
    every = math.ceil(len(ticks) / MOST_NUMBERS)
    labels = [f"{tick:g}" if k % every == 0 else "" for k, tick in enumerate(ticks)]
    ax.set_xticks(ticks, labels=labels)
    ax.xaxis.set_minor_locator(NullLocator())
    for formatter in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
        formatter(FuncFormatter(_plain))


def _plain(value: float, place: int | None) -> str:
    """Numbers that begin with 1, 2, 3, 5 or 7, written as they are; the others would overlap."""
    del place
    return f"{value:g}" if value > 0 and f"{value:.0e}"[0] in "12357" else ""


def save(figure: Figure, place: Path) -> None:
    """Write `place`.svg and `place`.png; the same figure gives the same bytes, without a date."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "gpcert"}):
        figure.savefig(place.with_name(f"{place.name}.svg"), metadata={"Date": None})
    figure.savefig(place.with_name(f"{place.name}.png"), dpi=PIXELS_AN_INCH)
