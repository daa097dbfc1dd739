"""How accurate a range is to be: `tol` and `rtol` of the verbs, and what they are by default.

Proofs: docs/mathematics.md, statement 14.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.api.options import read_tolerance
from gpcert.enclosures.goals import QuantityGoal
from gpcert.model.committee import Committee
from gpcert.model.multi_output import Outputs
from gpcert.model.posterior import Posterior
from gpcert.quantities import Compound, OutputQuantity, PredictionSlope, Slope
from gpcert.search.problem import Tolerance

if TYPE_CHECKING:
    from gpcert.api.range_questions import RangeQuestion
    from gpcert.api.ranges import RangeGoals

USUAL = 0.01
"""By default: of a probability; of the outputs' spread, for a mean or a band; of a variance or a
standard deviation itself."""

IN_OUTPUT_UNITS = ("mean", "band", "lcb", "ucb", "slope")
"""Quantities with a mean in them."""

NEGLIGIBLE = 1e-4
"""Of the outputs' spread: what standard deviations need not be better known than by default, nor
than `USUAL` of the smallest at the model's points, where that is known. About points of nearly
noiseless data they are smaller in tiny places only, which takes many boxes to bound relatively."""

MAX_PLACES = 64
"""Points at which the means are looked at for their spread."""


@dataclass(frozen=True)
class Accuracy:
    """The options `tol` (absolute) and `rtol` (relative), read; None where they are not given."""

    tol: float | None = None
    rtol: float | None = None

    @staticmethod
    def read(tol: Any, rtol: Any) -> Accuracy:
        """From the options of a verb."""
        return Accuracy(
            None if tol is None else read_tolerance(tol),
            None if rtol is None else read_tolerance(rtol, below=1.0, name="rtol"),
        )

    @property
    def given(self) -> bool:
        """Whether any of them is."""
        return self.tol is not None or self.rtol is not None

    def tolerance(self, zeros: np.ndarray | None = None) -> Tolerance:
        """What was given; what was not is 0."""
        return Tolerance(self.tol or 0.0, self.rtol or 0.0, zeros)

    def of(self, goals: RangeGoals) -> Tolerance:
        """Of the goals of one search, by default that of their quantity."""
        if self.given:
            return self.tolerance(zeros_of(goals))
        outputs = [0] * len(goals.quantities)
        for index, numbers in goals.rows:
            for number in numbers.values():
                outputs[number] = index
        return usual(goals.question, outputs)

    def of_output(self, question: RangeQuestion, index: int) -> Tolerance:
        """Of one output, as its range is told."""
        return self.tolerance() if self.given else usual(question, [index])


def usual(question: RangeQuestion, outputs: Sequence[int]) -> Tolerance:
    """The default for goals that are of these outputs."""
    name, model = question.quantity, question.model
    if name == "ei":
        assert not isinstance(model, Committee), "an improvement is of a regression"
        return Tolerance(NEGLIGIBLE * spreads(model)[list(outputs)], USUAL)
    if name == "response":
        return Tolerance(NEGLIGIBLE * value_spreads(question, outputs), USUAL)
    of_values = isinstance(question.given, OutputQuantity | Compound | PredictionSlope)
    if of_values or (isinstance(question.given, Slope) and question.given.by_variance):
        return Tolerance(USUAL * value_spreads(question, outputs))
    if name not in {*IN_OUTPUT_UNITS, "std", "variance"} or isinstance(model, Committee):
        return Tolerance(USUAL)
    spread = spreads(model)[list(outputs)]
    if name in IN_OUTPUT_UNITS:
        return Tolerance(USUAL * spread)
    floor = np.minimum(NEGLIGIBLE * spread, USUAL * smallest_deviations(model)[list(outputs)])
    power = 2 if name == "variance" else 1
    with np.errstate(over="ignore", under="ignore"):
        negligible = np.minimum(floor**power, np.finfo(float).max)
    return Tolerance(negligible, USUAL)


def smallest_deviations(model: Outputs) -> np.ndarray:
    """(m,) about the smallest standard deviation of each output at its own points; infinite where
    the training noise is unknown, as it may be 0 there. It sets accuracies only.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import SquaredExponential
    >>> model = Posterior(SquaredExponential(1.0), [[0.0]], [1.0], training_noise=1e-6)
    >>> smallest_deviations(model).round(6).tolist()
    [0.001]
    """
    deviations = []
    for member in model.members:
        variances = np.full(member.outputs, np.inf)
        if member.training_noise is not None:
            variances[:] = member.unit.smallest_variances  # one for all outputs, or one each
            variances = variances * member.unit.variance_scale + member.noise
        deviations.append(np.sqrt(variances))
    return np.concatenate(deviations)


def value_spreads(question: RangeQuestion, outputs: Sequence[int]) -> np.ndarray:
    """For each output about the standard deviation of its quantity's values over the model's own
    points, as `spreads` are of means."""
    X = np.concatenate([_some_places(member) for member in question.model.members])
    known = {}
    for output in set(outputs):
        values = QuantityGoal(question.asked(output, 1)).plain_values(question.model, X)
        finite = np.array([value for value in values if value is not None])
        known[output] = _spread_of(finite[:, None])[0] if len(finite) else 1.0
    return np.array([known[output] for output in outputs])


def spreads(model: Outputs) -> np.ndarray:
    """(m,) about the standard deviation of each output's mean over its own points; of one point the
    mean's size. It sets accuracies only, and is no part of a bound.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import SquaredExponential
    >>> spreads(Posterior(SquaredExponential(1.0), [[0.0], [9.0]], [1.0, -1.0])).round(6).tolist()
    [1.0]
    """
    return np.concatenate([_spread(member) for member in model.members])


def _spread(member: Posterior) -> np.ndarray:
    with np.errstate(all="ignore"):  # extreme models overflow
        return _spread_of(member.mean(_some_places(member)))


def _some_places(member: Posterior) -> np.ndarray:
    places = member.places
    return places[np.linspace(0, len(places) - 1, min(MAX_PLACES, len(places))).astype(int)]


def _spread_of(values: np.ndarray) -> np.ndarray:
    """(m,) the standard deviation of values (n, m); where they are all the same, their size."""
    with np.errstate(all="ignore"):
        both = np.std(values, axis=0), np.max(np.abs(values), axis=0)
    spread, size = (np.where(np.isfinite(each), each, 0.0) for each in both)
    largest = np.where(size > 0, size, 1.0)
    return np.where(spread > 1e-9 * largest, spread, largest)


def zeros_of(goals: RangeGoals) -> np.ndarray:
    """(G, 2): values of the goals at which one of the ranges that are told would be 0.

    Of two classes one probability F is searched, as F and as -F: of the first class 1 - F is told,
    which is 0 where these are 1 and -1.
    """
    zeros = np.zeros((len(goals.quantities), 2))
    second = any(index > 0 for index, _ in goals.rows)
    for index, numbers in goals.rows:
        for sign, number in numbers.items() if goals.question.two and index == 0 else ():
            zeros[number, 0] = sign
            zeros[number, 1] = 0.0 if second else sign
    return zeros
