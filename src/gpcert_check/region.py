"""Regions by their definitions, in exact rational arithmetic: boxes, balls, polytopes, whole
numbers and ordered values, unions.

A ball is `||((x_j - c_j) / r_j)_j||_p <= 1` over the features that may move; all others keep the
value of the centre, and every feature stays inside its domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from gpcert_check.verdicts import BadFile, NotCovered

Ends = tuple[list[Fraction], list[Fraction]]
PASSES = 30
"""Over the constraints of a polytope, to find the box around it."""


@dataclass(frozen=True)
class Region:
    """`low <= x <= high` exactly, and where p is 1 or 2 the ball of the centre and the radii.

    Subclasses say of a box which smaller one holds the region's points in it (`contract`), and
    whether a point lies inside (`holds`).
    """

    low: list[Fraction]
    high: list[Fraction]
    center: list[float]
    radii: list[float] = field(default_factory=list)
    p: float = math.inf

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.center)

    @property
    def free(self) -> list[int]:
        """The features that may move."""
        return [j for j in range(self.dim) if self.low[j] < self.high[j]]

    @property
    def round(self) -> bool:
        """Whether the ball says more than the box does."""
        return self.p != math.inf and len(self.free) > 1

    def contains(self, x: list[float]) -> bool:
        """Whether x lies in the region, exactly."""
        point = list(map(Fraction, x))
        if len(point) != self.dim:
            return False
        inside = all(a <= v <= b for a, v, b in zip(self.low, point, self.high, strict=True))
        return inside and self.holds(point)

    def holds(self, point: list[Fraction]) -> bool:
        """Whether a point of the box lies in the region."""
        return self.contract(point, point) is not None

    def contract(self, low: list[Fraction], high: list[Fraction]) -> Ends | None:
        """A box in [low, high] that holds the region's points of it; None if there are none."""
        if self.round:
            total = Fraction(0)
            for j in self.free:
                center = Fraction(self.center[j])
                gap = max(low[j] - center, center - high[j], Fraction(0))
                total += (gap / Fraction(self.radii[j])) ** int(self.p)
            if total > 1:
                return None
        return low, high

    def cell(self, low: list[float], high: list[float]) -> tuple[list[float], list[float]] | None:
        """The same of a box given by the free features' ends: rounded outwards."""
        if type(self) is Region and not self.round:
            return low, high
        whole = list(self.low), list(self.high)
        for j, a, b in zip(self.free, low, high, strict=True):
            whole[0][j], whole[1][j] = Fraction(a), Fraction(b)
        ends = self.contract(*whole)
        if ends is None:
            return None
        return [rounded(ends[0][j], -1) for j in self.free], [
            rounded(ends[1][j], 1) for j in self.free
        ]


@dataclass(frozen=True)
class Polytope(Region):
    """Points of the box with `first <= a.x <= last` for every row (a, first, last)."""

    rows: list[tuple[dict[int, Fraction], Fraction | None, Fraction | None]] = field(
        default_factory=list
    )

    def contract(self, low: list[Fraction], high: list[Fraction]) -> Ends | None:
        return tightened(self.rows, low, high)


def tightened(rows: list[Any], low: list[Fraction], high: list[Fraction]) -> Ends | None:
    """One pass over the rows: with all other terms at their least, a term is at most what is left
    of `last`; with all others at their largest, at least what is left of `first`."""
    low, high = list(low), list(high)
    for row, first, last in rows:
        for sign, end in ((1, last), (-1, None if first is None else -first)):
            if end is None:
                continue
            least = {j: min(sign * a * low[j], sign * a * high[j]) for j, a in row.items()}
            left = end - sum(least.values())
            if left < 0:
                return None
            for j, a in row.items():
                reach = (least[j] + left) / (sign * a)
                if sign * a > 0:
                    high[j] = min(high[j], reach)
                else:
                    low[j] = max(low[j], reach)
    return low, high


