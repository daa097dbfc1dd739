"""The terminal: streams of any encoding, consoles, numbers that do not round a proof away, tables;
exit codes, and the one place where errors become messages."""

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
from gpcert.errors import InputError, MissingExtraError, ModelWarning, RegionWarning

if TYPE_CHECKING:  # what verbs need is loaded by them, not with every command's help
    from gpcert.certificates.record import RecordTable

HANDLER = "gpcert.spelled"

SPELLED = {"≥": ">=", "≤": "<=", "…": "...", "±": "+-", "×": "x", "–": "-", "—": "-", "−": "-"}


def spelled(text: str) -> str:
    """ASCII that reads much like the text.

    >>> spelled("Matérn ≥ 1 … ✓")
    'Matern >= 1 ... ?'
    """
    plain = (SPELLED.get(each, unicodedata.normalize("NFKD", each)) for each in text)
    return "".join(each.encode("ascii", "ignore").decode() or "?" for each in plain)


def prepare_streams() -> None:
    """Let standard output and error replace what their encoding lacks, instead of raising.

    So it is on every redirect on Windows (cp1252), and with PYTHONIOENCODING or LC_ALL set so.
    """
    codecs.register_error(HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def flush() -> None:
    """Write what is left; if the reader of a pipe went away, that is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more when it ends, and would end with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spelled(error.object[error.start : error.end]), error.end


PIPE_WIDTH = 120
"""Columns where no terminal says how many there are, so that tables are whole in a file."""

VERDICT_STYLES = {
    "ROBUST": "bold green",
    "NOT_ROBUST": "bold red",
    "UNKNOWN": "bold yellow",
}


class _Console(Console):
    """A console that leaves it to the command how to end when the reader of a pipe went away."""

    def on_broken_pipe(self) -> None:
        """Rich would exit with 1, which here means "refuted"."""
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Standard output, or standard error."""
    found = _Console(stderr=stderr, highlight=False)
    width = None if found.is_terminal else PIPE_WIDTH
    return _Console(stderr=stderr, highlight=False, width=width)


def say(message: str, place: Console | None = None, style: str = "") -> None:
    """One line, to standard output by default; file names in it are not read as markup."""
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
    """Fields of a record by name, in few digits, proved ends rounded outwards; `ms` is its time."""
    found: list[str | Text] = []
    for name in names.split():
        value = 1e3 * row.seconds if name == "ms" else getattr(row, name)
        if name in LABELS and value is not None:  # a truth value is a label like others
            found.append(str(value))
            continue
        match value:
            case None | False:
                found.append("")
            case True:
                found.append("yes")
            case gpcert.Interval():
                found += [below(value.lower), above(value.upper)]
            case gpcert.Status():
                found.append(Text(value.name, style=VERDICT_STYLES[value.name]))
            case float():
                found.append(f"{value:.1f}" if name == "ms" else f"{value:.4g}")
            case _:
                found.append(str(value))
    return found


def option(help: str, *names: str, **more: Any) -> Any:
    """An option of a command: what it says, and its names where they are not the parameter's."""
    return typer.Option(*names, help=help, **more)


def table(title: str, columns: Sequence[str]) -> Table:
    """An empty table; its columns are set right, as numbers are."""
    made = Table(title=Text(title), title_justify="left")
    for column in columns:
        made.add_column(column, justify="right", no_wrap=True)
    return made


def say_written(*paths: Path | None, place: Console | None = None) -> None:
    """Where the results are."""
    for path in paths:
        if path is not None:
            say(f"written: {path}", place)


def check_folder(name: str, path: Path | None) -> None:
    """An `InputError` for a file, or a folder, whose own folder is not there."""
    if path is not None and not path.absolute().parent.is_dir():
        raise InputError(f"{name}: expected an existing folder, got {str(path.parent)!r}")


class ExitCode(IntEnum):
    """What the shell is told."""

    PROVED = 0
    REFUTED = 1
    UNDECIDED = 2
    BAD_INPUT = 3
    DEFECT = 4
    INTERRUPTED = 130
    PIPE = 141
    """The reader of standard output went away."""


def exit_code(table: gpcert.CertificateTable) -> ExitCode:
    """0 if all points are proved, 1 if some are refuted, 2 if some are undecided (or not tried)."""
    if table.count(gpcert.Status.NOT_ROBUST):
        return ExitCode.REFUTED
    proved = table.complete and table.count(gpcert.Status.ROBUST) == len(table)
    return ExitCode.PROVED if proved else ExitCode.UNDECIDED


def settled(table: RecordTable[Any]) -> ExitCode:
    """0 if every search ended within its tolerance, 2 if some did not (or were not tried)."""
    good = table.complete and all(row.reason is gpcert.StopReason.CONVERGED for row in table)
    return ExitCode.PROVED if good else ExitCode.UNDECIDED


class Commands(TyperGroup):
    """Commands whose errors end in one line on stderr and a code that no verdict has."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _reported():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _reported(), _warned():
            return super().invoke(ctx)


@contextmanager
def _warned() -> Iterator[None]:
    """Warnings of ours as lines on stderr; those of others as Python shows them."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if not issubclass(category, RegionWarning | ModelWarning):
                others(message, category, *where, **more)
                return
            line = Text("warning: ", style="bold yellow") + Text(str(message))
            console(stderr=True).print(line, soft_wrap=True)

        warnings.showwarning = show
        yield


@contextmanager
def _reported() -> Iterator[None]:
    """Whatever is raised becomes a message and an exit code; left alone, Python would end with 1,
    which here means "refuted"."""
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
        _end(ExitCode.DEFECT, "out of memory; a smaller --memory or fewer --jobs need less")
    except RecursionError as error:
        _end(ExitCode.DEFECT, f"{error}; a kernel nested less deeply needs less")
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error; its class moved over time
            error.__dict__["exit_code"] = int(ExitCode.BAD_INPUT)
            raise
        console(stderr=True).print_exception()
        _end(ExitCode.DEFECT, "this is a defect of gpcert; please report it with the lines above")


def _end(code: ExitCode, message: str) -> NoReturn:
    line = Text("error: ", style="bold red") + Text(message)
    console(stderr=True).print(line, soft_wrap=True)
    raise typer.Exit(code) from None
