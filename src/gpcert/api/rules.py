"""Decision rules: what "the same decision" means, as one goal and one level for every decision, and
the proof of which decision is made at x.

Plain floating point says which decision is likely; it may be wrong near a tie, so it only orders
the work. What counts is the enclosure of the margin on a cell of width 0 at x.

Proofs: docs/mathematics.md, statements 8.6, 14.3 and 14.4.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from gpcert.api.options import QuantityRequest
from gpcert.api.questions import check_probability, comparison
from gpcert.attacks import Comparison, Decision
from gpcert.attacks.functions import lazy_function
from gpcert.certificates import Interval, Unit
from gpcert.enclosures.evaluation import evaluation_at
from gpcert.enclosures.goals import QuantityGoal, deviation_around
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ResponseLikelihood, ScalarLikelihood
from gpcert.model.class_layout import class_layout
from gpcert.model.committee import Committee, Model, class_weights
from gpcert.model.multi_output import Outputs
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.numerics.rounding import difference_down, difference_up
from gpcert.quantities import ClassSums, Deviation, Mean, Probability, Quantity
from gpcert.quantities.committee import committee_margin
from gpcert.quantities.compound import margins
from gpcert.regions.shapes import check_norm
from gpcert.search import StopReason
from gpcert.utils.processes import OutOfTime, until

ZERO, HALF = Fraction(0), Fraction(1, 2)

WEIGHED = "largest weight times probability"

NEAR = 1e-2
"""A lead in probability (of the largest weight) below which plain values may be wrong."""

NEAR_ROUNDING = 1e-10
"""The same for a mean, relative to the size of its terms."""

GRACE = 0.5
"""Seconds that the proof of the decision at x may take after the budget's end: half of those by
which a budget may be overrun."""

NEAR_VALUE = 1e-6
"""The same for other values, relative to value and level."""

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
    unit: StrEnum
    x: np.ndarray
    fingerprint: str
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
            lower = to_numpy(rule.goal.bound(evaluation, rule.target).lower)[0]
            upper = to_numpy(rule.goal.ceiling(evaluation))[0]
            margin = margin_of(float(lower), float(upper), rule.level)
            if margin.lower > 0:
                return rule
            margins.append(margin)
        most = max(margins[0].upper, -margins[0].lower)
        return self._open(StopReason.UNDECIDED_AT_X, most)

    def proved_until(self, end: float) -> Rule:
        """`proved`, but undecided for want of time at a moment a little after `end`: without the
        proof, mostly milliseconds, no verdict stands."""
        try:
            with until(max(end, time.perf_counter() + GRACE), exactly=True):
                return self.proved()
        except OutOfTime:
            return self._open(StopReason.TIME, np.inf)

    def _open(self, reason: StopReason, most: float) -> Rule:
        return replace(self.guess, decision=None, text=self.open_text, undecided=reason, most=most)


def decision_rule(model: Model, x: np.ndarray, options: Decision) -> Rule:
    """The rule of the decision at x, proved; or one that says that x is undecided."""
    return decision_candidates(model, x, options).proved()


def decision_candidates(model: Model, x: np.ndarray, options: Decision) -> Candidates:
    """The rules that the model's kind and the options ask for, one for every decision."""
    several = common_candidates(model, x[None], options)
    if several is not None:
        return several[0]
    assert not isinstance(model, Committee), "committees decide between classes"
    asked = deviation_around(model, x, check_norm(options.output_norm))
    rule = deviation_rule(model, x, asked, options)
    # at x itself the deviation is 0: the margin delta is positive
    return Candidates((0,), lambda _: rule, rule.text, sure=True)


