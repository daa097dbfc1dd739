"""Decision rules: what "the same decision" means, as one goal and one level for every decision.

Proofs: docs/mathematics.md, statements 8.6 and 14.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from gpcert.api.decisions import Candidates, Method, Rule
from gpcert.api.words import read_class_weight
from gpcert.arrays import finite_array
from gpcert.attacks import Decision
from gpcert.certificates import Unit
from gpcert.class_layout import class_layout
from gpcert.committee import Committee, Model, class_weights
from gpcert.enclosures.goals import deviation_around
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.posterior import Posterior
from gpcert.quantities import ClassSums, Deviation, Mean, Probability
from gpcert.quantities.committee import committee_margin
from gpcert.quantities.compound import margins
from gpcert.regions.shapes import check_norm
from gpcert.several import Outputs

ZERO, HALF = Fraction(0), Fraction(1, 2)

WEIGHED = "largest weight times probability"

NEAR = 1e-2
"""A lead in probability (of the largest weight) below which plain values may be wrong."""

NEAR_ROUNDING = 1e-10
"""The same for a mean, relative to the size of its terms."""


@dataclass(frozen=True)
class RuleOptions(Decision):
    """What the user may say about the decision, and how it is bounded; see `gpcert.certify`."""

    method: Method = field(default_factory=Method)

    @staticmethod
    def read(words: Mapping[str, Any]) -> RuleOptions:
        """From the words of a verb."""
        return RuleOptions(
            _number("threshold", words["threshold"]),
            read_class_weight(words["class_weight"]),
            _number("delta", words["delta"]),
            check_norm(words["output_norm"], "output_norm"),
            Method.read(words),
        )


def _number(name: str, value: Any) -> float | None:
    return None if value is None else float(finite_array(name, value, ndim=0))


def decision_rule(model: Model, x: np.ndarray, options: RuleOptions) -> Rule:
    """The rule of the decision at x, proved; or one that says that x is undecided."""
    return decision_candidates(model, x, options).proved()


def decision_candidates(model: Model, x: np.ndarray, options: RuleOptions) -> Candidates:
    """The rules that the model's kind and the options ask for, one for every decision."""
    several = common_candidates(model, x[None], options)
    if several is not None:
        return several[0]
    assert not isinstance(model, Committee), "committees decide between classes"
    return _deviation(model, x, options)


def common_candidates(model: Model, X: np.ndarray, options: RuleOptions) -> list[Candidates] | None:
    """`decision_candidates` of every row of X (n, d) where the rules of a decision share quantity
    and level, whatever x is: between classes, or against a level. None where they do not."""
    if isinstance(model, Committee):
        found = _committee(model, X, options)
    elif isinstance(model.likelihood, ClassLikelihood):
        found = _classes(model, model.likelihood, X, options)
    elif isinstance(model, Posterior) and model.likelihood.classifies:
        found = _classification(model, X, options)
    else:
        level = _regression_level(model, options)
        if level is None:
            return None
        assert isinstance(model, Posterior), "one output"
        words = (f"mean {side} {level!r}" for side in ("below", "above", "on one side of"))
        found = _against(model, X, Fraction(level), Unit.TARGET, tuple(words))
    return [_completed(each, model, options) for each in found]


def _completed(found: Candidates, model: Model, options: RuleOptions) -> Candidates:
    """With what all kinds of rules have in common."""

    def build(number: int) -> Rule:
        return replace(found.build(number), method=options.method, fingerprint=model.fingerprint)

    return replace(found, build=build)


def _ranked(scores: np.ndarray) -> tuple[int, ...]:
    """Numbers of the classes, the largest score first, the first of equal ones."""
    return tuple(int(k) for k in np.argsort(-scores, kind="stable"))


def _near(scores: np.ndarray, costs: Sequence[float]) -> np.ndarray:
    """(n,) whether the largest of the scores (n, classes) hardly leads."""
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2] < NEAR * max(costs)


