"""How a call runs: the engine that bounds its quantities (Taylor enclosures, the paper's intervals,
or both), what it says meanwhile, and independent pieces of it in several processes, each result
as soon as it is there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.enclosures.goals import Goal, QuantityGoal
from gpcert.enclosures.local_posterior import by_residuals
from gpcert.errors import InputError
from gpcert.model.class_layout import searched
from gpcert.model.committee import Model
from gpcert.model.unit_form import UnitForm
from gpcert.paper.lines import check_lines
from gpcert.paper.method import PaperMethod
from gpcert.quantities import ClassSums, OutputQuantity, Quantity, Response
from gpcert.search import SearchState, StopReason
from gpcert.search.checkpoints import JOURNAL
from gpcert.utils.option_names import MethodName, VarianceBound
from gpcert.utils.processes import Common, OutOfTime, Pool, effective_jobs, until

MAX_FEATURES = 3
"""Up to so many features, and from two on, the paper's closed forms pay for variances of kernels
without a derivative: in one, many splits cost less, and in more they are too loose."""


@dataclass(frozen=True)
class Method:
    """`name` is "taylor" (default), "paper" or "both".

    `variance_bound` says how the paper's variance programs are bounded, by "solver" (the paper's;
    default of "paper") or "analytic", in closed form (default of "both", where a solver's seconds
    per box would seldom pay).

    >>> Method("paper").variance_bound, Method("both").variance_bound
    ('solver', 'analytic')
    """

    name: MethodName = "taylor"
    variance_bound: VarianceBound | None = None

    def __post_init__(self) -> None:
        name, bound = self.name, self.variance_bound
        if not isinstance(name, str) or name not in {"taylor", "paper", "both"}:
            raise InputError(f"method: expected 'taylor', 'paper' or 'both', got {name!r}")
        if not isinstance(bound, str | None) or bound not in {None, "solver", "analytic"}:
            raise InputError(f"variance_bound: expected 'solver' or 'analytic', got {bound!r}")
        if name == "taylor" and bound is not None:
            raise InputError(
                f"variance_bound: {bound!r} is a choice of method='paper' or 'both'; "
                "with method='taylor' leave it out"
            )
        default = {"taylor": None, "paper": "solver", "both": "analytic"}[name]
        object.__setattr__(self, "variance_bound", bound or default)

    def goals(
        self, quantities: Sequence[Quantity], random_state: int | None, model: Model
    ) -> list[Goal]:
        """The goals of one search, bounded by this method; they share the paper's intervals.

        "taylor" takes the paper's closed forms as well where they pay: see `_by_rough_variance` and
        `closed_forms_pay`.
        """
        mapped = any(member.features is not None for member in model.members)
        if self.variance_bound is None:
            rough = [not mapped and _by_rough_variance(each, model) for each in quantities]
            closed = PaperMethod("analytic", random_state) if any(rough) else None
            papers = [closed if is_rough else None for is_rough in rough]
            pairs = zip(quantities, papers, strict=True)
            return [QuantityGoal(*pair, paper_pays=closed_forms_pay) for pair in pairs]
        if len(model.members) > 1 and any(isinstance(each, ClassSums) for each in quantities):
            raise InputError(
                "method: the paper's method bounds class probabilities of outputs that share a "
                "kernel; for outputs with kernels of their own use method='taylor'"
            )
        if mapped:
            raise InputError(
                f"method: {self.name!r} is not known for a model behind linear features (PCA, "
                "one-hot columns); "
                "leave it out, or ask about regions of the features: fit on them, without a "
                "pipeline"
            )
        for member in model.members:
            missing = check_lines(member.kernel, member.points)
            if missing is not None:
                raise InputError(f"method: {missing}")
        paper = PaperMethod(self.variance_bound, random_state)
        return [QuantityGoal(each, paper, self.name == "both") for each in quantities]


def _by_rough_variance(quantity: Quantity, model: Model) -> bool:
    """Whether the paper's closed forms may pay: for variances, and so stds and bands, of a kernel
    without a derivative, whose Taylor bounds are of order 0 only (measured in
    benchmarks/results/methods.md)."""
    if not isinstance(quantity, OutputQuantity) or isinstance(quantity, Response):
        return False
    member, _ = model.output(quantity.output)
    rough = quantity.by_variance and member.kernel.rough
    return rough and check_lines(member.kernel, member.points) is None


def closed_forms_pay(f: int, units: Sequence[UnitForm]) -> bool:
    """Whether they pay in f features: their variance is that of the stored factor, so they do not
    where that is too far from the training noise."""
    return 2 <= f <= MAX_FEATURES and not any(map(by_residuals, units))


START_SECONDS = 4.0
"""What processes must save to be worth their start: each imports gpcert anew, and all at once."""

LONGEST_TRY = START_SECONDS
"""Seconds for one piece of work while no process has been started."""

DELAY = 0.5
"""Seconds before anything is shown that nobody asked for: short calls leave the terminal alone."""

PAUSE = 0.1
"""Seconds between two texts."""


def prepare(model: Model) -> None:
    """What all pieces of work need of the model is computed here, not once in every process."""
    for member in model.members:
        for part in searched(member).members:
            _ = part.norms


def numbered_results(
    function: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    at_once: bool = False,
) -> Iterator[tuple[int, Any]]:
    """`(i, function(*arguments[i]))` in the order in which they are finished (one job: in order).

    Ctrl-C ends the workers with the iterator: see `Pool`. `n_jobs=None` leaves the number to
    `joblib.parallel_config`, which also chooses the backend. `at_once` starts the processes without
    a try here: for long work.
    """
    jobs = effective_jobs(n_jobs)
    if jobs > 1:
        check_alone(n_jobs)
    jobs = min(jobs, max(len(arguments), 1))
    if jobs == 1:
        for index, piece in enumerate(arguments):
            yield index, function(*piece)
        return
    first = 0
    for result in () if at_once else begun_here(function, arguments, jobs):
        yield first, result
        first += 1
    if first == len(arguments):
        return
    shared = int(all(piece and piece[0] is arguments[0][0] for piece in arguments))
    work = [(index, arguments[index][shared:]) for index in range(first, len(arguments))]
    yield from Pool(n_jobs).results(function, Common(arguments[0][:shared]), work)


def check_alone(n_jobs: int | None) -> None:
    """An `InputError` where a checkpoint is wanted of several processes or threads."""
    if JOURNAL.get() is not None:
        raise InputError(
            f"n_jobs: expected 1 with checkpoint=, got {n_jobs!r}: of a table the searches of this "
            "process are saved; leave n_jobs out, or call once for each part of the points"
        )


def begun_here(
    function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[Any]:
    """The first results, computed in this process until what is left pays for starting others.

    What is left is estimated from the pieces done so far but the first, which computes what later
    ones find done. A piece that takes longer than half of `LONGEST_TRY` is dropped and left to the
    processes with all that follow, so that at most that time is lost; no answer depends on it, as
    what the deadline cuts short (searches give parts of their time, at most half, to their own
    steps) has then lasted longer than half of it.
    """
    seconds: list[float] = []
    for done, piece in enumerate(arguments):
        others = seconds[1:]
        if others:
            left = (len(arguments) - done) * sum(others) / len(others)
            if left * (1.0 - 1.0 / jobs) > START_SECONDS:
                return
        start, work = time.perf_counter(), time.process_time()
        try:
            with until(start + LONGEST_TRY):
                result = function(*piece)
        except OutOfTime:
            return
        except InputError:
            if time.perf_counter() - start < 0.5 * LONGEST_TRY:
                raise
            return  # for want of time, it may be: the processes have all of it
        lasted = time.perf_counter() - start
        if reason_of(result) is StopReason.INTERRUPTED:  # the caller ends all by it: it is not lost
            yield result
            return
        if lasted >= 0.5 * LONGEST_TRY:
            return
        # time spent waiting for a busy machine is not shortened by more processes
        seconds.append(min(lasted, time.process_time() - work))
        yield result


def reason_of(result: Any) -> StopReason | None:
    """Why the search behind a result ended, or behind the first of several, if there was one."""
    first = result[0] if isinstance(result, tuple) and result else None
    return getattr(result, "reason", getattr(first, "reason", None))


class Line:
    """What a call says while it works, on stderr after a delay; nothing without one."""

    def __init__(self, delay: float | None) -> None:
        self._console: Any = None
        if delay is not None:
            from rich.console import Console  # only where there may be something to show

            self._next = time.perf_counter() + delay
            self._console = Console(stderr=True)
        self._status: Any = None
        self._text = ""

    def show(self, text: str) -> None:
        """Replace the text; costs next to nothing where nothing is shown."""
        self._text, now = text, time.perf_counter()
        if self._console is None or not self._console.is_terminal or now < self._next:
            return
        self._next = now + PAUSE
        if self._status is None:
            self._status = self._console.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def close(self) -> None:
        """Take the line away; where it was none of a terminal, write the last text."""
        if self._status is not None:
            self._status.stop()
        elif self._console is not None and not self._console.is_terminal and self._text:
            self._console.print(self._text, highlight=False)


def read_flag(name: str, value: Any) -> bool | None:
    """True, False or None."""
    if not isinstance(value, bool | np.bool_ | None):
        raise InputError(f"{name}: expected True, False or None, got {value!r}")
    return None if value is None else bool(value)


@contextmanager
def progress_line(progress: Any) -> Iterator[Line]:
    """A line on stderr that vanishes in the end. None: only where stderr is a terminal. Asked for
    where it is none, the last text is written once.

    >>> with progress_line(False) as line:
    ...     line.show("never seen")
    """
    progress = read_flag("progress", progress)
    wanted = sys.stderr.isatty() if progress is None else progress
    line = Line((DELAY if progress is None else 0.0) if wanted else None)
    try:
        yield line
    finally:
        line.close()


def margin_text(state: SearchState) -> str:
    """The least margin so far; a decision's goal differs from it by the threshold only."""
    return f"least value between {state.lower[0]:.5g} and {state.upper[0]:.5g}, {_cost(state)}"


def ranges_text(state: SearchState) -> str:
    """How far apart the bounds still are, where they are farthest."""
    return f"bounds at most {float((state.upper - state.lower).max()):.3g} apart, {_cost(state)}"


def _cost(state: SearchState) -> str:
    return f"{state.boxes} boxes, {state.seconds:.1f} s"