def common_candidates(model: Model, X: np.ndarray, options: Decision) -> list[Candidates] | None:
    """`decision_candidates` of every row of X (n, d) where the rules of a decision share quantity
    and level, whatever x is: between classes, or against a level. None where they do not."""
    if options.compared is not None:
        return _against(options.compared, X, model.fingerprint)
    if isinstance(model, Committee) or isinstance(model.likelihood, ClassLikelihood):
        return _between(model, X, options)
    if isinstance(model, Posterior) and model.likelihood.classifies:
        return _against(_of_two(model, options), X, model.fingerprint)
    if options.class_weight is not None:
        advice = model.likelihood.advice
        raise InputError(f"class_weight: expected a classifier, got a regression model{advice}")
    level = options.threshold
    if (options.delta is None) == (level is None):
        raise InputError(
            "regression robustness needs either delta= (how far the mean may move) or threshold= "
            f"(a level that it must not cross); got {'neither' if level is None else 'both'}"
            f"{model.likelihood.advice}"
        )
    if level is None:
        if isinstance(model.likelihood, ResponseLikelihood):
            raise InputError(
                "delta: bounds how far latent means move, and the prediction of this model is "
                f"another function of them ({type(model.likelihood).__name__}); give threshold=, "
                "which it must not cross, or ask for its range by prediction_range"
            )
        return None
    if model.outputs != 1:
        raise InputError(
            f"threshold: expected output=, which of {model.outputs} targets is compared with it, "
            "got none (delta= asks about all of them)"
        )
    asked = comparison(model, level, QuantityRequest())
    return _against(asked, X, model.fingerprint)


def _near_level(posterior: Posterior, X: np.ndarray, level: Fraction) -> np.ndarray:
    """(n,) whether the mean of any output is within some thousand roundings of the level."""
    terms = np.abs(posterior.cross(X)) @ np.abs(posterior.weights).T
    terms = posterior.scale * (terms + np.abs(posterior.seen(X)) @ np.abs(posterior.slope).T)
    if posterior.mean_function is not None:
        terms = terms + posterior.scale * np.abs(posterior.mean_function.value(posterior.seen(X)))
    sizes = np.abs(posterior.offset) + terms + abs(float(level))
    apart = np.abs(posterior.mean(X) - float(level))
    return np.any(apart <= NEAR_ROUNDING * sizes, axis=1)


def _between(model: Outputs | Committee, X: np.ndarray, options: Decision) -> list[Candidates]:
    """Several classes: the largest cost of a mistake times probability decides, or votes do."""
    if options.delta is not None:
        raise InputError("delta: expected a regression model, got a classifier")
    if options.threshold is not None:
        raise InputError(
            f"threshold: expected two classes, got {len(model.labels)}; the most probable class "
            "decides: use class_weight= to prefer some, or output= to compare the probability of "
            "one class with the threshold"
        )
    weighed = options.class_weight is not None
    costs = class_weights(model.labels, options.class_weight)
    unit = Unit.WEIGHTED if weighed else Unit.PROBABILITY
    if isinstance(model, Committee):
        text = f"{model.scheme.replace('_', '-')} decision"
        searched, scores = model, model.scores(X) * np.asarray(costs)
        unit = unit if model.scheme == "one_vs_rest" else Unit.VOTES
        ask = partial(committee_margin, model, class_weight=costs if weighed else None)
    else:
        text = WEIGHED if weighed else "the most probable class"
        layout, searched = class_layout(model)
        scores, likelihood = model.prediction(X) * np.asarray(costs), model.likelihood
        assert isinstance(likelihood, ClassLikelihood)

        def ask(winner: int) -> Quantity:
            return ClassSums(layout, likelihood, margins(layout.classes, winner, costs))

    ordered = np.sort(scores, axis=1)
    near = ordered[:, -1] - ordered[:, -2] < NEAR * max(costs)
    if isinstance(model, Committee) and model.shared:
        near = _near_level(model.members[0], X, ZERO)
    elif isinstance(model, Committee) and model.scheme == "one_vs_one":
        near[:] = True  # a vote may hang on a mean near 0 while the scores are far apart

    def rule(x: np.ndarray, k: int) -> Rule:
        return Rule(searched, ask(k), ZERO, model.labels[k], text, unit, x, model.fingerprint)

    return _ranked(X, scores, near, rule, text)


def _ranked(
    X: np.ndarray,
    scores: np.ndarray,
    near: np.ndarray,
    rule: Callable[[np.ndarray, int], Rule],
    text: str,
) -> list[Candidates]:
    """For each row: the decisions by their scores (n, decisions), the first of equal ones first."""
    ranked = np.argsort(-scores, axis=1, kind="stable").tolist()
    return [
        Candidates(tuple(order), partial(rule, x), text, near=bool(close))
        for x, order, close in zip(X, ranked, near, strict=True)
    ]


