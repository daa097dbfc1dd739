"""Plain values and (sub)gradients of what a committee decides by, for local search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpcert.attacks.class_margins import PairVoteMargins, RestMargins, VoteMargins, member_values
from gpcert.attacks.functions import PlainFunction
from gpcert.committee import Committee


def rest_margin_function(
    committee: Committee, winner: int, class_weight: Sequence[float]
) -> PlainFunction:
    """`min_j (w_i F_i - w_j F_j)`, i the winner; the gradient is that of the smallest."""
    return RestMargins(committee, class_weight).of(winner)


def votes_margin_function(committee: Committee, winner: int) -> PlainFunction:
    """`min_j (score_i - score_j)` of one-vs-one scores, i the winner."""
    return VoteMargins(committee).of(winner)


def pair_votes_function(committee: Committee, winner: int) -> PlainFunction:
    """`min_j (V_i - V_j + (j - i) / m)` of a committee whose member holds all pairs, smoothed."""
    return PairVoteMargins(committee).of(winner)


def rest_probability_function(committee: Committee, class_index: int, sign: int) -> PlainFunction:
    """`sign * F_c / sum_k F_k`, 0 where all are 0."""

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, F, _, slopes = member_values(committee, X)
        value, gradient = normalised(F, slopes)
        return sign * value[:, class_index], sign * gradient[:, class_index]

    return function


def normalised(F: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`F_c / sum_k F_k` (n, m), 0 where all are 0, and the gradients (n, m, d)."""
    total = F.sum(axis=1, keepdims=True)
    safe = np.where(total != 0, total, 1.0)
    value = np.where(total != 0, F / safe, 0.0)
    by_x = (slopes - value[:, :, None] * slopes.sum(axis=1, keepdims=True)) / safe[:, :, None]
    return value, by_x
