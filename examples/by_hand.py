"""My library is not here: a Posterior by hand, from points, weights and a Cholesky factor.

python examples/by_hand.py
"""

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

import gpcert
from gpcert.kernels import SquaredExponential

rng = np.random.default_rng(0)
Z = rng.uniform(-2.0, 2.0, size=(30, 2))
y = np.sin(Z[:, 0]) + Z[:, 1]

kernel = SquaredExponential([1.0, 1.5], variance=2.0)
L = cholesky(kernel.value(Z, Z) + 0.01 * np.eye(len(Z)), lower=True)
posterior = gpcert.Posterior(
    kernel,
    points=Z,
    weights=cho_solve((L, True), y),  # (K + noise I)^-1 y
    factor=solve_triangular(L, np.eye(len(Z)), lower=True),  # L^-1
)

region = gpcert.Ball([0.0, 0.0], 0.1)
mean = gpcert.prediction_range(posterior, region)
variance = gpcert.prediction_range(posterior, region, quantity="variance")
print("mean", mean.minimum.lower, mean.maximum.upper)
print("variance", variance.minimum.lower, variance.maximum.upper)
print(gpcert.certify(posterior, [0.0, 0.0], 0.1, delta=0.3).status.name)
