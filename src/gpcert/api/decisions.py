"""What is decided at x: a rule for every possible decision, and the proof of which one holds.

Plain floating point says which decision is likely; it may be wrong near a tie, so it only orders
the work. What counts is the enclosure of the margin on a cell of width 0 at x. `Method`: which
family of enclosures a search uses, Taylor, the paper's own, or the better of both.

Proofs: docs/mathematics.md, statements 14.3 and 14.4.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gpcert.arrays import to_numpy
from gpcert.certificates import Interval, Unit
from gpcert.committee import Model
from gpcert.deadline import OutOfTime, until
from gpcert.enclosures import Evaluation
from gpcert.enclosures.evaluation import evaluation_at
from gpcert.enclosures.goals import Goal, QuantityGoal
from gpcert.enclosures.paper import PaperEnclosures
from gpcert.enclosures.paper.intervals import VarianceBound
from gpcert.errors import InputError
from gpcert.quantities import ClassSums, OutputQuantity, Probability, Quantity
from gpcert.rounding import difference_down, difference_up
from gpcert.search import StopReason

MethodName = Literal["taylor", "paper", "both"]


@dataclass(frozen=True)
class Method:
    """`name` is "taylor" (default), "paper" or "both".

    `variance_bound` says how the paper's variance programs are bounded, by "solver" (the paper's;
    default of "paper") or "analytic", in closed form (default of "both", where seconds a box for a
    solver would seldom pay).

    >>> Method("paper").variance_bound, Method("both").variance_bound
    ('solver', 'analytic')
    """

    name: MethodName = "taylor"
    variance_bound: VarianceBound | None = None

    @staticmethod
    def read(words: Mapping[str, Any]) -> Method:
        """From the words of a verb; an attack, which bounds nothing, has the default."""
        return Method(words.get("method", "taylor"), words.get("variance_bound"))

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in {"taylor", "paper", "both"}:
            raise InputError(f"method: expected 'taylor', 'paper' or 'both', got {self.name!r}")
        named = self.variance_bound is None or isinstance(self.variance_bound, str)
        if not named or self.variance_bound not in {None, "solver", "analytic"}:
            raise InputError(
                f"variance_bound: expected 'solver' or 'analytic', got {self.variance_bound!r}"
            )
        if self.name == "taylor" and self.variance_bound is not None:
            raise InputError(
                f"variance_bound: {self.variance_bound!r} is a choice of method='paper' or 'both'; "
                "with method='taylor' leave it out"
            )
        if self.name != "taylor" and self.variance_bound is None:
            default = "solver" if self.name == "paper" else "analytic"
            object.__setattr__(self, "variance_bound", default)

    def goals(
        self, quantities: Sequence[Quantity], random_state: int | None, model: Model
    ) -> list[Goal]:
        """The goals of one search, bounded by this method; they share the paper's intervals.

        The default takes the paper's closed forms as well where they pay: for the variance of a
        rough kernel, whose Taylor bounds are of order 0 or 1 only (measured in
        benchmarks/results/methods.md), and so for its std and band.
        """
        mapped = any(member.features is not None for member in model.members)
        if self.variance_bound is None:
            rough = [not mapped and _by_rough_variance(each, model) for each in quantities]
            closed = PaperEnclosures("analytic", random_state) if any(rough) else None
            return [
                QuantityGoal(each, closed if own else None)
                for each, own in zip(quantities, rough, strict=True)
            ]
        if len(model.members) > 1 and any(isinstance(each, ClassSums) for each in quantities):
            raise InputError(
                "method: the paper's method bounds class probabilities of outputs that share a "
                "kernel; for outputs with kernels of their own use method='taylor'"
            )
        if mapped:
            raise InputError(
                f"method: {self.name!r} is not known for a model behind linear features (PCA); "
                "leave it out, or ask about regions of the features: fit on them, without a "
                "pipeline"
            )
        paper = PaperEnclosures(self.variance_bound, random_state)
        return [QuantityGoal(each, paper, self.name == "both") for each in quantities]


def _by_rough_variance(quantity: Quantity, model: Model) -> bool:
    """Whether the paper's closed forms pay: variances, stds and bands of a rough kernel."""
    if not isinstance(quantity, OutputQuantity) or isinstance(quantity, Probability):
        return False
    return quantity.by_variance and model.output(quantity.output)[0].kernel.rough


