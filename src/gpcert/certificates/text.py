"""Records in words: what was proved of what, in numbers that never round a proof away."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from enum import Enum
from typing import TYPE_CHECKING, Any

from gpcert.certificates.status import Interval, Status, Unit
from gpcert.search import StopReason

if TYPE_CHECKING:
    from gpcert.certificates.record import Certificate, PredictionRange, Radius

__all__ = [
    "above",
    "below",
    "certificate_text",
    "radius_text",
    "range_text",
    "region_text",
    "shortened",
    "verdict_text",
]

DIGITS = 4


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
        return f"[{below(value.lower)}, {above(value.upper)}]"
    return value.name if isinstance(value, Enum) else repr(value)


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


def certificate_text(certificate: Certificate) -> str:
    """A small table of a certificate."""
    margin = certificate.margin
    unit = f" ({certificate.unit})" if certificate.unit else ""
    rows = {
        certificate.status.name: verdict_text(certificate),
        "rule": certificate.rule,
        "margin": f"least one in [{below(margin.lower)}, {above(margin.upper)}]{unit}",
        "region": region_text(certificate.region),
        "cost": _cost(certificate),
    }
    return _table(rows)


def range_text(found: PredictionRange) -> str:
    """A small table of a prediction range."""
    low, high = found.minimum, found.maximum
    rows = {
        found.quantity: found.meaning or f"output {found.output!r}",
        "proved": f"between {below(low.lower)} and {above(high.upper)}",
        "attained": f"{above(low.upper)} and {below(high.lower)}",
        "region": region_text(found.region),
        "search": found.reason.value,
        "cost": _cost(found),
    }
    return _table(rows)


def radius_text(found: Radius) -> str:
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
    return _table(rows)


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


def _table(rows: dict[str, str]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows.items())
