"""What the user says about the decision, read: weights, deviations, and which value of the model is
compared with a threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gpcert.api.options import QuantityRequest, read_class_weight
from gpcert.api.questions import range_question
from gpcert.api.range_questions import RangeQuestion
from gpcert.attacks import Comparison, Decision
from gpcert.certificates import Unit
from gpcert.errors import InputError
from gpcert.likelihoods import ResponseLikelihood
from gpcert.model.committee import Committee, Model, is_classifier
from gpcert.numerics.arrays import finite_array
from gpcert.regions.shapes import check_norm

COMPARED = ("quantity", "output", "beta", "best_f", "maximize")
"""Words that say which value is compared with a threshold."""

SIDES = ("below", "above", "on one side of")


def read_decision(options: Mapping[str, Any], model: Model) -> Decision:
    """What the user says about the decision, from the options of a verb."""
    threshold, delta = (
        None if options[name] is None else float(finite_array(name, options[name], ndim=0))
        for name in ("threshold", "delta")
    )
    weights = read_class_weight(options["class_weight"])
    norm = check_norm(options["output_norm"], "output_norm")
    if norm != math.inf and delta is None:
        raise InputError(
            "output_norm: belongs to delta=, as the norm in which means of targets move, got no "
            "delta=; leave it out"
        )
    given = {name: options[name] for name in COMPARED if options.get(name) is not None}
    compared = None
    if threshold is not None and not given and has_response(model):
        compared = comparison(model, threshold, QuantityRequest())
    if given:
        name = next(iter(given))
        others = [other for other in ("class_weight", "delta") if options[other] is not None]
        if others:
            raise InputError(
                f"{name}: says which value is compared with threshold=, got {others[0]}= as well; "
                "drop one of them"
            )
        if threshold is None:
            raise InputError(
                f"{name}: says which value is compared with threshold=, got no threshold=; give "
                f"one, or leave {name}= out"
            )
        output = given.pop("output", None)
        compared = comparison(model, threshold, QuantityRequest(**given), output)
    return Decision(threshold, weights, delta, norm, compared)


def has_response(model: Model) -> bool:
    """Whether the mean of a target is another function than the latent mean: of one output it is
    what a threshold is compared with by default."""
    if isinstance(model, Committee) or model.outputs != 1:
        return False
    return isinstance(model.likelihood, ResponseLikelihood)


def comparison(
    model: Model, threshold: float, asked: QuantityRequest, output: Any = None
) -> Comparison:
    """The value of the model that a quantity and an output name, against a threshold."""
    question = range_question(model, asked)
    if question.quantity == "band":
        raise InputError(
            "quantity: a band has two ends, which may lie on either side of the threshold; "
            "expected 'ucb', its upper end mean + beta std, or 'lcb', its lower end"
        )
    index, level, sides, labels = question.index(output), Fraction(threshold), SIDES, (None, None)
    if question.quantity == "probability":
        level = check_probability(threshold)
    if question.two:
        labels = (question.labels[0], question.labels[1])
        if index == 0:  # it is above where that of the second class is below what is left
            level, sides = 1 - level, (SIDES[1], SIDES[0], SIDES[2])
    name = question.names[index]
    below, above, open_text = (f"{name} {side} {threshold!r}" for side in sides)
    return Comparison(
        model=question.model,
        above=question.asked(index, 1),
        below=question.asked(index, -1),
        level=level,
        value=question.names[1 if question.two else index],
        unit=_unit(model, question),
        texts=(below, above, open_text),
        labels=labels,
    )


def check_probability(threshold: float) -> Fraction:
    """A threshold of a probability as an exact number."""
    if not 0 < threshold < 1:
        raise InputError(f"threshold: expected a probability between 0 and 1, got {threshold!r}")
    return Fraction(threshold)


def _unit(model: Model, question: RangeQuestion) -> Unit:
    """What the value is measured in."""
    if question.quantity == "probability":
        return Unit.PROBABILITY
    if is_classifier(model):
        return Unit.LATENT if question.quantity == "mean" else Unit.VALUE
    in_targets = question.quantity in {"mean", "std", "lcb", "ucb", "response"}
    return Unit.TARGET if in_targets else Unit.VALUE
