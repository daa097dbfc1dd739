"""What records say: verdicts, units and intervals, numbers that never round a proof away, and one
small table for people, as text and as HTML for notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum, StrEnum
from html import escape
from typing import Any

from gpcert.errors import InputError
from gpcert.regions import region_from_dict

DIGITS = 4

LONGEST = 60
"""Characters of a value that `repr` and tables show."""


class Status(Enum):
    """Verdict of a certificate; the value is a sentence for people. Equal to its own name.

    What is proved or refuted (a decision, a level, a deviation) says `Certificate.summary`.

    >>> Status.ROBUST == "ROBUST", Status.ROBUST == "NOT_ROBUST"
    (True, False)
    """

    ROBUST = "proved for every point of the region"
    NOT_ROBUST = "refuted: it fails at a point of the region"
    UNKNOWN = "neither proved nor refuted"

    def __eq__(self, other: object) -> bool:
        return self.name == other if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __bool__(self) -> bool:
        raise InputError(
            "a status is not a truth value (NOT_ROBUST would pass as true): compare it, as in "
            'status == "ROBUST", or use certificate.robust'
        )


class Unit(StrEnum):
    """What a margin is measured in."""

    LATENT = "latent mean"
    PROBABILITY = "probability"
    WEIGHTED = "weight times probability"
    VOTES = "votes"
    TARGET = "units of the target"
    VALUE = "units of the compared value"


@dataclass(frozen=True)
class Interval:
    """Proved `lower <= value <= upper`."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """`upper - lower`."""
        return self.upper - self.lower


MAX_ROWS = 10
"""Rows of a table that are shown; `to_frame()` has all."""

STATUS_COLOURS = {
    Status.ROBUST.name: "#009E73",
    Status.NOT_ROBUST.name: "#D55E00",
    Status.UNKNOWN.name: "#777777",
}
"""Those of the pictures; a mark beside the word, which keeps the page's own colour."""

CELL = "text-align:left;padding:0.1em 0.8em 0.1em 0;border:none;background:none;color:inherit"


