"""Decisions of a model at points and their margins, in plain floating point, for many points at
once.

`Margins` holds the decisions made at n points. Its methods take points X (k, d) and rows (k,), the
index of the decision that each point is compared with: one batch holds all points and all restarts.
A margin is `latent`, a function of latent means (as GPFGS uses it), or a function of the
predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpcert.attacks.functions import (
    LazyFunction,
    ValuesAndGradients,
    class_predictions,
    lazy_function,
    least_sum_of_means,
    means_and_gradients,
)
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.model.class_layout import class_layout
from gpcert.model.committee import Committee, Model, check_class_weight, class_weights, pair_weights
from gpcert.model.multi_output import Outputs
from gpcert.model.posterior import Posterior
from gpcert.quantities import ClassSums, Probability, Quantity
from gpcert.quantities.committee import committee_margin
from gpcert.quantities.compound import deviation_of, margins


class MarginFunctions(NamedTuple):
    """The margins of one decision: `sign (function - level)` of the predictions and of the latent
    means. Several decisions may share functions."""

    functions: tuple[LazyFunction, LazyFunction]
    sign: float = 1.0
    levels: tuple[float, float] = (0.0, 0.0)


DisplayFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From points (k, d) and numbers of decisions (k,) to the displayed prediction (k,)."""


@dataclass(eq=False)
class Margins:
    """Decisions at points X; a margin is positive where the decision of its row holds.

    `choose` gives the numbers of the decisions at points, `labels` their labels; `margin_functions`
    are the margins of each. `display(X, numbers)` is the displayed prediction, `quantity` its name;
    `level`, if there is one, is the level that it is compared with (decision 1 is above).
    `by_latent`: the decision is made by the latent margin, as for the sign of a mean.
    """

    X: np.ndarray
    choose: Callable[[np.ndarray], np.ndarray]
    labels: Sequence[Any]
    margin_functions: Sequence[MarginFunctions]
    display: DisplayFunction
    quantity: str
    level: float | None = None
    by_latent: bool = False

    @cached_property
    def winners(self) -> np.ndarray:
        """(n,) numbers of the decisions."""
        return self.choose(self.X)

    def value(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) the latent or the predicted margin, without its gradient."""
        margin = np.empty(len(X))
        for at, function, sign, level in self._groups(latent, rows):
            margin[at] = sign * (function(X[at])[0] - level)
        return margin

    def better(
        self, x: np.ndarray, value: np.ndarray, y: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The better of x and y in each row, and its margin; `value` are the predicted margins of
        x.

        y is better if its predicted margin is smaller, or equal with a smaller latent margin
        (predictions saturate).
        """
        reached = self.value(False, y, rows)
        won, tied = reached < value, np.flatnonzero(reached == value)
        if len(tied):
            old, new = (self.value(True, points[tied], rows[tied]) for points in (x, y))
            won[tied] = new < old
        return np.where(won[:, None], y, x), np.where(won, reached, value)

    def margin(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) the margin that decides: negative where the decision is different."""
        return self.value(self.by_latent, X, rows)

    def displayed(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) the displayed prediction, `quantity`."""
        return self.display(X, self.winners[rows])

    def decided(self, X: np.ndarray) -> list[Any]:
        """The labels of the decisions at X; None in regression."""
        return [self.labels[int(c)] for c in self.choose(X)]

    def first_gradients(self, X: np.ndarray, rows: np.ndarray, *, latent: bool) -> list[Any]:
        """Gradients (k, d), possibly several, for a first step from the points."""
        return [self.value_and_gradient(latent, X, rows)[1]]

    def value_and_gradient(
        self, latent: bool, X: np.ndarray, rows: np.ndarray
    ) -> ValuesAndGradients:
        """The latent or the predicted margin (k,), and its gradient (k, d)."""
        value, slope = np.empty(len(X)), np.empty(X.shape)
        for at, function, sign, level in self._groups(latent, rows):
            values, gradient = function(X[at])
            value[at], slope[at] = sign * (values - level), np.reshape(sign, (-1, 1)) * gradient()
        return value, slope

    def _groups(
        self, latent: bool, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, LazyFunction, np.ndarray, float]]:
        """Masks of rows that share a function, with the function, their signs and the level."""
        numbers, signs = self.winners[rows], np.array([pair.sign for pair in self.margin_functions])
        margin_list = [pair.functions[latent] for pair in self.margin_functions]
        for function in dict.fromkeys(margin_list):
            at = np.array([each is function for each in margin_list])[numbers]
            if at.any():
                level = self.margin_functions[margin_list.index(function)].levels[latent]
                yield at, function, signs[numbers[at]], level


