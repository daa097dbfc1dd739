"""The checker's exam: random certificates must be accepted, forgeries of them rejected.

    PYTHONPATH=src:. python benchmarks/exam.py --certificates 10000 --forgeries 50000 \\
        --jobs 16 --deadline 480

from the repository's root; it needs gpcert's own dependencies and python-flint, and about
0.2 core-seconds a certificate with five forgeries. Questions are those of
`tests/check/exam_cases.py` (seeds `--seed`, `--seed` + 1, ...). Of each certificate a few
forgeries are drawn (`tests/check/forgeries.py`, `changed.py`), all of which claim what is false. It
ends after so many of both, or at the deadline (seconds), with what has been counted until then,
which is written every ten seconds and at the end into the folder of results (exam), one section
for each seed. A certificate that is not accepted and a forgery that is not rejected are saved in
the folder `--wrong`, and the exit code is then 1.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import multiprocessing
import queue
import shutil
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from report import Section, command_line, merge

from tests.check.changed import broken_files, changed
from tests.check.check_cases import CHECKED, verdict
from tests.check.exam_cases import exam_certificate
from tests.check.forgeries import forgeries, opened, written

OUTCOMES = {0: "accepted", 1: "refuted", 2: "not_covered", 3: "bad_file", None: "failed"}
SLOWEST = 100
"""Seconds until a question or a check is given up, which counts as failed."""

EVERY = 10.0
"""Seconds between two writings of the results."""

GRACE = 20.0
"""Seconds before the deadline from which on no question is begun."""


@dataclass
class Outcome:
    """Of one seed: the code of the certificate (None where nothing was decided) and what it is
    about; forgeries, each with its kind and its code; CPU seconds of question, check and forgeries;
    texts of what went wrong."""

    seed: int
    certificate: int | None = None
    kinds: list[tuple[str, str]] = field(default_factory=list)
    forged: list[tuple[str, int | None]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    undecided: bool = False
    wrong: list[str] = field(default_factory=list)


def scratch(folder: Path) -> Path:
    """The file of this process."""
    return folder / f"{os.getpid()}.cert"


def kinds_of(header: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a certificate is about: (category, name)."""
    question, model = header["question"], header["model"]
    yield "question", question["kind"]
    yield "claim", header["claim"]
    rows = question["rows"] if question["kind"] == "table" else [question]
    for row in rows[:1]:
        conditions = [each["goal"] for each in row.get("conditions", ())]
        goals = row.get("goals") or conditions or [row.get("goal")]
        for name in {goal["quantity"] if goal else "several classes" for goal in goals}:
            yield "quantity", name
        region = row["region"]
        yield "region", region["kind"] + (f" l_{region['norm']}" if "norm" in region else "")
    members = model.get("members", [model])
    for name in sorted(set().union(*(kernel_names(member["kernel"]) for member in members))):
        yield "kernel", name
    for name in sorted({member["likelihood"][0] for member in members}):
        yield "likelihood", name
    yield "decided by", model.get("scheme", "one posterior")


def kernel_names(described: Any) -> set[str]:
    """Of a kernel and its parts."""
    name, config = described
    parts = config.get("kernels", []) + [config[key] for key in ("kernel",) if key in config]
    order = f" {config['nu']:g}" if "nu" in config else ""
    return {name + order}.union(*map(kernel_names, parts))


def examined(seed: int, count: int, folder: Path, wrong: Path) -> Outcome:
    """One certificate and some forgeries of it."""
    rng, outcome = np.random.default_rng(seed), Outcome(seed)
    path, start = scratch(folder), time.process_time()

    def clock() -> None:
        outcome.seconds.append(time.process_time() - start - sum(outcome.seconds))

    certificate = exam_certificate(rng)
    if certificate is None:
        outcome.undecided = True
        return outcome
    certificate.save(path)
    clock()
    content, (header, arrays) = path.read_bytes(), opened(path)
    outcome.kinds = list(kinds_of(header))
    outcome.certificate = code_of(path, outcome)
    if outcome.certificate != CHECKED:
        saved(wrong, f"{seed}-certificate", content, outcome)
    clock()
    for what, forged in drawn(header, arrays, certificate, content, count, rng):
        if isinstance(forged, bytes):
            path.write_bytes(forged)
        else:
            written(path, *forged, rehash=what != "hash")
        code = code_of(path, outcome, "--splits", "300")
        outcome.forged.append((what, code))
        if code in (CHECKED, None):
            saved(wrong, f"{seed}-{what.replace(' ', '-')}", path.read_bytes(), outcome)
    clock()
    return outcome


def drawn(
    header: Any, arrays: Any, certificate: Any, content: bytes, count: int, rng: Any
) -> list[tuple[str, Any]]:
    """So many forgeries of different kinds."""
    kinds: dict[str, list[Any]] = defaultdict(list)
    for what, *forged in forgeries(header, arrays, certificate, rng):
        kinds[what].append(forged)
    for what, *forged in changed(header, arrays, rng):
        kinds[what].append(forged)
    files = list(broken_files(content, rng))
    chosen = files[int(rng.integers(len(files)))]
    kinds[chosen[0]].append(chosen[1])
    names = rng.permutation(sorted(kinds))[:count]
    return [(str(name), kinds[name][int(rng.integers(len(kinds[name])))]) for name in names]


def code_of(path: Path, outcome: Outcome, *options: str) -> int | None:
    """The checker's exit code; None where it raises."""
    try:
        return verdict(path, *options)
    except TimeoutError:
        raise
    except Exception:
        outcome.wrong.append(f"seed {outcome.seed}: {traceback.format_exc(limit=-3)}")
        return None


