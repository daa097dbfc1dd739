"""`quantile`: what a quantity stays below with a given probability when the inputs are random.

Proofs: docs/mathematics.md, statement 22.11.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy, value_spreads
from gpcert.api.input_laws import ReadInputs, read_inputs
from gpcert.api.options import BudgetLike, QuantityLike, QuantityRequest, read_budget, verb
from gpcert.api.questions import range_question
from gpcert.api.range_questions import RangeQuestion
from gpcert.api.running import Method, progress_line, ranges_text, read_flag
from gpcert.certificates.probability import POSITIVE, Quantile
from gpcert.errors import InputError
from gpcert.numerics.arrays import Backend, backend_from_name, finite_array
from gpcert.search import Budget, Progress, StopReason
from gpcert.search.checkpoints import Checkpoint
from gpcert.search.partition import partition
from gpcert.search.probability import BelowThreshold
from gpcert.search.region_evaluator import RegionEvaluator

PART = 1e-2
"""By default a quantile is known to this part of the spread of the quantity's values."""

NEAR, LEAST = 0.02, 1e-10
"""A threshold whose probability is known to this part of the level, and of the rest, and still on
neither side, is too near to the quantile: others beside it are asked, then all more exactly."""


@verb
def quantile(
    model: Any,
    inputs: Any,
    level: float,
    *,
    quantity: QuantityLike = "mean",
    beta: float | None = None,
    output: Any = None,
    tol: float | None = None,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    progress: bool | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Quantile:
    """Proved bounds of a quantile of a quantity when the inputs are random and independent.

    Parameters
    ----------
    model, inputs, quantity, beta, output, budget, backend, progress, checkpoint : as in
        `failure_probability`.
    level : the probability, between 0 and 1: the quantile is the least number that the quantity
        does not exceed with that probability.
    tol : the search ends once `upper - lower` is at most that; by default 0.01 standard deviations
        of the quantity's values at the model's own points.

    Example
    -------
    >>> import gpcert
    >>> from scipy.stats import norm
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> found = gpcert.quantile(bump, [norm(0, 1)], 0.05, tol=1e-3)  # |x| > 1.96 there
    >>> found.lower <= float(np.exp(-0.5 * norm.ppf(0.975) ** 2)) <= found.upper
    True
    """
    start, posterior = time.perf_counter(), as_posterior(model)
    part = float(finite_array("level", level, ndim=0))
    if not 0 < part < 1:
        raise InputError(f"level: expected a probability between 0 and 1, got {level!r}")
    given = read_inputs(posterior, inputs)
    if isinstance(quantity, str) and quantity == "band":
        raise InputError("quantity: a band has two ends; ask for 'lcb' or 'ucb'")
    question = range_question(given.seen_by(posterior), QuantityRequest(quantity, beta))
    index = question.index(output)
    if question.two and index == 0:
        raise InputError(f"output: expected {question.labels[1]!r}, of which 1 less it follows")
    width = Accuracy.read(tol, None).tol
    if width is None:
        width = PART * float(value_spreads(question, [index])[0])
    limit, place = read_budget(budget), backend_from_name(backend)
    with progress_line(read_flag("progress", progress)) as line:
        watch = Progress(start, lambda state: line.show(ranges_text(state)))
        search = _Bisection(question, index, given, part, limit, place, watch)
        ends, reason = search.run(width)
    return Quantile(
        lower=max(ends[0], 0.0) if question.quantity in POSITIVE else ends[0],
        upper=ends[1],
        level=part,
        quantity=question.quantity,
        output=question.labels[index],
        laws=given.told,
        region=given.region.describe(),
        outside=given.outside,
        converged=reason is StopReason.CONVERGED,
        meaning=question.meanings[index],
        beta=question.beta,
        features=tuple(posterior.feature_names or ()),
        reason=reason,
        boxes=search.boxes,
        seconds=time.perf_counter() - start,
        model=posterior.fingerprint,
    )


class _Bisection:
    """Thresholds t with P[q < t] < level are at most the quantile, those with P[q < t] >= level at
    least it."""

    def __init__(
        self,
        question: RangeQuestion,
        index: int,
        given: ReadInputs,
        level: float,
        budget: Budget,
        backend: Backend,
        watch: Progress,
    ) -> None:
        goals = Method().goals([question.asked(index, s) for s in (1, -1)], 0, question.model)
        self.event = BelowThreshold(question.model, given.region, given.law, goals, 0.0, backend)
        self.given, self.level, self.budget, self.watch = given, level, budget, watch
        self.boxes, self.near = 0, NEAR

    def run(self, width: float) -> tuple[tuple[float, float], StopReason]:
        """Bounds that near, or those when the budget ends."""
        low, high = self._ends()
        known = [-math.inf, math.inf]
        if not (math.isfinite(low) and math.isfinite(high)):
            return (-math.inf, math.inf), StopReason.RESOLUTION
        low, high = low - width, high + width
        while not known[1] - known[0] <= width:
            middle = 0.5 * low + 0.5 * high
            reach = 0.25 * min(width, high - low)
            for threshold in (middle, middle - reach, middle + reach):
                side, reason = self._side(threshold)
                if side < 0:
                    known[0] = low = max(low, threshold)
                elif side > 0:
                    known[1] = high = min(high, threshold)
                elif reason is not StopReason.CONVERGED:
                    return (known[0], known[1]), reason
                if side != 0 and threshold == middle:
                    break
            else:
                if side == 0 and low < middle - reach and high > middle + reach:
                    self.near *= 0.1
                    if self.near < LEAST:
                        return (known[0], known[1]), StopReason.RESOLUTION
        return (known[0], known[1]), StopReason.CONVERGED

    def _ends(self) -> tuple[float, float]:
        """Bounds of the quantity in the region, from one cell: where to look."""
        event, free = self.event, self.event.region.free
        evaluator = RegionEvaluator(event.model, event.region, event.goals, event.backend)
        corners = event.region.lower[None, free], event.region.upper[None, free]
        evaluation = evaluator.evaluation(np.zeros(1), *corners)
        return tuple(
            sign * float(np.asarray(goal.bound(evaluation, None).lower)[0])
            for sign, goal in zip((1, -1), event.goals, strict=True)
        )  # pyright: ignore[reportReturnType]

    def _side(self, threshold: float) -> tuple[int, StopReason]:
        """-1 where P[q < t] is proved to be below the level, 1 where not, 0 if that is open."""

        def enough(low: float, high: float) -> bool:
            high = min(1.0, high + 2.0 * self.given.outside)
            decided = low >= self.level or high < self.level
            return decided or high - low <= self.near * min(self.level, 1.0 - self.level)

        budget = self.budget
        if budget.boxes is not None:
            budget = replace(budget, boxes=max(1, budget.boxes - self.boxes))
        event = replace(self.event, threshold=threshold)
        about = (self.level, self.near, self.given.outside)
        result = partition(event.problem(enough, budget, self.watch, about=about))
        self.boxes += result.boxes
        if result.lower >= self.level:
            return 1, result.reason
        if result.upper + 2.0 * self.given.outside < self.level:
            return -1, result.reason
        return 0, result.reason