class DeviationMargins(Margins):
    """Regression: `delta - ||mu(x') - mu(x)||_p` over the outputs, latent and predicted alike."""

    def __init__(self, model: Outputs, X: np.ndarray, delta: float, norm: float) -> None:
        quantity = "mean" if model.outputs == 1 else "deviation of the mean"
        display = _first(model.mean)
        super().__init__(X, lambda X: np.zeros(len(X), dtype=int), (None,), (), display, quantity)
        self.model, self.delta, self.norm = model, delta, norm
        self.reference = model.mean(X)

    def value(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        gaps = self.model.mean(X) - self.reference[rows]
        return self.delta - deviation_of(gaps, self.norm)[0]

    def displayed(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The mean if there is one output, else the norm of the deviation."""
        one = self.model.outputs == 1
        return super().displayed(X, rows) if one else self.delta - self.value(True, X, rows)

    def first_gradients(self, X: np.ndarray, rows: np.ndarray, *, latent: bool) -> list[Any]:
        """At x itself the deviation has the gradient 0: every mean is raised and lowered."""
        slopes = means_and_gradients(self.model, X, self.model.outputs)[1]
        return [sign * slopes[:, c] for c in range(slopes.shape[1]) for sign in (1.0, -1.0)]

    def value_and_gradient(
        self, latent: bool, X: np.ndarray, rows: np.ndarray
    ) -> ValuesAndGradients:
        means, slopes = means_and_gradients(self.model, X, self.model.outputs)
        value, weight = deviation_of(means - self.reference[rows], self.norm)
        return self.delta - value, -np.einsum("kc,kcd->kd", weight, slopes)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The second of two decisions is made if `above > level`, else the first one. `below` is minus
    `above`; both are functions of `model`, and `level` is an exact number.

    `labels` are the labels of the decisions, `texts` the rules of each as text, and that of both;
    `value` is the name of the compared value, `unit` its unit.
    """

    model: Model
    above: Quantity
    below: Quantity
    level: Fraction
    value: str
    unit: StrEnum
    texts: tuple[str, str, str]
    labels: tuple[Any, Any] = (None, None)


@dataclass(frozen=True)
class Decision:
    """Options that define the decision; see `gpcert.certify`.

    `compared` is the value that is compared with the threshold, if it is not the default one.
    """

    threshold: float | None = None
    class_weight: Mapping[Any, float] | Sequence[float] | None = None
    delta: float | None = None
    output_norm: float = math.inf
    compared: Comparison | None = None


def decision_margins(model: Model, X: np.ndarray, decision: Decision) -> Margins:
    """The decisions that the model makes at X (n, d), with their margins.

    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.model.posterior import Posterior
    >>> p = Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    >>> margins = decision_margins(p, np.array([[0.0]]), Decision(threshold=0.5))
    >>> margins.margin(np.array([[0.0], [9.0]]), np.array([0, 0])).round(3).tolist()
    [0.5, -0.5]
    """
    if decision.compared is not None:
        return _of_comparison(decision.compared, X)
    if isinstance(model, Committee) or isinstance(model.likelihood, ClassLikelihood):
        if decision.delta is not None or decision.threshold is not None:
            raise InputError(
                f"expected class_weight= for {len(model.labels)} classes, got delta= or threshold="
            )
        costs = class_weights(model.labels, decision.class_weight)
        if isinstance(model, Committee):
            return _of_committee(model, X, None if decision.class_weight is None else costs)
        return _of_classes(model, X, costs)
    if isinstance(model, Posterior) and model.likelihood.classifies:
        threshold = decision.threshold
        if decision.class_weight is not None:
            model.check_has_variance("class_weight")
            first, second = class_weights(model.labels, decision.class_weight)
            threshold = first / (first + second)
        return _of_two(model, X, threshold)
    if decision.delta is not None:
        return DeviationMargins(model, X, decision.delta, decision.output_norm)
    if decision.threshold is None:
        raise InputError(
            "an attack on a regression needs delta= (how much the mean may change) or threshold= "
            f"(a level that it must not cross){model.likelihood.advice}"
        )
    return _of_level(model, X, decision.threshold)


def _of_two(model: Posterior, X: np.ndarray, threshold: float | None) -> Margins:
    """Two classes: `sign (pi - threshold)`, by default the sign of the latent mean.

    For a model without a variance, pi is its mean, and the default threshold is 0.
    """
    likelihood = model.likelihood
    assert isinstance(likelihood, ScalarLikelihood)
    probable = likelihood.has_variance
    by_latent = threshold is None and likelihood.symmetric
    level = (0.5 if probable else 0.0) if threshold is None else threshold

    def choose(X: np.ndarray) -> np.ndarray:
        second = model.mean(X) > 0 if by_latent else model.prediction(X) > level
        return second[:, 0].astype(int)

    predicted = lazy_function(model, Probability(likelihood, 0, 1))
    latent = least_sum_of_means(model, np.ones((1, 1)))
    margin_functions = [
        MarginFunctions((predicted, latent), sign, (level, 0.0)) for sign in (-1.0, 1.0)
    ]
    quantity = f"probability of class {model.labels[1]}" if probable else "decision function"
    display = _first(model.prediction)
    return Margins(X, choose, model.labels, margin_functions, display, quantity, level, by_latent)


def _of_level(model: Outputs, X: np.ndarray, level: float) -> Margins:
    """Regression: `sign (mu - level)`."""
    mean = least_sum_of_means(model, np.ones((1, 1)))
    margin_functions = [MarginFunctions((mean, mean), sign, (level, level)) for sign in (-1.0, 1.0)]

    def choose(X: np.ndarray) -> np.ndarray:
        return (model.mean(X)[:, 0] > level).astype(int)

    return Margins(X, choose, (None, None), margin_functions, _first(model.mean), "mean", level)


def _of_comparison(comparison: Comparison, X: np.ndarray) -> Margins:
    """`sign (value - level)` for any compared value."""
    value, level = lazy_function(comparison.model, comparison.above), float(comparison.level)
    margin_functions = [
        MarginFunctions((value, value), sign, (level, level)) for sign in (-1.0, 1.0)
    ]

    def choose(X: np.ndarray) -> np.ndarray:
        return (value(X)[0] > level).astype(int)

    def display(X: np.ndarray, _: np.ndarray) -> np.ndarray:
        return value(X)[0]

    return Margins(X, choose, comparison.labels, margin_functions, display, comparison.value, level)


def _first(predicted: Callable[[np.ndarray], np.ndarray]) -> DisplayFunction:
    """The display function that returns the first output, for any decision."""
    return lambda X, _: predicted(X)[:, 0]


def _of_classes(model: Outputs, X: np.ndarray, costs: tuple[float, ...]) -> Margins:
    """`min_j (w_i pi_i - w_j pi_j)`; of the latent means `min_j (mu_i - mu_j)`."""
    likelihood = model.likelihood
    assert isinstance(likelihood, ClassLikelihood)
    layout, searched = class_layout(model)
    predicted = class_predictions(searched, layout, likelihood)
    m, mixing = layout.classes, likelihood.mixed(model.outputs)

    sums = [ClassSums(layout, likelihood, margins(m, c, costs)) for c in range(m)]
    return Margins(
        X,
        lambda X: np.argmax(np.asarray(costs) * predicted(X)[0], axis=1),
        model.labels,
        [
            MarginFunctions((lazy_function(searched, sums[c]), _lead(model, mixing, c)))
            for c in range(m)
        ],
        lambda X, numbers: predicted(X)[0][np.arange(len(X)), numbers],
        "probability of the decided class",
    )


def _lead(model: Model, mean_weights: np.ndarray, winner: int) -> LazyFunction:
    """The least lead of a class over the others, from the weights of its mean (m, outputs)."""
    return least_sum_of_means(model, mean_weights[winner] - np.delete(mean_weights, winner, axis=0))


def _of_committee(model: Committee, X: np.ndarray, weight: tuple[float, ...] | None) -> Margins:
    """One-vs-rest: `min_j (w_i F_i - w_j F_j)`, of the latent means `min_j (mu_i - mu_j)`. Votes:
    the lead in scores, and the least mean in favour of the winner over its pairs."""
    m, costs = len(model.classes), np.asarray(check_class_weight(model, weight))
    rest = model.scheme == "one_vs_rest"

    def functions_of(winner: int) -> MarginFunctions:
        predicted = lazy_function(model, committee_margin(model, winner, weight))
        if rest:
            return MarginFunctions((predicted, _lead(model, np.eye(m), winner)))
        signs = pair_weights(m, winner)
        return MarginFunctions((predicted, least_sum_of_means(model, np.diag(signs)[signs != 0])))

    def display(X: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        rows = np.arange(len(X))
        if rest:
            return model.probabilities(X)[rows, numbers]
        scores = model.scores(X)
        winning = scores[rows, numbers]
        scores[rows, numbers] = -np.inf
        return winning - scores.max(axis=1)

    def choose(X: np.ndarray) -> np.ndarray:
        return np.argmax(costs * model.scores(X), axis=1)

    quantity = f"{'probability' if rest else 'lead'} of the decided class"
    return Margins(X, choose, model.classes, [functions_of(c) for c in range(m)], display, quantity)
