"""Decision rules: what "the same decision" means, as one goal and one target.

A rule turns a model and a point x into a goal whose value, less the target, is the *margin*: it is
positive exactly where the decision is the one made at x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpcert.api.methods import Method
from gpcert.arrays import Backend, finite_array, to_numpy
from gpcert.committee import Committee, Model, committee_decision
from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.classes import class_layout
from gpcert.enclosures.goals import DeviationGoal, Goal, MeanGoal, ProbabilityGoal
from gpcert.enclosures.goals.classes import Classes, ClassGoal, margins
from gpcert.enclosures.goals.committee import committee_goal
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.posterior import Posterior
from gpcert.regions import Ball
from gpcert.regions.arguments import check_norm
from gpcert.rounding import up_float

__all__ = ["Rule", "RuleOptions", "decision_rule"]


@dataclass(frozen=True)
class RuleOptions:
    """What the user may say about the decision, and how it is bounded; see `gpcert.certify`."""

    threshold: float | None = None
    class_weight: Mapping[Any, float] | Sequence[float] | None = None
    delta: float | None = None
    output_norm: float | str = np.inf
    method: Method = field(default_factory=Method)


@dataclass(frozen=True, eq=False)
class Rule:
    """`margin(x) = goal(x) - target`; `decision` is the label at x (None in regression). `model` is
    what is searched: for coupled classes the differences of their latent functions."""

    model: Model
    goal: Goal
    target: float
    decision: Any
    text: str
    method: Method = field(default_factory=Method)


def decision_rule(model: Model, x: np.ndarray, options: RuleOptions) -> Rule:
    """The rule that the model's kind and the options ask for."""
    if isinstance(model, Committee):
        rule = _committee(model, x, options)
    elif isinstance(model.likelihood, ClassLikelihood):
        rule = _classes(model, model.likelihood, x, options)
    elif model.likelihood.classifies:
        rule = _classification(model, x, options)
    else:
        rule = _regression(model, x, options)
    return replace(rule, method=options.method)


def _classes(
    posterior: Posterior, likelihood: ClassLikelihood, x: np.ndarray, options: RuleOptions
) -> Rule:
    costs = _costs(posterior.labels, options)
    winner = int((posterior.prediction(x[None])[0] * np.asarray(costs)).argmax())
    layout, searched = class_layout(posterior)
    goal = ClassGoal(Classes(layout, likelihood), margins(layout.classes, winner, costs))
    return Rule(searched, goal, 0.0, posterior.labels[winner], "the most probable class")


def _committee(committee: Committee, x: np.ndarray, options: RuleOptions) -> Rule:
    costs = _costs(committee.classes, options)
    weights = None if options.class_weight is None else costs
    winner = int(committee_decision(committee, x[None], weights)[0])
    goal = committee_goal(committee, winner, weights)
    text = f"{committee.scheme.replace('_', '-')} decision"
    return Rule(committee, goal, 0.0, committee.classes[winner], text)


def _costs(labels: tuple[Any, ...], options: RuleOptions) -> tuple[float, ...]:
    """Cost of a mistake on each class: the largest `cost * probability` decides."""
    if options.delta is not None:
        raise InputError("delta: expected a regression model, got a classifier")
    if options.threshold is not None:
        raise InputError(
            f"threshold: expected two classes, got {len(labels)}; the most probable class decides, "
            "use class_weight= to prefer some"
        )
    if options.class_weight is None:
        return (1.0,) * len(labels)
    return _weights(labels, options.class_weight)


