"""Committees of random members, and what they decide in ball arithmetic."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from gpcert.enclosures import Evaluation, local_model
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import SklearnLogistic
from gpcert.model.committee import Committee
from gpcert.numerics.arrays import backend_from_name
from gpcert.quantities import Share
from gpcert.quantities.committee import committee_margin, member_probabilities
from gpcert.regions import Region
from gpcert.testing.arb_reference import ArbPosterior, regression_posterior
from tests.enclosures.enclosure_checks import (
    arb,
    refused_growth,
)
from tests.strategies import kernels, random_cells, regions_near, seeds, units

SCHEMES = ("one_vs_rest", "one_vs_one")


def margin_goal(committee, winner, weights=None):
    return QuantityGoal(committee_margin(committee, winner, weights))


def share_goal(committee, c, sign):
    return QuantityGoal(Share(member_probabilities(committee), c, sign))


@dataclass(frozen=True, eq=False)
class CommitteeCase:
    """Like `tests.strategies.Case`, with a committee."""

    committee: Committee
    region: Region
    rng: np.random.Generator

    def evaluation(self, keep=3, backend="numpy", optional=True):
        place = backend_from_name(backend)
        with refused_growth():
            local = local_model(self.committee, self.region, place, True)
        return Evaluation(local, random_cells(self.region, self.rng, 4, keep, backend), optional)


@st.composite
def members(draw, dim, count, make_kernels=kernels, likelihood=None, max_points=6):
    """Posteriors of kernels, sizes and offsets of their own, near each other."""
    likelihood = likelihood or SklearnLogistic()
    rng = np.random.default_rng(draw(seeds))
    first = draw(make_kernels(dim))
    found = []
    for _ in range(count):
        kernel = draw(st.sampled_from([first, None])) or draw(make_kernels(dim))
        N = draw(st.integers(1, max_points))
        points = units(first, dim) * rng.normal(size=(N, dim)) * draw(st.sampled_from([0.3, 1.0]))
        options = {}
        if draw(st.integers(0, 2)) == 0:
            options = {
                "offset": rng.normal(),
                "scale": rng.uniform(0.3, 3.0),
                "noise": rng.random(),
            }
        ridge = 10.0 ** draw(st.sampled_from([-10.0, -3.0, 0.0]))
        targets = draw(st.sampled_from([0.1, 1.0, 10.0])) * rng.normal(size=(1, N))
        own = regression_posterior(kernel, points, targets, ridge, likelihood=likelihood, **options)
        if draw(st.integers(0, 3)) == 0:  # v falls below 0 near the points
            own = replace(own, factor=1.3 * own.factor)
        found.append(own)
    return tuple(found)


@st.composite
def committee_cases(draw, scheme, make_kernels=kernels, likelihood=None, max_classes=4):
    dim, m = draw(st.integers(1, 3)), draw(st.integers(2, max_classes))
    count = m if scheme == "one_vs_rest" else m * (m - 1) // 2
    posteriors = draw(members(dim, count, make_kernels, likelihood))
    region = draw(regions_near(posteriors[0]))
    committee = Committee(posteriors, tuple(range(m)), scheme)
    return CommitteeCase(committee, region, np.random.default_rng(draw(seeds)))


class Reference:
    """The committee in ball arithmetic, written from the definitions of `Committee` alone."""

    def __init__(self, committee):
        self.m = len(committee.classes)
        self.members = [ArbPosterior(member) for member in committee.members]
        self.kept = {}

    def probabilities(self, x):
        key = x.tobytes()
        if key not in self.kept:
            self.kept[key] = [member.probability(x) for member in self.members]
        return self.kept[key]

    def margin(self, x, winner, weights):
        F = self.probabilities(x)
        gaps = [
            arb(weights[winner]) * F[winner] - arb(weights[j]) * F[j]
            for j in range(self.m)
            if j != winner
        ]
        return least(gaps)

    def ratio(self, x, c):
        F = self.probabilities(x)
        return F[c] / sum(F, arb(0))

    def scores(self, x):
        votes, sums = [arb(0)] * self.m, [arb(0)] * self.m
        for (j, k), member, F in zip(
            combinations(range(self.m), 2), self.members, self.probabilities(x), strict=True
        ):
            mean = member.mean(x)
            assert mean > 0 or mean < 0, "a vote that the reference cannot decide"
            votes[k if mean > 0 else j] += 1
            sums[j], sums[k] = sums[j] - F, sums[k] + F
        return [v + s / (3 * (abs(s) + 1)) for v, s in zip(votes, sums, strict=True)]

    def vote_margin(self, x, winner):
        scores = self.scores(x)
        return least([scores[winner] - s for j, s in enumerate(scores) if j != winner])


def least(balls):
    smallest = balls[0]
    for ball in balls[1:]:
        smallest = smallest.min(ball)
    return smallest


def smooth_committee(scheme, likelihood=None):
    rng = np.random.default_rng(5)
    posteriors = []
    for lengths in ([1.0, 2.0], [1.5, 0.8], [2.0, 2.0]):
        points, targets = rng.normal(size=(12, 2)), rng.normal(size=(1, 12))
        posteriors.append(
            regression_posterior(
                SquaredExponential(lengths, 2.0),
                points,
                targets,
                0.1,
                likelihood=likelihood or SklearnLogistic(),
            )
        )
    return Committee(tuple(posteriors), ("a", "b", "c"), scheme)
