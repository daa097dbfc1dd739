"""The answers about slopes: their ranges feature by feature, verdicts on monotony, and Lipschitz
constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.certificates.record import (
    COST,
    BoundTable,
    PredictionRange,
    RecordTable,
    Searched,
    cells_of,
)
from gpcert.certificates.text import (
    Interval,
    Status,
    TextTable,
    above,
    below,
    cost_text,
    interval_text,
    region_text,
    short,
)
from gpcert.errors import InputError

UNDECIDED = "?"
"""The sign of a slope whose bounds leave it open."""


def sign_of(slope: PredictionRange) -> str:
    """ "+" where the slope is proved >= 0 in the whole region, "-" where <= 0, "0" where both, "+-"
    where both signs are proved to occur, "?" where the bounds leave that open."""
    rises, falls = slope.minimum.lower >= 0, slope.maximum.upper <= 0
    if rises or falls:
        return "0" if rises and falls else "+" if rises else "-"
    return "+-" if slope.minimum.upper < 0 < slope.maximum.lower else UNDECIDED


@dataclass(frozen=True, eq=False, repr=False)
class SlopeTable(BoundTable[PredictionRange], kind="slopes", counted="slopes"):
    """Proved ranges of the partial derivatives of a mean over a region, one row for each feature;
    the labels are the features' names or numbers. Units: of the output per unit of the feature."""

    def cells(self, row: PredictionRange) -> dict[str, Any]:
        return cells_of(row, "minimum maximum") | {"sign": sign_of(row)} | cells_of(row, COST)

    def _lines(self) -> list[dict[str, Any]]:
        return [{"feature": line.pop("point"), **line} for line in super()._lines()]

    @property
    def signs(self) -> dict[Any, str]:
        """The sign of every slope by its feature, see `sign_of`."""
        return dict(zip(self.labels, map(sign_of, self.rows), strict=True))

    @property
    def summary(self) -> str:
        return ", ".join(f"{name}: {sign}" for name, sign in list(self.signs.items())[:8])


@dataclass(frozen=True, eq=False, repr=False)
class Monotonicity(Searched, kind="monotonicity", told="status feature direction slope reason"):
    """Whether a mean, or another prediction, never falls (`direction` "+") or never rises ("-")
    along a feature in a region, or is "convex" or "concave" along it.

    ROBUST: proved, for any points of the region on a line along the feature. NOT_ROBUST: it fails,
    by the two points of `pair` (2, d), in the order of growing values of the feature, whose proved
    `values` are in the wrong order, or the three (3, d) of which the value in the middle is on the
    wrong side of the chord (both empty where the points are too near for floats to tell; then the
    derivative at `point` alone says it). `slope` bounds the least slope (second derivative) in the
    wanted direction over the region, the upper end attained at `point`.
    """

    status: Status
    feature: Any
    direction: str
    slope: Interval
    point: np.ndarray | None
    pair: np.ndarray
    values: tuple[Interval, ...]
    region: dict[str, Any]
    meaning: str = ""

    @property
    def curved(self) -> bool:
        """Whether it is about curvature."""
        return self.direction in {"convex", "concave"}

    @property
    def summary(self) -> str:
        """What is proved, refuted or neither, as a sentence."""
        claim = f"{self.meaning} is {self.direction} along {self.feature!r}"
        if not self.curved:
            claim = f"{self.meaning} never {'falls' if self.direction == '+' else 'rises'}"
            claim = f"{claim} as {self.feature!r} grows"
        if self.status is Status.ROBUST:
            return f"proved: {claim}, in the whole region"
        if self.status is Status.NOT_ROBUST:
            return f"refuted: {claim}"
        return f"not decided: whether {claim}; {self.reason.value}"

    def shown(self) -> TextTable:
        rows = {self.status.name: self.summary}
        rows["second derivative" if self.curved else "slope"] = (
            f"least one in the wanted direction in {interval_text(self.slope)}"
        )
        if len(self.values):
            told = (f"between {below(v.lower)} and {above(v.upper)}" for v in self.values)
            rows["counter-example"] = ", then ".join(told) + " at the points of `pair`"
        rows["region"] = region_text(self.region)
        rows["cost"] = cost_text(self)
        return TextTable("", (), list(rows.items()))

    def check(self) -> None:
        super().check()
        proved, refuted = self.slope.lower >= 0, self.slope.upper < 0
        if self.direction not in {"+", "-", "convex", "concave"}:
            wanted = "'+', '-', 'convex' or 'concave'"
            raise InputError(f"direction: expected {wanted}, got {self.direction!r}")
        wrong = (self.status is Status.ROBUST) != proved
        if wrong or (self.status is Status.NOT_ROBUST and not refuted):
            raise InputError("status: expected that of the sign of the least slope")
        if len(self.values) != len(self.pair) or len(self.pair) not in {0, 3 if self.curved else 2}:
            raise InputError("values: expected those of the points of pair, or none")

    def inputs(self) -> list[np.ndarray]:
        return [each for each in (self.point, self.pair) if each is not None and each.size]

    def __bool__(self) -> bool:
        raise InputError(
            "a verdict is not a truth value (one that refutes would pass as true): compare "
            'status, as in status == "ROBUST"'
        )


