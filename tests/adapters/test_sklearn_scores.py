"""Support vector machines and kernel ridge: the mean that they predict by, and votes as counted."""

import itertools
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import gpcert
from gpcert.adapters import as_posterior, sklearn
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MeanOnly
from gpcert.testing.adapter_contract import AdapterContract
from gpcert.testing.effort import THOROUGH, examples

RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 3))
y = np.sin(X.sum(1))
FOUR = np.array(["d", "b", "a", "c"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.7, 0.0, 0.7])]


def fitted(model, targets=y, points=X):
    return lambda: model.fit(points, targets)


class TestScores(AdapterContract):
    adapter = sklearn
    models: ClassVar = {
        "SVC": fitted(SVC(), y > 0),
        "SVC auto": fitted(SVC(gamma="auto"), y > 0),
        "SVC number": fitted(SVC(gamma=0.7), y > 0),
        "SVC linear": fitted(SVC(kernel="linear"), y > 0),
        "votes": fitted(SVC(C=3.0), FOUR),
        "votes ovo": fitted(SVC(decision_function_shape="ovo"), FOUR),
        "votes poly": fitted(SVC(kernel="poly", coef0=0.5), FOUR),
        "votes linear": fitted(SVC(kernel="linear"), FOUR),
        "NuSVC": fitted(NuSVC(nu=0.2), FOUR),
        "SVR": fitted(SVR()),
        "SVR poly": fitted(SVR(kernel="poly", degree=2, gamma=0.3, coef0=1.0)),
        "NuSVR": fitted(NuSVR(kernel="linear")),
        "one class": fitted(OneClassSVM(nu=0.3)),
        "ridge": fitted(KernelRidge(kernel="rbf", gamma=0.4)),
        "ridge poly": fitted(KernelRidge(kernel="poly", degree=2)),
        "ridge targets": fitted(KernelRidge(kernel="rbf"), np.stack([y, X[:, 0]], axis=1)),
        "ridge linear": fitted(KernelRidge()),
        "ridge laplacian": fitted(KernelRidge(kernel="laplacian", gamma=0.3)),
        "ridge with a kernel of processes": fitted(
            KernelRidge(kernel=2.0 * Matern([1.0, 2.0, 3.0], nu=1.5) + WhiteKernel(0.1))
        ),
        "sparse": fitted(SVC(), FOUR, scipy.sparse.csr_matrix(X)),
    }
    refused: ClassVar = {
        "sigmoid": (
            fitted(SVC(kernel="sigmoid"), FOUR),
            "sigmoid.*not positive definite.*fit with",
        ),
        "precomputed": (
            lambda: SVC(kernel="precomputed").fit(X @ X.T, FOUR),
            "precomputed.*not known.*fit with",
        ),
        "code": (lambda: SVC(kernel=lambda a, b: a @ b.T).fit(X, FOUR), "it is code; fit with"),
        "ties": (fitted(SVC(break_ties=True), FOUR), "break_ties=True.*set break_ties=False"),
        "degree": (fitted(SVR(kernel="poly", degree=13)), "degree: expected an integer from 1 to 12"),
        "coef0": (fitted(SVC(kernel="poly", coef0=-1.0), FOUR), "offset: expected a number >= 0"),
        "cosine": (fitted(KernelRidge(kernel="cosine")), "cosine.*not known.*laplacian"),
        "gamma": (fitted(KernelRidge(kernel="laplacian", gamma=0.0)), "gamma: expected a positive"),
    }
    not_ready: ClassVar = {
        "machine": (SVC, r"call fit\(X, y\)"),
        "ridge": (KernelRidge, r"call fit\(X, y\)"),
    }


def test_all_pairs_share_one_posterior():
    committee = as_posterior(SVC().fit(X, FOUR))
    (member,) = committee.members
    assert committee.classes == ("a", "b", "c", "d")
    assert member.outputs == 6
    assert np.any(member.weights == 0)


def voting(weights, offsets, classes):
    """A committee of pairs with bumps at fixed points."""
    points = np.linspace(-1.0, 1.0, np.shape(weights)[1])[:, None]
    member = gpcert.Posterior(
        SquaredExponential(0.7), points, weights, offset=offsets, likelihood=MeanOnly()
    )
    return gpcert.model.committee.Committee((member,), tuple(range(classes)), "pair_votes")


def winner(means, classes):
    """libsvm's count: a vote for the first class where its function, minus ours, is > 0."""
    votes = [0] * classes
    for (j, k), mean in zip(itertools.combinations(range(classes), 2), means, strict=True):
        votes[j if -mean > 0 else k] += 1
    return votes.index(max(votes))


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_verdicts_are_those_of_counted_votes(seed, classes):
    rng = np.random.default_rng(seed)
    pairs = classes * (classes - 1) // 2
    weights = rng.normal(size=(pairs, 3)) * (rng.random((pairs, 3)) < 0.6)
    committee = voting(weights, rng.normal(size=pairs) * 0.3, classes)
    x, radius = rng.uniform(-1.0, 1.0, size=1), float(rng.choice([0.01, 0.2, 1.0]))
    cert = gpcert.certify(committee, x, radius, budget=gpcert.Budget(boxes=40))
    member = committee.members[0]
    near = np.concatenate([x[None], x + radius * rng.uniform(-1.0, 1.0, size=(300, 1))])
    counted = [winner(row, classes) for row in member.mean(near)]
    assert committee.scores(near).argmax(axis=1).tolist() == counted
    if cert.status.name == "ROBUST":
        assert set(counted) == {cert.decision}
    if cert.status.name == "NOT_ROBUST":
        there = winner(member.mean(cert.counterexample[None])[0], classes)
        assert there != cert.decision
    if cert.decision is not None:
        assert cert.decision == counted[0]


