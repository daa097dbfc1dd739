"""What is decided at a point, from a model and the user's words, and how far that is from changing:
in plain floating point, for many points at once.

A `Margins` holds the decisions made at n points. Its functions take points X (k, d) and rows (k,)
that say by whose decision each is judged: one batch serves all points and all restarts. A margin is
`latent`, one of latent means (what GPFGS descends), or one of what is predicted from them.
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


class Judge(NamedTuple):
    """The margins of one decision: `sign (function - level)` of the predictions and of the latent
    means. Decisions may share functions."""

    functions: tuple[LazyFunction, LazyFunction]
    sign: float = 1.0
    levels: tuple[float, float] = (0.0, 0.0)


Look = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From points (k, d) and numbers of decisions (k,) to what people look at (k,)."""


@dataclass(eq=False)
class Margins:
    """Decisions at points X; a margin is positive where the decision of its row holds.

    `choose` gives the numbers of the decisions at points, `labels` their labels; `judges` are the
    margins of each. `look(X, numbers)` is the number that people look at, `quantity` in words;
    `level`, what it is compared with, if it is (decision 1 is above). `by_latent`: the latent
    margin is the decision's own, as for the sign of a mean.
    """

    X: np.ndarray
    choose: Callable[[np.ndarray], np.ndarray]
    labels: Sequence[Any]
    judges: Sequence[Judge]
    look: Look
    quantity: str
    level: float | None = None
    by_latent: bool = False

    @cached_property
    def winners(self) -> np.ndarray:
        """(n,) numbers of the decisions."""
        return self.choose(self.X)

    def value(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) either margin, without its gradient."""
        margin = np.empty(len(X))
        for at, function, sign, level in self._groups(latent, rows):
            margin[at] = sign * (function(X[at])[0] - level)
        return margin

    def better(
        self, x: np.ndarray, value: np.ndarray, y: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Row by row x, whose predicted margins are `value`, or y where its margin is smaller, or
        equal and the latent one smaller (predictions saturate); and the margins of these."""
        reached = self.value(False, y, rows)
        won, tied = reached < value, np.flatnonzero(reached == value)
        if len(tied):
            old, new = (self.value(True, points[tied], rows[tied]) for points in (x, y))
            won[tied] = new < old
        return np.where(won[:, None], y, x), np.where(won, reached, value)

    def margin(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) the decision's own margin: negative where another decision is made."""
        return self.value(self.by_latent, X, rows)

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) the number that people look at, `quantity`."""
        return self.look(X, self.winners[rows])

    def decided(self, X: np.ndarray) -> list[Any]:
        """The labels decided on at X; None in regression."""
        return [self.labels[int(c)] for c in self.choose(X)]

    def first_gradients(self, X: np.ndarray, rows: np.ndarray, *, latent: bool) -> list[Any]:
        """Gradients (k, d) along which a first step from the points themselves may go."""
        return [self.judged(latent, X, rows)[1]]

    def judged(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> ValuesAndGradients:
        """Either margin, (k,), and its gradient (k, d)."""
        value, slope = np.empty(len(X)), np.empty(X.shape)
        for at, function, sign, level in self._groups(latent, rows):
            values, gradient = function(X[at])
            value[at], slope[at] = sign * (values - level), np.reshape(sign, (-1, 1)) * gradient()
        return value, slope

    def _groups(
        self, latent: bool, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, LazyFunction, np.ndarray, float]]:
        """Rows that share a function, the function, the signs of their margins and the level."""
        numbers, signs = self.winners[rows], np.array([judge.sign for judge in self.judges])
        functions = [judge.functions[latent] for judge in self.judges]
        for function in dict.fromkeys(functions):
            at = np.array([each is function for each in functions])[numbers]
            if at.any():
                level = self.judges[functions.index(function)].levels[latent]
                yield at, function, signs[numbers[at]], level


class DeviationMargins(Margins):
    """Regression: `delta - ||mu(x') - mu(x)||_p` over the outputs, latent and predicted alike."""

    def __init__(self, model: Outputs, X: np.ndarray, delta: float, norm: float) -> None:
        quantity = "mean" if model.outputs == 1 else "deviation of the mean"
        look = _first(model.mean)
        super().__init__(X, lambda X: np.zeros(len(X), dtype=int), (None,), (), look, quantity)
        self.model, self.delta, self.norm = model, delta, norm
        self.reference = model.mean(X)

    def value(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        gaps = self.model.mean(X) - self.reference[rows]
        return self.delta - deviation_of(gaps, self.norm)[0]

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The mean of one output; of several the size of the deviation."""
        one = self.model.outputs == 1
        return super().shown(X, rows) if one else self.delta - self.value(True, X, rows)

    def first_gradients(self, X: np.ndarray, rows: np.ndarray, *, latent: bool) -> list[Any]:
        """At x itself the deviation has no slope: every mean may be raised or lowered."""
        slopes = means_and_gradients(self.model, X, self.model.outputs)[1]
        return [sign * slopes[:, c] for c in range(slopes.shape[1]) for sign in (1.0, -1.0)]

    def judged(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> ValuesAndGradients:
        means, slopes = means_and_gradients(self.model, X, self.model.outputs)
        value, weight = deviation_of(means - self.reference[rows], self.norm)
        return self.delta - value, -np.einsum("kc,kcd->kd", weight, slopes)


@dataclass(frozen=True, eq=False)
class Comparison:
    """`above > level` makes the second of two decisions, else the first is made; `below` is minus
    `above`, both functions of `model`, and `level` an exact number.

    `labels` are those of the decisions, `texts` the rules of either in words, and that of both;
    `value` says what is compared, `unit` what it is measured in.
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
    """What the user says about the decision; see `gpcert.certify`.

    `compared`, if another value than the default one is compared with the threshold, is that.
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
            "an attack on a regression needs delta= (how far the mean may move) or threshold= (a "
            f"level that it must not cross){model.likelihood.advice}"
        )
    return _of_level(model, X, decision.threshold)


