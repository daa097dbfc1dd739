"""`reproduce`: run an experiment piece by piece, save what is finished, judge and draw it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from gpcert.api.running import numbered_results, progress_line
from gpcert.errors import InputError
from gpcert.experiments.base import Experiment, Piece, Rows
from gpcert.experiments.catalogue import experiment_named
from gpcert.experiments.environment import environment
from gpcert.experiments.parts import Part, Parts, piece_key
from gpcert.experiments.pictures import save
from gpcert.experiments.results import ExperimentResult
from gpcert.experiments.sources import Sources
from gpcert.extras import optional
from gpcert.json_text import from_json, to_json


def reproduce(
    name: str,
    *,
    scale: str = "quick",
    data: str | Path | None = None,
    output: str | Path = "results",
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> ExperimentResult:
    """Run one experiment of the paper and write its tables, figures and findings.

    The result lies in `output/name`: `result.json`, a CSV file per table, SVG and PNG files of the
    figures, and `parts/` with the pieces that are finished. A run that was interrupted or killed
    goes on with what is missing when it is called again; parts of other settings, data or code
    are not used.

    Parameters
    ----------
    name : one of `gpcert.experiments.names()`.
    scale : "quick" (no download, a minute or two), "full" (the paper's sizes) or "smallest"
        (for tests: says nothing about the claims).
    data : a folder with the data files, see `gpcert.datasets`; without it those that are
        not generated come from OpenML.
    output : folder of the results; each experiment has one of its own in it.
    n_jobs : processes; by default what `joblib.parallel_config` says, which also chooses where
        the pieces run: here, in processes, or on a Dask or Ray cluster if its backend is set.
    progress : show what is done and the time left; by default only on a terminal.
    """
    experiment = experiment_named(name)
    optional("matplotlib", "reproduce")  # found out before the work
    settings = experiment.settings_of(scale)
    sources = Sources(None if data is None else str(data))
    place = Path(output) / experiment.name
    pieces = experiment.work(scale)
    names = sorted({each for piece in pieces for each in piece.data})
    digests = {name: sources.digest(name) for name in names}
    keys = [piece_key(experiment.name, settings, piece, digests) for piece in pieces]
    found = _finished(
        experiment, scale, sources, (pieces, keys, Parts(place / "parts")), (n_jobs, progress)
    )
    result = ExperimentResult(
        experiment=experiment.name,
        title=experiment.title,
        scale=scale,
        command=command(experiment.name, scale, data),
        settings=from_json(to_json(asdict(settings))),
        environment=environment(digests, experiment.random_state),
        seconds=sum(part.seconds for part in found),
        tables=experiment.tables(scale, _joined(found)),
    )
    return _written(experiment, result, place)


def redraw(name: str, output: str | Path = "results") -> ExperimentResult:
    """Findings and figures made anew from the saved tables; nothing is computed again."""
    experiment = experiment_named(name)
    place = Path(output) / experiment.name
    if not (place / "result.json").is_file():
        raise InputError(
            f"output: expected result.json of an earlier run in {str(place)!r}, got none; "
            "run the experiment first"
        )
    return _written(experiment, ExperimentResult.read(place), place)


def command(name: str, scale: str, data: str | Path | None) -> str:
    """The line that makes a result; the folder of the data is nobody's business.

    >>> command("safety", "full", "/home/me/data")
    'gpcert reproduce safety --full --data DIR'
    """
    return f"gpcert reproduce {name} --{scale}" + ("" if data is None else " --data DIR")


def _finished(
    experiment: Experiment,
    scale: str,
    sources: Sources,
    work: tuple[Sequence[Piece], Sequence[str], Parts],
    how: tuple[int | None, bool | None],
) -> list[Part]:
    """The parts of all pieces: those on disk, and the others computed and saved one by one.

    This process writes the files, so that workers on other machines need no common disk.
    """
    pieces, keys, parts = work
    n_jobs, progress = how
    found = {k: parts.read(pieces[k].name, keys[k]) for k in range(len(pieces))}
    missing = [k for k, part in found.items() if part is None]
    arguments = [(experiment.name, scale, dict(pieces[k].arguments), sources) for k in missing]
    total, start, spent = sum(pieces[k].cost for k in missing), time.perf_counter(), 0.0

    def told(left: str) -> str:
        done = sum(part is not None for part in found.values())
        return f"{experiment.name}: {done} of {len(pieces)} pieces, time left: {left}"

    with progress_line(sys.stderr.isatty() if progress is None else progress) as line:
        line.show(told("not known yet"))  # the first piece may take minutes
        for number, part in numbered_results(_compute, arguments, n_jobs, at_once=True):
            k = missing[number]
            parts.write(pieces[k].name, keys[k], part)
            found[k], spent = part, spent + pieces[k].cost
            line.show(told(f"{(time.perf_counter() - start) * (total / spent - 1.0):.0f} s"))
    return [part for part in found.values() if part is not None]


def _compute(name: str, scale: str, arguments: Mapping[str, Any], sources: Sources) -> Part:
    """One piece, wherever it runs: by its experiment's name, as functions need not travel.

    One BLAS thread: pieces side by side do not wait for each other, and its CPU time is what an
    idle machine would need, whatever else runs on this one.
    """
    experiment = experiment_named(name)
    start = time.thread_time()
    with threadpool_limits(limits=1):
        rows = experiment.compute(experiment.settings_of(scale), arguments, sources)
    plain = from_json(to_json(rows))  # as a resumed run reads them
    return Part(plain, time.thread_time() - start)


def _joined(parts: Sequence[Part]) -> Rows:
    """The rows of all pieces by table, in the order of the pieces."""
    found: Rows = {}
    for part in parts:
        for table, rows in part.rows.items():
            found.setdefault(table, []).extend(rows)
    return found


def _written(experiment: Experiment, result: ExperimentResult, place: Path) -> ExperimentResult:
    judged = experiment.judged(result)
    judged.write(place)
    tables = {table.name: table for table in judged.tables}
    for figure, draw in experiment.figures.items():
        save(draw(tables), place / figure.name)
    return judged
