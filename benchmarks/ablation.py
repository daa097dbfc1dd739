"""Every optional piece of the engine switched off in turn: boxes and CPU seconds without it.

    python benchmarks/ablation.py [--pieces TEXT ...] [--problems TEXT ...] [--together]

See benchmarks/results/ablation.md. `ablation_pieces` says how a piece is switched off,
`ablation_problems` which problems are asked: none was used to choose anything in the engine. A
search without a piece may take `MOST` times the boxes of one with it, then its gaps are compared.
`--together` switches all chosen pieces off at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from ablation_pieces import PIECES, Piece
from ablation_problems import PROBLEMS, SEED, Outcome, Problem
from joblib import Parallel, delayed
from report import Section, command_line, merge

MOST = 2
"""Times the boxes that a search without a piece may take."""

RUNS, ENOUGH = 3, 0.1
"""Runs of each question, of which the fastest counts; fewer once they took so many CPU seconds."""

FELT = 1.1
"""A piece is felt where its absence costs a tenth."""

PROBLEMS_FELT = 3
"""A piece stays if it is felt on so many problems, or if it gains `FELT` in the geometric mean."""


KEPT = {
    "resting of bounds": "chooses what is computed and bounds nothing; without it committees take "
    "up to twice the time",
    "bins of distances": "saves time where there are many points: 1.99 times at N = 1000",
    "one product with S": "saves time on GPUs: 5.1 million boxes a second against 4.3",
    "first order by itself": "saves time: a third on SVMs of 60 features",
    "orders 0 and 1 of the SE": "the same remainders bound variances and affine functions",
}
"""Pieces that stay although the rule says otherwise, and why."""


class Gain(NamedTuple):
    """What a piece gains on a problem: each a ratio, without over with."""

    piece: str
    problem: str
    boxes: float
    gap: float
    seconds: float
    closed: bool

    @property
    def felt(self) -> bool:
        """Whether boxes or gap say so: seconds of a busy machine do not."""
        return max(self.boxes, self.gap) >= FELT

    @property
    def text(self) -> str:
        """For tables."""
        open_ = "" if self.closed else ", open"
        return f"{self.piece} {self.boxes:.2f} ({self.seconds:.2f}{open_})"


def measured(problem: Problem, question: Callable[[Any], Any], boxes: int) -> Outcome:
    """The fastest of a few runs."""
    best, spent = None, 0.0
    for _ in range(RUNS):
        found = problem.ask(question, boxes)
        spent += found.seconds
        best = found if best is None or found.seconds < best.seconds else best
        if spent > ENOUGH:
            break
    assert best is not None
    return best


def compared(pieces: list[Piece], problem: Problem, question: Any, whole: Outcome) -> Gain:
    """The problem without the pieces; bounds that contradict each other end the run."""
    limit = problem.boxes if problem.total or not whole.closed else MOST * whole.boxes + 20
    with ExitStack() as stack:
        for piece in pieces:
            stack.enter_context(piece.switched_off())
        if any(piece.fresh for piece in pieces):
            question = problem.make()
            problem.ask(question, 1)
        part = measured(problem, question, limit)
    for (low, high), (other_low, other_high) in zip(whole.ends, part.ends, strict=True):
        if low > other_high or other_low > high:
            raise SystemExit(f"{problem.name} without {pieces}: {part.ends} against {whole.ends}")
    name = " and ".join(piece.name for piece in pieces)
    gap = 1.0 if part.closed or part.gap == whole.gap else part.gap / max(whole.gap, 1e-3)
    seconds = part.seconds / whole.seconds
    return Gain(name, problem.name, part.boxes / whole.boxes, gap, seconds, part.closed)


def geometric_mean(ratios: Iterable[float]) -> float:
    """Of positive numbers."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def summary(piece: str, gains: list[Gain]) -> dict[str, Any]:
    """One row: where the piece gains most, and where it costs most."""
    boxes = max(gains, key=lambda g: (g.felt, not g.closed, g.boxes))
    seconds = max(gains, key=lambda g: g.seconds)
    worst = min(gains, key=lambda g: g.seconds)
    felt = sum(g.felt for g in gains)
    mean_boxes = geometric_mean(max(g.boxes, g.gap) for g in gains)
    mean_seconds = geometric_mean(g.seconds for g in gains)
    return {
        "piece": piece,
        "problems": len(gains),
        "felt": felt,
        "mean boxes": mean_boxes,
        "mean seconds": mean_seconds,
        "stays": felt >= PROBLEMS_FELT or max(mean_boxes, mean_seconds) >= FELT,
        "boxes": f"{'> ' if not boxes.closed and boxes.boxes > FELT else ''}{boxes.boxes:.2f}",
        "gap": max(g.gap for g in gains),
        "of": boxes.problem,
        "seconds": seconds.seconds,
        "most_of": seconds.problem,
        "least_seconds": worst.seconds,
        "most_costly": worst.problem,
    }


