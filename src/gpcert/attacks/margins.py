"""How far a decision is from changing, in plain floating point, for many points at once.

A `Margins` holds the decisions made at n points. Its functions take points X (k, d) and rows (k,)
that say by whose decision each is judged: one batch serves all points and all restarts. `latent`
is a margin of latent means (what GPFGS descends), `predicted` one of what is predicted from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

Judged = tuple[np.ndarray, np.ndarray]
"""Values (k,) and gradients (k, d)."""


class Margins(ABC):
    """Decisions at n points; a margin is positive where the decision of its row holds."""

    quantity: str
    """What `shown` is, in words."""

    by_latent: bool = False
    """Whether the latent margin is the decision's own, as for the sign of a mean."""

    @abstractmethod
    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """The margin of the latent means, and its gradient."""

    @abstractmethod
    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """The margin of the predictions, and its gradient."""

    @abstractmethod
    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predicted and latent margins (k,), (k,) without gradients."""

    @abstractmethod
    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) the number that people look at, `quantity`."""

    @abstractmethod
    def decided(self, X: np.ndarray) -> list[Any]:
        """The labels decided on at X; None in regression."""

    def first_gradients(
        self, X: np.ndarray, rows: np.ndarray, *, latent: bool
    ) -> Sequence[np.ndarray]:
        """Gradients (k, d) along which a first step from the points themselves may go."""
        return [(self.latent if latent else self.predicted)(X, rows)[1]]

    def margin(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) the decision's own margin: negative where another decision is made."""
        predicted, latent = self.values(X, rows)
        return latent if self.by_latent else predicted


def least_lead(scores: np.ndarray, winners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`min_j (score_i - score_j)` over j != i, i the winner of a row, and the j that attains it.

    >>> least_lead(np.array([[3.0, 1.0, 2.0]]), np.array([0]))
    (array([1.]), array([2]))
    """
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, winners] = -np.inf
    rivals = np.argmax(others, axis=1)
    return scores[rows, winners] - scores[rows, rivals], rivals
