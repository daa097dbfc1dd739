"""The answers: records with a status that speaks, valid bounds, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from gpcert.certificates.io import Record
from gpcert.errors import InputError
from gpcert.search import StopReason

__all__ = ["Certificate", "Interval", "PredictionRange", "Radius", "Status"]


class Status(Enum):
    """Verdict of a certificate; the value is a sentence for people. Equal to its own name.

    >>> Status.ROBUST == "ROBUST", Status.ROBUST == "NOT_ROBUST"
    (True, False)
    """

    ROBUST = "proved: the decision is the same for every point of the region"
    NOT_ROBUST = "refuted: the region holds a point with another decision"
    UNKNOWN = "not decided within the budget"

    def __eq__(self, other: object) -> bool:
        return self.name == other if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __bool__(self) -> bool:
        raise InputError(
            "a status is not a truth value (NOT_ROBUST would pass as true): compare it, as in "
            'status == "ROBUST", or use certificate.robust'
        )


@dataclass(frozen=True)
class Interval:
    """Proved `lower <= value <= upper`."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """`upper - lower`."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class PredictionRange(Record):
    """Bounds of the smallest and of the largest value of a quantity over a region.

    `minimum.lower <= min <= minimum.upper`, the latter attained at `argmin`; likewise for the
    maximum. The bounds are valid whether or not the search converged. `method` is the family of
    bounds, `model` the fingerprint of the certified posterior.
    """

    kind: ClassVar[str] = "prediction_range"

    minimum: Interval
    maximum: Interval
    argmin: np.ndarray | None
    argmax: np.ndarray | None
    converged: bool
    reason: StopReason
    boxes: int
    seconds: float
    quantity: str
    output: Any
    region: dict[str, Any]
    method: str = "taylor"
    model: str = ""

    def check(self) -> None:
        """The smallest value is not above the largest."""
        super().check()
        if not self.minimum.lower <= self.maximum.upper:
            raise InputError("minimum and maximum: expected minimum.lower <= maximum.upper")


@dataclass(frozen=True, eq=False)
class Certificate(Record):
    """Verdict on one region: `margin` bounds the smallest margin of the decision over it.

    The margin is positive where the decision is that of `decision` (the label at x, or None in
    regression): `sign * latent mean`, `sign * (probability - threshold)`, or
    `delta - deviation`. ROBUST if `margin.lower > 0`; NOT_ROBUST if a point with a negative margin,
    the `counterexample`, is known. `unit` says what the margin is measured in, `x` is the point
    whose decision is meant, `method` the family of bounds, `model` the posterior's fingerprint.
    """

    kind: ClassVar[str] = "certificate"

    status: Status
    margin: Interval
    counterexample: np.ndarray | None
    decision: Any
    reason: StopReason
    boxes: int
    seconds: float
    rule: str
    region: dict[str, Any]
    unit: str = ""
    x: np.ndarray | None = None
    method: str = "taylor"
    model: str = ""

    @property
    def robust(self) -> bool:
        """Whether the decision is proved to be the same in the whole region."""
        return self.status is Status.ROBUST

    def __bool__(self) -> bool:
        raise InputError(
            "a certificate is not a truth value (one that refutes would pass as true): use "
            "certificate.robust, or compare certificate.status"
        )


@dataclass(frozen=True, eq=False)
class Radius(Record):
    """Proved robust up to `lower`; at distance `upper` (inf if none was found) a counter-example.

    The true robustness radius lies in `[lower, upper]`. `region` describes the ball that is proved,
    centre, features and domain included; `unit` is what the decision's margin is measured in.
    """

    kind: ClassVar[str] = "radius"

    lower: float
    upper: float
    counterexample: np.ndarray | None
    decision: Any
    boxes: int
    seconds: float
    norm: float
    reason: StopReason
    rule: str = ""
    region: dict[str, Any] = field(default_factory=dict)
    unit: str = ""
    method: str = "taylor"
    model: str = ""

    def check(self) -> None:
        """The radius lies in `[lower, upper]`."""
        super().check()
        if not (0 <= self.lower <= self.upper and self.norm >= 1):
            raise InputError("expected 0 <= lower <= upper and norm >= 1")