@dataclass(frozen=True)
class Within(Region):
    """Points of another region that are `narrowed` to some of their values."""

    whole: Region | None = None
    narrowed: Callable[[list[Fraction], list[Fraction]], Ends | None] | None = None

    def contract(self, low: list[Fraction], high: list[Fraction]) -> Ends | None:
        ends = self.whole.contract(low, high) if self.whole else None
        return None if ends is None or self.narrowed is None else self.narrowed(*ends)


def between(
    values: dict[int, list[Fraction] | None], low: list[Fraction], high: list[Fraction]
) -> Ends | None:
    """The box around the points of a box whose coordinates in some features are whole numbers
    (None) or one of a few values."""
    low, high = list(low), list(high)
    for j, allowed in values.items():
        if allowed is None:
            low[j], high[j] = Fraction(math.ceil(low[j])), Fraction(math.floor(high[j]))
        else:
            inside = [v for v in allowed if low[j] <= v <= high[j]]
            low[j], high[j] = (min(inside), max(inside)) if inside else (Fraction(1), Fraction(0))
        if low[j] > high[j]:
            return None
    return low, high


def categories(groups: list[list[int]], low: list[Fraction], high: list[Fraction]) -> Ends | None:
    """The box around the points of a box of which one coordinate in each group is 1, the others
    0."""
    low, high = list(low), list(high)
    for group in groups:
        others = {j for j in group if not low[j] <= 0 <= high[j]}
        allowed = [j for j in group if low[j] <= 1 <= high[j] and others <= {j}]
        if not allowed:
            return None
        for j in group:
            low[j], high[j] = Fraction(allowed == [j]), Fraction(j in allowed)
    return low, high


@dataclass(frozen=True)
class Union(Region):
    """Points of any of several regions."""

    parts: list[Region] = field(default_factory=list)

    def contract(self, low: list[Fraction], high: list[Fraction]) -> Ends | None:
        boxes = []
        for part in self.parts:
            first, last = list(map(max, low, part.low)), list(map(min, high, part.high))
            if all(a <= b for a, b in zip(first, last, strict=True)):
                boxes.append(part.contract(first, last))
        inside = [box for box in boxes if box is not None]
        if not inside:
            return None
        lows, highs = zip(*inside, strict=True)
        return list(map(min, zip(*lows, strict=True))), list(map(max, zip(*highs, strict=True)))


def rounded(value: Fraction, side: int) -> float:
    """The nearest float on a side of a number."""
    near = float(value)
    wrong = Fraction(near) < value if side > 0 else Fraction(near) > value
    return math.nextafter(near, side * math.inf) if wrong else near


def read_region(record: Any) -> Region:
    """The region of a header."""
    kinds = {
        "box": _box,
        "ball": _ball,
        "polytope": _polytope,
        "discrete": _discrete,
        "one_hot": _one_hot,
        "union": _union,
    }
    try:
        kind = record["kind"]
        if kind not in kinds:
            raise NotCovered(f"region of kind {kind!r}")
        return kinds[kind](record)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise BadFile(f"region: expected one that gpcert describes, got {error!r}") from error


def _middle(low: list[Fraction], high: list[Fraction]) -> list[float]:
    """A point of a box; of a feature that may not move its value, which must be a float."""
    middle = [float((a + b) / 2) for a, b in zip(low, high, strict=True)]
    if any(a == b != m for a, b, m in zip(low, high, map(Fraction, middle), strict=True)):
        raise NotCovered("a region that fixes a feature at a number that is no float")
    return middle


def _box(record: dict[str, Any]) -> Region:
    low, high = (list(map(Fraction, record[name])) for name in ("lower", "upper"))
    if len(low) != len(high) or not low or any(a > b for a, b in zip(low, high, strict=True)):
        raise BadFile("region: expected lower <= upper")
    return Region(low, high, _middle(low, high))


