"""Posteriors of scikit-learn regressors predict what scikit-learn predicts."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from gpcert.adapters import agreement, as_posterior
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.likelihoods import Gaussian
from gpcert.model.posterior import Posterior

RNG = np.random.default_rng(7)
X = RNG.uniform(-2, 3, size=(40, 3))
Y = np.stack([np.sin(X.sum(1)), 5 + 30 * np.cos(X[:, 0] * X[:, 1])], axis=1)
Y += 0.05 * RNG.normal(size=Y.shape)
y = Y[:, 0]
TEST = RNG.uniform(-4, 5, size=(60, 3))


def fit(kernel=None, targets=y, **options):
    options = {"alpha": 1e-4, "optimizer": None} | options
    return GaussianProcessRegressor(kernel, **options).fit(X, targets)


MODELS = {
    "default kernel": fit,
    "optimised": lambda: fit(ConstantKernel() * RBF(), optimizer="fmin_l_bfgs_b"),
    "constant": lambda: fit(2.5 * RBF(1.3)),
    "ard": lambda: fit(0.7 * RBF([0.9, 2.0, 5.0])),
    "normalised": lambda: fit(RBF(1.0), targets=Y[:, 1], normalize_y=True),
    "constant target": lambda: fit(RBF(1.0), targets=np.full(len(X), 3.0), normalize_y=True),
    "two targets": lambda: fit(RBF(1.0), targets=Y),
    "one column": lambda: fit(RBF(1.0), targets=Y[:, 1:], normalize_y=True),
    "two targets normalised": lambda: fit(2.0 * RBF(1.5), targets=Y, normalize_y=True),
    "white": lambda: fit(RBF(1.0) + WhiteKernel(0.3)),
    "white normalised": lambda: fit(RBF(1.0) + WhiteKernel(0.3), targets=Y, normalize_y=True),
    "alpha vector": lambda: fit(RBF(1.0), alpha=np.linspace(1e-3, 1e-1, len(X))),
}


def library(model, points):
    mean, deviation = model.predict(points, return_std=True)
    return mean.reshape(len(points), -1), np.square(deviation).reshape(len(points), -1)


@pytest.mark.parametrize("name", MODELS)
def test_predictions_agree(name):
    model = MODELS[name]()
    posterior = as_posterior(model)
    mean, variance = posterior.predict(TEST)
    expected_mean, expected_variance = library(model, TEST)
    size = posterior.scale**2 * (posterior.kernel.variance + posterior.noise)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance / size, expected_variance / size, rtol=0, atol=1e-9)
    assert isinstance(posterior.likelihood, Gaussian)
    assert posterior.classes is None


@pytest.mark.parametrize("name", MODELS)
def test_save_and_load_predict_identically(name, tmp_path):
    posterior = as_posterior(MODELS[name]())
    posterior.save(tmp_path / "posterior.npz")
    again = Posterior.load(tmp_path / "posterior.npz")
    for ours, theirs in zip(posterior.predict(TEST), again.predict(TEST), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_white_noise_is_in_the_noise_and_only_there():
    posterior = as_posterior(fit(2.0 * RBF(1.0) + WhiteKernel(0.3), targets=Y, normalize_y=True))
    assert posterior.kernel.variance == pytest.approx(2.0)
    np.testing.assert_allclose(posterior.noise, 0.3 * np.var(Y, axis=0))


def test_near_duplicates_with_the_default_jitter():
    points = np.concatenate([X, X + 1e-5])
    model = GaussianProcessRegressor(100.0 * RBF(2.0), optimizer=None)  # alpha = 1e-10
    measured = agreement(model.fit(points, np.sin(points.sum(1))))
    assert measured.mean is not None
    assert measured.variance is not None
    assert measured.mean < 1e-8
    assert measured.variance < 1e-8
    assert measured.probability is None


def test_single_length_scale_in_an_array_and_integer_inputs():
    points = np.arange(6)[:, None]
    model = GaussianProcessRegressor(RBF([2.0]), optimizer=None, alpha=0.1)
    model.fit(points, np.arange(6))
    mean, _ = as_posterior(model).predict([[2.5]])
    assert mean[0, 0] == pytest.approx(model.predict([[2.5]])[0], abs=1e-12)


def test_unfitted_is_refused():
    with pytest.raises(InputError, match=r"GaussianProcessRegressor: expected a fitted.*fit\(X"):
        as_posterior(GaussianProcessRegressor())


@pytest.mark.parametrize("attribute", ["alpha_", "L_", "X_train_", "_y_train_std"])
def test_nan_attributes_are_refused(attribute):
    model = fit(RBF(1.0))
    getattr(model, attribute).flat[0] = np.nan
    with pytest.raises(InputError, match="finite"):
        as_posterior(model)


def test_changed_kernel_of_a_prediction_is_refused_by_the_comparison():
    model = fit(RBF(1.0))
    predict = model.predict
    model.predict = lambda points, **kw: tuple(1.001 * part for part in predict(points, **kw))
    with pytest.raises(UnsupportedModelError, match=r"difference of mean 0\.00\d+, variance"):
        as_posterior(model)


def test_nan_predictions_are_refused():
    model = fit(RBF(1.0))
    predict = model.predict
    model.predict = lambda points, **kw: tuple(np.nan * part for part in predict(points, **kw))
    with pytest.raises(UnsupportedModelError, match="mean nan"):
        as_posterior(model)


def test_wrong_number_of_outputs_is_refused():
    model = fit(RBF(1.0), targets=Y, normalize_y=True)
    model._y_train_mean = np.zeros(3)
    with pytest.raises(InputError, match="offset"):
        as_posterior(model)


class FitsElsewhere(GaussianProcessRegressor):
    """Overrides no prediction."""


class Clips(GaussianProcessRegressor):
    def predict(self, X, return_std=False, return_cov=False):
        return super().predict(np.clip(X, -9, 9), return_std, return_cov)


def test_subclasses():
    model = FitsElsewhere(RBF(1.0), optimizer=None, alpha=1e-3).fit(X, y)
    assert as_posterior(model).outputs == 1
    with pytest.raises(UnsupportedModelError, match="Clips overrides predict"):
        as_posterior(Clips(RBF(1.0), optimizer=None).fit(X, y))


def test_agreement_is_reported():
    measured = agreement(fit(RBF(1.0)))
    assert measured.points == 200
    assert measured.mean is not None
    assert 0 <= measured.mean < 1e-10
