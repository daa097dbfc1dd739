"""Shares of a search's open boxes, searched apart and put back.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpcert.numerics.arrays import Index
from gpcert.search.state import Boxes, Frontier, Incumbents, State


class Shares:
    """The boxes `index` of a search, dealt in turn to `count` shares; the others stay at home.

    Invariant: `state` satisfies 14.1 at every moment. A share is a state whose boxes are some of
    the search's. Where boxes are replaced by children that cover them, or closed with their bound
    remembered, what is left of the share covers the same points as its boxes did, so it may take
    their place.
    """

    def __init__(self, state: State, index: Index, count: int) -> None:
        self.dealt = self.state = state
        self._home = np.full(len(state.frontier.boxes), -1)
        self._home[index] = np.arange(len(index)) % count
        self._boxes = [np.flatnonzero(self._home == number) for number in range(count)]

    def share(self, number: int) -> State:
        """A share to be searched, with all that is known beside."""
        frontier = self.dealt.frontier
        own = Frontier(
            frontier.boxes.take(self._boxes[number]),
            np.full_like(frontier.settled, np.inf),
            None if frontier.closed is None else (),
        )
        return replace(self.dealt, frontier=own)

    def put_back(self, number: int, share: State) -> State:
        """The search's state once this share has been searched."""
        state, kept = self.state, self._home != number
        before, after = state.frontier, share.frontier
        closed = None if before.closed is None else (*before.closed, *(after.closed or ()))
        frontier = Frontier(
            Boxes.concatenate([before.boxes.take(kept), after.boxes]),
            np.minimum(before.settled, after.settled),
            closed,
        )
        seen = np.minimum(state.resolution.seen, share.resolution.seen)
        self._home = np.concatenate([self._home[kept], np.full(len(after.boxes), -1)])
        self.state = replace(
            state,
            frontier=frontier,
            incumbents=_better(state.incumbents, share.incumbents),
            # what rounding leaves of a share says nothing of the others
            resolution=replace(state.resolution, seen=seen),
            portfolio=share.portfolio,
            shrink=share.shrink,
            boxes=state.boxes + share.boxes - self.dealt.boxes,
            looks=max(state.looks, share.looks),
            next_look=max(state.next_look, share.next_look),
        )
        return self.state


def _better(first: Incumbents, second: Incumbents) -> Incumbents:
    """The smaller value of each question and goal."""
    other = second.values < first.values
    return Incumbents(
        np.where(other, second.values, first.values),
        np.where(other[:, :, None], second.points, first.points),
    )