def _near_level(posterior: Posterior, X: np.ndarray, level: Fraction) -> np.ndarray:
    """(n,) whether the mean of any output is within some thousand roundings of the level."""
    terms = np.abs(posterior.cross(X)) @ np.abs(posterior.weights).T
    terms = posterior.scale * (terms + np.abs(posterior.seen(X)) @ np.abs(posterior.slope).T)
    sizes = np.abs(posterior.offset) + terms + abs(float(level))
    apart = np.abs(posterior.mean(X) - float(level))
    return np.any(apart <= NEAR_ROUNDING * sizes, axis=1)


def _classes(
    posterior: Outputs, likelihood: ClassLikelihood, X: np.ndarray, options: RuleOptions
) -> list[Candidates]:
    costs = _costs(posterior.labels, options)
    layout, searched = class_layout(posterior)
    unit = Unit.PROBABILITY if options.class_weight is None else Unit.WEIGHTED
    text = "the most probable class" if options.class_weight is None else WEIGHED

    def rule(x: np.ndarray, winner: int) -> Rule:
        margin = ClassSums(layout, likelihood, margins(layout.classes, winner, costs))
        return Rule(searched, margin, ZERO, posterior.labels[winner], text, unit, x)

    scores = posterior.prediction(X) * np.asarray(costs)
    return _of_classes(X, scores, _near(scores, costs), rule, text)


def _of_classes(
    X: np.ndarray,
    scores: np.ndarray,
    near: np.ndarray,
    rule: Callable[[np.ndarray, int], Rule],
    text: str,
) -> list[Candidates]:
    """For each row: the classes by their scores (n, classes)."""
    return [
        Candidates(_ranked(own), partial(rule, x), text, near=bool(close))
        for x, own, close in zip(X, scores, near, strict=True)
    ]


def _committee(committee: Committee, X: np.ndarray, options: RuleOptions) -> list[Candidates]:
    costs = _costs(committee.classes, options)
    weights = None if options.class_weight is None else costs
    text = f"{committee.scheme.replace('_', '-')} decision"
    unit = Unit.PROBABILITY if weights is None else Unit.WEIGHTED
    if committee.scheme != "one_vs_rest":
        unit = Unit.VOTES

    def rule(x: np.ndarray, winner: int) -> Rule:
        margin = committee_margin(committee, winner, weights)
        return Rule(committee, margin, ZERO, committee.classes[winner], text, unit, x)

    scores = committee.scores(X) * np.asarray(costs)
    # a vote may hang on a mean near 0 while the scores are far apart
    near = _near(scores, costs) | (committee.scheme == "one_vs_one")
    if committee.shared:
        near = _near_level(committee.members[0], X, ZERO)
    return _of_classes(X, scores, near, rule, text)


def _costs(labels: tuple[Any, ...], options: RuleOptions) -> tuple[float, ...]:
    """Cost of a mistake on each class: the largest `cost * probability` decides."""
    if options.delta is not None:
        raise InputError("delta: expected a regression model, got a classifier")
    if options.threshold is not None:
        raise InputError(
            f"threshold: expected two classes, got {len(labels)}; the most probable class decides, "
            "use class_weight= to prefer some"
        )
    return class_weights(labels, options.class_weight)


def _classification(posterior: Posterior, X: np.ndarray, options: RuleOptions) -> list[Candidates]:
    """Two classes: the second is decided where the mean is > 0, or pi > threshold, else the first.

    The default is what `predict` does, the sign of the mean, if the link is symmetric; a threshold
    or weights ask about the probability, which is another question where F(0, v) is not 1/2. Where
    it is (`ScalarLikelihood.fair`) a threshold of 1/2 is proved to ask for the sign of the mean.
    A mean alone is compared with the threshold, 0 by default.
    """
    if options.delta is not None:
        raise InputError("delta: expected a regression model; for a classifier use threshold=")
    likelihood, given = posterior.likelihood, options.threshold
    if not likelihood.has_variance:
        if options.class_weight is not None:
            posterior.check_has_variance("class_weight")
        text = "sign of the decision function"
        if given is not None:
            text = f"decision function against {given!r}"
        return _against(posterior, X, Fraction(given or 0.0), Unit.LATENT, (text,) * 3)
    threshold, text = _probability_threshold(posterior, options)
    assert isinstance(likelihood, ScalarLikelihood)
    if threshold is None and not likelihood.symmetric:
        threshold, text = HALF, "probability against 0.5"
    if threshold == HALF and likelihood.fair:
        threshold, text = None, f"{text}, where the latent mean is 0"
    if threshold is None:
        text = text or "sign of the latent mean"
        return _against(posterior, X, ZERO, Unit.LATENT, (text,) * 3)
    return _against(posterior, X, threshold, Unit.PROBABILITY, (text,) * 3, likelihood)