@pytest.mark.parametrize("signs", list(itertools.product([1.0, -1.0], repeat=6)))
def test_ties_of_votes_go_to_the_first_class(signs):
    """Every outcome of four classes: most have ties, and all are decided."""
    committee = voting(np.zeros((6, 2)), np.asarray(signs), 4)
    cert = gpcert.certify(committee, [0.3], 0.5, budget=gpcert.Budget(boxes=1))
    assert cert.status.name == "ROBUST"
    assert cert.decision == winner(signs, 4)


def test_a_function_that_is_zero_decides_nothing():
    committee = voting(np.zeros((3, 2)), [0.0, 1.0, 1.0], 3)  # the pair of 0 and 1 hangs
    cert = gpcert.certify(committee, [0.0], 0.1)
    assert (cert.status.name, cert.decision) == ("ROBUST", 2)
    hanging = voting(np.zeros((1, 2)), [0.0], 2)
    cert = gpcert.certify(hanging, [0.0], 0.1)
    assert (cert.status.name, cert.decision) == ("UNKNOWN", None)


def test_ties_of_a_real_machine_are_those_of_predict():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(90, 2))
    labels = rng.integers(0, 5, size=90)  # nothing to learn: votes are often equal
    model = SVC(C=0.5).fit(points, labels)
    committee = as_posterior(model)
    tried = rng.normal(size=(60, 2))
    votes = committee.scores(tried) + np.arange(5) / 5
    top = np.sort(votes.round(6), axis=1)
    tie = top[:, -1] == top[:, -2]
    assert tie.sum() >= 5
    tried = tried[np.argsort(~tie, kind="stable")][: examples(60, quick=12)]
    for x, decided in zip(tried, model.predict(tried), strict=True):
        cert = gpcert.certify(model, x, 1e-6, budget=gpcert.Budget(boxes=5))
        assert cert.decision in {None, decided}
        assert cert.status.name != "ROBUST" or cert.decision == decided
        assert cert.decision is not None


@pytest.mark.parametrize("quantity", ["variance", "probability"])
@pytest.mark.parametrize("targets", [y, y > 0, FOUR])
def test_variances_and_probabilities_are_refused(quantity, targets):
    model = (SVR() if targets is y else SVC()).fit(X, targets)
    with pytest.raises(InputError, match=r"variance|several latent functions"):
        gpcert.prediction_range(model, gpcert.Ball(X[0], 0.1), quantity=quantity)


def test_other_questions_about_probabilities_are_refused():
    two, four = SVC().fit(X, y > 0), SVC().fit(X, FOUR)
    with pytest.raises(InputError, match="mean without a variance"):
        gpcert.certify(two, X[0], 0.1, class_weight=[1, 2])
    with pytest.raises(InputError, match="counts votes"):
        gpcert.certify(four, X[0], 0.1, class_weight=[1, 2, 3, 4])
    with pytest.raises(InputError, match="variance"):
        gpcert.worst_case(SVR().fit(X, y), X[:1], 0.1)
    with pytest.raises(InputError, match="mean without a variance"):
        gpcert.predict_gradient(two, X[:1], quantity="probability")


def test_a_threshold_is_one_of_the_decision_function():
    model = SVC().fit(X, y > 0)
    scores = model.decision_function(X)
    k = int(np.argmax(scores))
    assert gpcert.certify(model, X[k], 0.01).decision is True
    cert = gpcert.certify(model, X[k], 0.01, threshold=float(scores[k]) + 0.2)
    assert (cert.status.name, cert.decision) == ("ROBUST", False)
    found = gpcert.prediction_range(model, gpcert.Ball(X[k], 0.01))
    assert found.minimum.lower <= scores[k] <= found.maximum.upper


@pytest.mark.parametrize("targets", [y > 0, FOUR])
def test_attacks_and_radii_work(targets):
    model = SVC(C=3.0).fit(X, targets)
    effort = {} if THOROUGH else {"iterations": 8, "restarts": 1}
    table = gpcert.attack(model, X[:4], 0.5, **effort)
    for row in table:
        if row.success:
            assert model.predict(row.point[None])[0] != model.predict(row.x[None])[0]
    found = gpcert.certified_radius(model, X[0], budget=1.0)
    assert 0.0 < found.lower <= found.upper


def test_committees_of_pairs_save_and_load(tmp_path):
    committee = as_posterior(SVC().fit(X, FOUR))
    committee.save(tmp_path / "votes.npz")
    again = gpcert.load(tmp_path / "votes.npz")
    assert again.fingerprint == committee.fingerprint
    assert gpcert.certify(again, X[0], 0.01).status.name == "ROBUST"


@pytest.mark.parametrize(
    ("outputs", "likelihood", "words"),
    [(2, MeanOnly(), "expected 3 outputs"), (3, gpcert.likelihoods.Gaussian(), "MeanOnly")],
)
def test_the_member_is_checked(outputs, likelihood, words):
    member = gpcert.Posterior(
        SquaredExponential(1.0), [[0.0]], np.ones((outputs, 1)), likelihood=likelihood
    )
    with pytest.raises(InputError, match=words):
        gpcert.model.committee.Committee((member,), ("a", "b", "c"), "pair_votes")


def test_subclasses_that_predict_otherwise_are_refused():
    class Other(SVC):
        def predict(self, points):
            return super().predict(points)

    with pytest.raises(UnsupportedModelError, match="overrides predict"):
        as_posterior(Other().fit(X, FOUR))
