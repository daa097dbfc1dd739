"""What is asked of a model: a quantity by its name, or any `Quantity` object, from the model to the
functions that are searched, and what all of it is called; what the user says about a decision:
weights, deviations, and which value of the model is compared with a threshold.

Proofs: docs/mathematics.md, statements 7.6 and 8.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, get_args

import numpy as np

from gpcert.api.options import QuantityLike, QuantityRequest, one_of, read_class_weight
from gpcert.api.range_questions import RangeQuestion, owners_of, question_of_object, text_of
from gpcert.attacks import Comparison, Decision
from gpcert.certificates import Unit
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, CurveLink, ResponseLikelihood, ScalarLikelihood
from gpcert.model.class_layout import class_layout
from gpcert.model.committee import Committee, Model
from gpcert.model.mixture import Mixture
from gpcert.model.multi_output import Outputs
from gpcert.numerics.arrays import finite_array
from gpcert.quantities import (
    Band,
    ClassSums,
    ExpectedImprovement,
    Improvement,
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    Mean,
    MixtureMoment,
    Probability,
    ProbabilityOfImprovement,
    Quantity,
    Response,
    Share,
    Std,
    Variance,
    WeightedMeans,
)
from gpcert.quantities.committee import member_probabilities
from gpcert.regions.shapes import check_norm
from gpcert.utils.option_names import QuantityName

QUANTITIES: tuple[QuantityName, ...] = get_args(QuantityName)

DEFAULT_BETA = 2.0
"""Standard deviations of a band: about 95 % of a Gaussian lie within two."""

BOUNDS = ("band", "lcb", "ucb")
"""Quantities of mean and standard deviation, which have a `beta`."""

IMPROVEMENTS: Mapping[str, tuple[type[Improvement], str]] = {
    "ei": (ExpectedImprovement, "expected improvement"),
    "log_ei": (LogExpectedImprovement, "logarithm of the expected improvement"),
    "pi": (ProbabilityOfImprovement, "probability of improvement"),
    "log_pi": (LogProbabilityOfImprovement, "logarithm of the probability of improvement"),
}
"""Quantities that compare a regression with `best_f`."""


def read_beta(beta: Any, *quantities: Any) -> float | None:
    """How many standard deviations a band or a confidence bound reaches; None where none of the
    quantities is one.

    >>> read_beta(None, "band"), read_beta(3, "mean", "lcb"), read_beta(None, "mean")
    (2.0, 3.0, None)
    """
    if not any(isinstance(each, str) and each in BOUNDS for each in quantities):
        if beta is not None:
            got = ", ".join(map(repr, quantities))
            raise InputError(
                f"beta: belongs to quantity='band', 'lcb' or 'ucb', got quantity={got}"
            )
        return None
    value = DEFAULT_BETA if beta is None else float(finite_array("beta", beta, ndim=0))
    if value < 0:
        raise InputError(f"beta: expected a number of standard deviations >= 0, got {beta!r}")
    return value


def range_question(model: Model, asked: QuantityRequest) -> RangeQuestion:
    """The question that the model's kind and the request ask."""
    quantity, beta = asked.quantity, read_beta(asked.beta, asked.quantity)
    _check_improvement(asked)
    if isinstance(quantity, Quantity):
        question = question_of_object(model, quantity)
    else:
        one_of("quantity", quantity, (None, *QUANTITIES))
        asked = replace(asked, beta=beta)
        mixed = isinstance(model, Mixture)
        question = _mixture(model, asked) if mixed else _question(model, asked)
    return replace(question, fingerprint=model.fingerprint, beta=beta, given=quantity)


def quantity_requests(
    quantities: Sequence[QuantityLike], beta: float | None
) -> dict[str, QuantityRequest]:
    """A request for each of several quantities, by their names: of objects that of their class, of
    several of one class with their fields."""
    read_beta(beta, *quantities)
    kinds = [q if isinstance(q, str) else type(q).__name__ for q in quantities]
    names = [
        kind if kinds.count(kind) == 1 or isinstance(q, str) else text_of(q)
        for kind, q in zip(kinds, quantities, strict=True)
    ]
    if not names or len(set(names)) < len(names):
        raise InputError(f"quantity: expected one or several different ones, got {quantities!r}")
    return {
        name: QuantityRequest(q, beta if isinstance(q, str) and q in BOUNDS else None)
        for name, q in zip(names, quantities, strict=True)
    }


