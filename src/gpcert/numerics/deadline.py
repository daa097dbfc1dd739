"""When a computation must end: a moment in time that every slow loop below looks at.

The moment is kept in a context variable (one value a thread, restored on the way out), not handed
from function to function: whatever is slow, at whatever depth, calls `checkpoint` between two
pieces of its work, and only whoever set the deadline knows what an early end means. Nothing is
computed from the time: a run that meets no deadline repeats exactly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
    gpcert.numerics.deadline.OutOfTime: the deadline has passed
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
