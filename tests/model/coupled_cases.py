"""Posteriors of coupled outputs: by one joint factor, or by a C beside factors of their own."""

import numpy as np

from gpcert.kernels import Matern, RationalQuadratic, SquaredExponential
from gpcert.likelihoods import Softmax
from gpcert.model.posterior import Posterior
from tests.enclosures.classes.class_cases import coupled_by_one

KERNELS = [
    SquaredExponential,
    lambda length, v: Matern(length, 2.5, v),
    lambda length, v: RationalQuadratic(length, 1.3, v),
]


def coupled_posterior(seed, m=3, ridge=1e-3, likelihood=None, **options):
    """Noisy observations of mixtures of independent outputs."""
    rng = np.random.default_rng(seed)
    d, N = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    kernel = KERNELS[int(rng.integers(3))](
        10.0 ** rng.uniform(-0.3, 0.3, d), 10.0 ** rng.uniform(-1, 1)
    )
    Z = rng.normal(size=(N, d))
    H = np.kron(rng.normal(size=(int(rng.integers(1, m + 1)), m)), np.eye(N))
    S = H @ np.kron(np.eye(m), kernel.value(Z, Z)) @ H.T
    L = np.linalg.cholesky(S + ridge * np.trace(S) / len(S) * np.eye(len(S)))
    A = np.linalg.solve(L, H)
    factor = np.moveaxis(A.reshape(len(A), m, N), 1, 0)
    given_options = {
        "offset": rng.normal(size=m) * 10.0 ** rng.uniform(-3, 3),
        "noise": rng.random(m),
        "scale": 2.0 ** rng.uniform(-2, 2),
        "likelihood": likelihood or Softmax(),
        **options,
    }
    weights = rng.normal(size=(m, N))
    return Posterior(kernel, Z, weights, factor, coupled=True, **given_options)


def apart_posterior(seed, m=3, spread=3.0, **options):
    """Outputs with factors of their own, as after softmax Laplace, which a C couples."""
    rng = np.random.default_rng(seed)
    base = coupled_posterior(seed, m)
    K = base.kernel.value(base.points, base.points)
    p = np.exp(spread * rng.normal(size=(m, len(K))))
    F, C = coupled_by_one(K, p / p.sum(axis=0))
    names = ("offset", "noise", "likelihood")
    given_options = {name: getattr(base, name) for name in names} | options
    scale = base.scale[0]
    given_options = {"negative_factor": C, "scale": scale, "coupled": True, **given_options}
    return Posterior(base.kernel, base.points, base.weights, F, **given_options)
