"""What is asked of a model: a quantity by its name, or any `Quantity` object, from the model to the
functions that are searched, and what all of it is called.

Proofs: docs/mathematics.md, statements 7.6 and 8.6.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np

from gpcert.api.options import QuantityLike, QuantityRequest, one_of
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ResponseLikelihood, ScalarLikelihood
from gpcert.model.class_layout import class_layout
from gpcert.model.committee import Committee, Model
from gpcert.model.multi_output import Outputs
from gpcert.numerics.arrays import finite_array
from gpcert.quantities import (
    Band,
    ClassSums,
    Compound,
    Mean,
    OutputQuantity,
    Probability,
    Quantity,
    Response,
    Share,
    Std,
    Variance,
)
from gpcert.quantities.committee import member_probabilities
from gpcert.utils.option_names import QuantityName

QUANTITIES: tuple[QuantityName, ...] = get_args(QuantityName)

DEFAULT_BETA = 2.0
"""Standard deviations of a band: about 95 % of a Gaussian lie within two."""

BOUNDS = ("band", "lcb", "ucb")
"""Quantities of mean and standard deviation, which have a `beta`."""

LONGEST_TEXT = 160
"""Characters of an object's fields that are told and stored."""


@dataclass(frozen=True, eq=False)
class RangeQuestion:
    """`asked(index, sign)` is sign times the quantity of an output; `labels` name the outputs:
    labels of classes, numbers of targets, or None for the one latent function of two classes.

    `default` is the output that is meant where none is named, None if one must be. `two` classes
    have one probability: `asked` is that of the second, whatever the index, and the first has
    1 less it. `meanings` say in words what is bounded, an output each, `names` in few words.
    `fingerprint` is that of the user's model, which the searched one may differ from. Those of a
    band are not each other's negatives: `mean - beta std` for sign 1, and minus `mean + beta std`.
    """

    model: Model
    quantity: str
    labels: tuple[Any, ...]
    asked: Callable[[int, int], Quantity]
    meanings: tuple[str, ...]
    names: tuple[str, ...]
    default: int | None = 0
    two: bool = False
    fingerprint: str = ""
    beta: float | None = None
    given: QuantityLike | None = None
    """The quantity as it was asked for."""

    @property
    def searched(self) -> int:
        """How many outputs have a quantity of their own: of two classes one."""
        return 1 if self.two else len(self.labels)

    def index(self, output: Any) -> int:
        """Which output a label means; see `default`."""
        if output is None and self.default is not None:
            return self.default
        names = [label for label in self.labels if label is not None]
        if not names:
            reason = "a classifier of two classes has one latent function, and this is its {}"
            if isinstance(self.given, Quantity) and not isinstance(self.given, OutputQuantity):
                reason = "{} names the outputs that it depends on"
            raise InputError(
                f"output: expected none, got {output!r}: {reason.format(self.quantity)}"
            )
        if output is None:
            raise InputError(
                f"output: expected the label of a class, one of {names}; "
                "prediction_ranges gives all of them"
            )
        for index, label in enumerate(names):
            if same_label(label, output):
                return index
        raise InputError(f"output: expected one of {names}, got {output!r}")


def same_label(label: Any, output: Any) -> bool:
    """Whether a user's output is a label: equal, and both or neither are truth values (True == 1).

    >>> same_label(1, np.int64(1)), same_label(1, True), same_label(1, np.array([1, 2]))
    (True, False, False)
    """
    if not isinstance(output, Hashable) or getattr(output, "ndim", 0):
        return False  # several values, not one
    truths = {isinstance(each, bool | np.bool_) for each in (label, output)}
    return len(truths) == 1 and bool(label == output)


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
    if isinstance(quantity, Quantity):
        question = _of_object(model, quantity)
    else:
        question = _question(model, one_of("quantity", quantity, (None, *QUANTITIES)), beta)
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


