"""`gpcert reproduce` and `gpcert report`: the paper's experiments, and results as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from gpcert.cli.options import Jobs, TypedOptions, check_jobs, command
from gpcert.cli.terminal import console, option, say, say_written, table
from gpcert.errors import InputError

STYLES = {"yes": "bold green", "no": "bold red", "unclear": "bold yellow", "not judged": "dim"}


@command(
    "reproduce",
    "Examples:",
    "gpcert reproduce --list",
    "gpcert reproduce safety",
    "gpcert reproduce all --full --data DIR --output results --jobs 2",
    "gpcert reproduce multiclass-scripts --full --data DIR",
    "gpcert reproduce robustness --on own.csv --target column",
    "gpcert reproduce safety --redraw",
    "An interrupted run is resumed by the same command.",
)
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="an experiment (see --list), or all")
    ] = None,
    listed: Annotated[bool, option("list the experiments", "--list")] = False,
    quick: Annotated[bool, option("no download, a minute or two; the default", "--quick")] = False,
    full: Annotated[bool, option("the paper's data sets and sizes", "--full")] = False,
    smallest: Annotated[bool, option("only a test run: no claim is judged", "--smallest")] = False,
    data: Annotated[
        Path | None,
        option("with --full: folder with the data files; by default they come from OpenML"),
    ] = None,
    on: Annotated[Path | None, option("your own CSV file instead of the paper's data sets")] = None,
    target: Annotated[str | None, option("with --on: the column of the labels")] = None,
    output: Annotated[
        Path, option("folder of the results, one folder per experiment in it")
    ] = Path("results"),
    jobs: Jobs = None,
    redraw: Annotated[
        bool, option("recreate figures and findings from saved tables", "--redraw")
    ] = False,
    *,
    typed: TypedOptions,
) -> None:
    """Run an experiment of the paper; write its tables, figures and findings."""
    from gpcert.study.experiments import experiment_named, names, reads_files, variant_names
    from gpcert.study.experiments import redraw as drawn_anew
    from gpcert.study.experiments import reproduce as run

    if listed:
        typed.only(["listed"], "beside --list")
        rows = table("Experiments", ["name"])
        rows.columns[0].justify = "left"
        rows.add_column("what it does", justify="left")
        for each in (*names(), *variant_names()):
            rows.add_row(each, Text(experiment_named(each).title))
        console().print(rows)
        return
    if name is None:
        raise InputError(f"NAME: expected one of {', '.join(names())} or all, got none")
    flags = {"quick": quick, "full": full, "smallest": smallest}
    scales = [scale for scale, chosen in flags.items() if chosen]
    if len(scales) > 1:
        raise InputError(f"expected one of --quick, --full and --smallest, got {scales}")
    if redraw:
        typed.only(["name", "output", "redraw"], "with --redraw, which computes nothing")
    if on is not None and scales:
        raise InputError(f"--on: chooses its own sizes; leave out --{scales[0]}")
    check_jobs(jobs)
    scale, experiments = scales[0] if scales else "quick", names() if name == "all" else (name,)
    # only experiments that read files accept the folder
    readers = [each for each in experiments if reads_files(each, scale)] or experiments
    if output.exists() and not output.is_dir():
        raise InputError(f"--output: expected a folder, got the file {str(output)!r}")
    for each in experiments:
        if redraw:
            result = drawn_anew(each, output)
        else:
            folder = data if each in readers else None
            result = run(
                each, scale=scale, data=folder, on=on, target=target, output=output, n_jobs=jobs
            )
        say(f"{result.title}: {result.scale}, {result.seconds:.1f} s of work", style="bold")
        for finding in result.findings:
            line = Text(f"{finding.agrees:>10} ", style=STYLES[finding.agrees])
            line.append(f"{finding.claim}: {finding.ours}", style="default")
            console().print(line, soft_wrap=True)
        say_written(output / each)


@command(
    "report",
    "Examples:",
    "gpcert report results",
    "gpcert report results --format markdown --output RESULTS.md",
    "Exit code: 0 written; 3 bad input; 4 a defect.",
)
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="output folder of `gpcert reproduce --output DIR`")
    ],
    format: Annotated[
        Literal["html", "markdown"],
        option("html: one self-contained file; markdown: with links"),
    ] = "html",
    output: Annotated[
        Path | None, option("file to write; by default report.html or report.md in DIR")
    ] = None,
) -> None:
    """Write tables, figures and the paper's claims beside our numbers as one page."""
    from gpcert.study.report import write_report

    say_written(write_report(folder, format=format, output=output))
