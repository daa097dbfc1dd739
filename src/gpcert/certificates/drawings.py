"""Drawings of answers as SVG text: values on a line, features that moved, the region of two inputs.

Colours are classes of the page's style; all text is escaped, and no number is drawn that is not
finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from gpcert.certificates.text import above, below

WIDTH = 360
"""Units of every drawing, about those of a phone."""

LABEL, ROW, EDGE = 104, 30, 10
"""Room for names, height of a row, and margins."""

MOST_FEATURES = 12
"""Features of which the movement is drawn, those that move over most of their range first."""

MOST_LEAVES = 4000
"""Boxes that are drawn."""

Pair = tuple[float, float]


@dataclass(frozen=True)
class Place:
    """A point of the inputs with its name and the class of its mark."""

    name: str
    point: np.ndarray
    look: str


def line_drawing(title: str, proved: Pair, attained: Pair, marks: dict[str, float]) -> str:
    """A bar over the values that are proved, a thick one over those attained, and ticks."""
    ends = [v for v in (*proved, *attained, *marks.values()) if math.isfinite(v)]
    if not ends:
        return ""
    low, high = min(ends), max(ends)
    reach = (high - low) or abs(high) or 1.0

    def at(value: float) -> float:
        value = min(max(value, low - 0.1 * reach), high + 0.1 * reach)  # an infinite end: the edge
        return EDGE + (WIDTH - 2 * EDGE) * ((value - low) / reach + 0.12) / 1.24

    y, parts = 30.0, []
    for look, (first, last), height in (("proved", proved, 8), ("attained", attained, 14)):
        if first <= last:
            width = max(at(last) - at(first), 1.5)
            box = _rectangle(at(first), y - height / 2, width, height, look)
            parts.append(box[:-2] + f"><title>{look}: {first!r} to {last!r}</title></rect>")
    for value, rounded, anchor in ((proved[0], below, "start"), (proved[1], above, "end")):
        if math.isfinite(value):
            place = at(value) if at(proved[1]) - at(proved[0]) > LABEL else math.nan
            edge = EDGE if anchor == "start" else WIDTH - EDGE
            place = edge if math.isnan(place) else place
            parts.append(_text(place, y - 14, rounded(value), anchor))
    for k, (name, value) in enumerate(marks.items()):
        if math.isfinite(value):
            x, foot = at(value), y + 24 + 15 * k
            parts.append(f'<path class="tick" d="M{x:.1f} {y - 9}V{foot - 11:.1f}"/>')
            anchor = "start" if x < WIDTH / 3 else "end" if x > 2 * WIDTH / 3 else "middle"
            parts.append(_text(x, foot, f"{name} {value:.4g}".strip(), anchor))
    return _drawing(title, y + 16 + 15 * len(marks), parts)


def moves_drawing(
    title: str,
    names: Sequence[str],
    ends: tuple[np.ndarray, np.ndarray],
    start: np.ndarray,
    places: Sequence[Place],
) -> str:
    """For each feature that moves a track over its values, where it starts and where it goes."""
    low, high = ends
    change = np.max([np.abs(place.point - start) for place in places], axis=0)
    part = np.divide(change, high - low, out=np.zeros(len(change)), where=high > low)
    order: list[int] = [j for j in np.argsort(-part, kind="stable").tolist() if change[j] > 0]
    parts = []
    for row, j in enumerate(order[:MOST_FEATURES]):
        y = 18.0 + ROW * row
        room = WIDTH - LABEL - 2 * EDGE
        scale = room / float(high[j] - low[j]) if 0 < high[j] - low[j] < math.inf else 0.0
        parts.append(_text(LABEL - 6, y + 4, names[j][:16], "end", names[j]))
        parts.append(_rectangle(LABEL, y - 3, room, 6, "track"))
        x = LABEL + scale * float(start[j] - low[j])
        for place in places:
            to = LABEL + scale * float(place.point[j] - low[j])
            parts.append(f'<path class="{place.look} move" d="M{x:.1f} {y}H{to:.1f}"/>')
            about = f"{names[j]}: {start[j]!r} to {place.point[j]!r} ({place.name})"
            parts.append(_mark(to, y, place.look, about))
        parts.append(f'<path class="tick" d="M{x:.1f} {y - 7}v14"/>')
        told = ", ".join(f"{place.point[j]:.4g}" for place in places)
        parts.append(_text(LABEL, y + 15, f"{start[j]:.4g} → {told}", "start", small=True))
    more = len(order) - MOST_FEATURES
    if more > 0:
        parts.append(_text(LABEL, 18.0 + ROW * MOST_FEATURES, f"and {more} more", "start"))
    height = 16 + ROW * min(len(order), MOST_FEATURES) + (18 if more > 0 else 0)
    return _drawing(title, height, parts, places) if order else ""


def region_drawing(
    title: str,
    names: Sequence[str],
    ends: tuple[np.ndarray, np.ndarray],
    leaves: Sequence[tuple[Sequence[float], Sequence[float]]],
    outline: np.ndarray | None,
    places: Sequence[Place],
) -> str:
    """The box around a region of two inputs, its leaves, its outline (n, 2) and points in it."""
    low, high = ends
    left, side = 46.0, WIDTH - 46.0 - EDGE
    wide = np.where(high > low, high - low, 1.0)

    def at(point: Sequence[float] | np.ndarray) -> Pair:
        x, y = (np.asarray(point, dtype=float) - low) / wide
        return left + side * float(x), EDGE + side * (1.0 - float(y))

    parts = []
    for first, last in list(leaves)[:MOST_LEAVES]:
        (x, bottom), (right, y) = at(first), at(last)
        parts.append(_rectangle(x, y, right - x, bottom - y, "leaf"))
    if outline is not None:
        path = "L".join("{:.2f} {:.2f}".format(*at(point)) for point in outline)
        parts.append(f'<path class="outline" d="M{path}Z"/>')
    for place in places:
        parts.append(_mark(*at(place.point), place.look, f"{place.name}: {place.point.tolist()}"))
    bottom = EDGE + side
    parts += [
        _text(left, bottom + 14, f"{low[0]:.4g}", "start"),
        _text(left + side, bottom + 14, f"{high[0]:.4g}", "end"),
        _text(left + side / 2, bottom + 14, names[0][:24], "middle", names[0]),
        _text(left - 4, bottom, f"{low[1]:.3g}", "end"),
        _text(left - 4, EDGE + 10, f"{high[1]:.3g}", "end"),
        _upright(left - 8, EDGE + side / 2, names[1]),
    ]
    return _drawing(title, bottom + 20, parts, places)


def _drawing(title: str, height: float, parts: Sequence[str], places: Sequence[Place] = ()) -> str:
    keys = "".join(f' <b class="{p.look}">●</b> {escape(p.name)}' for p in places)
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg><figcaption>{escape(title)}{keys}</figcaption></figure>"
    )


def _rectangle(x: float, y: float, width: float, height: float, look: str) -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f'<rect class="{look}" {place}/>'


def _mark(x: float, y: float, look: str, about: str) -> str:
    inside = f"<title>{escape(about)}</title>"
    return f'<circle class="{look}" cx="{x:.1f}" cy="{y:.1f}" r="5">{inside}</circle>'


def _upright(x: float, y: float, text: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" transform="rotate(-90 {x:.1f} {y:.1f})"'
    title = f"<title>{escape(text)}</title>"
    return f'<text {place} text-anchor="middle">{title}{escape(text[:24])}</text>'


def _text(x: float, y: float, text: str, anchor: str, whole: str = "", small: bool = False) -> str:
    title = f"<title>{escape(whole)}</title>" if whole else ""
    look = ' class="small"' if small else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text{look} {place}>{title}{escape(text)}</text>"
