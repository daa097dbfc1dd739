"""The command `gpcert`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpcert.certificates.io import package_version
from gpcert.cli import (
    accuracy,
    attack,
    boxes,
    certify,
    demo,
    explain,
    radius,
    ranges,
    report,
    reproduce,
    robustness,
    safety,
    worst_case,
)
from gpcert.cli.exits import Commands
from gpcert.cli.streams import flush, prepare_streams
from gpcert.cli.terminal import say

EXAMPLES = """Examples:

gpcert demo

gpcert certify model.npz points.csv --radius 0.1

gpcert range model.npz points.csv --radius 0.1

gpcert radius model.npz points.csv

gpcert explain model.npz points.csv --radius 0.1"""

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.command("certify", epilog=certify.EXAMPLES)(certify.certify)
app.command("range", epilog=ranges.EXAMPLES)(ranges.ranges)
app.command("boxes", epilog=boxes.EXAMPLES)(boxes.boxes)
app.command("radius", epilog=radius.EXAMPLES)(radius.radius)
app.command("attack", epilog=attack.EXAMPLES)(attack.attack)
app.command("safety", epilog=safety.EXAMPLES)(safety.safety)
app.command("robustness", epilog=robustness.EXAMPLES)(robustness.robustness)
app.command("accuracy", epilog=accuracy.EXAMPLES)(accuracy.accuracy)
app.command("worst-case", epilog=worst_case.EXAMPLES)(worst_case.worst_case)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("reproduce", epilog=reproduce.EXAMPLES)(reproduce.reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"gpcert {package_version()}")
        raise typer.Exit


@app.callback(epilog=EXAMPLES)
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="print the version and stop"
        ),
    ] = False,
) -> None:
    """Proved bounds on Gaussian-process predictions over regions of inputs."""
    del version  # its callback has done the work


def main() -> None:
    """Entry point of the command `gpcert`."""
    prepare_streams()
    try:
        app(prog_name="gpcert")
    finally:
        flush()