def _question(model: Outputs | Committee, request: QuantityRequest) -> RangeQuestion:
    quantity: Any = request.quantity
    if isinstance(model, Committee):
        return _committee(model, quantity)
    likelihood = model.likelihood
    classifies = likelihood.classifies
    probable = classifies and likelihood.has_variance
    responds = isinstance(likelihood, ResponseLikelihood)
    usual: QuantityName = "probability" if probable else "response" if responds else "mean"
    name = quantity or usual
    if name != "mean" and not (name == "response" and responds):
        model.check_has_variance(f"quantity {name!r}")
    if name == "response":
        if not isinstance(likelihood, ResponseLikelihood):
            raise InputError(
                "quantity: 'response' is the mean of a target behind a positive link (ExpLink, "
                f"SoftplusLink), got the likelihood {likelihood!r}; use {usual!r}"
            )
        return _response(model, likelihood)
    if name in IMPROVEMENTS:
        return _improvement(model, name, request)
    if name != "probability":
        return _latent(model, name, request.beta)
    if isinstance(likelihood, ClassLikelihood):
        layout, searched = class_layout(model)

        def asked(index: int, sign: int) -> ClassSums:
            weights = tuple(float(sign) if c == index else 0.0 for c in range(layout.classes))
            return ClassSums(layout, likelihood, (weights,))

        return _probabilities(model, searched, asked)
    if not classifies:
        raise InputError(
            f"quantity: a regression model has no probability; use {usual!r}{likelihood.advice}"
        )
    assert isinstance(likelihood, ScalarLikelihood)
    question = _probabilities(model, model, lambda _, sign: Probability(likelihood, 0, sign))
    return replace(question, default=1, two=True)


def _mixture(model: Mixture, request: QuantityRequest) -> RangeQuestion:
    """Of the law of a member drawn with its weight."""
    name: Any = request.quantity or "mean"
    beta = request.beta
    if name == "mean":
        question = WeightedMeans(model.weights)
        meaning = f"mean of {len(model.members)} models' means, by their weights"
    else:
        model.check_has_variance(f"quantity {name!r}")
        factors = {"variance": {"variance": 1.0}, "std": {"std": 1.0}}
        if beta is not None and name in {"lcb", "ucb"}:
            factors[name] = {"mean": 1.0, "std": beta if name == "ucb" else -beta}
        if name not in factors:
            raise InputError(
                f"quantity: {name!r} of a mixture of models is not known; ask for 'mean', "
                "'variance', 'std', 'lcb' or 'ucb', or about one of as_posterior(model).members"
            )
        question = MixtureMoment(model.weights, **factors[name])
        short = name if beta is None else f"mean {'+' if name == 'ucb' else '-'} {beta:g} std"
        meaning = f"{short} of a mixture of {len(model.members)} models, noise included"

    def asked(_: int, sign: int) -> Quantity:
        return question if sign > 0 else question.negative

    return RangeQuestion(model.separate, name, (0,), asked, (meaning,), (f"{name} of the mixture",))


def _probabilities(
    model: Model, searched: Model, asked: Callable[[int, int], Quantity]
) -> RangeQuestion:
    meanings = tuple(f"probability of class {label}" for label in model.labels)
    return RangeQuestion(searched, "probability", model.labels, asked, meanings, meanings, None)


def _response(model: Outputs, likelihood: ScalarLikelihood) -> RangeQuestion:
    """The mean of every target; the model's noise term is in the latent variance."""

    def asked(output: int, sign: int) -> Quantity:
        return Response(likelihood, output, sign)

    owners, link = owners_of(model), type(likelihood).__name__
    what = "mean response E[link(f)]"
    if isinstance(likelihood, CurveLink):  # what `predict` returns
        what = "prediction h(mean), the median of the target,"
    meanings = tuple(f"{what} {latent.owner}, {link}" for latent in owners)
    names, labels = tuple(f"response{latent.whose}" for latent in owners), range(len(owners))
    return RangeQuestion(model, "response", tuple(labels), asked, meanings, names)


def _latent(model: Outputs, name: QuantityName, beta: float | None) -> RangeQuestion:
    """Of every latent function; variance, std, bounds and band include the model's noise term."""
    owners = owners_of(model)
    each = list(zip(owners, model.noise.tolist(), strict=True))
    meanings = tuple(_latent_meaning(name, latent.owner, noise, beta) for latent, noise in each)
    short = {"lcb": f"mean - {beta:g} std", "ucb": f"mean + {beta:g} std"} if beta else {}
    short_name = short.get(name, "mean" if beta == 0 else name)
    names = tuple(f"{short_name}{latent.whose}" for latent in owners)
    kinds: dict[str, Any] = {"mean": Mean, "variance": Variance, "std": Std}
    # a band of no deviations is the mean, and needs no variance
    kinds |= dict.fromkeys(BOUNDS, Mean)
    if beta:
        kinds |= {"band": partial(Band, beta=beta), "lcb": partial(_bound, -beta)}
        kinds["ucb"] = partial(_bound, beta)
    default = None if isinstance(model.likelihood, ClassLikelihood) else 0
    labels = tuple(latent.label for latent in owners)
    return RangeQuestion(model, name, labels, kinds[name], meanings, names, default)


