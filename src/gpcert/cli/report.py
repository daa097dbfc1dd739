"""`gpcert report`: results of experiments as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gpcert.cli.options import command
from gpcert.cli.terminal import say_written
from gpcert.report import write_report


@command(
    "report",
    "Examples:",
    "gpcert report results",
    "gpcert report results --format markdown --output RESULTS.md",
    "Exit code: 0 written; 3 bad input; 4 a defect.",
)
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="where `gpcert reproduce --output DIR` wrote")
    ],
    format: Annotated[
        Literal["html", "markdown"],
        typer.Option(help="html: one file that needs no other; markdown: with links"),
    ] = "html",
    output: Annotated[
        Path | None, typer.Option(help="file to write; by default report.html or report.md in DIR")
    ] = None,
) -> None:
    """Write tables, figures and the paper's claims beside our numbers as one page."""
    say_written(write_report(folder, format=format, output=output))
