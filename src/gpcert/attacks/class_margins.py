"""Margins of several classes: coupled or independent latent functions, and committees."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from gpcert.attacks.class_means import ClassMeans, class_means
from gpcert.attacks.functions import cross_gradient, mean_and_gradient, variance_and_gradient
from gpcert.attacks.latent_classes import LatentClasses, SeparateClasses, latent_classes
from gpcert.attacks.margins import Judged, Margins, lead_slopes, least_lead
from gpcert.committee import Committee, pair_weights
from gpcert.committee import vote_scores as shared_scores
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.several import Outputs

Predictions = tuple[LatentClasses | SeparateClasses, ClassMeans, np.ndarray]


def class_predictions(model: Outputs, X: np.ndarray) -> Predictions:
    """Latent outputs, the means of the links, and D (n, J), which makes the differences."""
    latent, mixing = latent_classes(model, X), mixing_of(model)
    D = mixing[1:] - mixing[:1]
    V = D @ latent.covariance @ D.T
    assert isinstance(model.likelihood, ClassLikelihood)
    return latent, class_means(model.likelihood, latent.mean @ D.T, V), D


def mixing_of(model: Outputs) -> np.ndarray:
    """(m, J): the classes' latent values as sums of the outputs."""
    assert isinstance(model.likelihood, ClassLikelihood)
    return model.likelihood.mixed(model.outputs)


def weighted_gradient(found: Predictions, weights: np.ndarray) -> np.ndarray:
    """(k, d) gradients of `sum_c weights_kc pi_c`."""
    latent, means, D = found
    p, by_covariance = means.slopes(weights)
    return latent.gradient(p @ D, D.T @ by_covariance @ D)


class ClassMargins(Margins):
    """`min_j (w_i pi_i - w_j pi_j)`, i the class decided on at a row's point."""

    quantity = "probability of the decided class"

    def __init__(self, posterior: Outputs, X: np.ndarray, class_weight: np.ndarray) -> None:
        self.posterior, self.weight = posterior, class_weight
        self.mixing = mixing_of(posterior)
        self.winners = self._winners(X)

    @np.errstate(all="ignore")
    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`min_j (mu_i - mu_j)`."""
        parts = [mean_and_gradient(self.posterior, X, c) for c in range(self.posterior.outputs)]
        winners = self.winners[rows]
        means = np.stack([part[0] for part in parts], 1) @ self.mixing.T
        slopes = np.einsum("mj,kjd->kmd", self.mixing, np.stack([part[1] for part in parts], 1))
        value, rivals = least_lead(means, winners)
        return value, lead_slopes(slopes, winners, rivals)

    @np.errstate(all="ignore")
    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`min_j (w_i pi_i - w_j pi_j)`."""
        found = class_predictions(self.posterior, X)
        winners, k = self.winners[rows], np.arange(len(X))
        value, rivals = least_lead(self.weight * found[1].probabilities, winners)
        weights = np.zeros_like(found[1].probabilities)
        weights[k, winners], weights[k, rivals] = self.weight[winners], -self.weight[rivals]
        return value, weighted_gradient(found, weights)

    @np.errstate(all="ignore")
    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both margins."""
        latent, means, _ = class_predictions(self.posterior, X)
        winners = self.winners[rows]
        predicted = least_lead(self.weight * means.probabilities, winners)[0]
        return predicted, least_lead(latent.mean @ self.mixing.T, winners)[0]

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The probability of the class decided on at the row's point."""
        return self._probabilities(X)[np.arange(len(X)), self.winners[rows]]

    def decided(self, X: np.ndarray) -> list[Any]:
        """The labels of the classes."""
        return [self.posterior.labels[int(c)] for c in self._winners(X)]

    @np.errstate(all="ignore")
    def _probabilities(self, X: np.ndarray) -> np.ndarray:
        return class_predictions(self.posterior, X)[1].probabilities

    def _winners(self, X: np.ndarray) -> np.ndarray:
        return np.argmax(self.weight * self._probabilities(X), axis=1)


