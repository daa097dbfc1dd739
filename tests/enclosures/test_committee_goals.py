"""Goals of committees: below on the whole cell, above at the centre, against ball arithmetic."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.multiclass import _ovr_decision_function

from gpcert.enclosures import Evaluation, local_model
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Gaussian, Logistic, Probit, SklearnLogistic
from gpcert.model.committee import Committee, committee_decision, pair_weights
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.regions import Ball, Box
from gpcert.search import Budget, Problem, solve
from gpcert.testing.effort import examples
from tests.enclosures.committee_cases import (
    SCHEMES,
    Reference,
    committee_cases,
    margin_goal,
    share_goal,
    smooth_committee,
)
from tests.enclosures.enclosure_checks import (
    below,
    check_goal,
)
from tests.strategies import any_kernels, random_cells


@settings(max_examples=examples(60, quick=4))
@given(case=committee_cases("one_vs_rest"), data=st.data())
def test_rest_margin(case, data):
    m = len(case.committee.classes)
    weights = (1.0,) * m
    if data.draw(st.booleans()):
        weights = tuple(case.rng.uniform(0.2, 3.0, m).tolist())
    reference, evaluation = Reference(case.committee), case.evaluation()
    for winner in range(m):
        goal = margin_goal(case.committee, winner, weights)
        for target in (None, 0.0):
            check_goal(
                case,
                goal,
                lambda x, i=winner: reference.margin(x, i, weights),
                evaluation,
                target,
            )


@settings(max_examples=examples(60, quick=4))
@given(case=committee_cases("one_vs_rest"))
def test_rest_probability(case):
    reference, evaluation = Reference(case.committee), case.evaluation()
    for c in range(len(case.committee.classes)):
        for sign in (1, -1):
            goal = share_goal(case.committee, c, sign)
            check_goal(
                case, goal, lambda x, c=c, sign=sign: sign * reference.ratio(x, c), evaluation
            )
            assert np.all(np.abs(to_numpy(goal.bound(evaluation, None).lower)) <= 1.0)


@settings(max_examples=examples(60, quick=4))
@given(case=committee_cases("one_vs_one"))
def test_votes(case):
    reference, evaluation = Reference(case.committee), case.evaluation()
    for winner in range(len(case.committee.classes)):
        check_goal(
            case,
            margin_goal(case.committee, winner),
            lambda x, i=winner: reference.vote_margin(x, i),
            evaluation,
            0.0,
        )


@settings(max_examples=examples(30, quick=4))
@given(case=st.one_of(*(committee_cases(s, any_kernels, max_classes=3) for s in SCHEMES)))
def test_other_kernels(case):
    reference, evaluation = Reference(case.committee), case.evaluation()
    rest = case.committee.scheme == "one_vs_rest"
    for winner in range(len(case.committee.classes)):

        def margin(x, i=winner):
            if rest:
                return reference.margin(x, i, (1.0,) * reference.m)
            return reference.vote_margin(x, i)

        check_goal(case, margin_goal(case.committee, winner), margin, evaluation, 0.0)


@settings(max_examples=examples(30, quick=4))
@given(case=st.one_of(*(committee_cases(s, likelihood=Probit()) for s in SCHEMES)))
def test_likelihoods_without_a_plane(case):
    reference, evaluation = Reference(case.committee), case.evaluation()
    rest = case.committee.scheme == "one_vs_rest"

    def margin(x):
        return reference.margin(x, 0, (1.0,) * reference.m) if rest else reference.vote_margin(x, 0)

    check_goal(case, margin_goal(case.committee, 0), margin, evaluation, 0.0)


@pytest.mark.parametrize("share", [False, True])
def test_gap_is_of_second_order(share):
    """A quarter of the width leaves about a sixteenth of the gap; separate extremes a quarter."""
    committee = smooth_committee("one_vs_rest")
    goal = share_goal(committee, 1, 1) if share else margin_goal(committee, 0)
    center = np.array([0.3, -0.2])
    gaps = []
    for width in (0.2, 0.05, 0.0125):
        region = Box(center - width, center + width)
        evaluation = Evaluation(
            local_model(committee, region, backend_from_name("numpy"), True), region.root()
        )
        grid = np.stack(np.meshgrid(*np.linspace(center - width, center + width, 41).T), -1)
        true = goal.function(committee)(grid.reshape(-1, 2))[0].min()
        gaps.append(true - float(goal.bound(evaluation, None).lower[0]))
    assert gaps[0] / gaps[1] > 10
    assert gaps[1] / gaps[2] > 10


@pytest.mark.parametrize("scheme", SCHEMES)
def test_functions_are_the_goals_and_their_gradients(scheme):
    committee = smooth_committee(scheme)
    X = np.random.default_rng(0).normal(size=(20, 2))
    goals = [margin_goal(committee, c) for c in range(3)]
    if scheme == "one_vs_rest":
        goals += [share_goal(committee, c, sign) for c in range(3) for sign in (1, -1)]
        goals.append(margin_goal(committee, 1, [0.3, 1.0, 2.0]))
    scores = committee.scores(X)
    for c in range(3):
        others = np.delete(scores, c, axis=1)
        expected = (scores[:, [c]] - others).min(1)
        np.testing.assert_allclose(goals[c].function(committee)(X)[0], expected, atol=1e-12)
    for goal in goals:
        function = goal.function(committee)
        value, gradient = function(X)
        for j in range(2):
            step = 1e-6 * np.eye(2)[j]
            slope = (function(X + step)[0] - function(X - step)[0]) / 2e-6
            good = np.abs(slope - gradient[:, j]) < 1e-5 * (1 + np.abs(slope))
            assert good.mean() > 0.85  # a step may cross a change of votes or of the rival
        assert value.shape == (20,)


def constant_members(values):
    """Members whose latent mean has these signs and sizes all around 0, up to its slow decay."""
    return tuple(
        Posterior(SquaredExponential(10.0), [[0.0, 0.0]], [v], likelihood=SklearnLogistic())
        for v in values
    )


@pytest.mark.parametrize("means", [(2.0, -1.5, 1.0), (-0.4, 3.0, -0.2)])
def test_cyclic_votes_are_broken_by_confidences(means):
    """One vote each, in both cycles of three classes. The sums of probabilities of the second
    class then prefer the last class, always: scikit-learn subtracts them for the first one."""
    committee = Committee(constant_members(means), (0, 1, 2), "one_vs_one")
    X = np.random.default_rng(1).uniform(-1, 1, size=(50, 2))
    F = committee.member_probabilities(X)
    np.testing.assert_allclose(
        committee.scores(X), _ovr_decision_function((F > 0.5).astype(int), F, 3), atol=1e-14
    )
    assert np.all(np.round(committee.scores(X)) == 1)
    assert set(committee_decision(committee, X).tolist()) == {2}
    reference = Reference(committee)
    region = Box([-1.0, -1.0], [1.0, 1.0])
    for winner in range(3):
        goal = margin_goal(committee, winner)
        problem = Problem(committee, region, [goal], tol=0.0, target=0.0, budget=Budget(seconds=20))
        (found,) = solve(problem).goals
        assert found.lower > 0 if winner == 2 else found.upper < 0
        for x in X[:10]:
            below(found.lower, reference.vote_margin(x, winner), "votes")


def test_pair_weights_count_votes():
    m, rng = 5, np.random.default_rng(0)
    for _ in range(20):
        wins = rng.random(m * (m - 1) // 2) < 0.5
        votes = np.zeros(m)
        for (j, k), second in zip(combinations(range(m), 2), wins, strict=True):
            votes[k if second else j] += 1
        for c in range(m):
            assert votes[c] == m - 1 - c + pair_weights(m, c) @ wins


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e6, 1e9])
def test_no_bound_is_nan(scheme, size):
    committee = smooth_committee(scheme)
    region = Box([-size, -size], [size, size])
    local = local_model(committee, region, backend_from_name("numpy"), True)
    evaluation = Evaluation(local, region.root())
    goals = [margin_goal(committee, c) for c in range(3)]
    if scheme == "one_vs_rest":
        goals += [share_goal(committee, c, sign) for c in range(3) for sign in (1, -1)]
    for goal in goals:
        bound = goal.bound(evaluation, None)
        assert not np.isnan(bound.lower).any()
        assert not np.isnan(goal.ceiling(evaluation)).any()
        assert np.all(bound.lower <= goal.ceiling(evaluation))


def test_saturated_members_stay_within_zero_and_one():
    """All probabilities 0 to rounding: the ratio is then anything in [0, 1], and no NaN."""
    committee = Committee(constant_members([-1e6, -1e6, -2e6]), (0, 1, 2), "one_vs_rest")
    region = Box([-0.1, -0.1], [0.1, 0.1])
    local = local_model(committee, region, backend_from_name("numpy"), True)
    evaluation = Evaluation(local, region.root())
    for sign in (1, -1):
        bound = share_goal(committee, 0, sign).bound(evaluation, None).lower
        assert -1.0 <= bound[0] <= sign * 0.0
        assert not np.isnan(share_goal(committee, 0, sign).ceiling(evaluation)).any()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_torch_agrees(scheme):
    pytest.importorskip("torch")
    committee = smooth_committee(scheme)
    region = Ball([0.2, 0.1], 0.6, norm=2)
    goals = [margin_goal(committee, c) for c in range(3)]
    if scheme == "one_vs_rest":
        goals += [share_goal(committee, c, sign) for c in range(3) for sign in (1, -1)]
    results = []
    for name in ("numpy", "torch"):
        local = local_model(committee, region, backend_from_name(name), True)
        cells = random_cells(region, np.random.default_rng(0), 4, 4, name)
        evaluation = Evaluation(local, cells)
        results.append(
            [
                (to_numpy(goal.bound(evaluation, 0.0).lower), to_numpy(goal.ceiling(evaluation)))
                for goal in goals
            ]
        )
    for first, second in zip(*results, strict=True):
        np.testing.assert_allclose(first[0], second[0], atol=1e-9)
        np.testing.assert_allclose(first[1], second[1], atol=1e-9)


def test_committees_check_their_parts():
    posteriors = smooth_committee("one_vs_rest").members
    with pytest.raises(InputError, match="expected 3 for 3 classes, got 2"):
        Committee(posteriors[:2], (0, 1, 2), "one_vs_one")
    with pytest.raises(InputError, match="scheme: expected one of"):
        Committee(posteriors, (0, 1, 2), "softmax")  # pyright: ignore[reportArgumentType]
    regression = Posterior(Matern(1.0, 1.5), [[0.0, 0.0]], [1.0], likelihood=Gaussian())
    with pytest.raises(InputError, match="expected binary classifiers"):
        Committee((*posteriors[:2], regression), (0, 1, 2), "one_vs_rest")
    other = Posterior(Matern(1.0, 1.5), [[0.0]], [1.0], likelihood=Logistic())
    with pytest.raises(InputError, match="same number of features"):
        Committee((*posteriors[:2], other), (0, 1, 2), "one_vs_rest")


def test_goals_check_their_arguments():
    rest, pairs = smooth_committee("one_vs_rest"), smooth_committee("one_vs_one")
    with pytest.raises(InputError, match="winner: expected 0 to 2, got 3"):
        margin_goal(rest, 3)
    with pytest.raises(InputError, match="class_weight: expected 3 positive weights"):
        margin_goal(rest, 0, [1.0, 2.0])
    with pytest.raises(InputError, match="class_weight: expected 3 positive weights"):
        committee_decision(rest, [[0.0, 0.0]], [1.0, 2.0, 0.0])
    with pytest.raises(InputError, match="counts votes, not probabilities"):
        margin_goal(pairs, 0, [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="one-vs-one classifier has no class probabilities"):
        pairs.probabilities([[0.0, 0.0]])
