"""Exit codes, and the one place where errors become messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from gpcert.certificates import CertificateTable, Status
from gpcert.certificates.record import RecordTable
from gpcert.cli.streams import flush
from gpcert.cli.terminal import error_console, say_error
from gpcert.errors import InputError, MissingExtraError
from gpcert.search import StopReason


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


def exit_code(table: CertificateTable) -> ExitCode:
    """0 if all points are proved, 1 if some are refuted, 2 if some are undecided (or not tried)."""
    if table.count(Status.NOT_ROBUST):
        return ExitCode.REFUTED
    proved = table.complete and table.count(Status.ROBUST) == len(table)
    return ExitCode.PROVED if proved else ExitCode.UNDECIDED


def settled(table: RecordTable[Any]) -> ExitCode:
    """0 if every search ended within its tolerance, 2 if some did not (or were not tried)."""
    good = table.complete and all(row.reason is StopReason.CONVERGED for row in table)
    return ExitCode.PROVED if good else ExitCode.UNDECIDED


class Commands(TyperGroup):
    """Commands whose errors end in one line on stderr and a code that no verdict has."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _reported():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _reported():
            return super().invoke(ctx)


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
        if _mark_usage_error(error):
            raise
        error_console().print_exception()
        _end(ExitCode.DEFECT, "this is a defect of gpcert; please report it with the lines above")


def _end(code: ExitCode, message: str) -> NoReturn:
    say_error(message)
    raise typer.Exit(code) from None


def _mark_usage_error(error: Exception) -> bool:
    """Give a usage error the code of bad input; told by its method, the class moved over time."""
    if not hasattr(error, "format_message"):
        return False
    error.__dict__["exit_code"] = int(ExitCode.BAD_INPUT)
    return True
