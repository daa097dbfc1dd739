"""Probabilities against a reference, and decisions between several classes against the library."""

import numpy as np
import pytest

pytest.importorskip("flint")
from flint import arb, ctx

import gpcert
from gpcert.certificates.proof import Proof
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Logistic, Probit, SklearnLogistic
from gpcert.testing.effort import examples
from gpcert_check.claims import Votes
from gpcert_check.goals import Goal
from gpcert_check.links import LINKS, mean_for
from tests.check.check_cases import CHECKED, NOT_COVERED, REFUTED, several_classes, verdict

LIKELIHOODS = {"probit": Probit(), "logistic": Logistic(), "sklearn-logistic": SklearnLogistic()}


@pytest.fixture(autouse=True)
def precision():
    before, ctx.prec = ctx.prec, 128
    yield
    ctx.prec = before


@pytest.mark.parametrize("link", LINKS)
def test_probabilities_lie_in_the_library_s_enclosures(link):
    rng = np.random.default_rng(0)
    for _ in range(examples(60)):
        mu, v = 4 * rng.normal(), 10 ** rng.uniform(-6, 2)
        low, high = LIKELIHOODS[link].enclose(np.array([mu]), np.array([v]))
        value = LINKS[link](arb(mu), arb(v))
        assert value.rad() < 1e-14
        assert not value < float(low[0])
        assert not value > float(high[0])


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("link", LINKS)
def test_a_mean_reaches_the_level_at_every_variance(link, side):
    rng = np.random.default_rng(1)
    for _ in range(examples(30)):
        low = 10 ** rng.uniform(-4, 1)
        high = low * (1 + 10 ** rng.uniform(-6, 0))
        level = float(rng.uniform(0.01, 0.99))
        m = mean_for(link, arb(level), arb(low), arb(high), side)
        assert m is not None
        values = [side * (LINKS[link](m, arb(v)) - level) for v in rng.uniform(low, high, 3)]
        assert all(value >= 0 for value in values)
        assert min(float(value.mid()) for value in values) < 0.3 * (high - low) + 1e-9


def test_open_votes_count_for_the_rival():
    goals = tuple(Goal("mean", p, 1) for p in range(3))

    class Fixed:
        def __init__(self, means):
            self.means = means

        def margin(self, goal, level):
            low, high = self.means[goal.output]
            return arb(low if goal.sign > 0 else -high)

    def wins(means, winner, first_wins):
        rivals = tuple(k for k in range(3) if k != winner)
        return Votes(goals, 3, winner, rivals, first_wins).holds(Fixed(means))

    # pairs (0, 1), (0, 2), (1, 2): the second wins where the mean is positive
    assert wins([(1, 2), (-1, 1), (-2, -1)], 1, True)
    assert not wins([(1, 2), (-1, 1), (-2, -1)], 0, True)
    circle = [(1, 2), (-2, -1), (1, 2)]  # 1 beats 0, 0 beats 2, 2 beats 1
    assert wins(circle, 0, True)
    assert not wins(circle, 0, False)
    assert not any(wins(circle, k, True) for k in (1, 2))
    assert not wins([(-1, 1), (-2, -1), (1, 2)], 0, False)


@pytest.mark.parametrize("seed", range(6))
def test_another_class_than_the_winner_is_refuted(tmp_path, seed):
    rng, path = np.random.default_rng(seed), tmp_path / "x.cert"
    model = several_classes(rng)
    x = rng.normal(size=model.dim)
    cert = gpcert.certify(model, x, radius=1e-3, proof=True)
    if cert.proof is None:
        return
    for label in "abc":
        question = {**cert.proof.question, "decision": label}
        Proof(model, cert.proof.region, question, cert.proof.answer).save(path)
        allowed = {CHECKED, NOT_COVERED} if label == cert.decision else {REFUTED, NOT_COVERED}
        assert verdict(path) in allowed


def test_coupled_classes_are_refused_by_name():
    model = gpcert.models.GPClassifier(
        SquaredExponential([1.0, 1.0]), likelihood="softmax", max_epochs=1
    )
    X = np.random.default_rng(0).normal(size=(12, 2))
    model.fit(X, np.arange(12) % 3)
    with pytest.raises(gpcert.errors.InputError, match="proof"):
        gpcert.certify(model, X[0], radius=1e-3, proof=True)
