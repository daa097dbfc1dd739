"""The Axes of a plot, the names of its rows, its legend; colours and line styles, distinguishable
for colour-blind readers and in black and white.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.utils.optional_imports import Axes, Figure, optional


@dataclass(frozen=True)
class Look:
    """The style of a status; the line style repeats the information of the colour."""

    colour: str
    line: Literal["-", "--", ":"]
    label: str


LOOKS = {
    Status.ROBUST: Look("#009E73", "-", "proved robust"),
    Status.NOT_ROBUST: Look("#D55E00", "--", "refuted"),
    Status.UNKNOWN: Look("#777777", ":", "undecided"),
}
"""Bluish green, vermilion and grey of Okabe and Ito (2008), *Color universal design*."""

DARK, LIGHT, ACCENT = "#0072B2", "#A6CEE3", "#D55E00"
CURVES: tuple[tuple[str, str], ...] = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v")),
    *(("#56B4E9", "P"), ("#777777", "X"), ("#000000", "*")),
)
"""Colour (Okabe and Ito) and marker of the first, second, ... curve on one Axes."""

CLASS_PALETTE = (
    *("#77AADD", "#EEDD88", "#FFAABB", "#BBCC33", "#99DDFF"),
    *("#AAAA00", "#44BB99", "#EE8866", "#DDDDDD"),
)
"""Several classes: "light" of Tol (2021), *Colour schemes*, for areas; the first ones
differ most from the colours of a status. Classes beyond the ninth share colours."""

PROBABILITY_COLOURS = "PuOr"
"""Purple to orange: diverging, and safe for red-green blindness."""


MAX_NAMES, LONGEST_NAME = 25, 28
"""Largest number of named rows (of more rows about as many have names), and length of a name."""

MIN_ROWS = 3
"""Least number of rows that a plot has space for, so that a single bar does not fill it."""

MARGIN_FRACTION = 0.08
"""Margin on both sides as a fraction of the width, so that marks are not cut."""


def axes_or_new(ax: Axes | None) -> Axes:
    """The Axes given, or those of a new figure, whose layout cuts nothing off."""
    if ax is not None:
        return ax
    return optional("matplotlib.pyplot", "plot").subplots(layout="constrained")[1]


def titled(ax: Axes, x: str, y: str, legend: bool = True) -> Axes:
    """The Axes with axis labels and a small legend inside."""
    ax.set(xlabel=x, ylabel=y)
    if legend:
        ax.legend(fontsize="small", framealpha=0.9)
    return ax


def next_curve(ax: Axes, lines: int) -> tuple[str, str]:
    """Colour and marker of the next curve, where each one so far has this many labelled lines."""
    drawn = sum(not str(line.get_label()).startswith("_") for line in ax.lines)
    return CURVES[drawn // lines % len(CURVES)]


def blank(ax: Axes, title: str = "") -> Axes:
    """The Axes of an image: without ticks, with a small title."""
    ax.set_title(title, fontsize="small")
    ax.set(xticks=[], yticks=[])
    return ax


def image_shape(shape: Any, pixels: int) -> tuple[int, int]:
    """Rows and columns of an image with this number of pixels, or an `InputError`.

    >>> image_shape([2, 3], 6)
    (2, 3)
    """
    sizes = np.asarray(shape)
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or np.any(sizes < 1):
        raise InputError(f"shape: expected (rows, columns) of the image, got {shape!r}")
    rows, columns = map(int, sizes)
    if rows * columns != pixels:
        raise InputError(f"shape: expected {pixels} pixels, got {rows} * {columns}")
    return rows, columns


def new_figure(width: float, height: float, layout: str = "constrained") -> Figure:
    """A new figure, size in inches; without pyplot, so that no window system is needed."""
    figure = optional("matplotlib.figure", "a picture")
    return figure.Figure(figsize=(width, height), layout=layout)


def short_name(name: Any) -> str:
    """The name, shortened if it is long.

    >>> short_name("a"), short_name("a name that goes on and on and on and on")
    ('a', 'a name that g…and on and on')
    """
    text = str(name)
    if len(text) <= LONGEST_NAME:
        return text
    half = (LONGEST_NAME - 1) // 2
    return f"{text[:half].rstrip()}…{text[-half - 1 :].lstrip()}"


def name_rows(ax: Axes, names: Sequence[Any]) -> None:
    """Set the names of rows 0, 1, ... from the top; of many rows only some, to avoid overlap."""
    step = -(-len(names) // MAX_NAMES)
    rows = np.arange(len(names))[::step]
    ax.set_yticks(rows, [short_name(names[row]) for row in rows])
    spare = max(0.0, MIN_ROWS - len(names)) / 2.0
    ax.set_ylim(len(names) - 0.4 + spare, -0.6 - spare)


def legend_above(
    ax: Axes, *, title: str | None = None, handles: Any = None, columns: int = 2
) -> None:
    """Put the legend above the Axes, where it hides nothing, in two columns by default."""
    handle_argument = {} if handles is None else {"handles": handles}
    ax.legend(
        **handle_argument,
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


def padded_limits(values: Iterable[float]) -> tuple[float, float]:
    """Limits of an axis that shows all finite values with a margin, also for a single value.

    >>> padded_limits([0.0, 1.0, float("inf")])
    (-0.08, 1.08)
    """
    finite = np.array([value for value in values if np.isfinite(value)])
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    size = max(abs(low), abs(high)) or 1.0
    margin = max(MARGIN_FRACTION * (high - low), 0.02 * size)
    return float(low - margin), float(high + margin)
