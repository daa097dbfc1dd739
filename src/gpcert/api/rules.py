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
from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.goals import DeviationGoal, Goal, MeanGoal, ProbabilityGoal
from gpcert.errors import InputError
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
    """`margin(x) = goal(x) - target`; `decision` is the label at x (None in regression)."""

    goal: Goal
    target: float
    decision: Any
    text: str
    method: Method = field(default_factory=Method)


def decision_rule(posterior: Posterior, x: np.ndarray, options: RuleOptions) -> Rule:
    """The rule that the model's kind and the options ask for."""
    kind = _classification if posterior.likelihood.classifies else _regression
    rule = kind(posterior, x, options)
    return replace(rule, method=options.method)


def _classification(posterior: Posterior, x: np.ndarray, options: RuleOptions) -> Rule:
    if options.delta is not None:
        raise InputError("delta: expected a regression model; for a classifier use threshold=")
    threshold = _probability_threshold(posterior, options)
    labels = posterior.classes if posterior.classes is not None else (0, 1)
    if threshold is None and not posterior.likelihood.symmetric:
        threshold = 0.5
    if threshold is None:
        # pi(x) > 1/2 exactly where mu(x) > 0, by the symmetry of the link: no variance is needed
        sign = 1 if float(posterior.predict(x[None])[0][0, 0]) > 0 else -1
        return Rule(MeanGoal(0, sign), 0.0, labels[sign > 0], "sign of the latent mean")
    sign = 1 if float(posterior.prediction(x[None])[0, 0]) > threshold else -1
    goal = ProbabilityGoal(posterior.likelihood, 0, sign)
    return Rule(goal, sign * threshold, labels[sign > 0], f"probability against {threshold:.6g}")


def _probability_threshold(posterior: Posterior, options: RuleOptions) -> float | None:
    """None stands for 1/2, the decision that `predict` makes."""
    if options.class_weight is not None:
        if options.threshold is not None:
            raise InputError("expected threshold= or class_weight=, got both; drop one")
        first, second = _weights(posterior, options.class_weight)
        threshold = first / (first + second)
    elif options.threshold is not None:
        threshold = float(finite_array("threshold", options.threshold, ndim=0))
    else:
        return None
    if not 0 < threshold < 1:
        raise InputError(f"threshold: expected a probability between 0 and 1, got {threshold!r}")
    return None if threshold == 0.5 else threshold


def _weights(posterior: Posterior, weight: Mapping[Any, float] | Sequence[float]) -> tuple:
    """Cost of a mistake on either class: class 2 is chosen where w2 pi > w1 (1 - pi)."""
    labels = posterior.classes if posterior.classes is not None else (0, 1)
    if isinstance(weight, Mapping):
        missing = [label for label in labels if label not in weight]
        if missing:
            raise InputError(f"class_weight: expected weights of {labels}, missing {missing}")
        values = [weight[label] for label in labels]
    else:
        values = list(weight)
    pair = finite_array("class_weight", values, ndim=1)
    if pair.shape != (2,) or np.any(pair <= 0):
        raise InputError(f"class_weight: expected two positive weights, got {weight!r}")
    return float(pair[0]), float(pair[1])


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
        return Rule(MeanGoal(0, sign), sign * level, None, f"mean against {level:.6g}")
    delta = float(finite_array("delta", options.delta, ndim=0))
    if delta <= 0:
        raise InputError(f"delta: expected a positive number, got {delta!r}")
    norm = check_norm(options.output_norm)
    values, errors = _mean_at(posterior, x)
    goal = DeviationGoal(values, errors, norm)
    return Rule(goal, -delta, None, f"deviation of the mean at most {delta:.6g} (l_{norm:g})")


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
