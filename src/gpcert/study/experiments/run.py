"""`reproduce`: run an experiment piece by piece, save what is finished, judge and draw it."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import gpcert
from gpcert.api.running import numbered_results, progress_line
from gpcert.errors import InputError
from gpcert.study.experiments.base import (
    SOURCES,
    Experiment,
    Piece,
    Row,
    Sources,
    by_table,
    experiment_named,
)
from gpcert.study.experiments.pictures import save
from gpcert.study.experiments.results import OWN, Environment, ExperimentResult, write_whole
from gpcert.utils.archive import from_json, to_json
from gpcert.utils.optional_imports import optional, package_version

FORMAT = "gpcert-part-1"
LEFT_OUT = ("cli/", "plots/", "study/report/", "testing/")
"""Packages on which no number of an experiment depends."""


@cache
def code_digest() -> str:
    """SHA-256 of the package's source: a part computed by other code is not used again.

    >>> len(code_digest())
    64
    """
    root = Path(gpcert.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if not place.startswith(LEFT_OUT):
            digest.update(f"{place} ".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def piece_key(experiment: str, settings: Any, piece: Piece, data: Mapping[str, str]) -> str:
    """What the rows of a piece depend on: settings, arguments, data, version and code."""
    content = {
        "experiment": experiment,
        "settings": asdict(settings),
        "piece": piece.name,
        "arguments": dict(piece.arguments),
        "data": {name: data[name] for name in piece.data},
        "gpcert": package_version(),
        "code": code_digest(),
    }
    return hashlib.sha256(to_json(content).encode()).hexdigest()


@dataclass(frozen=True)
class Part:
    """The rows of one finished piece, and the CPU seconds that it took."""

    rows: dict[str, list[Row]]
    seconds: float

    @staticmethod
    def read(path: Path, key: str) -> Part | None:
        """The finished piece; None if there is none, or a file that is not wholly what it should
        be: then it is computed again."""
        try:
            content = from_json(path.read_text(encoding="utf-8"))
            if (content["format"], content["key"]) != (FORMAT, key):
                return None
            return Part(dict(content["rows"]), float(content["seconds"]))
        except (InputError, FileNotFoundError, KeyError, TypeError, ValueError):
            return None

    def write(self, path: Path, key: str) -> None:
        """Save a piece; a kill leaves the whole file or none."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"format": FORMAT, "key": key, "seconds": self.seconds, "rows": self.rows}
        write_whole(path, to_json(content))


