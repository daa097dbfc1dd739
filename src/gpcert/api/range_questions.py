"""What a range is asked of, as a record: functions by output and sign, and what they are called;
that of a `Quantity` object, of this package or of a user's own, if it fits the model.

Proofs: docs/mathematics.md, statement 7.6.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpcert.api.options import QuantityLike
from gpcert.api.regions import feature_number
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.model.class_layout import class_layout
from gpcert.model.committee import Committee, Model
from gpcert.model.multi_output import Outputs
from gpcert.model.slopes import (
    joined_beside,
    joined_slopes,
    slope_model,
    slopes_beside,
    slopes_of_outputs,
)
from gpcert.quantities import (
    ClassSums,
    Compound,
    Mean,
    OutputQuantity,
    PredictionSlope,
    Quantile,
    Quantity,
    Slope,
)
from gpcert.quantities.differentiable import (
    Differentiable,
    LinkedMean,
    RootOfVariance,
    VarianceItself,
)


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


class Owner(NamedTuple):
    """One latent function: its label, what it belongs to, and that in few words."""

    label: Any
    owner: str
    whose: str


def owners_of(model: Outputs) -> list[Owner]:
    """Every latent function of a model."""
    likelihood, count = model.likelihood, model.outputs
    if isinstance(likelihood, ClassLikelihood):
        if likelihood.mixes:
            owner, labels = "number {} of those that the classes mix", range(count)
        else:
            owner, labels = "of class {}", model.labels
        texts = [(label, owner.format(label)) for label in labels]
        return [Owner(label, text, f" of the latent function {text}") for label, text in texts]
    if likelihood.classifies:
        return [Owner(None, "that decides between the classes", " of the latent function")]
    return [Owner(c, f"of target {c}", f" of target {c}" * (count > 1)) for c in range(count)]


LONGEST_TEXT = 160
"""Characters of an object's fields that are told and stored."""


