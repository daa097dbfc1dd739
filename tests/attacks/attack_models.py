"""Small models of every kind, made once."""

from functools import cache

import numpy as np

from gpcert.kernels import Linear, Matern, SquaredExponential
from gpcert.likelihoods import MeanOnly, MultinomialProbit, Probit, Softmax
from gpcert.model.committee import Committee
from gpcert.model.multi_output import SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.models import GPClassifier
from gpcert.regions import LinearMap

D = 3


def _posterior(seed, outputs=1, **options):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(8, D))
    factor = 0.2 * rng.normal(size=(4, 8))
    kernel = options.pop("kernel", SquaredExponential([1.0, 0.8, 1.5]))
    return Posterior(kernel, points, rng.normal(size=(outputs, 8)), factor, **options)


@cache
def coupled():
    """Softmax Laplace of three classes: coupled latent functions."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(15, D))
    model = GPClassifier(SquaredExponential([1.0] * D), likelihood="softmax", max_epochs=1)
    return model.fit(X, np.arange(15) % 3).posterior_


MODELS = {
    "binary": lambda: _posterior(0, likelihood=Probit(), classes=("a", "b")),
    "nonstationary": lambda: _posterior(
        0, likelihood=Probit(), kernel=Linear(0.3) + Matern(1.0, nu=2.5)
    ),
    "regression": lambda: _posterior(1),
    "two_targets": lambda: _posterior(2, outputs=2),
    "trend": lambda: _posterior(0, likelihood=Probit(), slope=[0.7, -1.0, 0.2]),
    "trends": lambda: _posterior(
        2, 3, likelihood=Softmax(), slope=SLOPES, scale=[0.5, 1.0, 2.0], features=FEATURES
    ),
    "softmax": lambda: _posterior(3, outputs=3, likelihood=Softmax(), noise=0.1),
    "multinomial_probit": lambda: _posterior(4, outputs=3, likelihood=MultinomialProbit()),
    "coupled": coupled,
    "mixed": lambda: _posterior(3, outputs=2, likelihood=Softmax(WEIGHTS), noise=0.1),
    "separate": lambda: _separate(Softmax(), ("a", "b")),
    "separate_mixed": lambda: _separate(Softmax(WEIGHTS)),
    "one_vs_rest": lambda: _committee("one_vs_rest"),
    "one_vs_one": lambda: _committee("one_vs_one"),
}

SLOPES = ((0.7, -1.0, 0.2), (0.0, 0.3, -0.5), (-0.4, 0.1, 0.6))
FEATURES = LinearMap([[1.0, 0.2, 0.0], [-0.3, 0.8, 0.1], [0.0, 0.4, 1.2]], [0.1, 0.0, -0.2])
WEIGHTS = ((1.0, 0.3), (-0.7, 1.1), (0.2, -1.4))

WORDS = {"regression": {"delta": 0.3}, "two_targets": {"delta": 0.3, "output_norm": 2.0}}
"""Words that a model's decision needs."""


def pairs():
    """Votes of all pairs of three classes, each a mean with a trend."""
    options = {"slope": SLOPES, "features": FEATURES, "scale": [0.5, 1.0, 2.0]}
    member = _posterior(2, 3, likelihood=MeanOnly(), **options)
    return Committee((member,), ("a", "b", "c"), "pair_votes")


def _separate(likelihood, classes=None):
    """Two latent functions with kernels of their own."""
    members = (_posterior(5), _posterior(6, kernel=Matern(0.9, nu=1.5), noise=0.2))
    return SeparateOutputs(members, likelihood, classes)


def _committee(scheme):
    members = tuple(_posterior(seed, likelihood=Probit()) for seed in range(5, 8))
    return Committee(members, ("a", "b", "c"), scheme)


def points(count=6, seed=9):
    return np.random.default_rng(seed).normal(size=(count, D))
