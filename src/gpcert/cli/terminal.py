"""The terminal: streams of any encoding, consoles, numbers rounded outward, tables, exit codes;
errors become messages here."""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

import gpcert
from gpcert.errors import (
    CheckpointWarning,
    InputError,
    MissingExtraError,
    ModelWarning,
    RegionWarning,
)

if TYPE_CHECKING:  # not imported for the help of a command
    from gpcert.certificates.record import RecordTable

HANDLER = "gpcert.spelled"

SPELLED = {"≥": ">=", "≤": "<=", "…": "...", "±": "+-", "×": "x", "–": "-", "—": "-", "−": "-"}


def spelled(text: str) -> str:
    """An ASCII approximation of the text.

    >>> spelled("Matérn ≥ 1 … ✓")
    'Matern >= 1 ... ?'
    """
    plain = (SPELLED.get(each, unicodedata.normalize("NFKD", each)) for each in text)
    return "".join(each.encode("ascii", "ignore").decode() or "?" for each in plain)


def prepare_streams() -> None:
    """Let standard output and error replace characters that their encoding lacks.

    This happens with redirects on Windows (cp1252), or by PYTHONIOENCODING or LC_ALL.
    """
    codecs.register_error(HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def flush() -> None:
    """Flush standard output; a closed pipe is not an error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again at exit, and would exit with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spelled(error.object[error.start : error.end]), error.end


PIPE_WIDTH = 120
"""Columns if there is no terminal, so that tables in files are not cut."""

VERDICT_STYLES = {
    "ROBUST": "bold green",
    "NOT_ROBUST": "bold red",
    "UNKNOWN": "bold yellow",
}


class _Console(Console):
    """A console that lets the command handle a closed pipe."""

    def on_broken_pipe(self) -> None:
        """Raise an error: Rich would exit with 1, which means "refuted" here."""
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Standard output, or standard error."""
    terminal = _Console(stderr=stderr, highlight=False)
    width = None if terminal.is_terminal else PIPE_WIDTH
    return _Console(stderr=stderr, highlight=False, width=width)


def say(message: str, place: Console | None = None, style: str = "") -> None:
    """Print one line, to standard output by default; file names in it are not markup."""
    (place or console()).print(Text(message, style=style), soft_wrap=True)


def below(value: float) -> str:
    """The value in few digits, rounded down: a lower bound stays one."""
    from gpcert.certificates import text

    return text.below(value)


def above(value: float) -> str:
    """The value in few digits, rounded up: an upper bound stays one."""
    from gpcert.certificates import text

    return text.above(value)


LABELS = {"label", "decision", "new_decision"}
"""Fields that hold a label of a class."""


def cells(row: Any, names: str) -> list[str | Text]:
    """Fields of a record by name, in few digits, proved ends rounded outward; `ms` is its time."""
    texts: list[str | Text] = []
    for name in names.split():
        value = 1e3 * row.seconds if name == "ms" else getattr(row, name)
        if name in LABELS and value is not None:  # a truth value is a label like others
            texts.append(str(value))
            continue
        match value:
            case None | False:
                texts.append("")
            case True:
                texts.append("yes")
            case gpcert.Interval():
                texts += [below(value.lower), above(value.upper)]
            case gpcert.Status():
                texts.append(Text(value.name, style=VERDICT_STYLES[value.name]))
            case float():
                texts.append(f"{value:.1f}" if name == "ms" else f"{value:.4g}")
            case _:
                texts.append(str(value))
    return texts


def option(help: str, *names: str, **more: Any) -> Any:
    """An option of a command: its help, and its names if they differ from the parameter's."""
    return typer.Option(*names, help=help, **more)


def table(title: str, columns: Sequence[str]) -> Table:
    """An empty table with right-aligned columns."""
    result = Table(title=Text(title), title_justify="left")
    for column in columns:
        result.add_column(column, justify="right", no_wrap=True)
    return result


def say_written(*paths: Path | None, place: Console | None = None) -> None:
    """Print the paths of the results."""
    for path in paths:
        if path is not None:
            say(f"written: {path}", place)


def check_folder(name: str, path: Path | None) -> None:
    """An `InputError` if the folder of the file (or folder) does not exist."""
    if path is not None and not path.absolute().parent.is_dir():
        raise InputError(f"{name}: expected an existing folder, got {str(path.parent)!r}")


class ExitCode(IntEnum):
    """Exit codes."""

    PROVED = 0
    REFUTED = 1
    UNDECIDED = 2
    BAD_INPUT = 3
    DEFECT = 4
    INTERRUPTED = 130
    PIPE = 141
    """The pipe of standard output was closed."""


def exit_code(table: gpcert.CertificateTable) -> ExitCode:
    """0 if all points are proved, 1 if some are refuted, 2 if some are undecided (or missing)."""
    if table.count(gpcert.Status.NOT_ROBUST):
        return ExitCode.REFUTED
    proved = table.complete and table.count(gpcert.Status.ROBUST) == len(table)
    return ExitCode.PROVED if proved else ExitCode.UNDECIDED


def settled(table: RecordTable[Any]) -> ExitCode:
    """0 if every search ended within its tolerance, 2 if some did not (or are missing)."""
    converged = table.complete and all(row.reason is gpcert.StopReason.CONVERGED for row in table)
    return ExitCode.PROVED if converged else ExitCode.UNDECIDED


class Commands(TyperGroup):
    """Commands whose errors end with one line on stderr and an exit code that no verdict has."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _reported():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _reported(), _warned():
            return super().invoke(ctx)


@contextmanager
def _warned() -> Iterator[None]:
    """Warnings of gpcert as lines on stderr; other warnings as usual."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Any, category: Any, *location: Any, **more: Any) -> None:
            if not issubclass(category, RegionWarning | ModelWarning | CheckpointWarning):
                others(message, category, *location, **more)
                return
            line = Text("warning: ", style="bold yellow") + Text(str(message))
            console(stderr=True).print(line, soft_wrap=True)

        warnings.showwarning = show
        yield


@contextmanager
def _reported() -> Iterator[None]:
    """Turn any exception into a message and an exit code; by default Python would exit with 1,
    which means "refuted" here."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        _end(ExitCode.INTERRUPTED, "interrupted")
    except (MissingExtraError, InputError) as error:
        _end(ExitCode.BAD_INPUT, str(error))
    except BrokenPipeError:
        flush()
        raise typer.Exit(ExitCode.PIPE) from None
    except OSError as error:
        _end(ExitCode.BAD_INPUT, str(error))
    except MemoryError:
        _end(ExitCode.DEFECT, "out of memory; use a smaller --memory or fewer --jobs")
    except RecursionError as error:
        _end(ExitCode.DEFECT, f"{error}; use a kernel that is nested less deeply")
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error; its module depends on the version
            error.__dict__["exit_code"] = int(ExitCode.BAD_INPUT)
            raise
        console(stderr=True).print_exception()
        _end(ExitCode.DEFECT, "this is a defect of gpcert; please report it with the lines above")


def _end(code: ExitCode, message: str) -> NoReturn:
    line = Text("error: ", style="bold red") + Text(message)
    console(stderr=True).print(line, soft_wrap=True)
    raise typer.Exit(code) from None
