"""A bar with the time left while the pieces of an experiment are computed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """Says how much is done; silent without a display."""

    def __init__(self, display: Any = None, task: Any = None, done: int = 0) -> None:
        self._display, self._task, self._done = display, task, done

    def advance(self, cost: float) -> None:
        """One more piece is finished."""
        self._done += 1
        if self._display is not None:
            self._display.update(self._task, advance=cost, done=self._done)


@contextmanager
def progress_bar(
    name: str, pieces: int, missing: int, cost: float, progress: bool | None
) -> Iterator[Bar]:
    """A bar on stderr over the work that is missing. None: only where stderr is a terminal.

    >>> with progress_bar("nothing to see", 3, 2, 2.0, False) as bar:
    ...     bar.advance(1.0)
    """
    wanted = sys.stderr.isatty() if progress is None else progress
    done = pieces - missing
    if not wanted or not missing:
        yield Bar(done=done)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.fields[done]}} of {pieces} pieces"),
        TimeElapsedColumn(),
        TextColumn("left"),
        # pieces take minutes: a rate over the last half minute would often be over none
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=1e9) as display:
        yield Bar(display, display.add_task(name, total=cost, done=done), done)
