"""GPClassifier: equal to scikit-learn's at the same parameters, and a scikit-learn estimator."""

import pickle

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpcert import Box, Status, certify, prediction_range
from gpcert.errors import InputError
from gpcert.integrals.plain_probabilities import expected_softmax
from gpcert.kernels import Linear, Product, SquaredExponential, Sum, White
from gpcert.likelihoods import Logistic, Probit
from gpcert.models.classifier import Choices, GPClassifier
from gpcert.models.training import Covariances, LogParameters
from gpcert.testing.effort import crossed, examples

LENGTHS = [0.8, 1.7]
KERNEL = SquaredExponential(LENGTHS, variance=2.3)


@pytest.fixture
def data():
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.4 * random.normal(size=60) > 0.3, "yes", "no")
    return X, y, random.normal(size=(15, 2))


@pytest.fixture
def three(data):
    X, _, T = data
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])], T


def test_laplace_logistic_equals_sklearn_at_the_same_parameters(data):
    X, y, T = data
    ours = GPClassifier(KERNEL, likelihood="logistic", max_epochs=0).fit(X, y)
    theirs = GaussianProcessClassifier(ConstantKernel(2.3) * RBF(LENGTHS), optimizer=None)
    theirs.fit(X, y)
    assert ours.evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)
    mean, variance = ours.posterior_.predict(T)
    expected, spread = theirs.latent_mean_and_variance(T)
    np.testing.assert_allclose(mean[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(variance[:, 0], spread, atol=1e-6)
    np.testing.assert_array_equal(ours.predict(T), theirs.predict(T))
    # scikit-learn approximates the logistic by five error functions, whence 1e-3
    np.testing.assert_allclose(ours.predict_proba(T), theirs.predict_proba(T), atol=1e-3)


def test_white_noise_in_the_kernel_equals_sklearn(data):
    X, y, T = data
    ours = GPClassifier(Sum([KERNEL, White(0.4)]), likelihood="logistic", max_epochs=0).fit(X, y)
    noisy = ConstantKernel(2.3) * RBF(LENGTHS) + WhiteKernel(0.4)
    theirs = GaussianProcessClassifier(noisy, optimizer=None).fit(X, y)
    assert ours.evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)
    mean, variance = ours.posterior_.predict(T)
    expected, spread = theirs.latent_mean_and_variance(T)
    np.testing.assert_allclose(mean[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(variance[:, 0], spread, atol=1e-6)


def test_white_noise_that_varies_is_refused(data):
    X, y, _ = data
    with pytest.raises(InputError, match="White part"):
        GPClassifier(Product([Sum([KERNEL, White(0.4)]), Linear(1.0)]), max_epochs=0).fit(X, y)


def test_training_reaches_the_evidence_of_sklearn(data):
    X, y, _ = data
    theirs = GaussianProcessClassifier(ConstantKernel(1.0) * RBF([1.0, 1.0])).fit(X, y)
    ours = GPClassifier(SquaredExponential([1.0, 1.0]), likelihood="logistic").fit(X, y)
    assert ours.evidence_ >= theirs.log_marginal_likelihood_value_ - 1e-4
    assert ours.evidence_ == pytest.approx(ours.trace_.evidence.max(), abs=1e-6)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("likelihood", ["probit", "logistic"])
def test_probabilities_are_the_certified_ones(data, likelihood, inference):
    X, y, T = data
    model = GPClassifier(KERNEL, likelihood=likelihood, inference=inference, max_epochs=3)
    model.fit(X, y)
    assert isinstance(model.posterior_.likelihood, Probit if likelihood == "probit" else Logistic)
    assert model.posterior_.classes == ("no", "yes")
    mean, variance = (part[:, 0] for part in model.posterior_.predict(T))
    np.testing.assert_array_equal(model.decision_function(T), mean)
    proba = model.predict_proba(T)
    np.testing.assert_array_equal(proba[:, 1], model.posterior_.prediction(T)[:, 0])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(T) == "yes", mean > 0)
    if likelihood == "probit":
        np.testing.assert_allclose(proba[:, 1], norm.cdf(mean / np.sqrt(1 + variance)), rtol=1e-12)
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        f = mean[:, None] + np.sqrt(variance)[:, None] * nodes
        averaged = (1 / (1 + np.exp(-f))) @ weights / weights.sum()
        np.testing.assert_allclose(proba[:, 1], averaged, atol=1e-8)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(
    "options",
    [
        {"likelihood": "probit"},
        {"likelihood": "logistic"},
        {"likelihood": "probit", "inference": "ep"},
        {"likelihood": "logistic", "inference": "ep"},
        {"likelihood": "softmax"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_the_slope_of_the_evidence_is_that_of_finite_differences(data, options):
    """Kernel rules and inference together, as training sees them: white noise and a sum."""
    X, y, _ = data
    kernel = Sum([KERNEL, Linear([0.3, 0.5]), White(0.2)])
    check_slope(GPClassifier(kernel, max_epochs=0, **options).fit(X, y), X, y)


def check_slope(model, X, y):
    choices = Choices(model.likelihood, model.inference, model.sparse, "random")
    infer = choices.infer_for(np.unique(y, return_inverse=True)[1])
    parameters = LogParameters.of(model.kernel)
    Z = getattr(model, "inducing_points_", None)

    def fit_at(vector):
        covariances = Covariances(parameters.rebuild(vector), X, Z)
        return covariances, infer(covariances, None, None, False)

    covariances, fit = fit_at(parameters.values)
    assert fit.evidence == pytest.approx(model.evidence_, abs=1e-9)
    found = covariances.gradient(fit.gradient)
    step = 1e-4
    for a in range(len(found)):
        moved = step * np.eye(len(found))[a]
        up, down = (fit_at(parameters.values + sign * moved)[1].evidence for sign in (1, -1))
        assert found[a] == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-5)


@crossed({"sparse": ["fic", "dtc", "var"], "inducing": ["random", "kmeans"]})
def test_sparse_models_train_and_predict(data, sparse, inducing):
    X, y, T = data
    options = {"inference": "ep", "sparse": sparse, "inducing": inducing, "random_state": 0}
    model = GPClassifier(KERNEL, n_inducing=12, max_epochs=5, **options).fit(X, y)
    assert model.posterior_.points.shape == model.inducing_points_.shape == (12, 2)
    assert model.evidence_ == pytest.approx(model.trace_.evidence.max(), abs=1e-5)
    assert model.evidence_ > model.trace_.evidence[0]
    assert model.score(X, y) > 0.8
    np.testing.assert_array_equal(
        model.predict_proba(T)[:, 1], model.posterior_.prediction(T)[:, 0]
    )
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.inducing_points_, model.inducing_points_)


@pytest.mark.parametrize("sparse", ["fic", "dtc", "var"])
def test_all_points_as_inducing_points_equal_the_dense_model(data, sparse):
    X, y, T = data
    dense = GPClassifier(KERNEL, inference="ep", max_epochs=0).fit(X, y)
    whole = GPClassifier(
        KERNEL, inference="ep", sparse=sparse, n_inducing=len(X), max_epochs=0, random_state=0
    ).fit(X, y)
    assert whole.evidence_ == pytest.approx(dense.evidence_, abs=1e-4)
    np.testing.assert_allclose(whole.predict_proba(T), dense.predict_proba(T), atol=1e-5)


@crossed({"sparse": ["fic", "dtc", "var"], "likelihood": ["probit", "logistic"]})
def test_the_slope_of_the_sparse_evidence_is_that_of_finite_differences(data, sparse, likelihood):
    X, y, _ = data
    model = GPClassifier(
        Sum([KERNEL, Linear([0.3, 0.5])]),
        likelihood=likelihood,
        inference="ep",
        sparse=sparse,
        n_inducing=12,
        max_epochs=0,
        random_state=0,
    )
    check_slope(model.fit(X, y), X, y)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_more_epochs_never_hurt(data, inference):
    X, y, _ = data
    reached = [
        GPClassifier(inference=inference, max_epochs=epochs).fit(X, y).evidence_
        for epochs in (1, 4, 12)
    ]
    assert reached == sorted(reached)


@pytest.mark.parametrize("labels", [(0, 1), (-1.0, 1.0), (False, True), ("b", "a"), (7, 3)])
def test_any_two_labels(data, labels):
    X, y, T = data
    y = np.where(y == "yes", labels[1], labels[0])
    model = GPClassifier(KERNEL, max_epochs=0).fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    assert model.posterior_.classes == tuple(sorted(labels))
    assert model.predict(T).dtype == y.dtype
    assert model.score(X, y) > 0.8


def test_two_classes_by_softmax_are_the_logistic_with_twice_the_kernel(data):
    X, y, T = data
    two = GPClassifier(KERNEL, likelihood="softmax", max_epochs=0).fit(X, y)
    twice = SquaredExponential(LENGTHS, variance=4.6)
    one = GPClassifier(twice, likelihood="logistic", max_epochs=0).fit(X, y)
    np.testing.assert_allclose(two.predict_proba(T), one.predict_proba(T), atol=1e-8)
    np.testing.assert_allclose(two.decision_function(T), one.decision_function(T), atol=1e-8)
    np.testing.assert_allclose(
        two.posterior_.predict(T)[1], one.posterior_.predict(T)[1], atol=1e-8
    )


def test_three_classes_by_softmax(three):
    X, y, T = three
    model = GPClassifier(likelihood="softmax", max_epochs=8).fit(X, y)
    assert model.score(X, y) > 0.9
    proba = model.predict_proba(T)
    assert proba.shape == model.decision_function(T).shape == (15, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(T), model.classes_[proba.argmax(axis=1)])
    assert model.posterior_.coupled
    assert np.bincount(model.trace_.runs).max() == 8
    np.testing.assert_allclose(model.predict_proba(T[3:4]), proba[3:4], rtol=1e-12)


def test_a_second_fit_leaves_nothing_of_the_first(data, three):
    model = GPClassifier(KERNEL, likelihood="softmax", max_epochs=0)
    assert not model.fit(*data[:2]).posterior_.coupled
    assert model.fit(*three[:2]).posterior_.coupled


@pytest.mark.parametrize(("m", "tolerance"), [(2, 1e-6), (3, 1e-6), (4, 2e-3), (7, 2e-3)])
def test_expected_softmax_against_sampling(m, tolerance):
    random = np.random.default_rng(m)
    mean = random.normal(size=(3, m))
    root = random.normal(size=(3, m, m)) / np.sqrt(m)
    covariance = root @ root.transpose(0, 2, 1)
    found = expected_softmax(mean, covariance)
    draws = random.normal(size=(100_000, m))
    draws = np.concatenate([draws, -draws])
    for i in range(3):
        p = softmax(mean[i] + draws @ root[i].T, axis=1)
        error = 4 * p.std(axis=0) / np.sqrt(len(draws))
        assert np.all(np.abs(found[i] - p.mean(axis=0)) <= error + tolerance)


def test_expected_softmax_with_a_known_latent_value_is_the_softmax():
    mean = np.random.default_rng(0).normal(size=(4, 5))
    np.testing.assert_allclose(
        expected_softmax(mean, np.zeros((4, 5, 5))), softmax(mean, axis=1), rtol=1e-12
    )


def test_restarts_are_reproducible(data):
    X, y, _ = data
    one, two = (
        GPClassifier(n_restarts=1, max_epochs=4, random_state=3).fit(X, y) for _ in range(2)
    )
    np.testing.assert_array_equal(one.trace_.evidence, two.trace_.evidence)


def test_clone_parameters_and_pickle(data):
    X, y, T = data
    model = GPClassifier(KERNEL, inference="ep", max_epochs=2)
    copy = clone(model).set_params(likelihood="logistic")
    assert (copy.likelihood, model.likelihood) == ("logistic", "probit")
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(again.predict_proba(T), model.predict_proba(T))


def test_works_in_pipelines_searches_and_cross_validation(data):
    X, y, _ = data
    pipeline = make_pipeline(StandardScaler(), GPClassifier(max_epochs=examples(5, quick=2)))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.7
    grid = {
        "gpclassifier__likelihood": ["probit", "logistic"],
        "gpclassifier__inference": ["laplace", "ep"],
        "gpclassifier__kernel": [SquaredExponential(1.0)],
    }
    search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert hasattr(search.best_estimator_[-1], "posterior_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"likelihood": "cauchy"}, r"likelihood.*'probit', 'logistic', 'softmax'.*'cauchy'"),
        ({"inference": "mcmc"}, r"inference.*'laplace', 'ep'"),
        ({"sparse": "svgp", "inference": "ep"}, r"sparse.*'fic', 'dtc', 'var'"),
        ({"inducing": "grid"}, r"inducing.*'random', 'kmeans'"),
        ({"likelihood": "softmax", "inference": "ep"}, r"softmax.*inference='laplace'"),
        ({"likelihood": "softmax", "sparse": "fic"}, r"softmax.*sparse"),
        ({"sparse": "fic"}, r"sparse='fic'.*inference='ep'"),
        ({"sparse": "fic", "inference": "ep", "n_inducing": 61}, r"60 training points.*61"),
        ({"sparse": "fic", "inference": "ep", "n_inducing": 0}, r"n_inducing"),
        (
            {
                "sparse": "fic",
                "inference": "ep",
                "n_inducing": 5,
                "kernel": Sum([KERNEL, White(1.0)]),
            },
            "White",
        ),
        ({"kernel": SquaredExponential([1.0])}, "expected 2 entries of length_scale"),
        ({"kernel": "rbf"}, "expected a kernel"),
        ({"max_epochs": None}, "max_epochs"),
    ],
)
def test_bad_options_are_refused_by_name(data, options, message):
    X, y, _ = data
    with pytest.raises(InputError, match=message):
        GPClassifier(**options).fit(X, y)


def test_bad_data_are_refused_as_everywhere_in_sklearn(data, three):
    X, y, _ = data
    with pytest.raises(ValueError, match="only one class: 'no'"):
        GPClassifier().fit(X, np.full(len(X), "no"))
    with pytest.raises(ValueError, match=r"Only binary.*3 classes.*likelihood='softmax'"):
        GPClassifier().fit(*three[:2])
    with pytest.raises(ValueError, match="NaN"):
        GPClassifier().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="Unknown label type"):
        GPClassifier().fit(X, X[:, 0])
    with pytest.raises(NotFittedError):
        GPClassifier().predict(X)


@pytest.mark.parametrize("likelihood", ["probit", "logistic", "softmax"])
def test_the_posterior_goes_straight_into_certify(data, likelihood):
    X, y, _ = data
    model = GPClassifier(KERNEL, likelihood=likelihood, max_epochs=3).fit(X, y)
    x = X[np.abs(model.decision_function(X)).argmax()]
    certificate = certify(model.posterior_, x, radius=0.02)
    assert certificate.status is Status.ROBUST
    assert certificate.decision == model.predict(x[None])[0]
    low, high = 0.9 * np.ones(2), 1.1 * np.ones(2)
    inside = model.predict_proba(np.random.default_rng(0).uniform(low, high, size=(50, 2)))[:, 1]
    proved = prediction_range(model.posterior_, Box(low, high))
    assert proved.minimum.lower <= inside.min()
    assert inside.max() <= proved.maximum.upper
