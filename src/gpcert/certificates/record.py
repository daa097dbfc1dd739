"""The answers: records with a status that speaks, valid bounds, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.certificates.io import load_record, write_record
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
class PredictionRange:
    """Bounds of the smallest and of the largest value of a quantity over a region.

    `minimum.lower <= min <= minimum.upper`, the latter attained at `argmin`; likewise for the
    maximum. The bounds are valid whether or not the search converged. `method` is the family of
    bounds, `model` the fingerprint of the certified posterior.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "kind": "prediction_range",
            "minimum": [self.minimum.lower, self.minimum.upper],
            "maximum": [self.maximum.lower, self.maximum.upper],
            "argmin": _listed(self.argmin),
            "argmax": _listed(self.argmax),
            "converged": self.converged,
            "reason": self.reason.name,
            "boxes": self.boxes,
            "seconds": self.seconds,
            "quantity": self.quantity,
            "output": self.output,
            "region": self.region,
            "method": self.method,
            "model": self.model,
        }

    @staticmethod
    def from_dict(record: dict[str, Any]) -> PredictionRange:
        """Inverse of `to_dict`."""
        return PredictionRange(
            minimum=Interval(*record["minimum"]),
            maximum=Interval(*record["maximum"]),
            argmin=_array(record["argmin"]),
            argmax=_array(record["argmax"]),
            converged=record["converged"],
            reason=StopReason[record["reason"]],
            boxes=record["boxes"],
            seconds=record["seconds"],
            quantity=record["quantity"],
            output=record["output"],
            region=record["region"],
            method=record["method"],
            model=record["model"],
        )

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        write_record(path, self.to_dict())

    @staticmethod
    def load(path: str | Path) -> PredictionRange:
        """Read what `save` wrote."""
        return load_record(path, "prediction_range", PredictionRange.from_dict)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Verdict on one region: `margin` bounds the smallest margin of the decision over it.

    The margin is positive where the decision is that of `decision` (the label at x, or None in
    regression): `sign * latent mean`, `sign * (probability - threshold)`, or
    `delta - deviation`. ROBUST if `margin.lower > 0`; NOT_ROBUST if a point with a negative margin,
    the `counterexample`, is known. `unit` says what the margin is measured in, `x` is the point
    whose decision is meant, `method` the family of bounds, `model` the posterior's fingerprint.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "kind": "certificate",
            "status": self.status.name,
            "margin": [self.margin.lower, self.margin.upper],
            "counterexample": _listed(self.counterexample),
            "decision": self.decision,
            "reason": self.reason.name,
            "boxes": self.boxes,
            "seconds": self.seconds,
            "rule": self.rule,
            "region": self.region,
            "unit": self.unit,
            "x": _listed(self.x),
            "method": self.method,
            "model": self.model,
        }

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Certificate:
        """Inverse of `to_dict`."""
        return Certificate(
            status=Status[record["status"]],
            margin=Interval(*record["margin"]),
            counterexample=_array(record["counterexample"]),
            decision=record["decision"],
            reason=StopReason[record["reason"]],
            boxes=record["boxes"],
            seconds=record["seconds"],
            rule=record["rule"],
            region=record["region"],
            unit=record["unit"],
            x=_array(record["x"]),
            method=record["method"],
            model=record["model"],
        )

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        write_record(path, self.to_dict())

    @staticmethod
    def load(path: str | Path) -> Certificate:
        """Read what `save` wrote."""
        return load_record(path, "certificate", Certificate.from_dict)


@dataclass(frozen=True, eq=False)
class Radius:
    """Proved robust up to `lower`; at distance `upper` (inf if none was found) a counter-example.

    The true robustness radius lies in `[lower, upper]`. `region` describes the ball that is proved,
    centre, features and domain included; `unit` is what the decision's margin is measured in.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "kind": "radius",
            "lower": self.lower,
            "upper": self.upper,
            "counterexample": _listed(self.counterexample),
            "decision": self.decision,
            "boxes": self.boxes,
            "seconds": self.seconds,
            "norm": self.norm,
            "reason": self.reason.name,
            "rule": self.rule,
            "region": self.region,
            "unit": self.unit,
            "method": self.method,
            "model": self.model,
        }

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Radius:
        """Inverse of `to_dict`."""
        fields = {key: value for key, value in record.items() if key != "kind"}
        fields["counterexample"] = _array(fields["counterexample"])
        fields["reason"] = StopReason[fields["reason"]]
        return Radius(**fields)

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        write_record(path, self.to_dict())

    @staticmethod
    def load(path: str | Path) -> Radius:
        """Read what `save` wrote."""
        return load_record(path, "radius", Radius.from_dict)


def _listed(point: np.ndarray | None) -> list[float] | None:
    return None if point is None else [float(value) for value in point]


def _array(values: list[float] | None) -> np.ndarray | None:
    return None if values is None else np.asarray(values, dtype=np.float64)