def text_of(quantity: Quantity) -> str:
    """An object with its fields, as records keep it; long ones are cut."""
    text = " ".join(repr(quantity).split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


def question_of_object(model: Model, quantity: Quantity) -> RangeQuestion:
    """That of a `Quantity`: of one output, in whose place `output=` puts another one, or of several
    outputs as a whole."""
    if isinstance(quantity, Slope):
        return slope_question(model, quantity)
    if isinstance(quantity, Quantile):
        quantity = quantity.of(
            model.members[0].likelihood if isinstance(model, Committee) else model.likelihood
        )
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


def slope_question(model: Model, quantity: Slope) -> RangeQuestion:
    """The slopes of all means along one direction: the means of another model."""
    if isinstance(model, Committee):
        raise InputError(
            "quantity: a one-vs-rest or one-vs-one classifier has several latent functions; ask "
            "for the slope of one of as_posterior(model).members"
        )
    if quantity.direction is None:
        j = feature_number(model, "feature", quantity.feature)
        direction, along = np.eye(model.dim)[j], f"in {quantity.feature!r}"
    else:
        direction, along = np.array(quantity.direction), f"along {text_of(quantity)}"
        if len(direction) != model.dim or not np.all(np.isfinite(direction)):
            raise InputError(
                f"direction: expected {model.dim} numbers, one per feature, got {direction}"
            )
    owners = owners_of(model)
    whats = [what_of(model, o, quantity.of) for o in owners]
    if quantity.of == "mean":
        searched, asked = slopes_of_outputs(model, direction), Mean
    else:
        searched = joined_beside(model, [direction], range(len(owners)))
        asked = partial(_prediction_slope, function_of(model, quantity.of))
    meanings = tuple(f"slope of {what} {along}" for what in whats)
    short = "" if quantity.of == "mean" else f" of the {quantity.of}"
    names = tuple(f"slope{short} {along}{o.whose}" for o in owners)
    default = None if isinstance(model.likelihood, ClassLikelihood) else 0
    labels = tuple(o.label for o in owners)
    return RangeQuestion(searched, "slope", labels, asked, meanings, names, default)


def _prediction_slope(function: Differentiable, output: int, sign: int) -> PredictionSlope:
    return PredictionSlope(function, (float(sign),), 2 * output)


def what_of(model: Outputs, owner: Owner, of: str) -> str:
    """A mean, standard deviation, variance or probability, in words."""
    if of == "probability":
        return f"the probability of class {model.labels[-1]}"
    name = "standard deviation" if of == "std" else of
    return f"the {name} of the latent function {owner.owner}"


def function_of(model: Outputs, of: str) -> Differentiable:
    """The function of mean and variance that is meant; an `InputError` where it is not known."""
    likelihood = model.likelihood
    model.check_has_variance(f"slopes of a {of}")
    if of == "std":
        return RootOfVariance()
    if of == "variance":
        return VarianceItself()
    if isinstance(likelihood, ScalarLikelihood) and likelihood.classifies:
        return LinkedMean(likelihood)
    several = isinstance(likelihood, ClassLikelihood)
    raise InputError(
        "quantity: slopes of a probability are known of two classes, got "
        + ("several; ask about the latent means, quantity='mean'" if several else "a regression")
    )


def slopes_of(
    model: Outputs, directions: Sequence[np.ndarray], index: int, of: str, order: int = 1
) -> RangeQuestion:
    """The slopes of one output's mean, standard deviation, variance or probability along several
    directions, numbered; of the mean for `order` 2 second derivatives."""
    what = what_of(model, owners_of(model)[index], of)
    labels = tuple(range(len(directions)))
    texts = (f"{'slope' if order == 1 else 'curvature'} of {what}",) * len(labels)
    if of == "mean":
        searched = slope_model(model, directions, index, order)
        return RangeQuestion(searched, "mean", labels, Mean, texts, texts, None)
    function = function_of(model, of)

    def asked(j: int, sign: int) -> PredictionSlope:
        return PredictionSlope(function, tuple(float(sign * (i == j)) for i in labels))

    searched, first = slopes_beside(model, directions, index), asked(0, 1)
    return RangeQuestion(searched, "slope", labels, asked, texts, texts, None, given=first)


def slopes_question(model: Model) -> RangeQuestion:
    """All partial derivatives of all means, output by output; features that hold categories have
    none. The labels are the features' names or numbers, of several outputs with theirs in front."""
    if isinstance(model, Committee):
        raise InputError(
            "quantity: a one-vs-rest or one-vs-one classifier has several latent functions; ask "
            "for the slopes of one of as_posterior(model).members"
        )
    numbers = [j for j in range(model.dim) if j not in model.levels]
    known, owners = model.feature_names, owners_of(model)
    names = [j if known is None else known[j] for j in numbers]
    axes = [np.eye(model.dim)[j] for j in numbers]
    searched = joined_slopes(model, axes, range(len(owners)))
    pairs = [(owner, name) for owner in owners for name in names]
    texts = tuple(f"slope of the mean of the latent function {o.owner} in {n!r}" for o, n in pairs)
    labels = tuple(n if len(owners) == 1 else f"{o.label}: {n}" for o, n in pairs)
    about = (searched, "slope", labels, Mean, texts, tuple(f"slope in {n!r}" for _, n in pairs))
    return RangeQuestion(*about, None, fingerprint=model.fingerprint)


def _of_one_output(model: Model, quantity: OutputQuantity) -> RangeQuestion:
    """Of every output, by default of that which the quantity names."""
    kind, count = type(quantity).__name__, _check_output(model, quantity)
    if isinstance(model, Committee):
        texts = [(k, f"number {k} of the members'") for k in range(count)]
        owners = [Owner(k, text, f" of the latent function {text}") for k, text in texts]
    else:
        owners = owners_of(model)

    def of(output: int) -> OutputQuantity:
        same = output == quantity.output
        return quantity if same else replace(quantity, output=output)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def asked(output: int, sign: int) -> Quantity:
        return of(output) if sign > 0 else of(output).negative

    meanings = (f"{text_of(of(k))} of the latent function {latent.owner}"
                for k, latent in enumerate(owners))  # fmt: skip
    names = (f"{kind}{latent.whose}" for latent in owners)
    labels = (latent.label for latent in owners)
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
