"""Posteriors of scikit-learn's binary Laplace classifier predict what scikit-learn predicts."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from gpcert.adapters import agreement, as_posterior
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.likelihoods import SklearnLogistic
from gpcert.model.posterior import Posterior

RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 2))
INSIDE = (np.square(X).sum(1) + 0.3 * RNG.normal(size=60)) < 1.2
TEST = RNG.uniform(-3, 3, size=(80, 2))


def fit(kernel=None, labels=INSIDE, **options):
    return GaussianProcessClassifier(kernel, **({"optimizer": None} | options)).fit(X, labels)


MODELS = {
    "default": fit,
    "optimised": lambda: fit(1.0 * RBF(1.0), optimizer="fmin_l_bfgs_b"),
    "ard": lambda: fit(9.0 * RBF([0.7, 1.9])),
    "large variance": lambda: fit(1e3 * RBF(1.0)),
    "strings": lambda: fit(2.0 * RBF(1.0), labels=np.where(INSIDE, "in", "out")),
    "minus one, one": lambda: fit(2.0 * RBF(1.0), labels=np.where(INSIDE, 1, -1)),
    "white": lambda: fit(4.0 * RBF(1.0) + WhiteKernel(0.5)),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_agree(name):
    model = MODELS[name]()
    posterior = as_posterior(model)
    mean, variance = posterior.predict(TEST)
    expected_mean, expected_variance = model.latent_mean_and_variance(TEST)
    np.testing.assert_allclose(mean[:, 0], expected_mean, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(variance[:, 0], expected_variance, rtol=1e-9, atol=1e-9)
    probability = posterior.prediction(TEST)[:, 0]
    np.testing.assert_allclose(probability, model.predict_proba(TEST)[:, 1], rtol=0, atol=1e-9)
    assert isinstance(posterior.likelihood, SklearnLogistic)
    assert posterior.classes == tuple(model.classes_)


@pytest.mark.parametrize("name", ["ard", "strings", "white"])
def test_save_and_load_predict_identically(name, tmp_path):
    posterior = as_posterior(MODELS[name]())
    posterior.save(tmp_path / "posterior.npz")
    again = Posterior.load(tmp_path / "posterior.npz")
    np.testing.assert_array_equal(posterior.prediction(TEST), again.prediction(TEST))
    assert again.classes == posterior.classes


def test_white_noise_counts_at_training_points_as_at_new_ones():
    model = MODELS["white"]()
    posterior = as_posterior(model)
    assert posterior.noise == pytest.approx([0.5])
    _, expected = model.latent_mean_and_variance(X)
    np.testing.assert_allclose(posterior.predict(X)[1][:, 0], expected, rtol=1e-10)


def test_agreement_without_latent_values(monkeypatch):
    model = MODELS["ard"]()
    monkeypatch.delattr(GaussianProcessClassifier, "latent_mean_and_variance")
    measured = agreement(model)
    assert measured.mean is None
    assert measured.variance is None
    assert measured.probability is not None
    assert measured.probability < 1e-10


def test_unfitted_is_refused():
    with pytest.raises(InputError, match=r"GaussianProcessClassifier: expected a fitted model"):
        as_posterior(GaussianProcessClassifier())


def test_tampered_probabilities_are_refused():
    model = fit(RBF(1.0))
    proba = model.predict_proba
    model.predict_proba = lambda points: np.square(proba(points))
    with pytest.raises(UnsupportedModelError, match=r"difference of probability 0\."):
        as_posterior(model)
