"""Records in words: what was proved of what, in numbers that never round a proof away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from enum import Enum
from typing import TYPE_CHECKING, Any

from gpcert.certificates.shown import MOST_ROWS, Shown
from gpcert.certificates.status import Interval, Status, Unit
from gpcert.search import StopReason

if TYPE_CHECKING:
    from gpcert.certificates.record import Certificate, PredictionRange, Radius

DIGITS = 4

LONGEST = 60
"""Characters of a value that `repr` and tables show."""


def below(value: float) -> str:
    """The largest number of four digits that is not above the value: a lower bound stays one.

    >>> below(0.49999), below(-1.23456), below(float("-inf"))
    ('0.4999', '-1.235', '-inf')
    """
    return f"{float(Context(DIGITS, ROUND_FLOOR).create_decimal(value)):.{DIGITS}g}"


def above(value: float) -> str:
    """The smallest number of four digits that is not below the value: an upper bound stays one.

    >>> above(0.50001), above(0.25)
    ('0.5001', '0.25')
    """
    return f"{float(Context(DIGITS, ROUND_CEILING).create_decimal(value)):.{DIGITS}g}"


def shortened(record: Any, fields: Sequence[str]) -> str:
    """`Name(field=..., ...)` with the fields that say most: points and regions may be long."""
    parts = [f"{name}={_short(getattr(record, name))}" for name in fields]
    return f"{type(record).__name__}({', '.join(parts)})"


def _short(value: Any) -> str:
    if isinstance(value, Interval):
        return interval_text(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def interval_text(interval: Interval) -> str:
    """Both ends, rounded outwards.

    >>> interval_text(Interval(0.123456, 0.25))
    '[0.1234, 0.25]'
    """
    return f"[{below(interval.lower)}, {above(interval.upper)}]"


def fields_shown(record: Any, fields: Sequence[str]) -> Shown:
    """The fields that say most, one a row, then the region and the cost where there are some."""
    rows = [(name.replace("_", " "), _short(getattr(record, name))) for name in fields]
    if getattr(record, "region", None):
        rows.append(("region", region_text(record.region)))
    if hasattr(record, "boxes"):
        rows.append(("cost", _cost(record)))
    return Shown("", (), rows)


def table_shown(title: str, rows: Sequence[dict[str, Any]], complete: bool) -> Shown:
    """The first rows of a table with what `cells` says of each; bounds are rounded outwards."""
    kept = [
        {name: cell for name, cell in row.items() if name not in {"boxes", "seconds"}}
        for row in rows[:MOST_ROWS]
    ]
    notes = []
    if len(rows) > MOST_ROWS:
        notes.append(f"... and {len(rows) - MOST_ROWS} more: to_frame() has all")
    if not complete:
        notes.append("interrupted: the points that follow were not tried")
    columns = [name.replace("_", " ") for name in kept[0]] if kept else []
    cells = [[_cell_text(name, cell) for name, cell in row.items()] for row in kept]
    return Shown(title, columns, cells, notes)


def _cell_text(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float) and name.endswith("lower"):
        return below(value)
    if isinstance(value, float) and name.endswith("upper"):
        return above(value)
    text = f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def verdict_text(certificate: Certificate) -> str:
    """One sentence: a decision, a level or a deviation that is proved, refuted or neither."""
    if certificate.reason is StopReason.UNDECIDED_AT_X:
        return f"not decided: {StopReason.UNDECIDED_AT_X.value}"
    what = _claim(certificate.unit, certificate.rule, certificate.decision)
    if certificate.status is Status.ROBUST:
        return f"proved: {what} at every point of the region"
    if certificate.status is Status.NOT_ROBUST:
        return f"refuted: {what} at x, but not at the counter-example"
    return f"not decided: whether {what} at every point of the region; {certificate.reason.value}"


def _claim(unit: str, rule: str, decision: Any) -> str:
    """What is asked of every point: in regression the rule itself, else the decision at x."""
    return rule if unit == Unit.TARGET else f"decision {decision!r}"


def certificate_shown(certificate: Certificate) -> Shown:
    """A small table of a certificate."""
    margin = certificate.margin
    unit = f" ({certificate.unit})" if certificate.unit else ""
    at_x = certificate.margin_at_x
    there = "" if at_x is None else f"; about {at_x:.{DIGITS}g} at x"
    rows = {
        certificate.status.name: verdict_text(certificate),
        "rule": certificate.rule,
        "margin": f"least one in {interval_text(margin)}{unit}{there}",
        "region": region_text(certificate.region),
        "cost": _cost(certificate),
    }
    return Shown("", (), list(rows.items()))


def range_shown(found: PredictionRange) -> Shown:
    """A small table of a prediction range."""
    low, high = found.minimum, found.maximum
    rows = {
        found.quantity: found.meaning or f"output {found.output!r}",
        "proved": f"between {below(low.lower)} and {above(high.upper)}",
        "attained": f"{above(low.upper)} and {below(high.lower)}",
        "nominal": "-" if found.nominal is None else f"about {found.nominal:.{DIGITS}g}",
        "region": region_text(found.region),
        "search": found.reason.value,
        "cost": _cost(found),
    }
    return Shown("", (), list(rows.items()))


def radius_shown(found: Radius) -> Shown:
    """A small table of a certified radius."""
    undecided = found.reason is StopReason.UNDECIDED_AT_X
    what = "unknown" if undecided else _claim(found.unit, found.rule, found.decision)
    refuted = "no counter-example found"
    if found.counterexample is not None:
        refuted = f"counter-example at {above(found.upper)}"
    rows = {
        "radius": f"proved up to {below(found.lower)}, {refuted} (l_{found.norm:g})",
        "held": what,
        "rule": found.rule,
        "search": found.reason.value,
        "cost": _cost(found),
    }
    return Shown("", (), list(rows.items()))


def region_text(region: dict[str, Any]) -> str:
    """A region in a few words, however many features it has.

    >>> region_text({"kind": "box", "lower": [0.0, 1.0], "upper": [0.5, 1.0]})
    'box of 2 features, width at most 0.5'
    >>> region_text({"kind": "ball", "center": [0.0] * 9, "radius": 0.1, "norm": 2.0,
    ...              "features": [4], "domain": None})
    'l_2 ball of radius 0.1 in 1 of 9 features'
    """
    if region.get("kind") == "box":
        sides = [float(b) - float(a) for a, b in zip(region["lower"], region["upper"], strict=True)]
        return f"box of {_features(len(sides))}, width at most {max(sides):.4g}"
    if region.get("kind") != "ball":
        return "not recorded"
    dim, free = len(region["center"]), region.get("features")
    moved = _features(dim) if free is None else f"{len(free)} of {_features(dim)}"
    inside = "" if region.get("domain") is None else ", inside its domain"
    norm = float(region["norm"])
    return f"l_{norm:g} ball of radius {region['radius']:.6g} in {moved}{inside}"


def _features(count: int) -> str:
    return "1 feature" if count == 1 else f"{count} features"


def _cost(record: Any) -> str:
    boxes = f"{record.boxes} box" if record.boxes == 1 else f"{record.boxes} boxes"
    return f"{boxes}, {record.seconds:.3g} s, method {record.method}"
