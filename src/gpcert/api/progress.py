"""A line on the terminal while a call takes long: the bounds so far, boxes and seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpcert.api.words import read_flag
from gpcert.search import SearchState

DELAY = 0.5
"""Seconds before anything is shown that nobody asked for: short calls leave the terminal alone."""

PAUSE = 0.1
"""Seconds between two texts."""


class Line:
    """What a call says while it works, on stderr after a delay; nothing without one."""

    def __init__(self, delay: float | None) -> None:
        self._console: Any = None
        if delay is not None:
            from rich.console import Console  # only where there may be something to show

            self._next = time.perf_counter() + delay
            self._console = Console(stderr=True)
        self._status: Any = None
        self._text = ""

    def show(self, text: str) -> None:
        """Replace the text; costs next to nothing where nothing is shown."""
        self._text = text
        if self._console is None or not self._console.is_terminal:
            return
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + PAUSE
        if self._status is None:
            self._status = self._console.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def close(self) -> None:
        """Take the line away; where it was none of a terminal, write the last text."""
        if self._status is not None:
            self._status.stop()
        elif self._console is not None and not self._console.is_terminal and self._text:
            self._console.print(self._text, highlight=False)


@contextmanager
def progress_line(progress: Any) -> Iterator[Line]:
    """A line on stderr that vanishes in the end. None: only where stderr is a terminal. Asked for
    where it is none, the last text is written once.

    >>> with progress_line(False) as line:
    ...     line.show("never seen")
    """
    progress = read_flag("progress", progress)
    wanted = sys.stderr.isatty() if progress is None else progress
    line = Line((DELAY if progress is None else 0.0) if wanted else None)
    try:
        yield line
    finally:
        line.close()


def margin_text(state: SearchState) -> str:
    """The least margin so far; a decision's goal differs from it by the threshold only."""
    return f"least value between {state.lower[0]:.5g} and {state.upper[0]:.5g}, {_cost(state)}"


def ranges_text(state: SearchState) -> str:
    """How far apart the bounds still are, where they are farthest."""
    return f"bounds at most {float((state.upper - state.lower).max()):.3g} apart, {_cost(state)}"


def _cost(state: SearchState) -> str:
    return f"{state.boxes} boxes, {state.seconds:.1f} s"
