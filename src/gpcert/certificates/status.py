"""Verdicts, units and intervals: the words and numbers that records are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from gpcert.errors import InputError


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


@dataclass(frozen=True)
class Interval:
    """Proved `lower <= value <= upper`."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """`upper - lower`."""
        return self.upper - self.lower
