"""What a range is of: from a quantity and an output to goals, and the model that is searched."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from gpcert.api.words import one_of, read_beta
from gpcert.class_layout import class_layout
from gpcert.committee import Committee, Model
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.quantities import (
    Band,
    ClassSums,
    Mean,
    OutputQuantity,
    Probability,
    Quantity,
    Share,
    Std,
    Variance,
)
from gpcert.quantities.committee import member_probabilities
from gpcert.several import Outputs

QuantityName = Literal["probability", "mean", "variance", "std", "band"]

QUANTITIES: tuple[QuantityName, ...] = get_args(QuantityName)


@dataclass(frozen=True, eq=False)
class RangeQuestion:
    """`asked(index, sign)` is sign times the quantity of an output; `labels` name the outputs:
    labels of classes, numbers of targets, or None for the one latent function of two classes.

    `default` is the output that is meant where none is named, None if one must be. `two` classes
    have one probability: `asked` is that of the second, whatever the index, and the first has
    1 less it. `meanings` say in words what is bounded, an output each. `fingerprint` is that of
    the user's model, which the searched one may differ from. Those of a band are not each
    other's negatives: `mean - beta std` for sign 1, and minus `mean + beta std`.
    """

    model: Model
    quantity: QuantityName
    labels: tuple[Any, ...]
    asked: Callable[[int, int], Quantity]
    meanings: tuple[str, ...]
    default: int | None = 0
    two: bool = False
    fingerprint: str = ""
    beta: float | None = None

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
            raise InputError(
                f"output: expected none, got {output!r}: a classifier of two classes has one "
                f"latent function, and this is its {self.quantity}"
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
    if len(truths) > 1:
        return False
    return bool(label == output)


def range_question(
    model: Model, quantity: QuantityName | None, beta: float | None = None
) -> RangeQuestion:
    """The question that the model's kind and the quantity ask; `beta` belongs to a band."""
    asked = one_of("quantity", quantity, (None, *QUANTITIES))
    reach = read_beta(beta, asked)
    return replace(_question(model, asked, reach), fingerprint=model.fingerprint, beta=reach)


def _question(model: Model, quantity: QuantityName | None, beta: float | None) -> RangeQuestion:
    if isinstance(model, Committee):
        return _committee(model, quantity)
    likelihood = model.likelihood
    classifies = likelihood.classifies
    probable = classifies and likelihood.has_variance
    name: QuantityName = quantity or ("probability" if probable else "mean")
    if name != "mean":
        model.check_has_variance(f"quantity {name!r}")
    if name != "probability":
        return _latent(model, name, beta)
    if isinstance(likelihood, ClassLikelihood):
        return _classes(model, likelihood)
    if not classifies:
        raise InputError("quantity: a regression model has no probability; use 'mean'")
    assert isinstance(likelihood, ScalarLikelihood)
    return RangeQuestion(
        model,
        name,
        model.labels,
        lambda _, sign: Probability(likelihood, 0, sign),
        _class_meanings(model.labels),
        default=1,
        two=True,
    )


def _class_meanings(labels: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(f"probability of class {label}" for label in labels)


def _latent(model: Outputs, name: QuantityName, beta: float | None) -> RangeQuestion:
    """Of every latent function; variance, std and band include the model's noise term."""
    kind, likelihood = _latent_kind(name, beta), model.likelihood
    several = isinstance(likelihood, ClassLikelihood)
    labels: tuple[Any, ...]
    if several and likelihood.mixes:
        labels = tuple(range(model.outputs))
        owners = [f"number {label} of those that the classes mix" for label in labels]
    elif several:
        labels, owners = model.labels, [f"of class {label}" for label in model.labels]
    elif likelihood.classifies:
        labels, owners = (None,), ["that decides between the classes"]
    else:
        labels = tuple(range(model.outputs))
        owners = [f"of target {label}" for label in labels]
    meanings = []
    for owner, noise in zip(owners, model.noise.tolist(), strict=True):
        meanings.append(_latent_meaning(name, owner, noise, beta))

    default = None if several else 0
    return RangeQuestion(model, name, labels, kind, tuple(meanings), default)


def _latent_kind(name: QuantityName, beta: float | None) -> Callable[[int, int], OutputQuantity]:
    if name == "mean" or beta == 0:  # a band of no deviations is the mean, and needs no variance
        return Mean
    if beta is not None:
        return lambda output, sign: Band(output, sign, beta)
    return Variance if name == "variance" else Std


def _latent_meaning(name: QuantityName, owner: str, noise: float, beta: float | None) -> str:
    """In words, for people who did not ask: which function, and whether noise is in it."""
    whose = f"of the latent function {owner}"
    if beta is not None:
        text = f"mean {whose}, less (minimum) or plus (maximum) {beta:g} standard deviations"
        return text if noise == 0 else f"{text}, the model's noise variance {noise:.6g} in them"
    text = f"{'standard deviation' if name == 'std' else name} {whose}"
    if noise == 0 or name == "mean":
        return text
    noisy = f"the model's noise variance {noise:.6g}"
    return f"{text}, plus {noisy}" if name == "variance" else f"{text}, {noisy} in it"


def _classes(posterior: Outputs, likelihood: ClassLikelihood) -> RangeQuestion:
    layout, searched = class_layout(posterior)

    def asked(index: int, sign: int) -> ClassSums:
        weights = tuple(float(sign) if c == index else 0.0 for c in range(layout.classes))
        return ClassSums(layout, likelihood, (weights,))

    labels = posterior.labels
    return RangeQuestion(searched, "probability", labels, asked, _class_meanings(labels), None)


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
    labels = committee.classes
    asked = partial(Share, member_probabilities(committee))
    return RangeQuestion(committee, "probability", labels, asked, _class_meanings(labels), None)
