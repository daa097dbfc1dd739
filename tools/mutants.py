"""Do the tests notice? Seeds wrong lines into the bound code, one at a time, and runs tests.

    python tools/mutants.py [--jobs 2] [--only NAME ...] [--tenth [SEED]] [--list]

The mutants stand in mutants.toml. Each runs in its own temporary copy of src, tests and
pyproject.toml: the tests of `make test` first, and if it survives them those of `make test-slow`.
Exit code 1 if a mutant survives both, if it cannot be applied (its old text is not found exactly
once), if it does not run, or if the tests fail without any mutant.

`--tenth` is for CI: a tenth of the mutants that are not marked slow. Which tenth follows from the
sources, so that it repeats, and is another after every change of them. One that survives the quick
tests has only `CI_SECONDS` of the slow ones: what they have not noticed by then is left undecided.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "gpcert"
TABLE = ROOT / "tools" / "mutants.toml"
SECONDS = 300
"""Limit of one quick run; a mutant that makes a search endless is noticed too."""

LONG_SECONDS = 3600
"""Limit of a thorough run, and of the run without a mutant; to reach it proves no defect."""

CI_SECONDS = 200
"""Limit of a thorough run in CI."""

NOTHING_SELECTED = 5
"""pytest's exit code where all tests named are slow ones."""

NO_SHRINKING = """
from hypothesis import Phase as _Phase

settings.register_profile(
    "mutants", settings.get_profile("ci"), phases=[_Phase.explicit, _Phase.generate]
)
settings.load_profile("mutants")
"""
"""Appended to the copied conftest: one failing example is enough."""


@dataclass(frozen=True)
class Mutant:
    """Replace `old` (found exactly once in `file`, under src/gpcert) by `new`; run `tests`."""

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]
    slow: bool = False


def read_mutants() -> list[Mutant]:
    """The table."""
    files = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return [
        Mutant(name, file, **{**fields, "tests": tuple(fields["tests"])})
        for file, mutants in files.items()
        for name, fields in mutants.items()
    ]


