"""The same question for many points, in one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import joblib

__all__ = ["run_many"]

A = TypeVar("A")
R = TypeVar("R")


def run_many(
    function: Callable[[A], R],
    items: Iterable[A],
    n_jobs: int = 1,
    interrupted: Callable[[R], bool] = lambda answer: False,
) -> tuple[list[R], bool]:
    """The function's answers in the items' order, and whether all were reached.

    `n_jobs` processes (joblib). Ctrl-C, or an answer that was `interrupted`, ends the run with what
    is finished.

    >>> run_many(lambda x: x * x, [1, 2, 3])
    ([1, 4, 9], True)
    """
    work: Any = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(
        joblib.delayed(function)(item) for item in items
    )
    done: list[R] = []
    try:
        for answer in work:
            done.append(answer)
            if interrupted(answer):
                return done, False
    except KeyboardInterrupt:
        return done, False
    return done, True
