"""`failure_probability` and `expectation`: what is probable, and what is to be expected, when the
inputs of a model are random.

Proofs: docs/mathematics.md, statements 22.4 and 22.8.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy, value_spreads
from gpcert.api.input_laws import ReadInputs, read_inputs, turned
from gpcert.api.options import BudgetLike, QuantityLike, QuantityRequest, one_of, read_budget, verb
from gpcert.api.questions import range_question
from gpcert.api.range_questions import RangeQuestion
from gpcert.api.running import Method, progress_line, ranges_text, read_flag
from gpcert.certificates.probability import POSITIVE, Expectation, FailureProbability
from gpcert.errors import InputError
from gpcert.model.changes import stationary
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, backend_from_name, finite_array
from gpcert.numerics.rounding import U, add_down, add_up, down, up
from gpcert.quantities import OutputQuantity
from gpcert.search import Budget, Progress, StopReason
from gpcert.search.checkpoints import Checkpoint
from gpcert.search.expectation import Expected
from gpcert.search.partition import PartitionProblem, PartitionResult, partition
from gpcert.search.probability import BelowThreshold, cell_masses, cell_status
from gpcert.utils.option_names import SideName

USUAL, NEGLIGIBLE = 0.01, 1e-12
"""By default probabilities are known to a hundredth of themselves, or to so little."""

TRIAL = 4_000
"""Boxes that each choice of coordinates is tried with."""

PART = 1e-3
"""By default means are known to this part of the spread of the quantity's values."""


