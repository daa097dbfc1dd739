"""The same searches on one core of a CPU and on a GPU; see benchmarks/results/gpu.md.

    python benchmarks/gpu.py [--backend torch:cuda] [--only TEXT ...] [--compiled] [--tables FOLDER]

Bands and maxima of fitted surrogates over the whole unit cube that take 20 000 boxes and more, one
thread. Both answers are compared: proved ends cross nowhere. A GPU's first search of a process
loads its kernels and is not counted. `--compiled`: the same with `torch:cuda:compiled`, after a
search that compiles. `--tables`: what the profilers of Python and of torch say of one search each.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from noiseless_problems import M52, SE, ackley, hartmann6, rosenbrock, standardised
from optimum import SEEDS, Family, scikit_learn
from report import Section, command_line, merge
from threadpoolctl import threadpool_limits

import gpcert
from gpcert.enclosures.goals import QuantityGoal
from gpcert.numerics.arrays import backend_from_name
from gpcert.quantities import Band, LogExpectedImprovement
from gpcert.search import Budget, Problem, SearchResult, solve
from gpcert.search.problem import Progress


class Case(NamedTuple):
    """A search: of a band (both sides), of the maximum of UCB or of log EI."""

    family: Family
    asked: str
    tol: float = 0.01
    seed: int = SEEDS[0]

    @property
    def name(self) -> str:
        """For the tables."""
        return f"{self.family.function.__name__} d={self.family.dim} {self.family.kernel}"


CASES = (
    Case(Family(hartmann6, 6, SE, 200, 0.0), "band"),
    Case(Family(hartmann6, 6, M52, 200, 0.0), "band"),
    Case(Family(hartmann6, 6, SE, 200, 0.0), "log EI"),
    Case(Family(rosenbrock, 8, SE, 200, 0.0), "UCB", 0.001),
    Case(Family(rosenbrock, 8, M52, 200, 0.0), "UCB", 0.005),
    Case(Family(ackley, 5, M52, 200, 0.0), "UCB"),
)


def goals_of(case: Case) -> list[QuantityGoal]:
    """What is minimised."""
    above = QuantityGoal(Band(0, -1, 2.0))
    if case.asked == "band":
        return [QuantityGoal(Band(0, 1, 2.0)), above]
    if case.asked == "UCB":
        return [above]
    f = case.family
    best = float(standardised(f.function, f.points, f.dim, case.seed)[1].max())
    return [QuantityGoal(LogExpectedImprovement(0, -1, best))]


class Searched(NamedTuple):
    """An answer, the number of batches and seconds."""

    result: SearchResult
    rounds: int
    seconds: float


def searched(case: Case, model: Any, backend: str, seconds: float) -> Searched:
    """One search; what is remembered of the model is there already."""
    times: list[float] = []
    problem = Problem(
        model,
        gpcert.Box(np.zeros(case.family.dim), np.ones(case.family.dim)),
        goals_of(case),
        tol=case.tol,
        budget=Budget(seconds=seconds),
        backend=backend_from_name(backend),
        progress=Progress(report=lambda _: times.append(time.perf_counter())),
    )
    start = time.perf_counter()
    result = solve(problem)
    return Searched(result, len(times), time.perf_counter() - start)


def agree(one: SearchResult, other: SearchResult) -> bool:
    """No proved end of one lies beyond what the other attains."""
    pairs = zip(one.goals, other.goals, strict=True)
    return all(a.lower <= b.upper and b.lower <= a.upper for a, b in pairs)


def launches(case: Case, model: Any, backend: str) -> tuple[dict[str, int], str]:
    """Kernels, copies and waits of a search, and torch's table of its operations."""
    import torch

    kinds = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=kinds) as profile:
        searched(case, model, backend, 60.0)
    averages = profile.key_averages()
    named = {"launches": "LaunchKernel", "copies": "MemcpyAsync", "waits": "Synchronize"}
    counts = {
        word: sum(each.count for each in averages if part in each.key and "cu" in each.key[:2])
        for word, part in named.items()
    }
    return counts, averages.table(sort_by="self_cpu_time_total", row_limit=45)


def profiled(case: Case, model: Any, backend: str) -> str:
    """Python's table of a search, by functions."""
    profile, text = cProfile.Profile(), io.StringIO()
    profile.runcall(searched, case, model, backend, 60.0)
    stats = pstats.Stats(profile, stream=text).strip_dirs()
    stats.sort_stats("tottime").print_stats(50)
    stats.sort_stats("cumtime").print_stats(80)
    return text.getvalue()


def compared(case: Case, options: Any) -> dict[str, Any]:
    """A row of the table."""
    model = gpcert.as_posterior(scikit_learn(case.family, case.seed))
    alone = searched(case, model, "numpy", options.seconds)
    searched(case, model, options.backend, options.seconds)
    runs = [searched(case, model, options.backend, options.seconds) for _ in range(3)]
    device = min(runs, key=lambda each: each.seconds)
    counts, table = launches(case, model, options.backend)
    row: dict[str, Any] = {"problem": case.name, "asked": case.asked, "tol": case.tol}
    row |= {"boxes": alone.result.boxes, "rounds": alone.rounds, "seconds": alone.seconds}
    row |= {"its boxes": device.result.boxes, "its rounds": device.rounds}
    row |= {"its seconds": device.seconds, "times as fast": alone.seconds / device.seconds}
    row |= counts | {"agree": agree(alone.result, device.result)}
    row["ended"] = f"{alone.result.reason.name}, {device.result.reason.name}"
    if options.compiled:
        name = options.backend + ":compiled"
        first = searched(case, model, name, options.seconds)
        again = min(searched(case, model, name, options.seconds).seconds for _ in range(2))
        row |= {"compiled": again, "first compiled": first.seconds}
    if options.tables is not None:
        text = table + "\n" + profiled(case, model, options.backend)
        name = "".join(c if c.isalnum() else "_" for c in f"{case.name} {case.asked}")
        (options.tables / f"{name}.txt").write_text(text)
    return row


def main() -> None:
    """All cases, or those chosen."""
    parser = command_line(__doc__)
    parser.add_argument("--backend", default="torch:cuda")
    parser.add_argument("--only", nargs="+", metavar="TEXT")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--tables", type=Path, help="folder of the profilers' tables")
    options = parser.parse_args()
    section = Section("searches", "Searches on one core and on a GPU")
    with threadpool_limits(1):
        for case in CASES:
            words = f"{case.name} {case.asked}"
            if options.only and not any(text in words for text in options.only):
                continue
            section.add(**compared(case, options))
            section.notes = [
                "Both on the same machine, the model's set-up on the CPU left out; wall-clock "
                "seconds, on the GPU the least of three after a first one. Launches, copies and "
                "waits are those of one search."
            ]
            merge(options.results, section, "searches", "gpu")


if __name__ == "__main__":
    main()
