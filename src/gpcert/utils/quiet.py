"""Settings of the whole process that a few lines need otherwise: one thread at a time."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

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
