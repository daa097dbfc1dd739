"""Which optional bounds are worth their cost: decided by what they gained, not by a flag."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

PATIENCE = 3
"""Batches in a row without a gain after which an optional bound rests."""

FIRST_REST = 4
"""Batches of the first rest; each further rest is twice as long."""


@dataclass(eq=False)
class Portfolio:
    """Remembers, for each optional bound, when it last tightened anything.

    Every bound is valid, so the choice only costs or saves time: a bound that has not tightened a
    cell for `PATIENCE` batches rests for 4, 8, 16, ... batches, then is tried again. Deterministic.

    >>> p = Portfolio()
    >>> p.wants("pointwise")
    True
    """

    idle: dict[Hashable, int] = field(default_factory=dict)
    resting: dict[Hashable, int] = field(default_factory=dict)
    rest: dict[Hashable, int] = field(default_factory=dict)
    useful: dict[Hashable, bool] = field(default_factory=dict)

    def copy(self) -> Portfolio:
        """The same, to be learnt from apart."""
        return Portfolio(dict(self.idle), dict(self.resting), dict(self.rest), dict(self.useful))

    def wants(self, name: Hashable) -> bool:
        """Whether to compute the bound called `name` for the next batch."""
        left = self.resting.get(name, 0)
        if left > 0:
            self.resting[name] = left - 1
            return False
        return True

    def gained(self, name: Hashable) -> bool:
        """Whether the bound tightened a cell when it was last computed."""
        return self.useful.get(name, False)

    def report(self, name: Hashable, gained: bool) -> None:
        """Say whether the bound tightened any cell of the batch."""
        self.useful[name] = gained
        if gained:
            self.idle[name] = 0
            self.rest[name] = FIRST_REST
            return
        self.idle[name] = self.idle.get(name, 0) + 1
        if self.idle[name] >= PATIENCE:
            length = self.rest.get(name, FIRST_REST)
            self.resting[name] = length
            self.rest[name] = 2 * length
            self.idle[name] = 0
