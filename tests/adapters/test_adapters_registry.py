"""`as_posterior`: what passes, what is refused, and the comparison with the library."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from gpcert.adapters import (
    Conversion,
    LibraryPrediction,
    agreement,
    as_posterior,
    check_agreement,
    registry,
)
from gpcert.adapters.measure import measured, probe_points
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import SquaredExponential
from gpcert.model.posterior import Posterior


@pytest.fixture
def posterior():
    return Posterior(SquaredExponential(1.0), [[0.0, 5.0], [1.0, 5.0]], [2.0, -1.0], np.eye(2) / 2)


def test_posterior_passes_through(posterior):
    assert as_posterior(posterior) is posterior
    assert agreement(posterior).mean == 0.0


@pytest.mark.parametrize("model", [None, 3.0, "model", {"kernel": 1}, object()])
def test_other_types_are_refused_by_name(model):
    with pytest.raises(UnsupportedModelError) as caught:
        as_posterior(model)
    assert f"got builtins.{type(model).__name__}" in str(caught.value)
    assert "GaussianProcessRegressor" in str(caught.value)
    assert "Posterior(kernel, points, weights, factor" in str(caught.value)


class AcquisitionFunction:
    """What BoTorch's derive from; other libraries have names with the same word."""


class UpperConfidenceBound(AcquisitionFunction):
    pass


def test_acquisition_functions_are_refused_in_words_of_their_own():
    with pytest.raises(UnsupportedModelError) as caught:
        as_posterior(UpperConfidenceBound())
    message = str(caught.value)
    assert "UpperConfidenceBound is an acquisition function, not a model" in message
    assert "acquisition.model" in message
    assert "quantity='ucb'" in message


def test_probes_are_fixed_and_leave_the_points(posterior):
    probes = probe_points(posterior)
    assert probes.shape == (200, 2)
    np.testing.assert_array_equal(probes, probe_points(posterior))
    assert np.ptp(probes[:, 1]) > 0.5  # also the feature that is constant in the data


def test_tampered_weights_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = GaussianProcessRegressor(RBF(1.0), alpha=1e-3, optimizer=None).fit(X, X.sum(1))
    reference = as_posterior(model)

    def library(points):
        mean, deviation = model.predict(points, return_std=True)
        return LibraryPrediction(mean[:, None], np.square(deviation)[:, None])

    assert check_agreement(reference, library).mean is not None
    model.alpha_ = model.alpha_ * (1 + 1e-5)
    with pytest.raises(UnsupportedModelError, match=r"difference of mean 1e-05 over 200"):
        check_agreement(reference, library)


def test_probabilities_that_are_nan_are_refused():
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, np.arange(12) % 3)
    conversion = registry.convert(model)

    def library(points):  # the members' own are right
        found = conversion.predict(points)
        return replace(found, classes=np.full_like(found.classes, np.nan))

    assert check_agreement(conversion.posterior, conversion.predict).probability < 1e-9
    with pytest.raises(UnsupportedModelError, match="difference of probability nan"):
        check_agreement(conversion.posterior, library)


def test_a_native_mean_does_not_hide_a_variance_that_is_nan(posterior):
    def said(X, part=1.0):
        mean, variance = posterior.predict(X)
        return LibraryPrediction(mean, part * variance)

    found = measured(Conversion(posterior, said, native=lambda X: said(X, np.nan)))
    assert found.variance == 0.0
    assert np.isnan(found.native)


def test_large_offset_counts_its_own_rounding_only():
    X = np.linspace(0, 1, 20)[:, None]
    y = 1e12 + np.sin(6 * X[:, 0])
    model = GaussianProcessRegressor(RBF(0.3), alpha=1e-3, optimizer=None, normalize_y=True)
    assert as_posterior(model.fit(X, y)).offset[0] == pytest.approx(1e12)


def test_given_points_are_checked(posterior):
    with pytest.raises(InputError, match="points: expected 2 features"):
        check_agreement(posterior, lambda X: LibraryPrediction(), np.zeros((3, 1)))