def seed_of_sources() -> str:
    """A seed that follows from the sources and the table."""
    digest = hashlib.sha256(TABLE.read_bytes())
    for path in sorted(SOURCES.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def seeded_tenth(mutants: list[Mutant], seed: str) -> list[Mutant]:
    """A tenth of the mutants that quick tests notice."""
    quick = [m for m in mutants if not m.slow]
    return random.Random(seed).sample(quick, -(-len(quick) // 10))


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: `verdict` is killed, undecided (in CI alone), SURVIVED, or why it
    could not be tried."""

    mutant: Mutant
    verdict: str
    by: str
    seconds: float

    @property
    def good(self) -> bool:
        """Whether a test noticed, or may notice where there is more time."""
        return self.verdict in {"killed", "undecided"}


def copy_repository(target: Path) -> None:
    """Copy what the tests need."""
    skip = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, target / name, ignore=skip)
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, target)
    with (target / "tests" / "conftest.py").open("a", encoding="utf-8") as stream:
        stream.write(NO_SHRINKING)


def run_tests(
    copy: Path, tests: tuple[str, ...], thorough: bool = False, limit: int = SECONDS
) -> tuple[int, str]:
    """Exit code of pytest (-1 for a timeout) and its output."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    effort = {"GPCERT_THOROUGH": str(int(thorough))}
    environment = os.environ | threads | effort | {"PYTHONPATH": str(copy / "src")}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    command += [] if thorough else ["-m", "not slow"]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stdout + done.stderr


def try_mutant(mutant: Mutant, ci: bool = False) -> Outcome:
    """Apply a mutant to a fresh copy and run its tests."""
    start = time.perf_counter()

    def outcome(verdict: str, by: str) -> Outcome:
        return Outcome(mutant, verdict, by, time.perf_counter() - start)

    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        copy_repository(copy)
        path = copy / "src" / "gpcert" / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return outcome("NOT FOUND", f"{text.count(mutant.old)} times in {mutant.file}")
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        code, output = run_tests(copy, mutant.tests)
        thorough = code in {0, NOTHING_SELECTED}
        if thorough:
            limit = CI_SECONDS if ci else LONG_SECONDS
            code, output = run_tests(copy, mutant.tests, thorough=True, limit=limit)
    if code == -1 and not thorough:
        return outcome("killed", "timeout")
    if code in {0, -1}:
        return outcome("undecided" if code and ci else "SURVIVED", " ".join(mutant.tests))
    # a file that cannot be collected has no "::"; no test noticed anything there
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+::\S+)", output, flags=re.MULTILINE)
    if code != 1 or not failed:
        errors = re.findall(r"^E +(.+)", output, flags=re.MULTILINE)
        return outcome("DID NOT RUN", errors[-1] if errors else output[-200:])
    if thorough and (reason := baseline((failed[0].partition("[")[0],), thorough=True)):
        return outcome("FAILS WITHOUT IT", reason[-200:])
    return outcome("killed", failed[0].removeprefix("tests/") + " (thorough)" * thorough)


def baseline(tests: tuple[str, ...], thorough: bool = False) -> str | None:
    """The tests must pass without a mutant, in the copy itself; else the reason."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        copy_repository(copy)
        where = subprocess.run(
            [sys.executable, "-c", "import gpcert; print(gpcert.__file__)"],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy / "src")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        if not Path(where.strip()).resolve().is_relative_to(copy.resolve()):
            return f"the copy is not what is imported: {where.strip()}"
        code, output = run_tests(copy, tests, thorough, LONG_SECONDS)
    return None if code == 0 else f"the tests fail without a mutant:\n{output[-3000:]}"


def report(outcomes: list[Outcome], console: Console) -> None:
    """One row a mutant."""
    table = Table("mutant", "file", "verdict", "by", "s", title="Seeded mutants")
    for o in outcomes:
        style = "" if o.good else "bold red"
        table.add_row(
            o.mutant.name, o.mutant.file, o.verdict, o.by, f"{o.seconds:.0f}", style=style
        )
    console.print(table)
    for o in outcomes:
        if not o.good:
            console.print(f"{o.mutant.name}: {o.mutant.why}", style="red")
    killed = sum(o.verdict == "killed" for o in outcomes)
    console.print(f"{killed} of {len(outcomes)} killed")


def main() -> int:
    """Read the arguments, run, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tried at the same time")
    parser.add_argument("--only", nargs="+", help="names of mutants")
    parser.add_argument("--tenth", nargs="?", const="", metavar="SEED", help="a tenth, for CI")
    parser.add_argument("--list", action="store_true", help="list the mutants and stop")
    parser.add_argument("--no-baseline", action="store_true", help="trust that the tests pass")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    mutants = read_mutants()
    unknown = set(arguments.only or ()) - {m.name for m in mutants}
    if unknown:
        console.print(f"no such mutant: {', '.join(sorted(unknown))}")
        return 1
    chosen = [m for m in mutants if not arguments.only or m.name in arguments.only]
    if arguments.tenth is not None:
        seed = arguments.tenth or seed_of_sources()
        chosen = seeded_tenth(chosen, seed)
        console.print(f"{len(chosen)} of {len(mutants)} mutants; again: --tenth {seed}")
    if arguments.list:
        for mutant in chosen:
            console.print(f"{mutant.name}: {mutant.why} ({mutant.file})")
        return 0
    # options such as -k only narrow a run
    files = {test for m in chosen for test in m.tests if test.startswith("tests/")}
    if not arguments.no_baseline and (reason := baseline(tuple(sorted(files)))):
        console.print(reason, style="red", markup=False)
        return 1
    with ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        outcomes = []
        for outcome in pool.map(partial(try_mutant, ci=arguments.tenth is not None), chosen):
            outcomes.append(outcome)
            row = f"{outcome.mutant.name}: {outcome.verdict} ({outcome.by})"
            console.print(row, style="" if outcome.good else "red", markup=False, highlight=False)
    report(outcomes, console)
    return 0 if all(o.good for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