@verb
def failure_probability(
    model: Any,
    inputs: Any,
    threshold: float,
    *,
    side: SideName = "below",
    quantity: QuantityLike | Literal["prediction"] = "mean",
    beta: float | None = None,
    output: Any = None,
    tol: float | None = None,
    rtol: float | None = None,
    paving: bool = False,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    progress: bool | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> FailureProbability:
    """Proved bounds of the probability that a quantity of the model lies below a threshold when the
    inputs are random and independent.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    inputs : a distribution for each feature, in order or `{name: distribution}`: frozen ones of
        `scipy.stats` (norm, uniform, lognorm, expon, triang, logistic, gumbel_r, gumbel_l,
        weibull_min, weibull_max, truncnorm, halfnorm, gamma, beta) or of OpenTURNS, whose joint
        distributions of independent inputs are taken whole; a number keeps a feature fixed. Normal
        inputs that are correlated: `scipy.stats.multivariate_normal(mean, cov)`, or a joint normal
        law of OpenTURNS.
    threshold : a number in the quantity's units.
    side : "below" asks for P[quantity < threshold], "above" for P[quantity > threshold].
    quantity, beta, output : as in `prediction_range`; "mean" by default, which converges fastest.
        "ucb" below a threshold is less probable than "lcb": together they say how much the model's
        own uncertainty matters. "prediction" counts it: P[Y < threshold] for a target Y drawn from
        the model's distribution at the random inputs, which is E[Phi((threshold - mu) / sigma)].
    tol, rtol : the search ends once `upper - lower` is at most `tol`, or `rtol` times `lower`; of
        the two the one that is not given is 0. By default within 1 %, or 1e-12.
    paving : keep the cells, which `plot` draws.
    budget : seconds, or a `Budget`; 60 seconds by default.
    backend : "numpy", "torch", "torch:cuda" or, for long work, "torch:cuda:compiled".
    progress : show the bounds so far; by default only on a terminal.
    checkpoint : a file that saves the search, and from which the same call, or `resume`, goes on.

    Ctrl-C ends the search and returns the bounds so far.

    Example
    -------
    >>> import gpcert
    >>> from scipy.stats import norm
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> far = gpcert.failure_probability(bump, [norm(0, 1)], float(np.exp(-2.0)))  # where |x| > 2
    >>> far.lower <= 2 * norm.sf(2.0) <= far.upper <= 1.01 * far.lower
    True
    """
    start, posterior = time.perf_counter(), as_posterior(model)
    below = one_of("side", side, get_args(SideName)) == "below"
    level = float(finite_array("threshold", threshold, ndim=0))
    given, keep = read_inputs(posterior, inputs), bool(read_flag("paving", paving))
    searched = given.seen_by(posterior)
    if keep and given.behind is not None:
        raise InputError("paving: cells of correlated inputs are no boxes; leave it out")
    if isinstance(quantity, str) and quantity == "band":
        raise InputError("quantity: a band has two ends; ask for 'lcb' or 'ucb'")
    how = _How.read(
        Accuracy.read(tol, rtol), Accuracy(NEGLIGIBLE, USUAL), budget, backend, progress
    )
    if isinstance(quantity, str) and quantity == "prediction":
        if keep:
            raise InputError("paving: a prediction has no side of a threshold; leave it out")
        request = QuantityRequest("pi", best_f=level, maximize=not below)
        question = range_question(searched, request)
        result = how.expected(question, question.index(output), given, (0.0, 1.0), start)
        about = {"quantity": "prediction", "meaning": f"{PREDICTION}{_owner(posterior, output)}"}
    else:
        question = range_question(searched, QuantityRequest(quantity, beta))
        event = (question.index(output), level, below)
        given, result = how.below(question, event, given, keep, start)
        about = {
            "quantity": question.quantity,
            "meaning": question.meanings[question.index(output)],
        }
    return FailureProbability(
        lower=min(1.0, max(0.0, result.lower)),
        upper=min(1.0, max(0.0, result.upper)),
        side=side,
        threshold=float(threshold),
        output=question.labels[question.index(output)],
        laws=given.told,
        region=given.region.describe(),
        outside=given.outside,
        converged=result.reason is StopReason.CONVERGED,
        **about,
        beta=question.beta,
        features=tuple(posterior.feature_names or ()),
        **_paving(result, given),
        reason=result.reason,
        boxes=result.boxes,
        seconds=result.seconds,
        model=posterior.fingerprint,
    )


PREDICTION = "a target drawn from the model's distribution at the random inputs"


def _owner(model: Model, output: Any) -> str:
    return "" if output is None else f", output {output!r}"


@verb
def expectation(
    model: Any,
    inputs: Any,
    quantity: QuantityLike = "mean",
    *,
    beta: float | None = None,
    best_f: float | None = None,
    maximize: bool | None = None,
    output: Any = None,
    tol: float | None = None,
    rtol: float | None = None,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    progress: bool | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Expectation:
    """Proved bounds of the mean of a quantity of the model when the inputs are random and
    independent.

    Parameters
    ----------
    model, inputs, budget, backend, progress, checkpoint : as in `failure_probability`.
    quantity, beta, best_f, maximize, output : as in `prediction_range`; the mean converges fastest
        (the gap falls with the third power of the cells' width), "pi", "std", "variance", "lcb" and
        "ucb" next, others slowly.
    tol, rtol : the search ends once `upper - lower` is at most `tol`, or `rtol` times the smaller
        size of both ends; of the two the one that is not given is 0. By default within 0.001
        standard deviations of the quantity's values at the model's own points.

    A mean without a bound that holds everywhere (a linear kernel or trend) needs inputs that have
    ends: what lies outside the largest box counts with that bound.

    Example
    -------
    >>> import gpcert
    >>> from scipy.stats import norm
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> found = gpcert.expectation(bump, [norm(0, 1)], rtol=1e-6)  # E exp(-x^2 / 2) = 1 / sqrt(2)
    >>> found.lower <= 0.5**0.5 <= found.upper <= found.lower * (1 + 1e-6)
    True
    """
    start, posterior = time.perf_counter(), as_posterior(model)
    given = read_inputs(posterior, inputs)
    if isinstance(quantity, str) and quantity == "band":
        raise InputError("quantity: a band has two ends; ask for 'lcb' or 'ucb'")
    question = range_question(
        given.seen_by(posterior), QuantityRequest(quantity, beta, best_f, maximize)
    )
    index = question.index(output)
    accuracy = Accuracy.read(tol, rtol)
    spread = 1.0 if accuracy.given else float(value_spreads(question, [index])[0])
    how = _How.read(accuracy, Accuracy(PART * spread, 0.0), budget, backend, progress)
    ends = _everywhere(question, index) if given.outside > 0 else (0.0, 0.0)
    if not np.all(np.isfinite(ends)):
        raise InputError(
            f"inputs: the {question.quantity} of this model has no bound that holds everywhere, so "
            "inputs without an end leave its mean unknown; expected distributions with ends, "
            "such as truncnorm"
        )
    result = how.expected(question, index, given, ends, start)
    return Expectation(
        lower=max(result.lower, 0.0) if question.quantity in POSITIVE else result.lower,
        upper=result.upper,
        quantity=question.quantity,
        output=question.labels[index],
        laws=given.told,
        region=given.region.describe(),
        outside=given.outside,
        converged=result.reason is StopReason.CONVERGED,
        meaning=question.meanings[index],
        beta=question.beta,
        best_f=best_f,
        features=tuple(posterior.feature_names or ()),
        reason=result.reason,
        boxes=result.boxes,
        seconds=result.seconds,
        model=posterior.fingerprint,
    )


@dataclass(frozen=True)
class _How:
    """How accurate an answer is to be, and what it may cost."""

    accuracy: Accuracy
    budget: Budget
    backend: Backend
    progress: bool | None

    @staticmethod
    def read(asked: Accuracy, usual: Accuracy, budget: Any, backend: Any, progress: Any) -> _How:
        """From the options of a verb."""
        flag = read_flag("progress", progress)
        chosen = asked if asked.given else usual
        return _How(chosen, read_budget(budget), backend_from_name(backend), flag)

    def below(
        self,
        question: RangeQuestion,
        event: tuple[int, float, bool],
        given: ReadInputs,
        keep: bool,
        start: float,
    ) -> tuple[ReadInputs, PartitionResult]:
        """Of P[quantity < level], or P[quantity > level]: what is outside may be in it or not.

        Many normal inputs are also tried in turned coordinates, with `TRIAL` boxes each.
        """
        index, level, below = event
        first = question.two and index == 0
        sign = 1 if below != first else -1
        exact = sign * (1 - Fraction(level) if first else Fraction(level))
        level = float(exact)
        level = level if Fraction(level) >= exact else math.nextafter(level, math.inf)
        signs = (sign, -sign)
        goals = Method().goals([question.asked(index, s) for s in signs], 0, question.model)

        def bounded(inputs: ReadInputs, budget: Budget) -> PartitionResult:
            parts = (inputs.seen_by(question.model), inputs.region, inputs.law)
            asked = BelowThreshold(*parts, goals, level, self.backend, Fraction(level) == exact)
            run = replace(self, budget=budget)._run
            return run(partial(asked.problem, record=keep), (0.0, inputs.outside), start)

        if given.behind is not None:
            given = replace(given, behind=None)  # the question's model has it
        other = None if keep else turned(question.model, given, goals[0], level)
        if other is None or (self.budget.boxes or TRIAL) < TRIAL:
            return given, bounded(given, self.budget)
        tried = [
            (each, bounded(each, replace(self.budget, boxes=TRIAL))) for each in (given, other)
        ]
        best = min(tried, key=lambda pair: pair[1].upper - pair[1].lower)
        if best[1].reason is not StopReason.BOXES:
            return best
        return best[0], bounded(best[0], self.budget)

    def expected(
        self,
        question: RangeQuestion,
        index: int,
        given: ReadInputs,
        ends: tuple[float, float],
        start: float,
    ) -> PartitionResult:
        """Of E[quantity], which lies between the ends where nothing else is known."""
        first = question.two and index == 0  # 1 less the probability of the second class
        goals = Method().goals([question.asked(index, s) for s in (1, -1)], 0, question.model)
        problem = Expected(question.model, given.region, given.law, goals, self.backend).problem
        lost = [min(ends[0] * given.outside, 0.0), max(ends[1] * given.outside, 0.0)]
        rest = float(np.nextafter(lost[0], -np.inf)), float(np.nextafter(lost[1], np.inf))
        result = self._run(problem, rest if given.outside > 0 else (0.0, 0.0), start)
        if first:
            lower, upper = 1.0 - result.upper, 1.0 - result.lower
            result = replace(
                result,
                lower=float(np.nextafter(lower, -np.inf)),
                upper=float(np.nextafter(upper, np.inf)),
            )
        return result

    def _run(
        self, problem: Callable[..., PartitionProblem], rest: tuple[float, float], start: float
    ) -> PartitionResult:
        """The result with the bounds of what lies outside the region."""

        def ends(low: float, high: float) -> tuple[float, float]:
            lower = add_down(np.float64(low), np.float64(rest[0]))
            return float(lower), float(add_up(np.float64(high), np.float64(rest[1])))

        def enough(low: float, high: float) -> bool:
            low, high = ends(low, high)
            known = max(low, -high, 0.0)  # at least this size
            needed = max(self.accuracy.tol or 0.0, (self.accuracy.rtol or 0.0) * known)
            return high - low <= needed

        with progress_line(self.progress) as line:
            watch = Progress(start, lambda state: line.show(ranges_text(state)))
            result = partition(problem(enough, self.budget, watch, about=(self.accuracy, rest)))
        lower, upper = ends(result.lower, result.upper)
        return replace(result, lower=lower, upper=upper)


def _everywhere(question: RangeQuestion, index: int) -> tuple[float, float]:
    """Bounds of a quantity at every input there is, by the norm of the mean (Statement 22.8)."""
    goals: list[Any] = [question.asked(index, sign) for sign in (1, -1)]
    known = goals[0].known[0], -goals[1].known[0]
    if all(map(np.isfinite, known)) or not isinstance(goals[0], OutputQuantity):
        return known
    member, output = question.model.output(goals[0].output)
    if member.has_trend or not stationary(member.kernel):
        return known
    unit = member.unit
    largest = float(up(np.max(unit.kernel.diagonal(unit.points[:1])), 8))
    reach = float(up(unit.norms[output] * np.sqrt(largest) * unit.mean_scale[output], 8))
    offset, noise = float(member.offset[output]), float(member.noise[output])
    gain = float(up(np.float64(unit.gain * largest * unit.variance_scale[output]), 8))
    v = np.array([noise]), up(np.array([noise + gain]), 2)
    bounds = []
    for goal in goals:
        alpha = down(np.array([goal.sign * offset - reach]) - 4.0 * U * (abs(offset) + reach), 2)
        bounds.append(float(goal.lowest(alpha, np.zeros(1), *v)[0]))
    return max(known[0], bounds[0]), min(known[1], -bounds[1])


def _paving(result: PartitionResult, given: ReadInputs) -> dict[str, Any]:
    """Corners, status and mass of all cells, if they were recorded."""
    if result.decided is None:
        return {}
    parts, region = (result.open, result.decided), given.region
    low, high, data = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "data")
    )
    corners = np.tile(region.center, (len(low), 2, 1))
    corners[:, 0, region.free], corners[:, 1, region.free] = low, high
    status = cell_status(data).astype(float)
    return {"cells": corners, "status": status, "mass": cell_masses(data)}
