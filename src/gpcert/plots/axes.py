"""The Axes that a picture is drawn on, the names of its rows, its legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.utils.optional_imports import Axes, Figure, optional

MAX_NAMES, LONGEST_NAME = 25, 28
"""Rows that have a name each; of more, about so many have one. Characters of a name."""

MIN_ROWS = 3
"""Rows whose height a picture has room for, so that a single bar does not fill it."""

ROOM = 0.08
"""Part of a picture's width that is left on either side, so that marks are not cut."""


def axes_or_current(ax: Axes | None) -> Axes:
    """The Axes given, or the current one."""
    return optional("matplotlib.pyplot", "plot").gca() if ax is None else ax


def titled(ax: Axes, x: str, y: str, legend: bool = True) -> Axes:
    """The Axes with names of its axes, and a small legend within; the last line of a picture."""
    ax.set(xlabel=x, ylabel=y)
    if legend:
        ax.legend(fontsize="small", framealpha=0.9)
    return ax


def blank(ax: Axes, title: str = "") -> Axes:
    """An image's Axes: without ticks, with a small title."""
    ax.set_title(title, fontsize="small")
    ax.set(xticks=[], yticks=[])
    return ax


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


def new_figure(width: float, height: float, layout: str = "constrained") -> Figure:
    """A figure of its own, in inches; without pyplot, so that no window system is asked for."""
    figure = optional("matplotlib.figure", "a picture")
    return figure.Figure(figsize=(width, height), layout=layout)


def short_name(name: Any) -> str:
    """A name that does not fill the picture.

    >>> short_name("a"), short_name("a name that goes on and on and on and on")
    ('a', 'a name that g…and on and on')
    """
    text = str(name)
    if len(text) <= LONGEST_NAME:
        return text
    half = (LONGEST_NAME - 1) // 2
    return f"{text[:half].rstrip()}…{text[-half - 1 :].lstrip()}"


def name_rows(ax: Axes, names: Sequence[Any]) -> None:
    """Names of rows 0, 1, ... from the top; of many rows only some, so that none overlap."""
    step = -(-len(names) // MAX_NAMES)
    rows = np.arange(len(names))[::step]
    ax.set_yticks(rows, [short_name(names[row]) for row in rows])
    spare = max(0.0, MIN_ROWS - len(names)) / 2.0
    ax.set_ylim(len(names) - 0.4 + spare, -0.6 - spare)


def legend_above(
    ax: Axes, *, title: str | None = None, handles: Any = None, columns: int = 2
) -> None:
    """The legend over the Axes: it hides nothing, and in two columns small pictures hold it."""
    given = {} if handles is None else {"handles": handles}
    ax.legend(
        **given,
        title=title,
        fontsize="small",
        title_fontsize="medium",
        ncols=columns,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        frameon=False,
        borderaxespad=0.2,
        columnspacing=1.2,
        handlelength=1.4,
        handletextpad=0.5,
    )


def room_around(values: Iterable[float]) -> tuple[float, float]:
    """Limits of an axis that shows all finite values with some room, also of a single one.

    >>> room_around([0.0, 1.0, float("inf")])
    (-0.08, 1.08)
    """
    given = np.array([value for value in values if np.isfinite(value)])
    low, high = (given.min(), given.max()) if given.size else (0.0, 1.0)
    size = max(abs(low), abs(high)) or 1.0
    room = max(ROOM * (high - low), 0.02 * size)
    return float(low - room), float(high + room)