def _of_two(model: Posterior, X: np.ndarray, threshold: float | None) -> Margins:
    """Two classes: `sign (pi - threshold)`, by default the sign of the latent mean.

    Of a model that is a mean alone pi is that mean, and the threshold 0 by default.
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
    judges = [Judge((predicted, latent), sign, (level, 0.0)) for sign in (-1.0, 1.0)]
    quantity = f"probability of class {model.labels[1]}" if probable else "decision function"
    look = _first(model.prediction)
    return Margins(X, choose, model.labels, judges, look, quantity, level, by_latent)


def _of_level(model: Outputs, X: np.ndarray, level: float) -> Margins:
    """Regression: `sign (mu - level)`."""
    mean = least_sum_of_means(model, np.ones((1, 1)))
    judges = [Judge((mean, mean), sign, (level, level)) for sign in (-1.0, 1.0)]

    def choose(X: np.ndarray) -> np.ndarray:
        return (model.mean(X)[:, 0] > level).astype(int)

    return Margins(X, choose, (None, None), judges, _first(model.mean), "mean", level)


def _of_comparison(asked: Comparison, X: np.ndarray) -> Margins:
    """`sign (value - level)`, whatever the value is of."""
    value, level = lazy_function(asked.model, asked.above), float(asked.level)
    judges = [Judge((value, value), sign, (level, level)) for sign in (-1.0, 1.0)]

    def choose(X: np.ndarray) -> np.ndarray:
        return (value(X)[0] > level).astype(int)

    def look(X: np.ndarray, _: np.ndarray) -> np.ndarray:
        return value(X)[0]

    return Margins(X, choose, asked.labels, judges, look, asked.value, level)


def _first(predicted: Callable[[np.ndarray], np.ndarray]) -> Look:
    """What people look at, where that is the first output, whatever was decided."""
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
        [Judge((lazy_function(searched, sums[c]), _lead(model, mixing, c))) for c in range(m)],
        lambda X, numbers: predicted(X)[0][np.arange(len(X)), numbers],
        "probability of the decided class",
    )


def _lead(model: Model, means: np.ndarray, winner: int) -> LazyFunction:
    """The least lead of a class over the others, from its mean's weights (m, outputs)."""
    return least_sum_of_means(model, means[winner] - np.delete(means, winner, axis=0))


def _of_committee(model: Committee, X: np.ndarray, weight: tuple[float, ...] | None) -> Margins:
    """One-vs-rest: `min_j (w_i F_i - w_j F_j)`, of the latent means `min_j (mu_i - mu_j)`. Votes:
    the lead in scores, and the least mean in favour of the winner over its pairs."""
    m, costs = len(model.classes), np.asarray(check_class_weight(model, weight))
    rest = model.scheme == "one_vs_rest"

    def judge(winner: int) -> Judge:
        predicted = lazy_function(model, committee_margin(model, winner, weight))
        if rest:
            return Judge((predicted, _lead(model, np.eye(m), winner)))
        signs = pair_weights(m, winner)
        return Judge((predicted, least_sum_of_means(model, np.diag(signs)[signs != 0])))

    def look(X: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        rows = np.arange(len(X))
        if rest:
            return model.probabilities(X)[rows, numbers]
        scores = model.scores(X)
        own = scores[rows, numbers]
        scores[rows, numbers] = -np.inf
        return own - scores.max(axis=1)

    def choose(X: np.ndarray) -> np.ndarray:
        return np.argmax(costs * model.scores(X), axis=1)

    quantity = f"{'probability' if rest else 'lead'} of the decided class"
    return Margins(X, choose, model.classes, [judge(c) for c in range(m)], look, quantity)
