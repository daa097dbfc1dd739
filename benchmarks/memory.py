"""Memory of one search against `Budget.memory`: `python benchmarks/memory.py --boxes 1e7` bounds so
many boxes and writes the largest resident memory beside the budget.

The goal is one that closes no box, and costs next to
nothing: what is measured is the search. Its process is one of its own, so that the peak is the
search's.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from report import Section, command_line, merge

import gpcert
from gpcert.enclosures.goals import GoalBound
from gpcert.kernels import SquaredExponential
from gpcert.search import Budget, Problem, solve

DIM = 4


@dataclass(frozen=True, eq=False)
class Open:
    """A goal of which every bound is below every value."""

    known = (-1e9, 1e9)
    needs_variance = False

    def most_cells(self, model: Any, f: int) -> None:
        """Any number."""

    def bound(self, evaluation: Any, target: float | None) -> GoalBound:
        """One less the widths: nothing is closed, and rounding alone keeps nothing open."""
        widths = evaluation.cells.widths
        return GoalBound(1.0 - widths.sum(axis=1), np.zeros_like(widths), widths)

    def ceiling(self, evaluation: Any) -> np.ndarray:
        """One."""
        return np.ones(len(evaluation.cells))

    def function(self, model: Any) -> Any:
        """One."""
        return lambda X: (np.ones(len(X)), np.zeros_like(X))


def peak() -> float:
    """The largest resident memory of this process so far."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: list[str] | None = None) -> None:
    """Search until the budget of boxes or of memory is used up."""
    parser = command_line(__doc__)
    parser.add_argument("--boxes", type=float, default=1e7)
    parser.add_argument("--seconds", type=float, default=1500.0, help="of each search")
    options = parser.parse_args(arguments)
    section = Section("memory", "Memory of a search that closes no box, four inputs")
    model = gpcert.Posterior(SquaredExponential(0.3), np.zeros((1, DIM)), [1.0])
    cube = gpcert.Box([0.0] * DIM, [1.0] * DIM)

    def run(budget: Budget) -> Any:
        return solve(Problem(model, cube, [Open()], tol=0.0, budget=budget))

    run(Budget(boxes=50_000))
    before = peak()
    for memory in (0.2e9, 4.0e9):
        start = time.process_time()
        result = run(Budget(options.seconds, int(options.boxes), memory))
        section.add(
            budget_GB=memory / 1e9,
            boxes=result.boxes,
            ended_by=result.reason.name,
            peak_GB_above_idle=(peak() - before) / 1e9,
            within=peak() - before <= memory,
            cpu_s=time.process_time() - start,
        )
    section.notes.append(f"Resident memory of the process before: {before / 1e9:.2f} GB.")
    merge(options.results, section, "memory", "memory")


if __name__ == "__main__":
    sys.exit(main())
