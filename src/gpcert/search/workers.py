"""One search in several processes of joblib: each searches a share of the open boxes, in rounds,
and its share is put back.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gpcert.numerics.arrays import Index
from gpcert.search.problem import Budget, Clock, Problem, Progress
from gpcert.search.state import Boxes, Frontier, Incumbents, State
from gpcert.utils.processes import Common, Pool, Results


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
        part = Frontier(
            frontier.boxes.take(self._boxes[number]),
            np.full_like(frontier.settled, np.inf),
            None if frontier.closed is None else (),
        )
        return replace(self.dealt, frontier=part)

    def put_back(self, number: int, share: State) -> State:
        """The search's state once this share has been searched."""
        state, outside = self.state, self._home != number
        before, after = state.frontier, share.frontier
        closed = None if before.closed is None else (*before.closed, *(after.closed or ()))
        frontier = Frontier(
            Boxes.concatenate([before.boxes.take(outside), after.boxes]),
            np.minimum(before.settled, after.settled),
            closed,
        )
        seen = np.minimum(state.resolution.seen, share.resolution.seen)
        self._home = np.concatenate([self._home[outside], np.full(len(after.boxes), -1)])
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


ALONE = 0.3
"""Seconds of a search before processes are started: shorter ones do without."""

STARTING = 1.0
"""Seconds that this process goes on by itself while they start."""

ROUND = 2.0
"""Seconds of a round: what a Ctrl-C may lose, and after which all know the best point found."""

FEWEST, MOST = 64, 2**15
"""Boxes of a share: with fewer open boxes this process goes on by itself; more stay at home."""

Work = Callable[[str, Problem, State | None, Budget, float], State | None]
"""Searches a share for some seconds, and at most for a budget; the text names the search."""


class Workers:
    """The processes of one search, started when it has lasted a moment; `close` lets them go."""

    def __init__(self, work: Work, problem: Problem, n_jobs: int | None, count: int) -> None:
        self.count, self._work = count, work
        self._common = Common((uuid.uuid4().hex, replace(problem, progress=Progress(), n_jobs=1)))
        # pieces are never joined: each is for a process of its own
        self._pool = Pool(n_jobs, batch_size=1)
        self._begun = time.perf_counter()
        self._running: Results | None = None
        self._started = math.inf

    @property
    def most(self) -> int:
        """Boxes of a round."""
        return MOST * self.count

    def ready(self, state: State, budget: Budget) -> bool:
        """Whether to deal the open boxes now; starts the processes when it is time."""
        now, fewest = time.perf_counter(), FEWEST * self.count
        if self._started == math.inf and now - self._begun >= ALONE:
            self._started = now
            self._pool.__enter__()
            nothing: list[Any] = [(k, (None, Budget(), 0.0)) for k in range(self.count)]
            self._running = self._pool.results(self._work, self._common, nothing)
        left = math.inf if budget.boxes is None else budget.boxes - state.boxes
        enough = min(len(state.frontier.boxes), left) >= fewest
        return enough and now - self._started >= STARTING

    def round(self, shares: Shares, budget: Budget, clock: Clock) -> Iterator[State]:
        """The state of the search each time that a share has been searched and put back."""
        for _ in self._running or ():
            pass  # until all processes are there
        end, work = clock.end - time.perf_counter(), []
        for k in range(self.count):
            share = shares.share(k)
            work.append((k, (share, self._part(budget, shares.dealt, share, end), ROUND)))
        self._running = self._pool.results(self._work, self._common, work)
        for number, share in self._running:
            yield shares.put_back(number, share)
        self._running = None

    def _part(self, budget: Budget, dealt: State, share: State, seconds: float) -> Budget:
        """What one process may spend of what is left."""
        boxes, memory = budget.boxes, budget.memory
        if boxes is not None:
            boxes = dealt.boxes + (boxes - dealt.boxes) // self.count
        if memory is not None:
            memory = share.frontier.bytes + (memory - dealt.frontier.bytes) / self.count
        return Budget(max(seconds, 1e-3), boxes, memory)

    def close(self) -> None:
        """End what still runs."""
        if self._running is not None:
            self._running.close()
        if self._started < math.inf:
            self._pool.__exit__(None, None, None)