def _classification(posterior: Posterior, x: np.ndarray, options: RuleOptions) -> Rule:
    if options.delta is not None:
        raise InputError("delta: expected a regression model; for a classifier use threshold=")
    threshold = _probability_threshold(posterior, options)
    labels, likelihood = posterior.labels, posterior.likelihood
    assert isinstance(likelihood, ScalarLikelihood)
    if threshold is None and not likelihood.symmetric:
        threshold = 0.5
    if threshold is None:
        # pi(x) > 1/2 exactly where mu(x) > 0, by the symmetry of the link: no variance is needed
        sign = 1 if float(posterior.predict(x[None])[0][0, 0]) > 0 else -1
        goal = MeanGoal(0, sign)
        return Rule(posterior, goal, 0.0, labels[sign > 0], "sign of the latent mean")
    sign = 1 if float(posterior.prediction(x[None])[0, 0]) > threshold else -1
    goal = ProbabilityGoal(likelihood, 0, sign)
    text = f"probability against {threshold:.6g}"
    return Rule(posterior, goal, sign * threshold, labels[sign > 0], text)


def _probability_threshold(posterior: Posterior, options: RuleOptions) -> float | None:
    """None stands for 1/2, the decision that `predict` makes."""
    if options.class_weight is not None:
        if options.threshold is not None:
            raise InputError("expected threshold= or class_weight=, got both; drop one")
        first, second = _weights(posterior.labels, options.class_weight)
        threshold = first / (first + second)
    elif options.threshold is not None:
        threshold = float(finite_array("threshold", options.threshold, ndim=0))
    else:
        return None
    if not 0 < threshold < 1:
        raise InputError(f"threshold: expected a probability between 0 and 1, got {threshold!r}")
    return None if threshold == 0.5 else threshold


def _weights(
    labels: tuple[Any, ...], weight: Mapping[Any, float] | Sequence[float]
) -> tuple[float, ...]:
    """Cost of a mistake on every class: of two, the second is chosen where w2 pi > w1 (1 - pi)."""
    if isinstance(weight, Mapping):
        missing = [label for label in labels if label not in weight]
        if missing:
            raise InputError(f"class_weight: expected weights of {labels}, missing {missing}")
        values = [weight[label] for label in labels]
    else:
        values = list(weight)
    found = finite_array("class_weight", values, ndim=1)
    if found.shape != (len(labels),) or np.any(found <= 0):
        raise InputError(f"class_weight: expected {len(labels)} positive weights, got {weight!r}")
    return tuple(map(float, found))


def _regression(posterior: Posterior, x: np.ndarray, options: RuleOptions) -> Rule:
    if options.class_weight is not None:
        raise InputError("class_weight: expected a classifier, got a regression model")
    if (options.delta is None) == (options.threshold is None):
        raise InputError(
            "regression robustness needs either delta= (how far the mean may move) or threshold= "
            "(a level that it must not cross); got "
            + ("both" if options.delta is not None else "neither")
        )
    if options.threshold is not None:
        if posterior.outputs != 1:
            raise InputError(f"threshold: expected one output, got {posterior.outputs}; use delta=")
        level = float(finite_array("threshold", options.threshold, ndim=0))
        sign = 1 if float(posterior.predict(x[None])[0][0, 0]) > level else -1
        goal = MeanGoal(0, sign)
        return Rule(posterior, goal, sign * level, None, f"mean against {level:.6g}")
    delta = float(finite_array("delta", options.delta, ndim=0))
    if delta <= 0:
        raise InputError(f"delta: expected a positive number, got {delta!r}")
    norm = check_norm(options.output_norm)
    values, errors = _mean_at(posterior, x)
    goal = DeviationGoal(values, errors, norm)
    text = f"deviation of the mean at most {delta:.6g} (l_{norm:g})"
    return Rule(posterior, goal, -delta, None, text)


def _mean_at(posterior: Posterior, x: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Certified mean at x: floats and the radii within which the real values lie."""
    region = Ball(x, 0.0)
    local = LocalPosterior.build(posterior, region, Backend(), variance=False)
    evaluation = Evaluation(local, region.root())
    values, errors = [], []
    for c in range(posterior.outputs):
        high = float(to_numpy(MeanGoal(c, 1).ceiling(evaluation))[0])
        low = -float(to_numpy(MeanGoal(c, -1).ceiling(evaluation))[0])
        middle = 0.5 * (low + high)
        values.append(middle)
        errors.append(up_float(max(high - middle, middle - low), 2))
    return tuple(values), tuple(errors)