def member_values(
    committee: Committee, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every member's mean and probability (k, members), and their gradients (k, members, d)."""
    means, mean_slopes, values, slopes = [], [], [], []
    for member in committee.members:
        likelihood = member.likelihood
        assert isinstance(likelihood, ScalarLikelihood), "a committee checks its members"
        mu, by_x = mean_and_gradient(member, X, 0)
        v, v_by_x = variance_and_gradient(member, X, 0)
        by_mu, by_v = likelihood.slopes(mu, v)
        means.append(mu)
        mean_slopes.append(by_x)
        values.append(likelihood.value(mu, v))
        slopes.append(by_mu[:, None] * by_x + by_v[:, None] * v_by_x)
    stacked = [np.stack(part, axis=1) for part in (means, values, mean_slopes, slopes)]
    return stacked[0], stacked[1], stacked[2], stacked[3]


class RestMargins(Margins):
    """One-vs-rest: `min_j (w_i F_i - w_j F_j)`."""

    quantity = "probability of the decided class"

    def __init__(self, committee: Committee, X: np.ndarray, class_weight: np.ndarray) -> None:
        self.committee, self.weight = committee, class_weight
        self.winners = self._winners(X)

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`min_j (mu_i - mu_j)` of the members' means."""
        parts = [mean_and_gradient(member, X, 0) for member in self.committee.members]
        winners = self.winners[rows]
        value, rivals = least_lead(np.stack([part[0] for part in parts], 1), winners)
        return value, lead_slopes(np.stack([part[1] for part in parts], 1), winners, rivals)

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`min_j (w_i F_i - w_j F_j)`."""
        _, F, _, slopes = member_values(self.committee, X)
        winners = self.winners[rows]
        value, rivals = least_lead(self.weight * F, winners)
        return value, lead_slopes(slopes * self.weight[:, None], winners, rivals)

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both margins."""
        winners = self.winners[rows]
        means = np.concatenate([member.predict(X)[0] for member in self.committee.members], axis=1)
        F = self.committee.member_probabilities(X)
        return least_lead(self.weight * F, winners)[0], least_lead(means, winners)[0]

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """`F_i / sum_k F_k` of the class decided on at the row's point."""
        return self.committee.probabilities(X)[np.arange(len(X)), self.winners[rows]]

    def decided(self, X: np.ndarray) -> list[Any]:
        """The labels of the classes."""
        return [self.committee.classes[int(c)] for c in self._winners(X)]

    def _winners(self, X: np.ndarray) -> np.ndarray:
        return np.argmax(self.weight * self.committee.member_probabilities(X), axis=1)


class VoteMargins(Margins):
    """One-vs-one: `min_j (score_i - score_j)`, votes and sums of confidences.

    The votes are constant almost everywhere: the gradient of a score is that of its sum.
    """

    quantity = "lead of the decided class"

    def __init__(self, committee: Committee, X: np.ndarray) -> None:
        self.committee = committee
        self.m = len(committee.classes)
        self.pairs = list(combinations(range(self.m), 2))
        self.weights = np.stack([pair_weights(self.m, c) for c in range(self.m)])
        self.winners = np.argmax(committee.scores(X), axis=1)

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """The least mean in favour of the winner, over its pairs."""
        parts = [mean_and_gradient(member, X, 0) for member in self.committee.members]
        signs = self._signs(rows)
        values = signs * np.stack([part[0] for part in parts], axis=1)
        least = np.argmin(np.where(signs == 0, np.inf, values), axis=1)
        k = np.arange(len(X))
        slopes = np.stack([part[1] for part in parts], axis=1)
        return values[k, least], signs[k, least, None] * slopes[k, least]

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`min_j (score_i - score_j)`."""
        means, F, _, slopes = member_values(self.committee, X)
        scores, by_x = vote_scores(self.weights, means, F, slopes)
        winners = self.winners[rows]
        value, rivals = least_lead(scores, winners)
        return value, lead_slopes(by_x, winners, rivals)

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both margins."""
        means = np.concatenate([member.predict(X)[0] for member in self.committee.members], axis=1)
        signs = self._signs(rows)
        latent = np.where(signs == 0, np.inf, signs * means).min(axis=1)
        return least_lead(self.committee.scores(X), self.winners[rows])[0], latent

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The lead itself."""
        return self.values(X, rows)[0]

    def decided(self, X: np.ndarray) -> list[Any]:
        """The labels of the classes."""
        winners = np.argmax(self.committee.scores(X), axis=1)
        return [self.committee.classes[int(c)] for c in winners]

    def _signs(self, rows: np.ndarray) -> np.ndarray:
        """(k, pairs): 1 where the winner is the pair's second class, -1 the first, else 0."""
        return self.weights[self.winners[rows]]


class PairVoteMargins(Margins):
    """Votes of a committee whose member holds all pairs: `min_j (score_i - score_j)`.

    Both margins have the gradient of the winner's pair that is nearest to being lost.
    """

    quantity = "lead of the decided class"

    def __init__(self, committee: Committee, X: np.ndarray) -> None:
        self.committee, (self.member,) = committee, committee.members
        self.m = len(committee.classes)
        self.weights = np.stack([pair_weights(self.m, c) for c in range(self.m)])
        self.winners = np.argmax(committee.scores(X), axis=1)

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """The least mean in favour of the winner, over its pairs."""
        member, signs = self.member, self.weights[self.winners[rows]]
        favours = np.where(signs == 0, np.inf, signs * member.mean(X))
        least, k = np.argmin(favours, axis=1), np.arange(len(X))
        sizes = (signs[k, least] * member.scale[least])[:, None]
        weights, slopes = sizes * member.weights[least], sizes * member.slope[least]
        return favours[k, least], cross_gradient(member, X, weights, slopes)

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`min_j (score_i - score_j)`."""
        return self.values(X, rows)[0], self.latent(X, rows)[1]

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both margins."""
        winners, means = self.winners[rows], self.member.mean(X)
        signs = self.weights[winners]
        latent = np.where(signs == 0, np.inf, signs * means).min(axis=1)
        return least_lead(shared_scores(means, self.m), winners)[0], latent

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The lead itself."""
        return self.values(X, rows)[0]

    def decided(self, X: np.ndarray) -> list[Any]:
        """The labels of the classes."""
        winners = np.argmax(self.committee.scores(X), axis=1)
        return [self.committee.classes[int(c)] for c in winners]


def vote_scores(
    weights: np.ndarray, means: np.ndarray, F: np.ndarray, slopes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One-vs-one scores (k, m) and the gradients (k, m, d) of their sums of confidences."""
    m = len(weights)
    sums = F @ weights.T
    size = np.abs(sums) + 1.0
    scores = (means > 0) @ weights.T + np.arange(m)[::-1] + sums / (3.0 * size)
    by_x = np.einsum("cp,kpd->kcd", weights, slopes) / (3.0 * size**2)[:, :, None]
    return scores, by_x
