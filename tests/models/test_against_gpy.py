"""EP with the probit link against GPy's, the other maintained implementation."""

import warnings

import numpy as np
import pytest

from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of GPy's own imports
    GPy = pytest.importorskip("GPy")


@pytest.mark.parametrize(("variance", "length"), [(1.0, 1.0), (4.0, 0.8), (50.0, 2.0)])
def test_evidence_and_moments(variance, length):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60) > 0).astype(int)
    new = rng.normal(size=(20, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside GPy
        theirs = GPy.core.GP(
            X,
            y[:, None].astype(float),
            kernel=GPy.kern.RBF(2, variance=variance, lengthscale=length),
            inference_method=GPy.inference.latent_function_inference.EP(
                epsilon=1e-10, max_iters=500
            ),
            likelihood=GPy.likelihoods.Bernoulli(),
        )
        mean, spread = theirs._raw_predict(new)
        evidence = float(theirs.log_likelihood())
        probability = theirs.predict(new)[0][:, 0]
    ours = GPClassifier(
        SquaredExponential(length, variance), likelihood="probit", inference="ep", max_epochs=0
    ).fit(X, y)
    mu, v = ours.posterior_.predict(new)
    np.testing.assert_allclose(ours.evidence_, evidence, atol=1e-3)
    np.testing.assert_allclose(mu[:, 0], mean[:, 0], atol=1e-3)
    np.testing.assert_allclose(v[:, 0], spread[:, 0], atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(new)[:, 1], probability, atol=1e-3)
