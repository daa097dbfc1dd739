"""`prediction_range`: the smallest and the largest prediction over a region, from a question to the
goals of a search."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Unpack, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.options import (
    QuantityLike,
    QuantityRequest,
    RangeTableOptions,
    SearchSettings,
    one_of,
    read_x,
    verb,
)
from gpcert.api.questions import range_question
from gpcert.api.range_questions import RangeQuestion
from gpcert.api.regions import RegionSpecification, is_list_of_regions
from gpcert.api.running import progress_line, ranges_text
from gpcert.certificates import Interval, PredictionRange
from gpcert.certificates.proof import Proof
from gpcert.certificates.proof_questions import check_covered, claim_error, range_proof
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.model.committee import Model
from gpcert.numerics.rounding import difference_down, difference_up
from gpcert.quantities import Quantity
from gpcert.regions import Region
from gpcert.search import GoalResult, Progress, SearchResult, StopReason, solve
from gpcert.search.problem import Tolerance
from gpcert.utils.option_names import Sides


@verb
def prediction_range(
    model: Any,
    x: Any = None,
    radius: Any = None,
    *,
    region: Region | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    quantity: QuantityLike | None = None,
    beta: float | None = None,
    best_f: float | None = None,
    maximize: bool | None = None,
    output: Any = None,
    sides: Sides = "both",
    proof: bool | Literal["B"] = False,
    **options: Unpack[RangeTableOptions],
) -> PredictionRange:
    """Proved bounds on the smallest and the largest prediction over a region.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts (scikit-learn's GPs, also in
        a `Pipeline` with scalers).
    x : a region, `Box` or `Ball`, in the units of the model's inputs (also as `region=`); or a
        point, and the region is the ball around it of the options below.
    radius, relative, norm, features, domain, scale : the ball around x, as in `certify`.
    tol, rtol : the search goes on until each side is known to within `tol` (absolute), or to within
        `rtol` times what is proved of its own size, whichever is more; of the two the one that is
        not given is 0. By default a probability is known to within 0.01, a mean, bound and band to
        within 0.01 standard deviations of the model's means at its own points, and a variance and
        a std to within 1 % of themselves, or to within 0.0001 of those deviations (their square).
    quantity : "probability" of a class, "mean", "variance" or "std" (standard deviation) of the
        latent function, "lcb" and "ucb" (the confidence bounds `mean - beta std` and
        `mean + beta std`), or "band"; by default what the model's decision is made from. The
        variance includes the model's noise term, if it has one (`Posterior.noise`: of
        scikit-learn's models that of a WhiteKernel), and so do std, bounds and band: the range's
        `meaning` says so. A "band" holds `mean +- beta std` at every point of the region: its
        minimum is that of "lcb", its maximum that of "ucb". Also any `gpcert.quantities.Quantity`,
        one of your own included: an `OutputQuantity`, whose own output `output=` may replace, or a
        `Compound` of several outputs.
    beta : how many standard deviations a confidence bound or a band reaches; 2 by default.
    best_f, maximize : "ei" and "pi" are the expected improvement over `best_f` and the probability
        of one, "log_ei" and "log_pi" their logarithms, of a regression. With `maximize` (default)
        larger values are better, else smaller ones; `best_f` is by default the best posterior mean
        at the model's points (`meaning` says its value).
    output : of a probability the label of the class; of two classes the second is meant by default,
        and `output` of the range is its label. In a regression the number of the target, 0 by
        default. Mean and variance of two classes are those of one latent function: leave it out.
    sides : search for "both", or only for the "minimum" or the "maximum"; the side left out keeps
        valid but useless bounds.
    proof : prepare a proof, which `save("name.cert")` writes and the separate program
        `gpcert-check` checks (docs/certificates.md). The file claims the ends to within the
        tolerance that was asked for. "B": ends that hold for what a library's float64 `predict`
        gives of a mean, as well.
    budget : `Budget(seconds, boxes, memory)`, or a number of seconds; 60 seconds by default. When
        it ends the bounds so far are returned; `Budget` says what may overrun it.
    backend : "numpy", "torch", "torch:cuda" or, for long work, "torch:cuda:compiled".
    random_state : seed of the local search's starting points, and of the paper's random splits: a
        whole number, None, or a generator of NumPy's, from which a seed is drawn.
    method : "taylor" (default), "paper" (Algorithm 1 of the paper with its own bounds and random
        splits: a reference, much slower) or "both" (the better bound of each box).
    variance_bound : how the paper's variance programs are bounded: "solver" (default of "paper") or
        "analytic", in closed form (default of "both").
    progress : show the bounds so far while the call works; by default only on a terminal.
    n_jobs : processes that search together once a search has lasted a second (-1: one per core;
        None: what `joblib.parallel_config` says, a cluster of Dask's or Ray's included). Bounds
        hold, and are as near, as with one; within the tolerance they differ from run to run.

    checkpoint : a file, or `Checkpoint(path, seconds)`, that saves the search every 30 seconds: the
        same call, or `gpcert.resume(path)`, goes on from it, to the same bounds. Its batches are
        what a kill may lose besides, and files of gigabytes are written less often.

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
    >>> box = gpcert.Box([1.0], [2.0])  # far from all data: mean exp(-x^2 / 2), variance 1
    >>> band = gpcert.prediction_range(bump, box, tol=1e-3, quantity="band", beta=3)
    >>> band.maximum.lower <= float(np.exp(-0.5)) + 3.0 <= band.maximum.upper
    True
    """
    start, posterior = time.perf_counter(), as_posterior(model)
    where = RegionSpecification.read(options, radius, region)
    place = region_of(posterior, x, where, "prediction_range_many")
    request = QuantityRequest(quantity, beta, best_f, maximize)
    asked = (request, output, one_of("sides", sides, get_args(Sides)))
    settings = SearchSettings.of_one_search(options, proof)
    how = (Accuracy.read(tol, rtol), settings, start, options.get("progress"))
    return ranges_over(posterior, place, asked, *how)[0]


@verb
def prediction_ranges(
    model: Any,
    x: Any = None,
    radius: Any = None,
    *,
    region: Region | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    quantity: QuantityLike | None = None,
    beta: float | None = None,
    best_f: float | None = None,
    maximize: bool | None = None,
    **options: Unpack[RangeTableOptions],
) -> tuple[PredictionRange, ...]:
    """`prediction_range` for every output or class of the model, in one search over one tree of
    boxes and with one budget, 60 seconds by default. Arguments as there."""
    start, posterior = time.perf_counter(), as_posterior(model)
    where = RegionSpecification.read(options, radius, region)
    place = region_of(posterior, x, where, "prediction_range_many(..., all_outputs=True)")
    how = (
        Accuracy.read(tol, rtol),
        SearchSettings.of_one_search(options),
        start,
        options.get("progress"),
    )
    return ranges_over(posterior, place, (QuantityRequest(quantity, beta, best_f, maximize),), *how)


def ranges_over(
    model: Model,
    region: Region,
    asked: tuple[Any, ...],
    accuracy: Accuracy | Tolerance,
    settings: SearchSettings,
    start: float | None = None,
    progress: Any = False,
) -> tuple[PredictionRange, ...]:
    """The ranges that are `asked` (see `RangeGoals.of`) over a region, as accurate as that."""
    goals = RangeGoals.of(model, *asked)
    if settings.proof:
        check_covered(goals.question.model, region, goals.quantities)
        for quantity in goals.quantities:
            claim_error(settings.claim, goals.question.model, region, quantity)
    tol = accuracy.of(goals) if isinstance(accuracy, Accuracy) else accuracy
    with progress_line(progress) as line:
        progress = Progress(start, lambda state: line.show(ranges_text(state)))
        stop: dict[str, Any] = {"tol": tol, "progress": progress}
        problem = settings.problem(goals.question.model, region, goals.quantities, **stop)
        result = solve(problem)
        if settings.claim == "B":
            result = _float64(result, goals, region)
        return goals.records(result, region, settings, None, Tolerance.of(tol))


def _float64(result: SearchResult, goals: RangeGoals, region: Region) -> SearchResult:
    """The ends of what float64 gives of the same, too (Statements 23.3 and 23.4)."""
    wider = []
    for goal, quantity in zip(result.goals, goals.quantities, strict=True):
        error = Fraction(claim_error("B", goals.question.model, region, quantity))
        ends = difference_down(goal.lower, error), difference_up(goal.upper, -error)
        wider.append(GoalResult(*ends, goal.point))
    return replace(result, goals=tuple(wider))


@dataclass(frozen=True, eq=False)
class RangeGoals:
    """The goals of one search, and for every range that is made of it the number of its output and
    the places of its goals by sign."""

    question: RangeQuestion
    quantities: list[Quantity]
    rows: list[tuple[int, dict[int, int]]]

    @staticmethod
    def of(
        model: Model,
        request: QuantityRequest,
        output: Any = None,
        sides: Sides | None = None,
    ) -> RangeGoals:
        """Of one output, on one side or both; without `sides` of all outputs on both."""
        question = range_question(model, request)
        if sides is None:
            return RangeGoals.of_all(question)
        signs = {"both": (1, -1), "minimum": (1,), "maximum": (-1,)}[sides]
        index = question.index(output)
        if question.two and index == 0:
            signs = tuple(-sign for sign in signs)  # least where the second class has most
        asked = [question.asked(index, sign) for sign in signs]
        return RangeGoals(question, asked, [(index, {sign: k for k, sign in enumerate(signs)})])

    @staticmethod
    def of_all(question: RangeQuestion) -> RangeGoals:
        """Of all outputs on both sides."""
        last = question.searched - 1
        asked = [question.asked(c, sign) for c in range(last + 1) for sign in (1, -1)]
        pairs = [min(c, last) for c in range(len(question.labels))]
        rows = [(c, {1: 2 * k, -1: 2 * k + 1}) for c, k in enumerate(pairs)]
        return RangeGoals(question, asked, rows)

    def nominal(self, regions: Sequence[Region]) -> list[list[float | None]]:
        """For every range, region by region: the quantity at the region's centre, in plain floating
        point; a band has no single one."""
        question = self.question
        if question.quantity == "band":
            return [[None] * len(regions) for _ in self.rows]
        X, by_row = np.stack([region.center for region in regions]), []
        for index, _ in self.rows:
            values = QuantityGoal(question.asked(index, 1)).plain_values(question.model, X)
            if question.two and index == 0:
                values = [None if value is None else 1.0 - value for value in values]
            by_row.append(values)
        return by_row

    def proof(
        self, result: SearchResult, region: Region, places: Sequence[int], tolerance: Tolerance
    ) -> Proof | None:
        """That of the goals at some places: lower ends as near to the attained values as the
        tolerance asks."""
        needed = tolerance.needed(np.array([goal.upper for goal in result.goals]))
        ends = [
            (min(goal.lower, float(near)), goal.upper, goal.point)
            for goal, near in zip(result.goals, needed, strict=True)
        ]
        meaning = "; ".join(dict.fromkeys(self.question.meanings[index] for index, _ in self.rows))
        quantities, chosen = [self.quantities[k] for k in places], [ends[k] for k in places]
        return range_proof(self.question.model, region, quantities, chosen, meaning, result.leaves)

    def records(
        self,
        result: SearchResult,
        region: Region,
        settings: SearchSettings,
        nominal: Sequence[float | None] | None = None,
        tolerance: Tolerance | None = None,
    ) -> tuple[PredictionRange, ...]:
        """The ranges over a region, from what was found of the goals of sign 1 and -1; with proofs,
        if the settings ask for them, to within a tolerance."""
        if nominal is None:
            nominal = [values[0] for values in self.nominal([region])]
        question, place, ranges = self.question, region.describe(), []
        for (index, goals), value in zip(self.rows, nominal, strict=True):
            sides = {sign: result.goals[k] for sign, k in goals.items()}
            if question.two and index == 0:
                sides = _complement(sides)
            for sign in (1, -1):
                if sign not in sides:  # the maximum is at least the minimum (of a band too)
                    sides[sign] = GoalResult(-np.inf, -sides[-sign].lower, None)
            low, high = sides[1], sides[-1]
            record = PredictionRange(
                minimum=Interval(low.lower, low.upper),
                maximum=Interval(0.0 - high.upper, 0.0 - high.lower),  # never -0.0
                argmin=low.point,
                argmax=high.point,
                converged=result.reason is StopReason.CONVERGED,
                quantity=question.quantity,
                output=question.labels[index],
                region=place,
                meaning=question.meanings[index],
                beta=question.beta,
                nominal=value,
                reason=result.reason,
                boxes=result.boxes,
                seconds=result.seconds,
                method=settings.method.name,
                model=question.fingerprint,
            )
            if settings.proof and tolerance is not None:
                places = sorted(goals.values())
                proof = self.proof(result, region, places, tolerance)
                record = replace(record, proof=proof and replace(proof, claim=settings.claim))
            ranges.append(record)
        return tuple(ranges)


def _complement(sides: dict[int, GoalResult]) -> dict[int, GoalResult]:
    """Goals of the first of two classes from those of the second, whose probability is F.

    Statement: `sign (1 - F) = sign + (-sign F)`, so that the goal of either sign is that of the
    other one plus a sign; one rounding outwards.
    """
    ends = {}
    for sign, side in ((-sign, side) for sign, side in sides.items()):
        by = Fraction(-sign)
        lower, upper = difference_down(side.lower, by), difference_up(side.upper, by)
        ends[sign] = GoalResult(lower, upper, side.point)
    return ends


def region_of(model: Model, x: Any, where: RegionSpecification, several: str) -> Region:
    """The region that x is, or the ball around the point x; `several` is the verb for more."""
    if isinstance(x, Region):
        if where.region is not None:
            raise InputError("region: expected one region, got two, as x and as region=")
        x, where = None, replace(where, region=x)
    if x is None:
        name = where.given_radius
        if name is not None:
            raise InputError(f"{name}: expected a point x to go with it, got a region or none")
        return where.given(model)
    if is_list_of_regions(x):
        raise InputError(f"x: expected one region, got {len(x)}; for several use {several}")
    point = read_x(model, x, f"use {several}")
    if where.given_radius is None or where.region is not None:
        raise InputError(
            "expected a region, a gpcert.Box or gpcert.Ball, or a point x with radius= or "
            "relative=; got x " + ("alone" if where.region is None else "and region=")
        )
    return where.around(model, point)
