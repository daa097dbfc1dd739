"""Margins of several classes: coupled or independent latent functions, and committees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from gpcert.attacks.class_means import ClassMeans, class_means
from gpcert.attacks.functions import (
    Latent,
    cross_gradient,
    mean_and_gradient,
    means_and_gradients,
    stacked,
)
from gpcert.attacks.latent_classes import LatentClasses, SeparateClasses, latent_classes
from gpcert.attacks.margins import Judged, Margins, least_lead
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


class LeadMargins(Margins):
    """Several classes: `min_j (score_i - score_j)`, i the class decided on at a row's point."""

    quantity = "probability of the decided class"
    labels: tuple[Any, ...]
    winners: np.ndarray

    @abstractmethod
    def scores(self, X: np.ndarray) -> np.ndarray:
        """(k, m) what decides: the class with the largest."""

    def at(self, X: np.ndarray) -> Self:
        """Judge by the decisions at X."""
        self.winners = np.argmax(self.scores(X), axis=1)
        return self

    def led(self, scores: np.ndarray, slopes: np.ndarray, rows: np.ndarray) -> Judged:
        """The leads, and their gradients from those of all scores (k, m, d)."""
        winners, k = self.winners[rows], np.arange(len(scores))
        value, rivals = least_lead(scores, winners)
        return value, slopes[k, winners] - slopes[k, rivals]

    def decided(self, X: np.ndarray) -> list[Any]:
        return [self.labels[int(c)] for c in np.argmax(self.scores(X), axis=1)]


class ClassMargins(LeadMargins):
    """`min_j (w_i pi_i - w_j pi_j)`."""

    def __init__(self, posterior: Outputs, class_weight: np.ndarray) -> None:
        self.posterior, self.weight, self.labels = posterior, class_weight, posterior.labels
        self.mixing = mixing_of(posterior)

    @np.errstate(all="ignore")
    def scores(self, X: np.ndarray) -> np.ndarray:
        return self.weight * class_predictions(self.posterior, X)[1].probabilities

    @np.errstate(all="ignore")
    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`min_j (mu_i - mu_j)`."""
        means, slopes = means_and_gradients(self.posterior, X)
        return self.led(means @ self.mixing.T, np.einsum("mj,kjd->kmd", self.mixing, slopes), rows)

    @np.errstate(all="ignore")
    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        found = class_predictions(self.posterior, X)
        winners, k = self.winners[rows], np.arange(len(X))
        value, rivals = least_lead(self.weight * found[1].probabilities, winners)
        weights = np.zeros_like(found[1].probabilities)
        weights[k, winners], weights[k, rivals] = self.weight[winners], -self.weight[rivals]
        return value, weighted_gradient(found, weights)

    @np.errstate(all="ignore")
    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        latent, means, _ = class_predictions(self.posterior, X)
        winners = self.winners[rows]
        predicted = least_lead(self.weight * means.probabilities, winners)[0]
        return predicted, least_lead(latent.mean @ self.mixing.T, winners)[0]

    @np.errstate(all="ignore")
    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        found = class_predictions(self.posterior, X)[1].probabilities
        return found[np.arange(len(X)), self.winners[rows]]


def member_values(committee: Committee, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every member's mean and probability (k, members), and its gradient (k, members, d)."""
    found = []
    for member in committee.members:
        likelihood = member.likelihood
        assert isinstance(likelihood, ScalarLikelihood), "a committee checks its members"
        latent = Latent(member, X, [0], [0])
        mu, v = latent.mean[:, 0], latent.variance[:, 0]
        slope = latent.gradient(*(each[:, None] for each in likelihood.slopes(mu, v)))
        found.append((mu, likelihood.value(mu, v), slope))
    means, values, slopes = (np.stack(part, 1) for part in zip(*found, strict=True))
    return means, values, slopes