def _of_two(posterior: Posterior, options: Decision) -> Comparison:
    """Two classes: the second is decided where the mean is > 0, or pi > threshold, else the first.

    The default is what `predict` does, the sign of the mean, if the link is symmetric; a threshold
    or weights ask about the probability, which is another question where F(0, v) is not 1/2. Where
    it is (`ScalarLikelihood.fair`) a threshold of 1/2 is proved to ask for the sign of the mean.
    With weights `w2 pi > w1 (1 - pi)` exactly where `pi > w1 / (w1 + w2)`, a rational number.
    A mean alone is compared with the threshold, 0 by default.
    """
    if options.delta is not None:
        raise InputError("delta: expected a regression model; for a classifier use threshold=")
    likelihood, given = posterior.likelihood, options.threshold
    if not likelihood.has_variance:
        if options.class_weight is not None:
            posterior.check_has_variance("class_weight")
        plain = "sign of the decision function"
        text = plain if given is None else f"decision function against {given!r}"
        return _two_sides(posterior, Fraction(given or 0.0), text)
    assert isinstance(likelihood, ScalarLikelihood)
    threshold, text = None, "sign of the latent mean"
    if options.class_weight is not None:
        if given is not None:
            raise InputError("expected threshold= or class_weight=, got both; drop one")
        first, second = map(Fraction, class_weights(posterior.labels, options.class_weight))
        threshold = quotient = first / (first + second)
        text = f"{WEIGHED}: probability against about {float(quotient):.6g}"
    elif given is not None:
        threshold, text = check_probability(given), f"probability against {given!r}"
    elif not likelihood.symmetric:
        threshold, text = HALF, "probability against 0.5"
    if threshold == HALF and likelihood.fair:
        threshold, text = None, f"{text}, where the latent mean is 0"
    if threshold is None:
        return _two_sides(posterior, ZERO, text)
    return _two_sides(posterior, threshold, text, likelihood)


def _two_sides(
    posterior: Posterior, level: Fraction, text: str, likelihood: ScalarLikelihood | None = None
) -> Comparison:
    """The latent mean, or with a likelihood the probability, against a level."""
    above, below = (
        Mean(0, sign) if likelihood is None else Probability(likelihood, 0, sign)
        for sign in (1, -1)
    )
    value, unit = "latent mean", Unit.LATENT
    if likelihood is not None:
        value, unit = f"probability of class {posterior.labels[1]}", Unit.PROBABILITY
    texts, (first, second) = (text, text, text), posterior.labels
    return Comparison(posterior, above, below, level, value, unit, texts, (first, second))


def _against(asked: Comparison, X: np.ndarray, fingerprint: str) -> list[Candidates]:
    """The second decision where the value exceeds the level, else the first."""
    with np.errstate(all="ignore"):  # extreme models overflow; no verdict rests on this
        values, _ = lazy_function(asked.model, asked.above)(X)
    level = float(asked.level)
    if isinstance(asked.above, Mean):
        near = _near_level(asked.model.output(asked.above.output)[0], X, asked.level)
    elif asked.unit is Unit.PROBABILITY:
        near = np.abs(values - level) < NEAR
    else:
        near = np.abs(values - level) < NEAR_VALUE * (np.abs(values) + abs(level))

    def rule(x: np.ndarray, second: int) -> Rule:
        sign = 1 if second else -1
        quantity, label = asked.above if second else asked.below, asked.labels[second]
        about = (label, asked.texts[second], asked.unit, x, fingerprint)
        return Rule(asked.model, quantity, sign * asked.level, *about)

    scores = np.stack([np.full_like(values, level), values], axis=1)
    return _ranked(X, scores, near, rule, asked.texts[2])


def deviation_rule(posterior: Outputs, x: np.ndarray, asked: Deviation, options: Decision) -> Rule:
    """That the means stay within delta of those at x, which `asked` holds."""
    delta = options.delta
    assert delta is not None, "a regression without a level"
    if delta <= 0:
        raise InputError(f"delta: expected a positive number, got {delta!r}")
    text = f"deviation of the mean at most {delta!r} (l_{asked.norm:g})"
    fingerprint = posterior.fingerprint
    return Rule(posterior, asked, -Fraction(delta), None, text, Unit.TARGET, x, fingerprint)
