"""How much a search may spend, and why it stopped."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import Enum

from gpcert.errors import InputError

__all__ = ["Budget", "Clock", "StopReason"]


class StopReason(Enum):
    """Why a search ended; the value is a sentence for people."""

    CONVERGED = "the bounds are within the tolerance"
    DECIDED = "the property is decided"
    TIME = "the time budget is used up"
    BOXES = "the budget of boxes is used up"
    MEMORY = "the memory budget is used up"
    INTERRUPTED = "interrupted by the user"
    RESOLUTION = "the remaining boxes cannot be split further in float64"
    UNDECIDED_AT_X = "the decision at x itself lies within the error of its own enclosure"


@dataclass(frozen=True)
class Budget:
    """Limits of one search; None lifts a limit. Bounds stay valid whichever limit is met first.

    `seconds` of wall-clock time, number of `boxes` evaluated, and `memory` in bytes held by boxes
    that wait to be split and by the batch being evaluated.

    >>> Budget(seconds=2.0).boxes is None
    True
    """

    seconds: float | None = 60.0
    boxes: int | None = None
    memory: float | None = 2.0e9

    def __post_init__(self) -> None:
        for name in ("seconds", "boxes", "memory"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise InputError(
                    f"budget {name}: expected a positive number or None, got {value!r}"
                )
            if value is not None and math.isnan(value):
                raise InputError(f"budget {name}: expected a number, got NaN")
        if self.boxes is not None and not float(self.boxes).is_integer():
            raise InputError(f"budget boxes: expected a whole number or None, got {self.boxes!r}")
        if self.boxes is not None:
            object.__setattr__(self, "boxes", int(self.boxes))  # 1e6 is one way to write it


class Clock:
    """Time since the search began, against a budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    def exhausted(self, boxes: int, memory: float) -> StopReason | None:
        """The first limit that is met, if any."""
        budget = self.budget
        if budget.seconds is not None and self.seconds >= budget.seconds:
            return StopReason.TIME
        if budget.boxes is not None and boxes >= budget.boxes:
            return StopReason.BOXES
        if budget.memory is not None and memory >= budget.memory:
            return StopReason.MEMORY
        return None
