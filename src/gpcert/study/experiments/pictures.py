"""Figures of the experiments: panels beside each other, without a window system."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from gpcert.plots.axes import new_figure
from gpcert.utils.optional_imports import Axes, Figure

WIDTH, HEIGHT = 4.6, 3.6
PIXELS_AN_INCH = 130
MAX_NUMBERS = 8
LEGEND_COLUMN = 2.2
"""Inches that a column of a legend takes at most."""

T = TypeVar("T")

WIDE_RANGE = 300.0
"""Quotient of the ends of an axis from which on only powers of ten have their number."""


def panels(
    items: Iterable[T], columns: int = 2, **options: Any
) -> tuple[Figure, list[tuple[Axes, T]]]:
    """A figure with axes for each item, in rows of at most `columns`; options are `subplots`'.

    >>> figure, each = panels("abc")
    >>> [item for ax, item in each]
    ['a', 'b', 'c']
    """
    given = list(items)
    columns = min(columns, len(given))
    rows = math.ceil(len(given) / columns)
    figure = new_figure(WIDTH * columns, HEIGHT * rows)
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for unused in axes[len(given) :]:
        unused.remove()
    return figure, list(zip(axes, given, strict=False))


def shared_legend(figure: Figure, columns: int = 4) -> Figure:
    """The figure with one legend below it in place of one in every panel, in at most so many
    columns as its width holds."""
    known = {}
    for ax in figure.axes:
        handles, labels = ax.get_legend_handles_labels()
        known |= dict(zip(labels, handles, strict=True))
        if (legend := ax.get_legend()) is not None:
            legend.remove()
    fitting = max(1, min(columns, int(figure.get_figwidth() / LEGEND_COLUMN)))
    figure.legend(known.values(), known, loc="outside lower center", ncols=fitting)
    return figure


SPREAD_FROM = 1e-3
"""Values from which an axis that shows small numbers is logarithmic: the tolerance of delta."""


def spread_near_zero(ax: Axes) -> None:
    """A vertical axis linear up to `SPREAD_FROM` and logarithmic above, if the values need it."""
    top = ax.get_ylim()[1]
    if top <= 10 * SPREAD_FROM:
        return
    ax.set_yscale("symlog", linthresh=SPREAD_FROM, linscale=0.5)
    powers = [p for p in (0.001, 0.01, 0.1, 1.0) if p <= top]
    ax.set_yticks([0.0, *powers], labels=["0", *(f"{p:g}" for p in powers)])
    ax.set_ylim(-0.3 * SPREAD_FROM, 1.5 * top)


def logarithmic(ax: Axes, ticks: Any) -> None:
    """Both axes logarithmic, with plain numbers at these ticks along the horizontal one; of many
    every second or third has its number."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    ax.set_xscale("log")
    ax.set_yscale("log")
    every = math.ceil(len(ticks) / MAX_NUMBERS)
    labels = [f"{tick:g}" if k % every == 0 else "" for k, tick in enumerate(ticks)]
    ax.set_xticks(ticks, labels=labels)
    ax.xaxis.set_minor_locator(NullLocator())
    for formatter in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
        formatter(FuncFormatter(lambda value, place: _plain(value, ax.get_ylim())))


def _plain(value: float, ends: tuple[float, float]) -> str:
    """Numbers as they are: over few powers of ten those that begin with 1, 2, 3, 5 or 7, else the
    powers alone; more would overlap.

    >>> _plain(0.3, (0.1, 1.0)), _plain(0.4, (0.1, 1.0)), _plain(0.3, (1e-6, 1.0))
    ('0.3', '', '')
    """
    low, high = ends
    first = "12357" if high <= WIDE_RANGE * low else "1"
    return f"{value:g}" if value > 0 and f"{value:.0e}"[0] in first else ""


def save(figure: Figure, place: Path) -> None:
    """Write `place`.svg and `place`.png; the same figure gives the same bytes, without a date."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "gpcert"}):
        figure.savefig(place.with_name(f"{place.name}.svg"), metadata={"Date": None})
    figure.savefig(place.with_name(f"{place.name}.png"), dpi=PIXELS_AN_INCH)
