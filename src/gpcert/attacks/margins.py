"""How far a decision is from changing, in plain floating point, for many points at once.

A `Margins` holds the decisions made at n points. Its functions take points X (k, d) and rows (k,)
that say by whose decision each is judged: one batch serves all points and all restarts. `latent`
is a margin of latent means (what GPFGS descends), `predicted` one of what is predicted from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpcert.attacks.functions import Both, LazyFunction, means_and_gradients
from gpcert.quantities.compound import deviation_of
from gpcert.several import Outputs


@dataclass(frozen=True, eq=False)
class Judge:
    """The margins of one decision: `sign (function - level)` of the predictions and of the latent
    means. Decisions may share functions."""

    predicted: LazyFunction
    latent: LazyFunction
    sign: float = 1.0
    levels: tuple[float, float] = (0.0, 0.0)


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
    look: Callable[[np.ndarray, np.ndarray], np.ndarray]
    quantity: str
    level: float | None = None
    by_latent: bool = False

    @cached_property
    def winners(self) -> np.ndarray:
        """(n,) numbers of the decisions."""
        return self.choose(self.X)

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Both:
        """The margin of the latent means, (k,), and its gradient (k, d)."""
        return self.judged(True, X, rows)

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Both:
        """The margin of the predictions, and its gradient."""
        return self.judged(False, X, rows)

    def value(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) either margin, without its gradient."""
        found = np.empty(len(X))
        for at, function, sign, level in self._groups(latent, rows):
            found[at] = sign * (function(X[at])[0] - level)
        return found

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

    def first_gradients(
        self, X: np.ndarray, rows: np.ndarray, *, latent: bool
    ) -> Sequence[np.ndarray]:
        """Gradients (k, d) along which a first step from the points themselves may go."""
        return [self.judged(latent, X, rows)[1]]

    def judged(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> Both:
        """Either margin and its gradient."""
        value, slope = np.empty(len(X)), np.empty(X.shape)
        for at, function, sign, level in self._groups(latent, rows):
            found, gradient = function(X[at])
            value[at], slope[at] = sign * (found - level), np.reshape(sign, (-1, 1)) * gradient()
        return value, slope

    def _groups(
        self, latent: bool, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, LazyFunction, np.ndarray, float]]:
        """Rows that share a function, the function, the signs of their margins and the level."""
        numbers = self.winners[rows]
        for function, own in self._shared[latent].items():
            at = own[numbers]
            if at.any():
                judge = self.judges[int(np.argmax(own))]
                yield at, function, self._signs[numbers[at]], judge.levels[latent]

    @cached_property
    def _shared(self) -> tuple[dict[LazyFunction, np.ndarray], ...]:
        """Of predictions and of latent means: which decisions have a function."""
        each = [[j.predicted for j in self.judges], [j.latent for j in self.judges]]
        return tuple({f: np.array([g is f for g in own]) for f in own} for own in each)

    @cached_property
    def _signs(self) -> np.ndarray:
        return np.array([judge.sign for judge in self.judges])


class DeviationMargins(Margins):
    """Regression: `delta - ||mu(x') - mu(x)||_p` over the outputs, latent and predicted alike."""

    def __init__(self, model: Outputs, X: np.ndarray, delta: float, norm: float) -> None:
        quantity = "mean" if model.outputs == 1 else "deviation of the mean"
        super().__init__(X, _no_decision, (None,), (), lambda X, _: model.mean(X)[:, 0], quantity)
        self.model, self.delta, self.norm = model, delta, norm
        self.reference = model.mean(X)

    def value(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        gaps = self.model.mean(X) - self.reference[rows]
        return self.delta - deviation_of(gaps, self.norm)[0]

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The mean of one output; of several the size of the deviation."""
        one = self.model.outputs == 1
        return super().shown(X, rows) if one else self.delta - self.value(True, X, rows)

    def first_gradients(
        self, X: np.ndarray, rows: np.ndarray, *, latent: bool
    ) -> Sequence[np.ndarray]:
        """At x itself the deviation has no slope: every mean may be raised or lowered."""
        slopes = means_and_gradients(self.model, X, self.model.outputs)[1]
        return [sign * slopes[:, c] for c in range(slopes.shape[1]) for sign in (1.0, -1.0)]

    def judged(self, latent: bool, X: np.ndarray, rows: np.ndarray) -> Both:
        means, slopes = means_and_gradients(self.model, X, self.model.outputs)
        value, weight = deviation_of(means - self.reference[rows], self.norm)
        return self.delta - value, -np.einsum("kc,kcd->kd", weight, slopes)


def _no_decision(X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X), dtype=int)
