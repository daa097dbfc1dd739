"""Small posteriors of several classes, and what their ranges must hold."""

import numpy as np

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior

LIKELIHOODS = [Softmax(), MultinomialProbit()]


ROUNDING = 1e-7
"""Of plain predictions; singular covariances are raised by 1e-9 there."""


def tiny(likelihood=None, coupled=False, m=3, amplitude=2.0, **options):
    """A small posterior of one feature."""
    rng = np.random.default_rng(m)
    Z = np.array([[0.0], [1.0]])
    factor = 0.3 / np.sqrt(amplitude) * rng.normal(size=(m, m, 2)) if coupled else None
    return Posterior(
        SquaredExponential(1.0, amplitude),
        Z,
        rng.normal(size=(m, 2)),
        factor,
        likelihood=likelihood or Softmax(),
        coupled=coupled,
        **options,
    )


def probabilities(posterior, X):
    """(n, m): `prediction`, but for many classes, where that is a rough rule, by the integrals."""
    m = posterior.outputs
    if posterior.coupled or m < 5:
        return posterior.prediction(X)
    find = posterior.likelihood.independent_moments
    return np.stack([find(*posterior.predict(X), row).value for row in np.eye(m)], axis=1)


def check_ranges(model, region, ranges, tol, X=None):
    """Sampled probabilities lie inside, the searches ended, and attained values are attained."""
    posterior = gpcert.as_posterior(model)
    X = region.sample(100, np.random.default_rng(0)) if X is None else X
    p = probabilities(posterior, X)
    for c, found in enumerate(ranges):
        assert found.converged
        assert found.minimum.width <= tol
        assert found.maximum.width <= tol
        assert found.minimum.lower <= p[:, c].min() + ROUNDING
        assert found.maximum.upper >= p[:, c].max() - ROUNDING
        for x, side in ((found.argmin, found.minimum), (found.argmax, found.maximum)):
            assert bool(region.contains(x))
            value = probabilities(posterior, x[None])[0, c]
            assert side.lower - ROUNDING <= value <= side.upper + ROUNDING
    assert sum(r.minimum.lower for r in ranges) <= 1.0 <= sum(r.maximum.upper for r in ranges)
