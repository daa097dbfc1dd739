"""A progress bar over evidence evaluations, for long fits in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(verbose: bool, total: int) -> Iterator[Callable[[float], None] | None]:
    """Yield `report(evidence)`, called after every evaluation; None where nothing is shown.

    It is drawn on standard error, so that what a program prints stays as it is, and only where
    that is a terminal.
    """
    if not verbose or total < 1:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("best evidence {task.fields[best]:.6g}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, best=float("-inf"))
        best = float("-inf")

        def report(evidence: float) -> None:
            nonlocal best
            best = max(best, evidence)
            bar.update(task, advance=1, best=best)

        yield report