def _check_improvement(asked: QuantityRequest) -> None:
    """That `best_f` and `maximize` belong to the quantity, and are what they should be."""
    given = {"best_f": asked.best_f, "maximize": asked.maximize}
    for name, value in given.items():
        if value is not None and asked.quantity not in tuple(IMPROVEMENTS):
            names = ", ".join(map(repr, IMPROVEMENTS))
            raise InputError(
                f"{name}: belongs to quantity={names}, got quantity={asked.quantity!r}"
            )
    if not isinstance(asked.maximize, bool | np.bool_ | None):
        raise InputError(f"maximize: expected True or False, got {asked.maximize!r}")
    if asked.best_f is not None:
        finite_array("best_f", asked.best_f, ndim=0)


def _improvement(model: Outputs, name: str, request: QuantityRequest) -> RangeQuestion:
    """Of every latent function of a regression, over `best_f` or its best mean at the points."""
    if model.likelihood.classifies:
        raise InputError(f"quantity: {name!r} is of a regression, got a classifier")
    kind, text = IMPROVEMENTS[name]
    larger = request.maximize is None or bool(request.maximize)
    if request.best_f is None:
        means = np.concatenate([member.mean(member.places) for member in model.members], axis=1)
        best = (means.max(axis=0) if larger else means.min(axis=0)).tolist()
    else:
        best = [float(request.best_f)] * model.outputs

    def asked(output: int, sign: int) -> Quantity:
        return kind(output, sign if larger else -sign, best[output], larger)

    side, which = ("above", "greatest") if larger else ("below", "least")
    source = "" if request.best_f is not None else f", the {which} mean at the model's points"
    owners = list(zip(owners_of(model), model.noise.tolist(), best, strict=True))
    noises = (f"; the model's noise variance {noise:.6g} counts" * (noise != 0)
              for _, noise, _ in owners)  # fmt: skip
    meanings = tuple(
        f"{text} of the latent function {latent.owner} {side} best_f = {value:.6g}{source}{noisy}"
        for (latent, _, value), noisy in zip(owners, noises, strict=True)
    )
    names = tuple(f"{name} {side} {value:.6g}{latent.whose}" for latent, _, value in owners)
    labels = tuple(latent.label for latent, _, _ in owners)
    return RangeQuestion(model, name, labels, asked, meanings, names)


def _bound(reach: float, output: int, sign: int) -> Band:
    """`sign (mu + reach std)`."""
    return Band(output, sign, -sign * reach)


def _latent_meaning(name: str, owner: str, noise: float, beta: float | None) -> str:
    """In words, for people who did not ask: which function, and whether noise is in it."""
    whose = f"of the latent function {owner}"
    if beta is not None:
        ends = {"band": "less (minimum) or plus (maximum)", "lcb": "less", "ucb": "plus"}[name]
        text = f"mean {whose}, {ends} {beta:g} standard deviations"
        return text if noise == 0 else f"{text}, the model's noise variance {noise:.6g} in them"
    text = f"{'standard deviation' if name == 'std' else name} {whose}"
    if noise == 0 or name == "mean":
        return text
    noisy = f"the model's noise variance {noise:.6g}"
    return f"{text}, plus {noisy}" if name == "variance" else f"{text}, {noisy} in it"


def _committee(committee: Committee, quantity: QuantityName | None) -> RangeQuestion:
    if quantity not in {None, "probability"}:
        raise InputError(
            f"quantity: a one-vs-rest or one-vs-one classifier has several latent functions; ask "
            f"for the {quantity} of one of as_posterior(model).members"
            + (" (output= numbers its pairs of classes)" if committee.shared else "")
        )
    if committee.shared:
        committee.members[0].check_has_variance("quantity 'probability'")
    if committee.scheme == "one_vs_one":
        raise InputError(
            "quantity: a one-vs-one classifier votes and has no class probabilities (nor has "
            "scikit-learn's predict_proba); use certify, or multi_class='one_vs_rest'"
        )
    return _probabilities(committee, committee, partial(Share, member_probabilities(committee)))


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
    if model.classifies:
        return Unit.LATENT if question.quantity == "mean" else Unit.VALUE
    in_targets = question.quantity in {"mean", "std", "lcb", "ucb", "response"}
    return Unit.TARGET if in_targets else Unit.VALUE