def answer(name: str, chosen: list[str], together: bool) -> tuple[str, Outcome, list[Gain]]:
    """Its name, the problem with everything, and without each (or all) of the pieces."""
    problem = next(p for p in PROBLEMS if p.name == name)
    question = problem.make()
    problem.ask(question, 1)  # what is computed once per model
    whole = measured(problem, question, problem.boxes)
    words = set(problem.words.split())
    felt = [p for p in PIECES if p.name in chosen and words & set(p.on.split())]
    groups = [felt] if together and felt else [[piece] for piece in felt]
    return name, whole, [compared(group, problem, question, whole) for group in groups]


def write(folder: Path, gains: list[Gain], asked: Section) -> None:
    """Both tables, as far as they are known."""
    table = Section("pieces", "Without a piece over with it, the largest ratio of all problems")
    for name in dict.fromkeys(gain.piece for gain in gains):
        table.rows.append(summary(name, [gain for gain in gains if gain.piece == name]))
    table.notes = [
        f"Problems with seeds from {SEED} on (`ablation_problems.py`), none of them used before.",
        f"Boxes: `>`: not closed with {MOST} times the boxes. Felt: problems with a tenth more "
        "boxes or a gap a tenth wider. Seconds: CPU time of one thread, the best of a few runs; on "
        "a busy machine short ones repeat to a fifth. Least seconds: where the piece costs most.",
        "Means are geometric, over all problems that may feel the piece; of boxes or, where a "
        "search stayed open, of gaps if these grew more.",
        f"The rule: a piece stays if it is felt on {PROBLEMS_FELT} problems or gains a tenth in a "
        "geometric mean; what does not is taken out, with its tests. Kept all the same: "
        + "; ".join(f"{name} ({reason})" for name, reason in KEPT.items()),
    ]
    asked.notes = ["Pieces whose absence costs a tenth: ratio of boxes, in brackets CPU seconds."]
    merge(folder, table, "pieces", "ablation")
    merge(folder, asked, "problems", "ablation")


def _chosen(texts: list[str] | None, everything: tuple[Any, ...]) -> list[Any]:
    return [e for e in everything if not texts or any(text in e.name for text in texts)]


def main() -> None:
    """All problems, the pieces that each may feel."""
    parser = command_line(__doc__)
    parser.add_argument("--pieces", nargs="+", metavar="TEXT")
    parser.add_argument("--problems", nargs="+", metavar="TEXT")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="problems at a time")
    options = parser.parse_args()
    pieces, problems = _chosen(options.pieces, PIECES), _chosen(options.problems, PROBLEMS)
    answers = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
        delayed(answer)(problem.name, [p.name for p in pieces], options.together)
        for problem in reversed(problems)  # the longest first
    )
    gains, asked = [], Section("problems", "With everything, and the pieces felt most")
    for name, whole, found in answers:
        gains += found
        most = sorted(found, key=lambda g: (-g.boxes, -g.seconds))
        asked.add(
            problem=name,
            boxes=whole.boxes,
            gap=whole.gap,
            seconds=whole.seconds,
            without=", ".join(g.text for g in most if max(g.boxes, g.gap, g.seconds) >= FELT),
        )
        write(options.results, gains, asked)  # an interrupted run leaves what it has found


if __name__ == "__main__":
    main()
