"""The command `gpcert`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpcert.cli import verbs
from gpcert.cli.boxes import boxes
from gpcert.cli.certificates import page, resume, show, verify
from gpcert.cli.demo import demo
from gpcert.cli.experiments import report, reproduce
from gpcert.cli.explain import explain, explore
from gpcert.cli.probability import expectation, probability, sobol
from gpcert.cli.sets import invariant, level_set, uniform_beta
from gpcert.cli.slopes import difference, fair, lipschitz, monotone
from gpcert.cli.terminal import Commands, flush, option, prepare_streams, say
from gpcert.utils.optional_imports import package_version

EXAMPLES = (
    "Examples:",
    "gpcert demo",
    "gpcert certify model.npz points.csv --radius 0.1",
    "gpcert range model.npz points.csv --radius 0.1",
    "gpcert radius model.npz points.csv",
    "gpcert explain model.npz points.csv --radius 0.1",
)

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
CALCULATE = (verbs.certify, verbs.ranges, boxes, verbs.radius, level_set)
SETS = (invariant, uniform_beta)
RANDOM = (probability, expectation, sobol)
SLOPES = (monotone, lipschitz, difference, fair)
ANALYSE = (verbs.attack, verbs.safety, verbs.robustness, verbs.accuracy, verbs.worst_case, explain)
OTHERS = (
    explore,
    resume,
    verify,
    show,
    page,
    report,
    reproduce,
)
for each in (demo, *CALCULATE, *SETS, *RANDOM, *SLOPES, *ANALYSE, *OTHERS):
    app.command(**each.__dict__["registered"])(each)


def _print_version(requested: bool) -> None:
    if requested:
        say(f"gpcert {package_version()}")
        raise typer.Exit


@app.callback(epilog="\n\n".join(EXAMPLES))
def options(
    version: Annotated[
        bool,
        option("print the version and stop", "--version", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Proved bounds on Gaussian-process predictions over regions of inputs."""
    del version  # handled by its callback


def main() -> None:
    """Entry point of the command `gpcert`."""
    prepare_streams()
    try:
        app(prog_name="gpcert")
    finally:
        flush()