@dataclass(frozen=True, eq=False, repr=False)
class MonotonicityTable(RecordTable[Monotonicity], kind="monotonicities", counted="verdicts"):
    """Verdicts on monotony, one row for each feature."""

    def cells(self, row: Monotonicity) -> dict[str, Any]:
        return cells_of(row, f"direction status slope {COST}")

    def _lines(self) -> list[dict[str, Any]]:
        return [{"feature": line.pop("point"), **line} for line in super()._lines()]

    @property
    def status(self) -> Status:
        """ROBUST if all are, NOT_ROBUST if any is."""
        verdicts = {row.status for row in self}
        if Status.NOT_ROBUST in verdicts:
            return Status.NOT_ROBUST
        every = self.complete and verdicts <= {Status.ROBUST}
        return Status.ROBUST if every else Status.UNKNOWN

    @property
    def summary(self) -> str:
        rows = zip(self.labels, self.rows, strict=True)
        told = [f"{name} {row.direction}: {row.status.name}" for name, row in rows]
        return ", ".join(told[:8])


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzBound(Searched, kind="lipschitz", told="lower upper norm of output reason"):
    """The Lipschitz constant of a function over a convex region, for distances in the l_p `norm` of
    the features that the region leaves free: `|f(x) - f(y)| <= upper |x - y|_p`, proved, and no
    smaller constant than `lower` will do: that is a proved bound of the gradient's dual norm at
    `point`, or, in a region without an interior (a polytope with equations), of the difference
    quotient of the two points of `pair`. Of all outputs (`output` None) the change is measured by
    its Euclidean norm.
    """

    lower: float
    upper: float
    point: np.ndarray | None
    norm: float
    of: str
    output: Any
    region: dict[str, Any]
    converged: bool
    pair: np.ndarray
    meaning: str = ""

    def shown(self) -> TextTable:
        at = "no point known" if self.point is None else f"at {short(self.point, 'x')}"
        rows = {
            "of": self.meaning or self.of,
            "constant": f"at most {above(self.upper)}, at least {below(self.lower)}, both proved",
            "distance": f"l_{self.norm:g}",
            "attained": "between the two points of `pair`" if len(self.pair) else at,
            "region": region_text(self.region),
            "search": self.reason.value,
            "cost": cost_text(self),
        }
        return TextTable("", (), list(rows.items()))

    def check(self) -> None:
        super().check()
        if not (0 <= self.lower <= self.upper and self.norm >= 1):
            raise InputError("expected 0 <= lower <= upper and norm >= 1")

    def inputs(self) -> list[np.ndarray]:
        return [each for each in (self.point, self.pair) if each is not None and each.size]

    @property
    def ratio(self) -> float:
        """`upper / lower`; infinite where nothing is known below."""
        return self.upper / self.lower if self.lower > 0 else math.inf


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzTable(
    BoundTable[LipschitzBound],
    kind="lipschitz_table",
    columns=f"lower upper converged {COST}",
    counted="constants",
):
    """Lipschitz constants, one row for each region."""