def saved(folder: Path, name: str, content: bytes, outcome: Outcome) -> None:
    """Keep a file that was answered wrongly."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.cert").write_bytes(content)
    outcome.wrong.append(f"{name}.cert")


def worker(place: int, options: Any, folder: Path, end: Any, answers: Any) -> None:
    """Seeds place, place + jobs, ... until the end."""

    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    count = -(-options.forgeries // options.certificates)
    seed = options.seed + place
    while not end.is_set():
        signal.alarm(SLOWEST)
        try:
            outcome = examined(seed, count, folder, options.wrong)
        except Exception:
            outcome = Outcome(seed, wrong=[f"seed {seed}: {traceback.format_exc(limit=-3)}"])
            if scratch(folder).exists():
                saved(options.wrong, f"{seed}-error", scratch(folder).read_bytes(), outcome)
        signal.alarm(0)
        answers.put(outcome)
        seed += options.jobs
    answers.put(None)


class Count:
    """All outcomes so far."""

    def __init__(self) -> None:
        self.certificates: Counter[Any] = Counter()
        self.forgeries: Counter[Any] = Counter()
        self.kinds: dict[tuple[str, str], Counter[Any]] = defaultdict(Counter)
        self.forged: dict[str, Counter[Any]] = defaultdict(Counter)
        self.seconds: list[list[float]] = []
        self.undecided = 0
        self.wrong: list[str] = []

    def add(self, outcome: Outcome) -> None:
        """One more."""
        self.wrong += outcome.wrong
        self.undecided += outcome.undecided
        for what, code in outcome.forged:
            self.forgeries[code] += 1
            self.forged[what][code] += 1
        if len(outcome.seconds) == 3:
            self.seconds.append(outcome.seconds)
        if outcome.kinds:
            self.certificates[outcome.certificate] += 1
            for kind in set(outcome.kinds):
                self.kinds[kind][outcome.certificate] += 1

    def section(self, options: Any, elapsed: float) -> Section:
        """The tables of the results."""
        section = Section(f"seed {options.seed}", f"Exam of the checker, seeds from {options.seed}")
        both = {"all certificates": self.certificates}
        both |= {
            f"{category}: {name}": self.kinds[category, name]
            for category, name in sorted(self.kinds)
        }
        both |= {"all forgeries": self.forgeries}
        both |= {f"forgery: {what}": self.forged[what] for what in sorted(self.forged)}
        for what, codes in both.items():
            row = {name: codes[code] for code, name in OUTCOMES.items()}
            section.rows.append({"kind": what, "files": codes.total(), **row})
        mean = np.mean(self.seconds or [[0.0] * 3], axis=0)
        most = np.max(self.seconds or [[0.0] * 3], axis=0)
        section.notes = [
            f"{elapsed:.0f} s on {options.jobs} processes; CPU seconds of question and writing, "
            f"check, forgeries: mean {mean[0]:.3f}, {mean[1]:.3f}, {mean[2]:.3f}, most "
            f"{most[0]:.1f}, {most[1]:.1f}, {most[2]:.1f}. {self.undecided} questions were not "
            "decided.",
            "A certificate counts for each kernel, region, ... that it is about. All forgeries "
            "claim what is false, or are no file of the format; none may be accepted.",
            # the last line of a trace, which names no folder
            f"Wrong: {'; '.join(t.strip().splitlines()[-1] for t in self.wrong) or 'none'}.",
        ]
        return section


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 if any file was answered wrongly."""
    parser = command_line(__doc__)
    parser.add_argument("--certificates", type=int, default=10_000)
    parser.add_argument("--forgeries", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--deadline", type=float, default=1e9, help="seconds")
    parser.add_argument("--seed", type=int, default=20_000)
    parser.add_argument("--wrong", type=Path, default=Path("exam-wrong"))
    options = parser.parse_args(arguments)
    start, count = time.monotonic(), Count()
    folder = options.results / "exam-scratch"
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("fork")
    end, answers = context.Event(), context.Queue()
    workers = [
        context.Process(target=worker, args=(k, options, folder, end, answers), daemon=True)
        for k in range(options.jobs)
    ]
    for each in workers:
        each.start()
    running, written_at = options.jobs, start
    while running and (now := time.monotonic()) < start + options.deadline:
        enough = (
            count.certificates.total() >= options.certificates
            and count.forgeries.total() >= options.forgeries
        )
        if enough or now > start + options.deadline - GRACE:
            end.set()
        if now > written_at + EVERY:
            written_at = now
            merge(options.results, count.section(options, now - start), str(options.seed), "exam")
            print(progress(count, now - start), flush=True)
        try:
            outcome = answers.get(timeout=1.0)
        except queue.Empty:
            continue
        if outcome is None:
            running -= 1
        else:
            count.add(outcome)
    for each in workers:
        each.terminate()
    elapsed = time.monotonic() - start
    merge(options.results, count.section(options, elapsed), str(options.seed), "exam")
    shutil.rmtree(folder)
    print(progress(count, elapsed))
    print("wrong:", *(count.wrong or ["none"]), sep="\n  ")
    if running:
        print(
            f"{running} processes did not end before the deadline: their questions are not counted"
        )
    return 1 if count.wrong else 0


def progress(count: Count, elapsed: float) -> str:
    """One line."""

    def told(codes: Counter[Any]) -> str:
        return ", ".join(f"{n} {OUTCOMES[code]}" for code, n in codes.most_common())

    return (
        f"{elapsed:.0f} s: certificates: {told(count.certificates)}; forgeries: "
        f"{told(count.forgeries)}; {len(count.wrong)} wrong"
    )


if __name__ == "__main__":
    sys.exit(main())
