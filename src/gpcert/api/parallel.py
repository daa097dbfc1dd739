"""Many independent pieces of work in several processes, each result as soon as it is there."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

import joblib

__all__ = ["numbered_results"]


def numbered_results(
    function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    """`(i, function(*arguments[i]))` in the order in which they are finished (one job: in order).

    Ctrl-C goes to the whole process group, so to the workers as well. Only this process listens: it
    raises `KeyboardInterrupt`, and the workers are ended with the iterator. Workers are started
    with SIGINT blocked, and ignore it from their first piece of work on (they may have been started
    by somebody else). `n_jobs=None` leaves the number to `joblib.parallel_config`, which also
    chooses the backend.
    """
    effective: Any = joblib.effective_n_jobs  # takes None, whatever its annotation says
    if effective(n_jobs) == 1:
        for index, own in enumerate(arguments):
            yield index, function(*own)
        return
    with _deaf():
        results: Any = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            joblib.delayed(_piece)(os.getpid(), index, function, own)
            for index, own in enumerate(arguments)
        )
    try:
        yield from results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib tells of work that is ended early
            results.close()


def _piece(
    parent: int, index: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[int, Any]:
    # a worker of a Dask cluster does its work in threads, where no signal arrives
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return index, function(*arguments)


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
