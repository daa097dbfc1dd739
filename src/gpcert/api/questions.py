"""What a range is of: from a quantity and an output to goals, and the model that is searched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from gpcert.committee import Committee, Model
from gpcert.enclosures.classes import class_layout
from gpcert.enclosures.goals import Goal, MeanGoal, ProbabilityGoal, VarianceGoal
from gpcert.enclosures.goals.classes import Classes, ClassGoal
from gpcert.enclosures.goals.rest import RestGoal
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.posterior import Posterior

__all__ = ["Quantity", "RangeQuestion", "range_question"]

Quantity = Literal["probability", "mean", "variance"]


@dataclass(frozen=True, eq=False)
class RangeQuestion:
    """`goal(index, sign)` is sign times the quantity of an output; `labels` name the outputs, which
    are `classes` or just numbered."""

    model: Model
    quantity: Quantity
    labels: tuple[Any, ...]
    goal: Callable[[int, int], Goal]
    classes: bool = False

    def index(self, output: Any) -> int:
        """Which output a label means; None is the first, but for classes, which must be named."""
        if output is None and not self.classes:
            return 0
        if output is None:
            raise InputError(
                f"output: expected the label of a class, one of {list(self.labels)}; "
                "prediction_ranges gives all of them"
            )
        # equality of labels of other kinds (arrays) may not be a truth value
        found = [k for k, label in enumerate(self.labels) if label is output or label == output]
        if not found:
            raise InputError(f"output: expected one of {list(self.labels)}, got {output!r}")
        return found[0]


def range_question(model: Model, quantity: Quantity | None) -> RangeQuestion:
    """The question that the model's kind and the quantity ask."""
    if quantity not in {None, "probability", "mean", "variance"}:
        raise InputError(
            f"quantity: expected 'probability', 'mean' or 'variance', got {quantity!r}"
        )
    if isinstance(model, Committee):
        return _committee(model, quantity)
    likelihood = model.likelihood
    classifies = likelihood.classifies
    name: Quantity = quantity or ("probability" if classifies else "mean")
    if name != "probability":
        kind = MeanGoal if name == "mean" else VarianceGoal
        several = isinstance(likelihood, ClassLikelihood)
        labels = model.labels if several else tuple(range(model.outputs))
        return RangeQuestion(model, name, labels, kind, classes=several)
    if isinstance(likelihood, ClassLikelihood):
        return _classes(model, likelihood)
    if not classifies:
        raise InputError("quantity: a regression model has no probability; use 'mean'")
    assert isinstance(likelihood, ScalarLikelihood)
    return RangeQuestion(
        model, name, (0,), lambda index, sign: ProbabilityGoal(likelihood, index, sign)
    )


def _classes(posterior: Posterior, likelihood: ClassLikelihood) -> RangeQuestion:
    layout, searched = class_layout(posterior)
    classes = Classes(layout, likelihood)

    def goal(index: int, sign: int) -> Goal:
        weights = tuple(float(sign) if c == index else 0.0 for c in range(layout.classes))
        return ClassGoal(classes, (weights,))

    return RangeQuestion(searched, "probability", posterior.labels, goal, classes=True)


def _committee(committee: Committee, quantity: Quantity | None) -> RangeQuestion:
    if quantity not in {None, "probability"}:
        raise InputError(
            f"quantity: a one-vs-rest or one-vs-one classifier has several latent functions; ask "
            f"for the {quantity} of one of as_posterior(model).members"
        )
    if committee.scheme == "one_vs_one":
        raise InputError(
            "quantity: a one-vs-one classifier votes and has no class probabilities (nor has "
            "scikit-learn's predict_proba); use certify, or multi_class='one_vs_rest'"
        )
    return RangeQuestion(committee, "probability", committee.classes, RestGoal, classes=True)
