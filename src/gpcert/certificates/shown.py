"""One small table for people, as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from gpcert.certificates.status import Status

MOST_ROWS = 10
"""Rows of a table that are shown; `to_frame()` has all."""

STATUS_COLOURS = {
    Status.ROBUST.name: "#009E73",
    Status.NOT_ROBUST.name: "#D55E00",
    Status.UNKNOWN.name: "#777777",
}
"""Those of the pictures; a mark beside the word, which keeps the page's own colour."""

CELL = "text-align:left;padding:0.1em 0.8em 0.1em 0;border:none;background:none;color:inherit"


@dataclass(frozen=True)
class Shown:
    """A title, the names of the columns (none: no head), rows of cells, and notes below them.

    >>> print(Shown("Two numbers", ("name", "size"), [("a", "1.5"), ("bc", "22")], ["that is all"]))
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
        lines = [tuple(self.columns)] if self.columns else []
        lines += [tuple(row) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        start = "  " if self.title else ""
        text = [
            start + "  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*([self.title] if self.title else []), *text, *self.notes])

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
    colour = STATUS_COLOURS.get(text)
    inside = escape(text)
    if colour is not None:
        mark = f"border-left:0.45em solid {colour};padding-left:0.4em"
        inside = f'<b style="{mark}">{inside}</b>'
    return f'<td style="{CELL}">{inside}</td>'