def environment(data: Mapping[str, str], random_state: int) -> Environment:
    """Of this process; `data` are digests by name.

    >>> environment({}, 0).random_state
    0
    """
    return Environment(
        gpcert=f"{package_version()} (code {code_digest()[:12]})",
        python=platform.python_version(),
        numpy=version("numpy"),
        scipy=version("scipy"),
        sklearn=version("scikit-learn"),
        machine=f"{platform.system()} {platform.machine()}",
        cpu=cpu_model(),
        cores=os.cpu_count() or 1,
        data=dict(data),
        random_state=random_state,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


def cpu_model() -> str:
    """The processor by its name, where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def reproduce(
    name: str,
    *,
    scale: str = "quick",
    data: str | Path | None = None,
    on: str | Path | None = None,
    target: str | None = None,
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
    name : one of `gpcert.study.experiments.names()`, or of `variant_names()`.
    scale : "quick" (no download, a minute or two), "full" (the paper's sizes) or "smallest"
        (for tests: says nothing about the claims).
    data : a folder with the data files, see `gpcert.study.datasets`; without it those that are
        not generated come from OpenML. Where no file is read (`reads_files`) it must be left out.
    on, target : a CSV file of your own and the column of its labels, two classes, in the place of
        the paper's data sets (robustness, safety, interpretability-global, full-image); features
        are standardised, and a quarter of the rows is kept for testing.
    output : folder of the results; each experiment has one of its own in it.
    n_jobs : processes; by default what `joblib.parallel_config` says, which also chooses where
        the pieces run: here, in processes, or on a Dask or Ray cluster if its backend is set.
    progress : show what is done and the time left; by default only on a terminal.
    """
    experiment = experiment_named(name)
    optional("matplotlib", "reproduce")  # found out before the work
    scale, sources = _sources(experiment, scale, data, on, target)
    settings = experiment.settings_of(scale)
    place = Path(output) / experiment.name
    pieces = experiment.work(scale)
    used = sorted({each for piece in pieces for each in piece.data})
    digests = {each: sources.digest(each) for each in used}
    keys = [piece_key(experiment.name, settings, piece, digests) for piece in pieces]
    # a file's name has the piece's key in it, so that rows of other settings, data or code are
    # never taken for these, and quick and full runs share a folder
    pairs = zip(pieces, keys, strict=True)
    paths = [place / "parts" / f"{piece.name}.{key[:16]}.json" for piece, key in pairs]
    parts = dict(enumerate(map(Part.read, paths, keys)))
    missing = [k for k, part in parts.items() if part is None]
    arguments = [(experiment.name, scale, dict(pieces[k].arguments), sources) for k in missing]
    total, start, spent = sum(pieces[k].cost for k in missing), time.perf_counter(), 0.0

    def told(left: str) -> str:
        done = sum(part is not None for part in parts.values())
        return f"{experiment.name}: {done} of {len(pieces)} pieces, time left: {left}"

    with progress_line(sys.stderr.isatty() if progress is None else progress) as line:
        line.show(told("not known yet"))  # the first piece may take minutes
        for number, part in numbered_results(_compute, arguments, n_jobs, at_once=True):
            k = missing[number]
            # this process writes the files: workers on other machines need no common disk
            part.write(paths[k], keys[k])
            parts[k], spent = part, spent + pieces[k].cost
            line.show(told(f"{(time.perf_counter() - start) * (total / spent - 1.0):.0f} s"))
    finished = [part for part in parts.values() if part is not None]
    tables = (table for part in finished for table in part.rows.items())
    rows = ((table, row) for table, records in tables for row in records)
    result = ExperimentResult(
        experiment=experiment.name,
        title=experiment.title,
        scale=scale,
        command=_command(name, scale, data, target),
        settings=from_json(to_json(asdict(settings))),
        environment=environment(digests, getattr(settings, "random_state", 0)),
        seconds=sum(part.seconds for part in finished),
        tables=experiment.tables(scale, rows),
    )
    return _written(experiment, result, place)


def reads_files(name: str, scale: str = "quick") -> bool:
    """Whether an experiment at this scale reads data from files, of a folder or of OpenML.

    >>> reads_files("safety", "quick"), reads_files("safety", "full")
    (False, True)
    """
    used = (each for piece in experiment_named(name).work(scale) for each in piece.data)
    return any(not SOURCES[each].offline for each in used)


def _command(name: str, scale: str, data: Any, target: str | None) -> str:
    """What was asked, without the paths of this machine."""
    if scale == OWN:
        return f"gpcert reproduce {name} --on TABLE --target {target}"
    return f"gpcert reproduce {name} --{scale}" + ("" if data is None else " --data DIR")


def _sources(
    experiment: Experiment, scale: str, data: Any, on: Any, target: str | None
) -> tuple[str, Sources]:
    """The scale and where the data come from: the paper's, or a table of the user's own."""
    if on is None:
        if target is not None or scale == OWN:
            raise InputError("on: expected a CSV file beside target, got none")
        _check_folder(experiment, scale, data)
        return scale, Sources(None if data is None else str(data))
    if data is not None or target is None:
        raise InputError("on: expected target, the column of the labels, beside it, and no data")
    if not Path(on).is_file():
        raise InputError(f"on: expected a CSV file, got {str(on)!r}, which is none")
    return OWN, Sources(table=str(on), target=target)


def _check_folder(experiment: Experiment, scale: str, data: str | Path | None) -> None:
    """That the folder of the data is one, and that it is looked into."""
    if data is None:
        return
    if not Path(data).is_dir():
        what = "the file" if Path(data).exists() else "none of the name"
        raise InputError(f"data: expected a folder with the data files, got {what} {str(data)!r}")
    if not reads_files(experiment.name, scale):
        raise InputError(
            f"data: has no effect, as {experiment.name!r} at the scale {scale!r} reads no files "
            "(its data are generated, or come with scikit-learn); leave it out, or ask for the "
            "scale 'full' if that reads some"
        )


def is_current(result: ExperimentResult) -> bool:
    """Whether a result was computed by this version with its present settings: only then do the
    present rules apply to its tables."""
    settings = experiment_named(result.experiment).settings_of(result.scale)
    same_version = result.environment.gpcert.split()[0] == package_version()
    return same_version and from_json(to_json(asdict(settings))) == dict(result.settings)


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


def _compute(name: str, scale: str, arguments: Mapping[str, Any], sources: Sources) -> Part:
    """One piece, wherever it runs: by its experiment's name, as functions need not travel.

    One BLAS thread: pieces side by side do not wait for each other, and its CPU time is what an
    idle machine would need, whatever else runs on this one.
    """
    experiment = experiment_named(name)
    start = time.thread_time()
    with threadpool_limits(limits=1), _ended_by_ctrl_c():
        rows = by_table(experiment.compute(experiment.settings_of(scale), arguments, sources))
    plain = from_json(to_json(rows))  # as a resumed run reads them
    return Part(plain, time.thread_time() - start)


class _Stopped(BaseException):
    """Ctrl-C, which no search takes for its own."""


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends the piece as a whole: a search that caught it would return the bounds so far, and
    the rows that follow from them would be saved as those of a finished piece.

    Where somebody else listens to it (or, as in workers, nobody), that stays so.
    """
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def stop(*_: Any) -> None:
        raise _Stopped

    try:
        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    except _Stopped:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have come just before
        raise KeyboardInterrupt from None


def _written(experiment: Experiment, result: ExperimentResult, place: Path) -> ExperimentResult:
    judged = experiment.judged(result)
    judged.write(place)
    tables = {table.name: table for table in judged.tables}
    save(experiment.draw(tables), place / experiment.figure.name)
    return judged
