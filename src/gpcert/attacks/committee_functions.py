"""Plain values and (sub)gradients of what a committee decides by, for local search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpcert.attacks.functions import PlainFunction, cross_gradient, scalar_function
from gpcert.attacks.margins import least_lead
from gpcert.committee import Committee, pair_weights, vote_scores
from gpcert.likelihoods import ScalarLikelihood
from gpcert.posterior import Posterior
from gpcert.quantities import Mean, Probability


def rest_margin_function(
    committee: Committee, winner: int, class_weight: Sequence[float]
) -> PlainFunction:
    """`min_j (w_i F_i - w_j F_j)`, i the winner; the gradient is that of the smallest."""
    functions = _probabilities(committee)
    others = [j for j in range(len(functions)) if j != winner]

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F, slopes = _all(functions, X)
        F, slopes = F * np.asarray(class_weight), slopes * np.asarray(class_weight)[:, None]
        gaps = F[:, [winner]] - F[:, others]
        return _smallest(gaps, slopes[:, [winner]] - slopes[:, others])

    return function


def rest_probability_function(committee: Committee, class_index: int, sign: int) -> PlainFunction:
    """`sign * F_c / sum_k F_k`, 0 where all are 0."""
    functions = _probabilities(committee)

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F, slopes = _all(functions, X)
        total = F.sum(1)
        safe = np.where(total != 0, total, 1.0)
        value = np.where(total != 0, F[:, class_index] / safe, 0.0)
        gradient = slopes[:, class_index] - value[:, None] * slopes.sum(1)
        return sign * value, sign * gradient / safe[:, None]

    return function


def votes_margin_function(committee: Committee, winner: int) -> PlainFunction:
    """`min_j (score_i - score_j)` of one-vs-one scores, i the winner.

    The votes are constant almost everywhere, so the gradient is that of the sums of confidences:
    it points to where the pairs that matter become less certain, which is where votes change.
    """
    functions = _probabilities(committee)
    means = [scalar_function(member, Mean(0, 1)) for member in committee.members]
    m = len(committee.classes)
    weights = np.stack([pair_weights(m, c) for c in range(m)])
    others = [j for j in range(m) if j != winner]

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F, slopes = _all(functions, X)
        second = np.stack([mean(X)[0] > 0 for mean in means], axis=1)
        sums = F @ weights.T
        size = np.abs(sums) + 1.0
        scores = second @ weights.T + np.arange(m)[::-1] + sums / (3.0 * size)
        by_x = np.einsum("cp,npd->ncd", weights, slopes) / (3.0 * size**2)[:, :, None]
        return _smallest(
            scores[:, [winner]] - scores[:, others], by_x[:, [winner]] - by_x[:, others]
        )

    return function


def pair_votes_function(committee: Committee, winner: int) -> PlainFunction:
    """`min_j (V_i - V_j + (j - i) / m)` of a committee whose member holds all pairs.

    Added is less than half of its steps, growing with the least mean in favour of the winner over
    its pairs, whose gradient it has: votes themselves are constant almost everywhere.
    """
    (member,) = committee.members
    m = len(committee.classes)
    signs = pair_weights(m, winner)
    own = np.flatnonzero(signs)

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        K = member.cross(X)
        means = member.mean_from(X, K)
        value, _ = least_lead(vote_scores(means, m), np.full(len(X), winner))
        favours = signs[own] * means[:, own]
        least = np.argmin(favours, axis=1)
        pair, favour = own[least], favours.min(axis=1)
        size = 1.0 + np.abs(favour)
        sizes = (signs * member.scale)[pair, None]
        weights, slopes = member.weights[pair] * sizes, member.slope[pair] * sizes
        slope = cross_gradient(member, X, weights, slopes, K)
        return value + favour / (3.0 * m * size), slope / (3.0 * m * size**2)[:, None]

    return function


def _probabilities(committee: Committee) -> list[PlainFunction]:
    return [_probability(member) for member in committee.members]


def _probability(member: Posterior) -> PlainFunction:
    assert isinstance(member.likelihood, ScalarLikelihood), "a committee checks its members"
    return scalar_function(member, Probability(member.likelihood, 0, 1))


def _all(functions: list[PlainFunction], X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (n, members) and gradients (n, members, d)."""
    parts = [function(X) for function in functions]
    return np.stack([part[0] for part in parts], 1), np.stack([part[1] for part in parts], 1)


def _smallest(values: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest of values (n, k) and its gradient from (n, k, d)."""
    rows, least = np.arange(len(values)), np.argmin(values, axis=1)
    return values[rows, least], gradients[rows, least]