@dataclass(frozen=True)
class TextTable:
    """A title, the names of the columns (none: no head), rows of cells, and notes below them.

    >>> rows = [("a", "1.5"), ("bc", "22")]
    >>> print(TextTable("Two numbers", ("name", "size"), rows, ["that is all"]))
    Two numbers
      name  size
      a     1.5
      bc    22
    that is all
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        lines = [self.columns, *self.rows] if self.columns else self.rows
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        start, text = "  " if self.title else "", [self.title] if self.title else []
        for line in lines:
            cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
            text.append(start + "  ".join(cells).rstrip())
        return "\n".join([*text, *self.notes])

    def html(self) -> str:
        """The same as HTML: all text escaped, and no colour but marks beside the verdicts, so that
        light and dark pages are read alike."""
        parts = ['<div style="color:inherit">']
        if self.title:
            parts.append(f"<div><b>{escape(self.title)}</b></div>")
        parts.append('<table style="border:none;border-collapse:collapse;background:none">')
        if self.columns:
            head = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in self.columns)
            parts.append(f'<thead><tr style="background:none">{head}</tr></thead>')
        body = "".join(
            f'<tr style="background:none">{"".join(map(_cell, row))}</tr>' for row in self.rows
        )
        parts.append(f"<tbody>{body}</tbody></table>")
        parts += [f'<div style="opacity:0.75">{escape(note)}</div>' for note in self.notes]
        return "".join([*parts, "</div>"])


def _cell(text: str) -> str:
    colour, inside = STATUS_COLOURS.get(text), escape(text)
    if colour is not None:
        mark = f"border-left:0.45em solid {colour};padding-left:0.4em"
        inside = f'<b style="{mark}">{inside}</b>'
    return f'<td style="{CELL}">{inside}</td>'


def below(value: float | Decimal, digits: int = DIGITS) -> str:
    """The largest number of so many digits that is not above the value: a lower bound stays one.

    >>> below(0.49999), below(-1.23456), below(float("-inf"))
    ('0.4999', '-1.235', '-inf')
    """
    return f"{float(Context(digits, ROUND_FLOOR).create_decimal(value)):.{digits}g}"


def above(value: float | Decimal) -> str:
    """The smallest number of four digits that is not below the value: an upper bound stays one.

    >>> above(0.50001), above(0.25)
    ('0.5001', '0.25')
    """
    return f"{float(Context(DIGITS, ROUND_CEILING).create_decimal(value)):.{DIGITS}g}"


def percent(
    share: float, count: int, rounded: Callable[[Decimal], str] = f"{{:.{DIGITS}g}}".format
) -> str:
    """A share of so many things in per cent, to the nearest, or as `below` and `above` round.

    >>> percent(0.29, 100, below), percent(1.0, 3), percent(2 / 3, 3), percent(2 / 3, 3, below)
    ('29 %', '100 %', '66.67 %', '66.66 %')
    """
    # of the whole number of things: 100 * 0.29 in float64 lies below 29
    return f"{rounded(100 * Decimal(round(share * count)) / Decimal(count))} %"


def in_unit(rows: Iterable[Any]) -> str:
    """In which unit the radii of records are, where all of them name the same.

    >>> from types import SimpleNamespace as Row
    >>> in_unit([Row(radius_unit="standard deviations")]), in_unit([Row(radius_unit="")])
    (' in standard deviations', '')
    """
    units = {row.radius_unit for row in rows}
    unit = units.pop() if len(units) == 1 else ""
    return f" in {unit}" if unit else ""


def short(value: Any, name: str = "") -> str:
    """A field of a record: points and regions may be long, and proved ends, as their `name` says,
    stay on their sides.

    >>> short(0.12348, "lower"), short(0.12342, "upper"), short(0.12342)
    ('0.1234', '0.1235', '0.1234')
    """
    if isinstance(value, Interval):
        return interval_text(value)
    if isinstance(value, Enum):
        return value.name
    return _number_text(name, value) if isinstance(value, float) else cut(repr(value))


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning where it is longer."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def interval_text(interval: Interval) -> str:
    """Both ends, rounded outwards.

    >>> interval_text(Interval(0.123456, 0.25))
    '[0.1234, 0.25]'
    """
    return f"[{below(interval.lower)}, {above(interval.upper)}]"


def table_shown(
    title: str, rows: Sequence[dict[str, Any]], complete: bool, most: int = MAX_ROWS
) -> TextTable:
    """The first rows of a table with what `cells` says of each; bounds are rounded outwards."""
    hidden, notes = {"boxes", "seconds"}, []
    visible = [{n: cell for n, cell in row.items() if n not in hidden} for row in rows[:most]]
    if len(rows) > most:
        notes.append(f"... and {len(rows) - most} more: to_frame() has all")
    if not complete:
        notes.append("interrupted: the points that follow were not tried")
    columns = [name.replace("_", " ") for name in visible[0]] if visible else []
    cells = [[_cell_text(name, cell) for name, cell in row.items()] for row in visible]
    return TextTable(title, columns, cells, notes)


def _cell_text(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return _number_text(name, value) if isinstance(value, float) else cut(str(value))


def _number_text(name: str, value: float) -> str:
    if name.endswith(("lower", "upper")):
        return below(value) if name.endswith("lower") else above(value)
    return f"{value:.{DIGITS}g}"


def region_text(region: dict[str, Any]) -> str:
    """A region in a few words, however many features it has; not larger than what was proved.

    >>> region_text({"kind": "box", "lower": [0.0, 1.0], "upper": [0.5, 1.0]})
    'box of 2 features, width at most 0.5'
    >>> region_text({"kind": "ball", "center": [0.0] * 9, "radius": 0.1, "norm": 2.0,
    ...              "features": [4], "domain": None})
    'l_2 ball of radius 0.1 in 1 of 9 features'
    >>> region_text({"kind": "ball", "center": [0.0], "radius": 0.29999999, "norm": 1.0})
    'l_1 ball of radius 0.299999 in 1 feature'
    >>> region_text({"kind": "ball", "center": [0.0] * 3, "radius": [0.1, 0.0, 0.25],
    ...              "norm": "inf", "features": None, "domain": None})
    'l_inf ball of radii up to 0.25 in 2 of 3 features'
    """
    if region.get("kind") == "box":
        sides = [float(b) - float(a) for a, b in zip(region["lower"], region["upper"], strict=True)]
        return f"box of {_count(len(sides), 'feature')}, width at most {above(_typed(max(sides)))}"
    if region.get("kind") != "ball":
        return _other_region(region) if region else "not recorded"
    dim, free, radius = len(region["center"]), region.get("features"), region["radius"]
    size = "radius"
    if isinstance(radius, list):  # one per feature, 0 where it is fixed
        free = [j for j in (range(dim) if free is None else free) if radius[j] > 0]
        size, radius = "radii up to", max((radius[j] for j in free), default=0.0)
    every = _count(dim, "feature")
    moved = every if free is None else f"{len(free)} of {every}"
    inside = "" if region.get("domain") is None else ", inside its domain"
    norm = float(region["norm"])
    return f"l_{norm:g} ball of {size} {below(_typed(radius), 6)} in {moved}{inside}"


def _other_region(region: dict[str, Any]) -> str:
    """What the region says of itself; its kind, where its class is not registered."""
    try:
        return region_from_dict(region).summary()
    except InputError:
        return str(region.get("kind", "not recorded"))


def _typed(size: float) -> Decimal:
    """The decimal that was typed, 0.3, not the float nearest to it, which lies below."""
    return Decimal(f"{size:.15g}")


def _count(count: int, word: str, ending: str = "s") -> str:
    return f"{count} {word}{'' if count == 1 else ending}"


def cost_text(record: Any) -> str:
    """What a search took."""
    boxes = _count(record.boxes, "box", "es")
    return f"{boxes}, {record.seconds:.3g} s, method {record.method}"
