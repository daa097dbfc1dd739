"""GPRegressor: equal to scikit-learn's at the same parameters, and a scikit-learn estimator."""

import io
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpcert import Box, prediction_range
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential, Sum, White
from gpcert.models.regressor import GPRegressor

LENGTHS = [0.8, 1.7]


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * random.normal(size=40) + 2.0
    return X, y, random.normal(size=(15, 2))


def sklearn_model(**options):
    kernel = ConstantKernel(1.4) * RBF(LENGTHS)
    return GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None, **options)


def our_model(**options):
    kernel = SquaredExponential(LENGTHS, variance=1.4)
    return GPRegressor(kernel, noise=0.05, max_epochs=0, **options)


@pytest.mark.parametrize("normalize_y", [False, True])
def test_equals_sklearn_at_the_same_parameters(data, normalize_y):
    X, y, T = data
    ours = our_model(normalize_y=normalize_y).fit(X, y)
    theirs = sklearn_model(normalize_y=normalize_y).fit(X, y)
    mean, deviation = ours.predict(T, return_std=True)
    expected, spread = theirs.predict(T, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    np.testing.assert_allclose(deviation, spread, rtol=1e-7)
    assert ours.evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-10)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))
    assert ours.noise_ == 0.05


@pytest.mark.parametrize("normalize_y", [False, True])
def test_several_targets_equal_sklearn(data, normalize_y):
    X, y, T = data
    Y = np.stack([y, -3.0 * y**2, X[:, 0]], axis=1)
    ours = our_model(normalize_y=normalize_y).fit(X, Y)
    theirs = sklearn_model(normalize_y=normalize_y).fit(X, Y)
    mean, deviation = ours.predict(T, return_std=True)
    expected, spread = theirs.predict(T, return_std=True)
    assert mean.shape == deviation.shape == (15, 3)
    np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(deviation, spread, rtol=1e-7)
    assert ours.evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-10)
    assert ours.posterior_.outputs == 3