def _polytope(record: dict[str, Any]) -> Region:
    box, rows = _box(record), []
    for a, *ends in zip(record["A"], record["low"], record["high"], strict=True):
        first, last = map(float, ends)
        if len(a) != box.dim or not first <= last or first == math.inf or last == -math.inf:
            raise BadFile("region: expected rows of coefficients with low <= high")
        terms = {j: Fraction(v) for j, v in enumerate(a) if v != 0}
        bounds = (None if math.isinf(end) else Fraction(end) for end in (first, last))
        rows.append((terms, *bounds))
    low, high = box.low, box.high
    for _ in range(PASSES):
        ends = tightened(rows, low, high)
        if ends is None:
            raise BadFile("region: expected one that is not empty")
        if ends == (low, high):
            break
        low, high = ends
    return Polytope(low, high, _middle(low, high), rows=rows)


def _discrete(record: dict[str, Any]) -> Region:
    whole = read_region(record["region"])
    values: dict[int, list[Fraction] | None] = dict.fromkeys(record["integers"])
    values |= {j: list(map(Fraction, each)) for j, each in record["values"]}
    if not all(type(j) is int and 0 <= j < whole.dim for j in values):
        raise BadFile("region: expected features of the model")
    return _within(whole, partial(between, values))


def _one_hot(record: dict[str, Any]) -> Region:
    whole, groups = read_region(record["region"]), record["groups"]
    columns = [j for group in groups for j in group]
    known = all(type(j) is int and 0 <= j < whole.dim for j in columns)
    known = known and "dropped" not in record
    if not known or len(set(columns)) < len(columns) or not all(groups):
        raise BadFile("region: expected groups of different features of the model")
    return _within(whole, partial(categories, groups))


def _within(whole: Region, narrowed: Any) -> Region:
    ends = narrowed(whole.low, whole.high)
    if ends is None:
        raise BadFile("region: expected one that is not empty")
    low, high = ends
    return Within(low, high, _middle(low, high), whole=whole, narrowed=narrowed)


def _union(record: dict[str, Any]) -> Region:
    parts = [read_region(each) for each in record["parts"]]
    if not parts or len({part.dim for part in parts}) != 1:
        raise BadFile("region: expected parts of one dimension")
    low = [min(ends) for ends in zip(*(part.low for part in parts), strict=True)]
    high = [max(ends) for ends in zip(*(part.high for part in parts), strict=True)]
    return Union(low, high, _middle(low, high), parts=parts)


def _ball(record: dict[str, Any]) -> Region:
    center = list(map(float, record["center"]))
    radius, p = record["radius"], float(record["norm"])
    radii = list(map(float, radius)) if isinstance(radius, list) else [float(radius)] * len(center)
    moving = range(len(center)) if record["features"] is None else record["features"]
    if len(radii) != len(center) or not center or not all(0 <= r < math.inf for r in radii):
        raise BadFile("region: expected one radius >= 0 for every feature")
    if p not in (1.0, 2.0, math.inf):
        raise NotCovered(f"a ball in the norm p = {p:g}; covered are 1, 2 and infinity")
    reach = [Fraction(r) if j in set(moving) else Fraction(0) for j, r in enumerate(radii)]
    low = [Fraction(c) - r for c, r in zip(center, reach, strict=True)]
    high = [Fraction(c) + r for c, r in zip(center, reach, strict=True)]
    domain = record["domain"] or [[-math.inf] * len(center), [math.inf] * len(center)]
    for j in range(len(center)):
        first, last = float(domain[0][j]), float(domain[1][j])
        if first > -math.inf:
            low[j] = max(low[j], Fraction(first))
        if last < math.inf:
            high[j] = min(high[j], Fraction(last))
        if not low[j] <= Fraction(center[j]) <= high[j]:
            raise BadFile("region: expected a centre inside the domain")
    return Region(low, high, center, [float(r) for r in reach], p)
