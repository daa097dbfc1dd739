"""scikit-learn's classifier of several classes: a committee that decides as `predict` does."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier, _ConstantPredictor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from gpcert.adapters import agreement, as_posterior
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.model.committee import Committee, committee_decision
from gpcert.quantities import Share
from gpcert.quantities.committee import committee_margin, member_probabilities
from gpcert.regions import Ball
from gpcert.search import Budget, Problem, solve
from gpcert.testing.effort import examples, variants

SCHEMES = ("one_vs_rest", "one_vs_one")
RNG = np.random.default_rng(4)


def blobs(classes, features=2):
    X, y = make_blobs(
        90, features, centers=classes, cluster_std=1.6, center_box=(-4, 4), random_state=1
    )
    return X, y


def fit(scheme, classes=3, features=2, kernel=None, labels=None, **options):
    X, y = blobs(classes, features)
    kernel = 4.0 * RBF(2.0) if kernel is None else kernel
    options = {"optimizer": None} | options
    y = y if labels is None else np.asarray(labels)[y]
    return GaussianProcessClassifier(kernel, multi_class=scheme, **options).fit(X, y)


MODELS = {
    "rest": lambda: fit("one_vs_rest"),
    "pairs": lambda: fit("one_vs_one"),
    "four classes": lambda: fit("one_vs_rest", 4),
    "pairs of four": lambda: fit("one_vs_one", 4, 3),
    "strings": lambda: fit("one_vs_rest", labels=["red", "blue", "green"]),
    "pairs of strings": lambda: fit("one_vs_one", labels=["red", "blue", "green"]),
    "optimised": lambda: fit("one_vs_rest", kernel=1.0 * RBF(1.0), optimizer="fmin_l_bfgs_b"),
    "white": lambda: fit("one_vs_rest", kernel=2.0 * RBF(1.0) + WhiteKernel(0.3)),
    "matern": lambda: fit("one_vs_one", kernel=ConstantKernel(3.0) * Matern(1.5, nu=1.5)),
    "jobs": lambda: fit("one_vs_one", n_jobs=1, warm_start=True),
}


def index_of(model, labels):
    return np.searchsorted(model.classes_, labels)


@pytest.mark.parametrize("name", MODELS)
def test_committee_predicts_what_the_library_predicts(name):
    model = MODELS[name]()
    committee = as_posterior(model)
    assert isinstance(committee, Committee)
    assert committee.classes == tuple(model.classes_)
    assert committee.scheme == model.multi_class
    X = RNG.uniform(-7, 7, size=(300, committee.dim))
    np.testing.assert_array_equal(
        committee_decision(committee, X), index_of(model, model.predict(X))
    )
    if committee.scheme == "one_vs_rest":
        np.testing.assert_allclose(committee.probabilities(X), model.predict_proba(X), atol=1e-9)
    else:
        scores = model.base_estimator_.decision_function(X)
        np.testing.assert_allclose(committee.scores(X), scores, atol=1e-9)
    measured = agreement(model)
    assert measured.probability < 1e-9
    assert measured.decisions == 0
    assert as_posterior(committee) is committee
    assert agreement(committee).points == 0


def decide(committee, x, radius, winner, norm=np.inf):
    goal = QuantityGoal(committee_margin(committee, winner))
    region = Ball(x, radius, norm=norm)
    problem = Problem(committee, region, [goal], tol=0.0, target=0.0, budget=Budget(seconds=20))
    return region, solve(problem).goals[0]


@variants("name", ["pairs", "rest", "four classes", "pairs of four", "matern"], quick=2)
def test_decisions_are_those_of_predict_on_whole_regions(name):
    """Nowhere in a robust region does `predict` say otherwise; at a counter-example it does."""
    model = MODELS[name]()
    committee = as_posterior(model)
    rng = np.random.default_rng(0)
    seen = set()
    centers = rng.uniform(-5, 5, size=(examples(12, quick=3), committee.dim))
    for x, winner in zip(centers, committee_decision(committee, centers), strict=True):
        for radius, norm in ((0.1, np.inf), (0.6, 2), (1.5, np.inf)):
            region, found = decide(committee, x, radius, int(winner), norm)
            if found.lower > 0:
                seen.add("robust")
                predicted = index_of(model, model.predict(region.sample(300, rng)))
                assert set(predicted.tolist()) == {winner}
            elif found.upper < 0:
                seen.add("not robust")
                assert region.contains(found.point)
                assert index_of(model, model.predict(found.point[None]))[0] != winner
    assert seen == {"robust", "not robust"}


@variants("classes", [3, 4])
def test_ranges_contain_the_probabilities(classes):
    model = fit("one_vs_rest", classes)
    committee = as_posterior(model)
    rng = np.random.default_rng(3)
    for x in rng.uniform(-4, 4, size=(examples(4, quick=2), 2)):
        region = Ball(x, 0.5)
        parts = member_probabilities(committee)
        shares = [Share(parts, c, sign) for c in range(classes) for sign in (1, -1)]
        goals = list(map(QuantityGoal, shares))
        found = solve(Problem(committee, region, goals, tol=0.01, budget=Budget(seconds=30))).goals
        proba = model.predict_proba(region.sample(500, rng))
        for c in range(classes):
            low, high = found[2 * c], found[2 * c + 1]
            # the library's own rounding: its coefficients cancel to about 1e-12
            assert np.all(proba[:, c] >= low.lower - 1e-11)
            assert np.all(proba[:, c] <= -high.lower + 1e-11)
            assert low.upper - low.lower <= 0.01
            assert model.predict_proba(low.point[None])[0, c] <= low.upper + 1e-11
            assert model.predict_proba(high.point[None])[0, c] >= -high.upper - 1e-11


def test_class_weights_move_the_decision():
    model = fit("one_vs_rest")
    committee = as_posterior(model)
    weights = [0.2, 1.0, 3.0]
    X = RNG.uniform(-5, 5, size=(300, 2))
    expected = np.argmax(model.predict_proba(X) * weights, axis=1)
    np.testing.assert_array_equal(committee_decision(committee, X, weights), expected)
    assert np.any(expected != committee_decision(committee, X))
    x, winner = X[0], int(expected[0])
    goal = QuantityGoal(committee_margin(committee, winner, weights))
    region = Ball(x, 0.3)
    (found,) = solve(Problem(committee, region, [goal], tol=0.0, target=0.0)).goals
    decided = np.argmax(model.predict_proba(region.sample(200, RNG)) * weights, axis=1)
    assert found.lower > 0 or found.upper < 0
    assert (set(decided.tolist()) == {winner}) or found.upper < 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_scalers_and_searches(scheme):
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    search = GridSearchCV(
        make_pipeline(
            MinMaxScaler(),
            StandardScaler(),
            GaussianProcessClassifier(optimizer=None, multi_class=scheme),
        ),
        {"gaussianprocessclassifier__kernel": [RBF(1.0), 4.0 * RBF([1.0, 2.0, 1.0, 2.0])]},
        cv=2,
    ).fit(X, y)
    committee = as_posterior(search)
    assert isinstance(committee, Committee)
    near = X + 0.2 * RNG.normal(size=X.shape)
    np.testing.assert_array_equal(committee_decision(committee, near), search.predict(near))
    if scheme == "one_vs_rest":
        np.testing.assert_allclose(
            committee.probabilities(near), search.predict_proba(near), atol=1e-9
        )
    winner = int(committee_decision(committee, X[:1])[0])
    region, found = decide(committee, X[0], 0.2, winner)
    assert found.lower > 0
    assert set(search.predict(region.sample(200, np.random.default_rng(0))).tolist()) == {winner}


def test_pairs_are_fitted_on_their_own_points():
    committee = as_posterior(MODELS["pairs"]())
    assert [len(member.points) for member in committee.members] == [60, 60, 60]
    assert len(committee.places) == 180


def test_pairs_have_no_probabilities():
    with pytest.raises(InputError, match="no class probabilities, only votes"):
        as_posterior(MODELS["pairs"]()).probabilities([[0.0, 0.0]])


def test_constant_members_are_refused_by_name():
    model = MODELS["rest"]()
    model.base_estimator_.estimators_[1] = _ConstantPredictor()
    with pytest.raises(UnsupportedModelError, match="got _ConstantPredictor"):
        as_posterior(model)


def test_other_combinations_are_refused_by_name():
    class Mine(OneVsRestClassifier):
        pass

    model = MODELS["rest"]()
    model.base_estimator_.__class__ = Mine
    with pytest.raises(UnsupportedModelError, match="OneVsOneClassifier, got Mine"):
        as_posterior(model)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tampered_predictions_are_refused(scheme):
    model = fit(scheme)
    inner = model.base_estimator_.predict
    model.base_estimator_.predict = lambda X: (inner(X) + 1) % 3
    with pytest.raises(UnsupportedModelError, match="difference of decisions 200"):
        as_posterior(model)


def test_tampered_probabilities_are_refused():
    model = MODELS["rest"]()
    proba = model.predict_proba
    model.predict_proba = lambda X: np.square(proba(X))
    with pytest.raises(UnsupportedModelError, match=r"difference of probability 0\."):
        as_posterior(model)
    model = MODELS["pairs"]()
    estimator = model.base_estimator_.estimators_[0]
    estimator.W_sr_ = estimator.W_sr_ * 1.01
    own = as_posterior(model)  # a changed model is a model
    assert isinstance(own, Committee)


def test_symmetric_data_with_votes_of_zero_are_accepted():
    """Latent means that vanish by symmetry, to rounding: their votes are no disagreement."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [1.0, 1.0], [0.0, 3.0]])
    y = [0, 1, 2, 0, 1, 2]
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None, multi_class="one_vs_one").fit(X, y)
    assert agreement(model).decisions == 0