GRACE = 0.5
"""Seconds that the proof of the decision at x may take after the budget's end."""

TRIED = 4
"""Decisions that are tried at x, the likeliest by plain floating point first. A matter of work:
should another one win, x is left undecided."""


@dataclass(frozen=True, eq=False)
class Rule:
    """`margin(x) = quantity(x) - level`, positive exactly where `decision` is made, ties apart.

    `level` is an exact number. `decision` is a label, or None in regression, and where it is
    `undecided` for a reason: then the margin at x of whatever is decided there is at most `most`.
    `model` is what is searched: for coupled classes the differences of their latent functions.
    `text` is the rule in words, `unit` what its margin is measured in, `fingerprint` that of the
    user's model.
    """

    model: Model
    quantity: Quantity
    level: Fraction
    decision: Any
    text: str
    unit: Unit
    x: np.ndarray
    method: Method = field(default_factory=Method)
    fingerprint: str = ""
    undecided: StopReason | None = None
    most: float = np.inf

    @property
    def goal(self) -> QuantityGoal:
        """The quantity as it is bounded at a point, whatever the method."""
        return QuantityGoal(self.quantity)

    @property
    def decided(self) -> bool:
        """Whether the decision at x is known."""
        return self.undecided is None

    @property
    def target(self) -> float:
        """The level rounded to a float: it steers the search, and no verdict rests on it."""
        return float(self.level)


def margin_of(lower: float, upper: float, level: Fraction) -> Interval:
    """Bounds of `goal - level` from those of the goal; signs are exact, as is the level."""
    return Interval(difference_down(lower, level), difference_up(upper, level))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The rules of all decisions that are possible at x, by number, the likeliest first.

    Exactly one margin is positive at x, or x lies at a tie: with scores s_k the margins are
    `s_k - max_(j != k) s_j`, of two decisions m and -m. `open_text` is the rule in words where it
    is not known which decision is meant. `near`: the likeliest two are so close that what is
    decided at x had better be proved before anything else; a matter of time only. `sure`: the one
    rule there is holds at x by itself.
    """

    order: tuple[int, ...]
    build: Callable[[int], Rule]
    open_text: str
    near: bool = False
    sure: bool = False

    @cached_property
    def guess(self) -> Rule:
        """The likeliest rule; nothing is proved of it, but by a positive margin at x."""
        return self.build(self.order[0])

    def proved(self) -> Rule:
        """The rule whose margin at x is proved to be positive, else one that is not `decided`.

        Undecided: let g be the guess, with margin m_g at x. If g is decided its margin is m_g; if k
        is, its margin is at most `s_k - s_g <= -m_g`. So it is at most the larger of the upper
        bound of m_g and minus the lower one.
        """
        guess = self.guess
        if self.sure:
            return guess
        evaluation = evaluation_at(guess.model, guess.x, guess.goal.needs_variance)
        margins = []
        for number in self.order[:TRIED]:
            rule = guess if number == self.order[0] else self.build(number)
            margin = _margin_at(rule, evaluation)
            if margin.lower > 0:
                return rule
            margins.append(margin)
        most = max(margins[0].upper, -margins[0].lower)
        return self._open(StopReason.UNDECIDED_AT_X, most)

    def proved_until(self, end: float) -> Rule:
        """`proved`, but undecided for want of time at a moment a little after `end`.

        The proof takes one cell of width 0, mostly milliseconds: without it no verdict stands, so
        it may use half of the second by which a budget may be overrun.
        """
        try:
            with until(max(end, time.perf_counter() + GRACE), exactly=True):
                return self.proved()
        except OutOfTime:
            return self._open(StopReason.TIME, np.inf)

    def _open(self, reason: StopReason, most: float) -> Rule:
        return replace(self.guess, decision=None, text=self.open_text, undecided=reason, most=most)


def _margin_at(rule: Rule, evaluation: Evaluation) -> Interval:
    """Certified margin at the evaluation's one point."""
    lower = to_numpy(rule.goal.bound(evaluation, rule.target).lower)[0]
    upper = to_numpy(rule.goal.ceiling(evaluation))[0]
    return margin_of(float(lower), float(upper), rule.level)
