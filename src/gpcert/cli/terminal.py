"""What is written to the terminal: consoles, numbers that do not round a proof away, tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpcert.certificates import Status
from gpcert.certificates.text import above, below

__all__ = [
    "console",
    "error_console",
    "say",
    "say_error",
    "below",
    "above",
    "verdict",
    "table",
    "say_written",
]

PIPE_WIDTH = 120
"""Columns where no terminal says how many there are, so that tables are whole in a file."""

VERDICT_STYLES = {
    Status.ROBUST: "bold green",
    Status.NOT_ROBUST: "bold red",
    Status.UNKNOWN: "bold yellow",
}


class _Console(Console):
    """A console that leaves it to the command how to end when the reader of a pipe went away."""

    def on_broken_pipe(self) -> None:
        """Rich would exit with 1, which here means "refuted"."""
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Standard output, or standard error."""
    found = _Console(stderr=stderr, highlight=False)
    if found.is_terminal:
        return found
    return _Console(stderr=stderr, highlight=False, width=PIPE_WIDTH)


def error_console() -> Console:
    """Standard error."""
    return console(stderr=True)


def say(message: str, place: Console | None = None, style: str = "") -> None:
    """One line, to standard output by default; file names in it are not read as markup."""
    (place or console()).print(Text(message, style=style), soft_wrap=True)


def say_error(message: str) -> None:
    """One line to standard error."""
    error_console().print(Text("error: ", style="bold red") + Text(message), soft_wrap=True)


def verdict(status: Status) -> Text:
    """The status in its colour."""
    return Text(status.name, style=VERDICT_STYLES[status])


def table(title: str, columns: Sequence[str], caption: str | None = None) -> Table:
    """An empty table; its columns are set right, as numbers are."""
    made = Table(title=Text(title), caption=caption, title_justify="left", caption_justify="left")
    for column in columns:
        made.add_column(column, justify="right", no_wrap=True)
    return made


def say_written(*paths: Path | None) -> None:
    """Where the results are."""
    for path in paths:
        if path is not None:
            say(f"written: {path}")
