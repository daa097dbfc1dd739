"""Exit codes, and the one place where errors become messages."""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup

from gpcert.certificates import CertificateTable, Status
from gpcert.cli.terminal import error_console, say_error
from gpcert.errors import GPCertError

__all__ = ["ExitCode", "Commands", "exit_code"]


class ExitCode(IntEnum):
    """What the shell is told."""

    PROVED = 0
    REFUTED = 1
    UNDECIDED = 2
    BAD_INPUT = 3
    DEFECT = 4
    INTERRUPTED = 130


def exit_code(table: CertificateTable) -> ExitCode:
    """0 if all points are proved, 1 if some are refuted, 2 if some are undecided (or not tried)."""
    if table.count(Status.NOT_ROBUST):
        return ExitCode.REFUTED
    proved = table.complete and table.count(Status.ROBUST) == len(table)
    return ExitCode.PROVED if proved else ExitCode.UNDECIDED


class Commands(TyperGroup):
    """Commands whose errors end in one line on stderr and a code that no verdict has."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the options before the command's name."""
        try:
            return super().make_context(*args, **options)
        except Exception as error:
            _mark_usage_error(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            say_error("interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except GPCertError as error:
            say_error(str(error))
            raise typer.Exit(ExitCode.BAD_INPUT) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of a pipe went away
                raise
            say_error(str(error))
            raise typer.Exit(ExitCode.BAD_INPUT) from None
        except Exception as error:
            if _mark_usage_error(error):
                raise
            # Python would end with 1, which here means "refuted"
            error_console().print_exception()
            say_error("this is a defect of gpcert; please report it with the lines above")
            raise typer.Exit(ExitCode.DEFECT) from None


def _mark_usage_error(error: Exception) -> bool:
    """Give a usage error the code of bad input; told by its method, the class moved over time."""
    if not hasattr(error, "format_message"):
        return False
    error.__dict__["exit_code"] = int(ExitCode.BAD_INPUT)
    return True