def _against(
    posterior: Posterior,
    X: np.ndarray,
    level: Fraction,
    unit: Unit,
    texts: Sequence[str],
    likelihood: ScalarLikelihood | None = None,
) -> list[Candidates]:
    """The second decision where the mean, or its probability with a `likelihood`, exceeds an exact
    level, else the first; the rule in words of either, and where that is not known."""
    labels = posterior.labels if posterior.likelihood.classifies else (None, None)
    values = (posterior.mean if likelihood is None else posterior.prediction)(X)[:, 0]
    if likelihood is None:
        near = _near_level(posterior, X, level)
    else:
        near = np.abs(values - float(level)) < NEAR

    def rule(x: np.ndarray, second: int) -> Rule:
        sign = 1 if second else -1
        asked = Mean(0, sign) if likelihood is None else Probability(likelihood, 0, sign)
        return Rule(posterior, asked, sign * level, labels[second], texts[second], unit, x)

    scores = np.stack([np.full_like(values, float(level)), values], axis=1)
    return _of_classes(X, scores, near, rule, texts[2])


def _probability_threshold(
    posterior: Posterior, options: RuleOptions
) -> tuple[Fraction | None, str]:
    """The exact probability above which the second class is decided, and the rule in words.

    With weights `w2 pi > w1 (1 - pi)` exactly where `pi > w1 / (w1 + w2)`, a rational number.
    """
    if options.class_weight is not None:
        if options.threshold is not None:
            raise InputError("expected threshold= or class_weight=, got both; drop one")
        first, second = map(Fraction, class_weights(posterior.labels, options.class_weight))
        quotient = first / (first + second)
        return quotient, f"{WEIGHED}: probability against about {float(quotient):.6g}"
    if options.threshold is None:
        return None, ""
    threshold = options.threshold
    if not 0 < threshold < 1:
        raise InputError(f"threshold: expected a probability between 0 and 1, got {threshold!r}")
    return Fraction(threshold), f"probability against {threshold!r}"


def _regression_level(posterior: Outputs, options: RuleOptions) -> float | None:
    """The level that a regression is asked about; None where it is a deviation."""
    if options.class_weight is not None:
        raise InputError("class_weight: expected a classifier, got a regression model")
    if (options.delta is None) == (options.threshold is None):
        raise InputError(
            "regression robustness needs either delta= (how far the mean may move) or threshold= "
            "(a level that it must not cross); got "
            + ("both" if options.delta is not None else "neither")
        )
    if options.threshold is not None and posterior.outputs != 1:
        raise InputError(f"threshold: expected one output, got {posterior.outputs}; use delta=")
    return options.threshold


def _deviation(posterior: Outputs, x: np.ndarray, options: RuleOptions) -> Candidates:
    asked = deviation_around(posterior, x, check_norm(options.output_norm))
    rule = deviation_rule(posterior, x, asked, options)
    # at x itself the deviation is 0: the margin delta is positive
    return Candidates((0,), lambda _: rule, rule.text, sure=True)


def deviation_rule(
    posterior: Outputs, x: np.ndarray, asked: Deviation, options: RuleOptions
) -> Rule:
    """That the means stay within delta of those at x, which `asked` holds."""
    delta = options.delta
    assert delta is not None, "a regression without a level"
    if delta <= 0:
        raise InputError(f"delta: expected a positive number, got {delta!r}")
    text = f"deviation of the mean at most {delta!r} (l_{asked.norm:g})"
    rule = Rule(posterior, asked, -Fraction(delta), None, text, Unit.TARGET, x)
    return replace(rule, method=options.method, fingerprint=posterior.fingerprint)
