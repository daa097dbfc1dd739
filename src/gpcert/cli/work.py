"""The same question for many points, in one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from gpcert.api.parallel import numbered_results

__all__ = ["run_many"]

A = TypeVar("A")
R = TypeVar("R")


def run_many(
    function: Callable[[A], R],
    items: Iterable[A],
    n_jobs: int,
    interrupted: Callable[[R], bool],
) -> tuple[dict[int, R], bool]:
    """The function's answers by the items' numbers, in order, and whether all were reached.

    Ctrl-C, or an answer that was `interrupted`, ends the run with what is finished.

    >>> run_many(lambda x: x * x, [1, 2, 3], 1, lambda answer: answer == 4)
    ({0: 1, 1: 4}, False)
    """
    done: dict[int, R] = {}
    complete = True
    try:
        for number, answer in numbered_results(function, [(item,) for item in items], n_jobs):
            done[number] = answer
            if interrupted(answer):
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        complete = False
    return dict(sorted(done.items())), complete