def test_white_noise_in_the_kernel_is_noise(data):
    X, y, T = data
    split = Sum([SquaredExponential(LENGTHS, variance=1.4), White(0.03)])
    inside = GPRegressor(split, noise=0.02, max_epochs=0).fit(X, y)
    mean, deviation = inside.predict(T, return_std=True)
    expected, spread = our_model().fit(X, y).predict(T, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    np.testing.assert_allclose(deviation**2, spread**2 + 0.03, rtol=1e-9)


def test_training_reaches_the_evidence_of_sklearn(data):
    X, y, _ = data
    theirs = GaussianProcessRegressor(
        ConstantKernel(1.0) * RBF([1.0, 1.0]) + WhiteKernel(0.1), alpha=0.0
    ).fit(X, y)
    ours = GPRegressor(SquaredExponential([1.0, 1.0]), noise=0.1).fit(X, y)
    assert ours.evidence_ >= theirs.log_marginal_likelihood_value_ - 1e-4
    assert ours.evidence_ == pytest.approx(ours.trace_.evidence.max(), abs=1e-8)
    assert ours.kernel_.length_scale.shape == (2,)
    assert len(ours.trace_) <= 100
    assert ours.trace_.names[-1] == "noise"


def test_training_another_kernel_reaches_the_evidence_of_sklearn(data):
    X, y, _ = data
    theirs = GaussianProcessRegressor(
        ConstantKernel(1.0) * SklearnMatern(1.0, nu=1.5) + WhiteKernel(0.1), alpha=0.0
    ).fit(X, y)
    noisy = Sum([Matern(1.0, nu=1.5), White(0.1)])
    ours = GPRegressor(noisy, noise=0.0, max_epochs=200).fit(X, y)
    assert ours.evidence_ >= theirs.log_marginal_likelihood_value_ - 1e-4
    assert ours.noise_ == 0.0


def test_what_is_held_fixed_stays(data):
    X, y, _ = data
    start = SquaredExponential(LENGTHS, variance=1.4)
    kernel_only = GPRegressor(start, noise=0.05, noise_bounds="fixed").fit(X, y)
    assert kernel_only.noise_ == 0.05
    assert not np.allclose(kernel_only.kernel_.length_scale, LENGTHS)
    noise_only = GPRegressor(start, noise=0.05, parameter_bounds="fixed").fit(X, y)
    np.testing.assert_allclose(noise_only.kernel_.length_scale, LENGTHS, rtol=1e-12)
    assert noise_only.noise_ != 0.05
    both = GPRegressor(start, noise=0.05, noise_bounds="fixed", parameter_bounds="fixed")
    np.testing.assert_allclose(both.fit(X, y).predict(X), our_model().fit(X, y).predict(X))


def test_epochs_are_counted_and_more_never_hurt(data):
    X, y, _ = data
    reached = []
    for epochs in (1, 4, 10, 40):
        model = GPRegressor(max_epochs=epochs).fit(X, y)
        assert np.bincount(model.trace_.runs).max() <= epochs
        reached.append(model.evidence_)
    assert np.bincount(GPRegressor(max_epochs=4).fit(X, y).trace_.runs).tolist() == [4, 4]
    assert reached == sorted(reached)


def test_restarts_are_reproducible(data):
    X, y, _ = data
    options = {"n_restarts": 2, "max_epochs": 8}
    one, two = (GPRegressor(random_state=5, **options).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.trace_.vectors, two.trace_.vectors)
    other = GPRegressor(random_state=6, **options).fit(X, y)
    assert not np.array_equal(one.trace_.evidence, other.trace_.evidence)
    assert set(one.trace_.runs) == {0, 1, 2, 3}


def test_predictions_are_those_of_the_posterior(data):
    X, y, T = data
    model = GPRegressor(max_epochs=10, normalize_y=True).fit(X, y)
    mean, variance = model.posterior_.predict(T)
    np.testing.assert_array_equal(model.predict(T), mean[:, 0])
    np.testing.assert_array_equal(model.predict(T, return_std=True)[1], np.sqrt(variance[:, 0]))


def test_clone_parameters_and_pickle(data):
    X, y, T = data
    model = GPRegressor(SquaredExponential(LENGTHS), max_epochs=5, normalize_y=True)
    copy = clone(model)
    assert copy.get_params()["max_epochs"] == 5
    np.testing.assert_array_equal(copy.kernel.length_scale, LENGTHS)
    assert copy.kernel is not model.kernel
    copy.set_params(noise=0.7)
    assert (copy.noise, model.noise) == (0.7, 0.1)
    fitted = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(fitted.predict(T), model.predict(T))
    assert "GPRegressor" in repr(model)


def test_works_in_pipelines_searches_and_cross_validation(data):
    X, y, _ = data
    pipeline = make_pipeline(StandardScaler(), GPRegressor(max_epochs=10))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.5
    kernels = [SquaredExponential(1.0), SquaredExponential([1.0, 1.0])]
    grid = {"gpregressor__kernel": kernels, "gpregressor__noise": [0.01, 0.1]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_estimator_.predict(X).shape == y.shape
    assert hasattr(search.best_estimator_[-1], "posterior_")


def test_feature_names_are_kept(data):
    pandas = pytest.importorskip("pandas")
    X, y, _ = data
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = GPRegressor(max_epochs=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.predict(frame), model.posterior_.predict(X)[0][:, 0])


def test_a_constant_target_is_no_reason_to_fail(data):
    X, _, T = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GPRegressor(max_epochs=5, normalize_y=True).fit(X, np.full(len(X), 3.3))
    np.testing.assert_allclose(model.predict(T), 3.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": RBF(1.0)}, "convert_kernel"),
        ({"kernel": SquaredExponential([1.0, 1.0, 1.0])}, "expected 2 entries of length_scale"),
        ({"noise": -1.0}, "noise"),
        ({"noise": np.nan}, "noise"),
        ({"max_epochs": -1}, "max_epochs"),
        ({"max_epochs": 2.5}, "max_epochs"),
        ({"n_restarts": -1}, "n_restarts"),
        ({"parameter_bounds": (1.0, 0.5)}, "parameter_bounds"),
        ({"parameter_bounds": (0.0, 0.5)}, "parameter_bounds"),
        ({"parameter_bounds": "loose"}, "parameter_bounds"),
        ({"noise_bounds": "loose"}, "noise_bounds"),
    ],
)
def test_bad_options_are_refused_by_name(data, options, message):
    X, y, _ = data
    with pytest.raises(InputError, match=message):
        GPRegressor(**options).fit(X, y)


def test_bad_data_are_refused_as_everywhere_in_sklearn(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="NaN"):
        GPRegressor().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent"):
        GPRegressor().fit(X, y[:-1])
    with pytest.raises(NotFittedError):
        GPRegressor().predict(X)
    with pytest.raises(ValueError, match="2 features"):
        our_model().fit(X, y).predict(X[:, :1])


def test_a_progress_bar_only_where_there_is_a_terminal(data, capsys):
    X, y, _ = data
    GPRegressor(max_epochs=3, verbose=True).fit(X, y)
    assert capsys.readouterr().err.strip() == ""


def test_the_progress_bar_counts_evaluations(monkeypatch, data):
    X, y, _ = data
    screen = io.StringIO()
    terminal = partial(Console, file=screen, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda **_: terminal())
    GPRegressor(max_epochs=3, verbose=True).fit(X, y)
    assert "6/6" in screen.getvalue()
    assert "best evidence" in screen.getvalue()


def test_the_posterior_goes_straight_into_certify(data):
    X, y, _ = data
    model = GPRegressor(max_epochs=20, normalize_y=True).fit(X, y)
    low, high = -0.1 * np.ones(2), 0.1 * np.ones(2)
    inside = model.predict(np.random.default_rng(0).uniform(low, high, size=(50, 2)))
    proved = prediction_range(model.posterior_, Box(low, high))
    assert proved.minimum.lower <= inside.min()
    assert inside.max() <= proved.maximum.upper
