"""`prediction_range`: the smallest and the largest prediction over a region."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Unpack, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.decisions import Method
from gpcert.api.progress import progress_line, ranges_text
from gpcert.api.questions import QuantityName, RangeQuestion, range_question
from gpcert.api.regions import Where, region_of
from gpcert.api.words import (
    Means,
    RangeWords,
    one_of,
    read_tolerance,
    verb,
)
from gpcert.certificates import Interval, PredictionRange
from gpcert.enclosures.goals import QuantityGoal
from gpcert.quantities import Quantity
from gpcert.regions import Ball, Region
from gpcert.rounding import difference_down, difference_up
from gpcert.search import GoalResult, SearchResult, StopReason, Watch, solve

Sides = Literal["both", "minimum", "maximum"]


@verb
def prediction_range(
    model: Any,
    x: Any = None,
    radius: Any = None,
    *,
    region: Region | None = None,
    tol: float = 0.01,
    quantity: QuantityName | None = None,
    beta: float | None = None,
    output: Any = None,
    sides: Sides = "both",
    **words: Unpack[RangeWords],
) -> PredictionRange:
    """Proved bounds on the smallest and the largest prediction over a region.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts (scikit-learn's GPs, also in
        a `Pipeline` with scalers).
    x : a region, `Box` or `Ball`, in the units of the model's inputs (also as `region=`); or a
        point, and the region is the ball around it of the words below.
    radius, norm, features, domain, scale : the ball around x, as in `certify`.
    tol : the search goes on until both sides are known to within `tol` (absolute).
    quantity : "probability" of a class, "mean", "variance" or "std" (standard deviation) of the
        latent function, or "band"; by default what the model's decision is made from. The variance
        includes the model's noise term, if it has one (`Posterior.noise`: of scikit-learn's models
        that of a WhiteKernel), and so do std and band: the range's `meaning` says so. A "band"
        holds `mean +- beta std` at every point of the region: its minimum is that of
        `mean - beta std`, its maximum that of `mean + beta std`.
    beta : how many standard deviations a band reaches; 2 by default. Of a band only.
    output : of a probability the label of the class; of two classes the second is meant by default,
        and `output` of the range is its label. In a regression the number of the target, 0 by
        default. Mean and variance of two classes are those of one latent function: leave it out.
    sides : search for "both", or only for the "minimum" or the "maximum"; the side left out keeps
        valid but useless bounds.
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
    where = Where.read(words, radius, region)
    place = region_of(posterior, x, where, "prediction_range_many")
    asked = RangeGoals.of_one(range_question(posterior, quantity, beta), output, sides)
    (found,) = asked.searched(place, tol, words, start)
    return found


@verb
def prediction_ranges(
    model: Any,
    x: Any = None,
    radius: Any = None,
    *,
    region: Region | None = None,
    tol: float = 0.01,
    quantity: QuantityName | None = None,
    beta: float | None = None,
    **words: Unpack[RangeWords],
) -> tuple[PredictionRange, ...]:
    """`prediction_range` for every output or class of the model, in one search over one tree of
    boxes and with one budget, 60 seconds by default. Arguments as there."""
    start, posterior = time.perf_counter(), as_posterior(model)
    where = Where.read(words, radius, region)
    place = region_of(posterior, x, where, "prediction_range_many(..., all_outputs=True)")
    asked = RangeGoals.of_all(range_question(posterior, quantity, beta))
    return asked.searched(place, tol, words, start)


