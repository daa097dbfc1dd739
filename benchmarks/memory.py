"""Memory of one search against `Budget.memory`: `python benchmarks/memory.py [BOXES]` bounds so
many boxes (10^7 by default) and prints the largest resident memory beside the budget.

Of 7.7 million boxes (3.9 million open, 182 s of CPU) the peak was 0.91 GB above that of the idle
process; the search counts 1.2 GB for them. The goal is one that closes no box, and costs next to
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
        """Minus the widths."""
        widths = evaluation.cells.widths
        return GoalBound(-widths.sum(axis=1), np.zeros_like(widths), widths)

    def ceiling(self, evaluation: Any) -> np.ndarray:
        """One."""
        return np.ones(len(evaluation.cells))

    def function(self, model: Any) -> Any:
        """One."""
        return lambda X: (np.ones(len(X)), np.zeros_like(X))


def peak() -> float:
    """The largest resident memory of this process so far."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(boxes: int) -> None:
    """Search until the budget of boxes or of memory is used up."""
    model = gpcert.Posterior(SquaredExponential(0.3), np.zeros((1, DIM)), [1.0])
    cube = gpcert.Box([0.0] * DIM, [1.0] * DIM)

    def run(budget: Budget) -> Any:
        return solve(Problem(model, cube, [Open()], tol=0.0, budget=budget))

    run(Budget(boxes=50_000))
    before = peak()
    for memory in (0.2e9, 4.0e9):
        start = time.perf_counter()
        found = run(Budget(seconds=200.0, boxes=boxes, memory=memory))
        seconds = time.perf_counter() - start
        print(
            f"budget {memory / 1e9:.1f} GB: {found.boxes} boxes in {seconds:.0f} s, "
            f"{found.reason.name}; {(peak() - before) / 1e9:.2f} GB above {before / 1e9:.2f} GB"
        )


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7)