class RestMargins(LeadMargins):
    """One-vs-rest: `min_j (w_i F_i - w_j F_j)`."""

    def __init__(self, committee: Committee, class_weight: Sequence[float] | np.ndarray) -> None:
        self.committee, self.labels = committee, committee.classes
        self.weight = np.asarray(class_weight)

    def scores(self, X: np.ndarray) -> np.ndarray:
        return self.weight * self.committee.member_probabilities(X)

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`min_j (mu_i - mu_j)` of the members' means."""
        return self.led(*member_means(self.committee, X), rows)

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        _, F, slopes = member_values(self.committee, X)
        return self.led(self.weight * F, slopes * self.weight[:, None], rows)

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        winners = self.winners[rows]
        means = np.concatenate([member.predict(X)[0] for member in self.committee.members], axis=1)
        return least_lead(self.scores(X), winners)[0], least_lead(means, winners)[0]

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """`F_i / sum_k F_k` of the class decided on at the row's point."""
        return self.committee.probabilities(X)[np.arange(len(X)), self.winners[rows]]


class VoteMargins(LeadMargins):
    """One-vs-one: `min_j (score_i - score_j)`, votes and sums of confidences.

    The votes are constant almost everywhere: the gradient of a score is that of its sum, which
    points to where the pairs that matter become less certain, and there votes change.
    """

    quantity = "lead of the decided class"

    def __init__(self, committee: Committee) -> None:
        self.committee, self.labels = committee, committee.classes
        self.weights = all_pair_weights(committee)

    def scores(self, X: np.ndarray) -> np.ndarray:
        return self.committee.scores(X)

    def favours(self, means: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, pairs) the means in favour of the winner, infinite of pairs that it is not in; and
        the signs: 1 where the winner is the pair's second class, -1 the first, else 0."""
        signs = self.weights[self.winners[rows]]
        return np.where(signs == 0, np.inf, signs * means), signs

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """The least mean in favour of the winner, over its pairs."""
        means, slopes = member_means(self.committee, X)
        favours, signs = self.favours(means, rows)
        least, k = np.argmin(favours, axis=1), np.arange(len(X))
        return favours[k, least], signs[k, least, None] * slopes[k, least]

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        return self.led(*vote_scores(self.weights, *member_values(self.committee, X)), rows)

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means = np.concatenate([member.predict(X)[0] for member in self.committee.members], axis=1)
        latent = self.favours(means, rows)[0].min(axis=1)
        return self.shown(X, rows), latent

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The lead itself."""
        return least_lead(self.scores(X), self.winners[rows])[0]


class PairVoteMargins(VoteMargins):
    """Votes of a committee whose member holds all pairs: `min_j (V_i - V_j + (j - i) / m)`.

    Both margins have the gradient of the winner's pair that is nearest to being lost.
    """

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        return self._judged(X, rows)[1:]

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        lead, _, slope = self._judged(X, rows)
        return lead, slope

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means = self.committee.members[0].mean(X)
        lead, _ = least_lead(shared_scores(means, len(self.labels)), self.winners[rows])
        return lead, self.favours(means, rows)[0].min(axis=1)

    def _judged(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The lead in votes, the least mean in favour of the winner, and its gradient."""
        (member,) = self.committee.members
        K, product = member.cross_with_gradient(X)
        means = member.mean_from(X, K)
        lead, _ = least_lead(shared_scores(means, len(self.labels)), self.winners[rows])
        favours, signs = self.favours(means, rows)
        least, k = np.argmin(favours, axis=1), np.arange(len(X))
        sizes = (signs[k, least] * member.scale[least])[:, None]
        weights, slopes = sizes * member.weights[least], sizes * member.slope[least]
        return lead, favours[k, least], cross_gradient(member, X, weights, slopes, product)


def member_means(committee: Committee, X: np.ndarray) -> Judged:
    """Every member's mean (k, members) and gradient (k, members, d)."""
    return stacked([mean_and_gradient(member, X, 0) for member in committee.members])


def all_pair_weights(committee: Committee) -> np.ndarray:
    """(m, pairs) in which pairs each class is the first, -1, or the second, 1."""
    m = len(committee.classes)
    return np.stack([pair_weights(m, c) for c in range(m)])


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