@dataclass(frozen=True, eq=False)
class RangeGoals:
    """The goals of one search, and for every range that is made of it the number of its output and
    the places of its goals by sign."""

    question: RangeQuestion
    quantities: list[Quantity]
    rows: list[tuple[int, dict[int, int]]]

    @staticmethod
    def of_one(question: RangeQuestion, output: Any, sides: Any) -> RangeGoals:
        """One output, on one side or both."""
        known: dict[str, tuple[int, ...]] = {"both": (1, -1), "minimum": (1,), "maximum": (-1,)}
        signs = known[one_of("sides", sides, get_args(Sides))]
        index = question.index(output)
        if question.two and index == 0:
            signs = tuple(-sign for sign in signs)  # least where the second class has most
        asked = [question.asked(index, sign) for sign in signs]
        return RangeGoals(question, asked, [(index, {sign: k for k, sign in enumerate(signs)})])

    @staticmethod
    def of_all(question: RangeQuestion) -> RangeGoals:
        """All outputs, on both sides."""
        last = question.searched - 1
        asked = [question.asked(c, sign) for c in range(last + 1) for sign in (1, -1)]
        pairs = [min(c, last) for c in range(len(question.labels))]
        return RangeGoals(
            question, asked, [(c, {1: 2 * k, -1: 2 * k + 1}) for c, k in enumerate(pairs)]
        )

    def nominal(self, regions: Sequence[Region]) -> list[list[float | None]]:
        """For every range, region by region: the quantity at the region's centre, in plain floating
        point; a band has no single one."""
        if self.question.beta is not None:
            return [[None] * len(regions) for _ in self.rows]
        X = np.stack([_middle(region) for region in regions])
        return [self._nominal(index, X) for index, _ in self.rows]

    def _nominal(self, index: int, X: np.ndarray) -> list[float | None]:
        goal = QuantityGoal(self.question.asked(index, 1))
        values = goal.plain_values(self.question.model, X)
        if self.question.two and index == 0:
            return [None if value is None else 1.0 - value for value in values]
        return values

    def searched(
        self, region: Region, tol: Any, words: Mapping[str, Any], start: float
    ) -> tuple[PredictionRange, ...]:
        """The ranges over a region, bounded and paid for as the words say."""
        model, method = self.question.model, Method.read(words)
        with progress_line(words["progress"]) as line:
            watch = Watch(start, lambda state: line.show(ranges_text(state)))
            stop = {"tol": read_tolerance(tol), "watch": watch}
            problem = Means.read(words).problem(model, region, self.quantities, method, **stop)
            return self.records(solve(problem), region, method)

    def records(
        self,
        result: SearchResult,
        region: Region,
        method: Method,
        nominal: Sequence[float | None] | None = None,
    ) -> tuple[PredictionRange, ...]:
        """The ranges over a region, from what was found of the goals."""
        if nominal is None:
            nominal = [values[0] for values in self.nominal([region])]
        described = region.describe()
        return tuple(
            self._record(index, places, result, described, method, value)
            for (index, places), value in zip(self.rows, nominal, strict=True)
        )

    def _record(
        self,
        index: int,
        places: dict[int, int],
        result: SearchResult,
        region: dict[str, Any],
        method: Method,
        nominal: float | None,
    ) -> PredictionRange:
        """From the goals of sign 1 and -1, as far as they were searched."""
        question = self.question
        found = {sign: result.goals[place] for sign, place in places.items()}
        if question.two and index == 0:
            found = _complement(found)
        low, high = found.get(1), found.get(-1)
        # a side that was not searched: the maximum is at least the minimum (of a band too), and
        # nothing more is known
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
            region=region,
            method=method.name,
            model=question.fingerprint,
            meaning=question.meanings[index],
            beta=question.beta,
            nominal=nominal,
        )


def _middle(region: Region) -> np.ndarray:
    return region.center if isinstance(region, Ball) else 0.5 * region.lower + 0.5 * region.upper


def _complement(found: dict[int, GoalResult]) -> dict[int, GoalResult]:
    """Goals of the first of two classes from those of the second, whose probability is F.

    Statement: `sign (1 - F) = sign + (-sign F)`, so that the goal of either sign is that of the
    other one plus a sign; one rounding outwards.
    """
    return {
        sign: GoalResult(
            difference_down(side.lower, Fraction(-sign)),
            difference_up(side.upper, Fraction(-sign)),
            side.point,
        )
        for sign, side in ((-sign, side) for sign, side in found.items())
    }


def _lower(side: GoalResult | None) -> float:
    return -np.inf if side is None else side.lower
