"""Calls in joblib's processes, to which what they have in common is sent once, with Ctrl-C this
process's alone; one thread at a time; and when a computation must end: a moment that every slow
loop looks at.

The moment is kept in a context variable (one value a thread, restored on the way out), not handed
from function to function: whatever is slow, at whatever depth, calls `checkpoint` between two
pieces of its work, and only whoever set the deadline knows what an early end means. Nothing is
computed from the time: a run that meets no deadline repeats exactly.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import resource_tracker
from typing import Any

import joblib

_END: ContextVar[float] = ContextVar("gpcert deadline", default=math.inf)


class OutOfTime(Exception):
    """The deadline has passed; what was being computed is dropped."""


def deadline() -> float:
    """The moment (of `time.perf_counter`) at which the work must end; infinite if there is none."""
    return _END.get()


def remaining() -> float:
    """Seconds until the deadline; negative after it, infinite if there is none."""
    return _END.get() - time.perf_counter()


def checkpoint() -> None:
    """Raise `OutOfTime` once the deadline has passed. Costs about 100 ns.

    >>> checkpoint()
    >>> with until(time.perf_counter() - 1.0):
    ...     checkpoint()
    Traceback (most recent call last):
    ...
    gpcert.utils.processes.OutOfTime: the deadline has passed
    """
    if time.perf_counter() > _END.get():
        raise OutOfTime("the deadline has passed")


@contextmanager
def until(end: float, *, exactly: bool = False) -> Iterator[None]:
    """Set the deadline for what runs inside; an earlier one that is already set stays, unless it is
    to be `exactly` this: for what must be done even if it is late.

    >>> with until(5.0), until(7.0):
    ...     deadline()
    5.0
    >>> deadline()
    inf
    """
    token = _END.set(end if exactly else min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


def effective_jobs(n_jobs: int | None) -> int:
    """The number of processes that joblib would use; None leaves it to `joblib.parallel_config`."""
    effective: Any = joblib.effective_n_jobs  # takes None, whatever its annotation says
    return effective(n_jobs)


class Common:
    """What all pieces of work have in common, their first argument if it is the same object, a
    model mostly: passed by itself.

    joblib's Dask backend sends such an argument once, not with every piece, if it is large by
    `sys.getsizeof`, which does not look into models; its processes read large arrays from one file.
    """

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def __sizeof__(self) -> int:
        return 2**20


class Results:
    """Numbered results, each once it is there; to close them ends the work that is not done."""

    def __init__(self, results: Any) -> None:
        self._results = results

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        try:
            yield from self._results
        finally:
            self.close()

    def close(self) -> None:
        """End what is not done."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib tells of work that is ended early
            self._results.close()


class Pool:
    """joblib's processes; `with Pool(n_jobs) as pool` keeps them, and what was sent to them, for
    several runs.

    Ctrl-C goes to the whole process group, so to the workers as well. Only this process listens: it
    raises `KeyboardInterrupt`, and the workers are ended with the iterator. Workers are started
    with SIGINT blocked, and ignore it from their first piece of work on (they may have been started
    by somebody else).
    """

    def __init__(self, n_jobs: int | None, **how: Any) -> None:
        self._parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", **how)

    def __enter__(self) -> Pool:
        with _deaf():
            self._parallel.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._parallel.__exit__(*error)

    def results(
        self,
        function: Callable[..., Any],
        common: Common,
        work: Sequence[tuple[int, tuple[Any, ...]]],
    ) -> Results:
        """`(number, function(*common.values, *arguments))` for all `(number, arguments)`, in the
        order in which they are finished. The processes begin at once."""
        with _deaf():
            results: Any = self._parallel(
                joblib.delayed(_piece)(os.getpid(), number, function, common, arguments)
                for number, arguments in work
            )
        return Results(results)


def _piece(
    parent: int, number: int, function: Callable[..., Any], common: Common, rest: tuple[Any, ...]
) -> tuple[int, Any]:
    # a worker of a Dask cluster does its work in threads, where no signal arrives
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return number, function(*common.values, *rest)


@contextmanager
def _deaf() -> Iterator[None]:
    """Block SIGINT, for this thread and for the processes and threads that it starts meanwhile; one
    that arrives is delivered at the end. Nothing where there are no such masks (Windows)."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # started by joblib if it is not there yet, and it would lift the block
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


LOCK = threading.RLock()
"""Whoever changes such a setting for a moment holds it: two threads that restored each other's
would leave it changed."""


@contextmanager
def quiet(category: type[Warning] = Warning) -> Iterator[None]:
    """Warnings of a category are not shown.

    >>> with quiet():
    ...     warnings.warn("never seen", stacklevel=1)
    """
    with LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
