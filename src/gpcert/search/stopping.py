"""When a search has its answer: ends within a tolerance, or a level that is decided.

Proofs: docs/mathematics.md, statement 14.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpcert.numerics.arrays import Reals
from gpcert.search.problem import StopReason
from gpcert.search.tolerance import Tolerance


class StoppingRule(Protocol):
    """Which boxes keep a question open: those whose bound of a goal is below what is `needed`."""

    @property
    def target(self) -> float | None:
        """A level that matters: enclosures are best near it."""
        ...

    @property
    def reason(self) -> StopReason:
        """Why a search stops whose questions all have their answers."""
        ...

    def needed(self, lower: Reals, upper: Reals) -> Reals:
        """(Q, G): the least bounds of boxes that answer each question for each goal, from what is
        known of the goals' minima, lower and upper (Q, G); minus infinity where nothing is."""
        ...


@dataclass(frozen=True, eq=False)
class WithinTolerance:
    """Both ends of every goal are as near as a tolerance says."""

    tolerance: Tolerance
    target: float | None = None
    reason = StopReason.CONVERGED

    def needed(self, lower: Reals, upper: Reals) -> Reals:
        """See `Tolerance.needed`."""
        del lower
        return self.tolerance.needed(upper)


@dataclass(frozen=True, eq=False)
class DecidedLevel:
    """With a target T a goal is *proved* once its lower bound exceeds T, and *refuted* once a point
    with a value below T is known. A question is decided if one of its goals is refuted or all are
    proved."""

    target: float
    reason = StopReason.DECIDED

    def needed(self, lower: Reals, upper: Reals) -> Reals:
        """A box with a bound above T matters no more, and none does once a goal is refuted."""
        del lower
        refuted = np.any(upper < self.target, axis=-1, keepdims=True)
        above = np.nextafter(self.target, np.inf)
        return np.broadcast_to(np.where(refuted, -np.inf, above), upper.shape)
