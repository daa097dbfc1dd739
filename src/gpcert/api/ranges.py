"""`prediction_range`: the smallest and the largest prediction over a region."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.methods import Method, MethodName, VarianceName
from gpcert.api.progress import progress_line, ranges_text
from gpcert.api.questions import Quantity, RangeQuestion, range_question
from gpcert.arrays import Backend, backend_from_name
from gpcert.certificates import Interval, PredictionRange
from gpcert.committee import Model
from gpcert.enclosures.goals import Goal
from gpcert.errors import InputError
from gpcert.regions import Region
from gpcert.search import Budget, GoalResult, Problem, SearchResult, StopReason, Watch, solve

__all__ = ["prediction_range", "prediction_ranges"]

Sides = Literal["both", "minimum", "maximum"]


def prediction_range(
    model: Any,
    region: Region,
    *,
    tol: float = 0.01,
    quantity: Quantity | None = None,
    output: Any = None,
    sides: Sides = "both",
    budget: Budget | None = None,
    backend: str | Backend = "numpy",
    random_state: int | None = 0,
    method: MethodName = "taylor",
    variance: VarianceName | None = None,
    progress: bool | None = None,
) -> PredictionRange:
    """Proved bounds on the smallest and the largest prediction over a region.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts (scikit-learn's GPs, also in
        a `Pipeline` with scalers).
    region : `Box` or `Ball`, in the units of the model's inputs.
    tol : the search goes on until both sides are known to within `tol` (absolute).
    quantity : "probability" (of the second of two classes, or of the class `output`), "mean" or
        "variance" of the latent function; by default what the model's decision is made from.
    output : the label of a class, if there are more than two; in a regression with several targets
        the number of the target.
    sides : search for "both", or only for the "minimum" or the "maximum"; the side left out keeps
        valid but useless bounds.
    budget : `Budget(seconds, boxes, memory)`, 60 seconds by default; when it ends the bounds so far
        are returned. `Budget` says what may overrun it.
    backend : "numpy", "torch" or "torch:cuda".
    random_state : seed of the local search's starting points, and of the paper's random splits.
    method : "taylor" (default), "paper" (Algorithm 1 of the paper with its own bounds and random
        splits: a reference, much slower) or "both" (the better bound of each box).
    variance : how the paper's variance programs are bounded: "solver" (default of "paper") or
        "analytic", in closed form (default of "both").
    progress : show the bounds so far while the call works; by default only on a terminal.

    Ctrl-C ends the search and returns the bounds so far, with `StopReason.INTERRUPTED`; a second
    one is raised.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> rng = gpcert.prediction_range(bump, gpcert.Box([-1.0], [2.0]), tol=1e-3, quantity="mean")
    >>> rng.minimum.lower <= float(np.exp(-2.0)) <= rng.minimum.upper
    True
    >>> rng.maximum.lower <= 1.0 <= rng.maximum.upper, rng.converged
    (True, True)
    """
    start = time.perf_counter()
    question = range_question(as_posterior(model), quantity)
    if sides not in {"both", "minimum", "maximum"}:
        raise InputError(f"sides: expected 'both', 'minimum' or 'maximum', got {sides!r}")
    index = question.index(output)
    signs = {"both": (1, -1), "minimum": (1,), "maximum": (-1,)}[sides]
    plain = [question.goal(index, sign) for sign in signs]
    goals = Method(method, variance).goals(plain, random_state, question.model)
    means = (budget, backend, random_state)
    with progress_line(progress) as line:
        watch = Watch(start, lambda state: line.show(ranges_text(state)))
        result = _search(question.model, region, goals, tol, means, watch)
    found = dict(zip(signs, result.goals, strict=True))
    return _record(found, result, question, index, region)


def prediction_ranges(
    model: Any,
    region: Region,
    *,
    tol: float = 0.01,
    quantity: Quantity | None = None,
    budget: Budget | None = None,
    backend: str | Backend = "numpy",
    random_state: int | None = 0,
    method: MethodName = "taylor",
    variance: VarianceName | None = None,
    progress: bool | None = None,
) -> tuple[PredictionRange, ...]:
    """The same for every output or class of the model, in one search over one tree of boxes and
    with one budget, 60 seconds by default."""
    start = time.perf_counter()
    question = range_question(as_posterior(model), quantity)
    count = len(question.labels)
    plain = [question.goal(c, sign) for c in range(count) for sign in (1, -1)]
    goals = Method(method, variance).goals(plain, random_state, question.model)
    means = (budget, backend, random_state)
    with progress_line(progress) as line:
        watch = Watch(start, lambda state: line.show(ranges_text(state)))
        result = _search(question.model, region, goals, tol, means, watch)
    return tuple(
        _record({1: result.goals[2 * c], -1: result.goals[2 * c + 1]}, result, question, c, region)
        for c in range(count)
    )


def _search(
    model: Model,
    region: Region,
    goals: list[Goal],
    tol: float,
    means: tuple[Budget | None, str | Backend, int | None],
    watch: Watch,
) -> SearchResult:
    """Minimise the goals with the given budget, backend and random state."""
    if not isinstance(region, Region):
        raise InputError(f"region: expected a gpcert.Box or gpcert.Ball, got {region!r}")
    budget, backend, random_state = means
    return solve(
        Problem(
            model,
            region,
            goals,
            tol=tol,
            budget=budget or Budget(),
            backend=backend_from_name(backend),
            random_state=random_state,
            watch=watch,
        )
    )


def _record(
    found: dict[int, GoalResult],
    result: SearchResult,
    question: RangeQuestion,
    index: int,
    region: Region,
) -> PredictionRange:
    low, high = found.get(1), found.get(-1)
    # a side that was not searched: the maximum is at least the minimum, and nothing more is known
    minimum = Interval(low.lower, low.upper) if low else Interval(-np.inf, -_lower(high))
    maximum = Interval(-high.upper, -high.lower) if high else Interval(_lower(low), np.inf)
    return PredictionRange(
        minimum=minimum,
        maximum=maximum,
        argmin=low.point if low else None,
        argmax=high.point if high else None,
        converged=result.reason is StopReason.CONVERGED,
        reason=result.reason,
        boxes=result.boxes,
        seconds=result.seconds,
        quantity=question.quantity,
        output=question.labels[index],
        region=region.describe(),
    )


def _lower(side: GoalResult | None) -> float:
    return -np.inf if side is None else side.lower
