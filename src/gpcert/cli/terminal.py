"""What is written to the terminal: consoles, numbers that do not round a proof away, tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpcert.certificates import Interval, Status
from gpcert.certificates.text import above, below

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


def cells(row: Any, names: str) -> list[str | Text]:
    """Fields of a record by name, in few digits, proved ends rounded outwards; `ms` is its time."""
    found: list[str | Text] = []
    for name in names.split():
        value = 1e3 * row.seconds if name == "ms" else getattr(row, name)
        match value:
            case None | False:
                found.append("")
            case True:
                found.append("yes")
            case Interval():
                found += [below(value.lower), above(value.upper)]
            case Status():
                found.append(verdict(value))
            case float():
                found.append(f"{value:.1f}" if name == "ms" else f"{value:.4g}")
            case _:
                found.append(str(value))
    return found


def option(help: str, *names: str, **more: Any) -> Any:
    """An option of a command: what it says, and its names where they are not the parameter's."""
    return typer.Option(*names, help=help, **more)


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
