"""Random posteriors for the tests of the analyses."""

import numpy as np

from gpcert.kernels import SquaredExponential
from gpcert.posterior import Posterior


def random_posterior(seed, outputs=1, **options):
    """Eight points in the plane."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2, 2, size=(8, 2))
    factor = 0.25 * rng.normal(size=(3, 8))
    return Posterior(
        SquaredExponential([1.0, 1.5]), points, rng.normal(size=(outputs, 8)), factor, **options
    )
