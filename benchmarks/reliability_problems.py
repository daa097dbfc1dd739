"""Limit-state functions of the package otbenchmark, and surrogates fitted to them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import openturns as ot
from scipy.stats import qmc
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

REACH = 4.5
"""Standard deviations (normal scores) that the design covers on either side."""

LARGEST_DIM = 10


class Limit(NamedTuple):
    """A limit-state function g, which fails below 0, with the law of its inputs and the probability
    that the package says."""

    name: str
    function: Any
    law: Any
    published: float

    @property
    def dim(self) -> int:
        return self.law.getDimension()

    def values(self, X: np.ndarray) -> np.ndarray:
        if self.name in PIECEWISE:  # texts that newer versions of OpenTURNS do not read
            return PIECEWISE[self.name](*X.T)
        return np.array(self.function(ot.Sample(X)))[:, 0]


def _rp110(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    first = np.where(x <= 3.5, 0.85 - 0.1 * x, 4.0 - x)
    return np.minimum(first, np.where(y <= 2.0, 2.3 - y, 0.5 - 0.1 * y))


def _rp77(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.where(z <= 5.0, x - y - z, z - y)


PIECEWISE = {"RP110": _rp110, "RP77": _rp77}


def limits() -> list[Limit]:
    """All of the package with at most `LARGEST_DIM` inputs, in growing dimension."""
    for old, new in (("LHS", "LHSExperiment"), ("ComposedDistribution", "JointDistribution")):
        if not hasattr(ot, old):  # otbenchmark 0.1.1 calls them by their names of OpenTURNS 1.23
            setattr(ot, old, getattr(ot, new))
    import otbenchmark

    found = []
    for problem in otbenchmark.ReliabilityBenchmarkProblemList():
        event = problem.getEvent()
        law = event.getAntecedent().getDistribution()
        probability = problem.getProbability()
        found.append(Limit(problem.getName(), event.getFunction(), law, probability))
    return sorted((f for f in found if f.dim <= LARGEST_DIM), key=lambda limit: limit.dim)


def surrogate(limit: Limit, points: int) -> Any:
    """A Gaussian process on a Sobol design that fills the box of normal scores within `REACH`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # points need not be a power of 2
        u = qmc.Sobol(limit.dim, seed=1).random(points)
    phi = ot.Normal()
    low, high = phi.computeCDF(-REACH), phi.computeCDF(REACH)
    X = np.empty_like(u)
    for j in range(limit.dim):
        marginal = limit.law.getMarginal(j)
        ends = [marginal.computeQuantile(p)[0] for p in (low, high)]
        X[:, j] = ends[0] + (ends[1] - ends[0]) * u[:, j]
    y = limit.values(X)
    kernel = ConstantKernel(10.0, (1e-2, 1e3)) * RBF(np.ones(limit.dim), (0.2, 50.0))
    process = GaussianProcessRegressor(
        kernel, alpha=1e-6, normalize_y=True, n_restarts_optimizer=0, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(StandardScaler(), process).fit(X, y)
