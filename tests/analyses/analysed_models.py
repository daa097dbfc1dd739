"""Random posteriors for the tests of the analyses."""

import numpy as np

from gpcert.kernels import SquaredExponential
from gpcert.model.posterior import Posterior


def random_posterior(seed, outputs=1, **options):
    """Eight points in the plane, with the variance of an exact regression."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2, 2, size=(8, 2))
    kernel = SquaredExponential([0.8, 1.0])
    factor = np.linalg.inv(np.linalg.cholesky(kernel.value(points, points) + 0.3 * np.eye(8)))
    return Posterior(kernel, points, 1.5 * rng.normal(size=(outputs, 8)), factor, **options)