def text_of(quantity: Quantity) -> str:
    """An object with its fields, as records keep it; long ones are cut."""
    text = " ".join(repr(quantity).split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


def _question(model: Model, quantity: QuantityName | None, beta: float | None) -> RangeQuestion:
    if isinstance(model, Committee):
        return _committee(model, quantity)
    likelihood = model.likelihood
    classifies = likelihood.classifies
    probable = classifies and likelihood.has_variance
    responds = isinstance(likelihood, ResponseLikelihood)
    usual: QuantityName = "probability" if probable else "response" if responds else "mean"
    name = quantity or usual
    if name != "mean":
        model.check_has_variance(f"quantity {name!r}")
    if name == "response":
        if not isinstance(likelihood, ResponseLikelihood):
            raise InputError(
                "quantity: 'response' is the mean of a target behind a positive link (ExpLink, "
                f"SoftplusLink), got the likelihood {likelihood!r}; use {usual!r}"
            )
        return _response(model, likelihood)
    if name != "probability":
        return _latent(model, name, beta)
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


def _probabilities(
    model: Model, searched: Model, asked: Callable[[int, int], Quantity]
) -> RangeQuestion:
    meanings = tuple(f"probability of class {label}" for label in model.labels)
    return RangeQuestion(searched, "probability", model.labels, asked, meanings, meanings, None)


def _response(model: Outputs, likelihood: ScalarLikelihood) -> RangeQuestion:
    """The mean of every target; the model's noise term is in the latent variance."""

    def asked(output: int, sign: int) -> Quantity:
        return Response(likelihood, output, sign)

    owners, link = _owners(model), type(likelihood).__name__
    meanings = tuple(f"mean response E[link(f)] {own.owner}, {link}" for own in owners)
    names, labels = tuple(f"response{own.whose}" for own in owners), range(len(owners))
    return RangeQuestion(model, "response", tuple(labels), asked, meanings, names)


def _latent(model: Outputs, name: QuantityName, beta: float | None) -> RangeQuestion:
    """Of every latent function; variance, std, bounds and band include the model's noise term."""
    owners = _owners(model)
    each = list(zip(owners, model.noise.tolist(), strict=True))
    meanings = tuple(_latent_meaning(name, own.owner, noise, beta) for own, noise in each)
    short = {"lcb": f"mean - {beta:g} std", "ucb": f"mean + {beta:g} std"} if beta else {}
    words = short.get(name, "mean" if beta == 0 else name)
    names = tuple(f"{words}{own.whose}" for own in owners)
    kinds: dict[str, Any] = {"mean": Mean, "variance": Variance, "std": Std}
    # a band of no deviations is the mean, and needs no variance
    kinds |= dict.fromkeys(BOUNDS, Mean)
    if beta:
        kinds |= {"band": partial(Band, beta=beta), "lcb": partial(_bound, -beta)}
        kinds["ucb"] = partial(_bound, beta)
    default = None if isinstance(model.likelihood, ClassLikelihood) else 0
    labels = tuple(own.label for own in owners)
    return RangeQuestion(model, name, labels, kinds[name], meanings, names, default)


def _bound(reach: float, output: int, sign: int) -> Band:
    """`sign (mu + reach std)`."""
    return Band(output, sign, -sign * reach)


class _Owner(NamedTuple):
    """One latent function: its label, what it belongs to, and that in few words."""

    label: Any
    owner: str
    whose: str


def _owners(model: Outputs) -> list[_Owner]:
    likelihood, count = model.likelihood, model.outputs
    if isinstance(likelihood, ClassLikelihood):
        if likelihood.mixes:
            owner, labels = "number {} of those that the classes mix", range(count)
        else:
            owner, labels = "of class {}", model.labels
        texts = [(label, owner.format(label)) for label in labels]
        return [_Owner(label, text, f" of the latent function {text}") for label, text in texts]
    if likelihood.classifies:
        return [_Owner(None, "that decides between the classes", " of the latent function")]
    return [_Owner(c, f"of target {c}", f" of target {c}" * (count > 1)) for c in range(count)]


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


def _of_object(model: Model, quantity: Quantity) -> RangeQuestion:
    """That of a `Quantity`: of one output, in whose place `output=` puts another one, or of several
    outputs as a whole."""
    if quantity.by_variance:
        for member in model.members:
            member.check_has_variance(f"quantity {type(quantity).__name__}")
    _check_negative(quantity)
    if isinstance(quantity, OutputQuantity):
        return _of_one_output(model, quantity)
    kind, searched = type(quantity).__name__, model
    if isinstance(quantity, ClassSums):
        if isinstance(model, Committee):
            raise InputError("quantity: expected a model with one ClassLikelihood, got a committee")
        layout, searched = class_layout(model)
        if not quantity.layout.same_as(layout):
            raise InputError("quantity: expected ClassSums of this model's classes, got others")
    for part in quantity.parts if isinstance(quantity, Compound) else ():
        _check_output(model, part)

    def asked(_: int, sign: int) -> Quantity:
        return quantity if sign > 0 else quantity.negative

    return RangeQuestion(searched, kind, (None,), asked, (text_of(quantity),), (kind,))


def _of_one_output(model: Model, quantity: OutputQuantity) -> RangeQuestion:
    """Of every output, by default of that which the quantity names."""
    kind, count = type(quantity).__name__, _check_output(model, quantity)
    if isinstance(model, Committee):
        texts = [(k, f"number {k} of the members'") for k in range(count)]
        owners = [_Owner(k, text, f" of the latent function {text}") for k, text in texts]
    else:
        owners = _owners(model)

    def of(output: int) -> OutputQuantity:
        same = output == quantity.output
        return quantity if same else replace(quantity, output=output)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def asked(output: int, sign: int) -> Quantity:
        return of(output) if sign > 0 else of(output).negative

    meanings = (f"{text_of(of(k))} of the latent function {own.owner}"
                for k, own in enumerate(owners))  # fmt: skip
    names, labels = (f"{kind}{own.whose}" for own in owners), (own.label for own in owners)
    about = (asked, tuple(meanings), tuple(names), quantity.output)
    return RangeQuestion(model, kind, tuple(labels), *about)


def _check_output(model: Model, quantity: OutputQuantity) -> int:
    """How many outputs the model has, which must include that of the quantity."""
    count, output = sum(member.outputs for member in model.members), quantity.output
    if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < count:
        wanted = f"{type(quantity).__name__} of an output of 0 to {count - 1}"
        raise InputError(f"quantity: expected {wanted}, got {output!r}")
    return count


def _check_negative(quantity: Quantity) -> None:
    """That the negative is minus the quantity, at some means and variances, or values of its parts:
    maxima and verdicts of values below a threshold are read off it."""
    if isinstance(quantity, OutputQuantity):
        other = quantity.negative
        mean, v = np.array([-1.5, 0.0, 0.7, 2.5]), np.array([0.25, 2.0, 1.0, 0.5])
        ends, same = [(each, (each.sign * mean, v)) for each in (quantity, other)], True
        same = other.output == quantity.output
    elif isinstance(quantity, Compound):
        other = quantity.negative
        y = np.random.default_rng(0).uniform(0.05, 0.95, (4, len(quantity.parts)))
        ends, same = [(each, (y,)) for each in (quantity, other)], other.parts == quantity.parts
    else:
        return
    with np.errstate(all="ignore"):
        value, minus = (np.asarray(each.value(*at)) for each, at in ends)
        close = np.allclose(-minus, value, rtol=1e-9, atol=1e-12, equal_nan=True)
    if not (same and close):
        raise InputError(
            f"quantity: expected {type(quantity).__name__}.negative to be minus it, got another "
            "function; define the property `negative`"
        )


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
