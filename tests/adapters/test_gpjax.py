"""GPJax models: the contract of adapters, every kernel and refusals. Run by `make test-jax`."""

from typing import ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters.libraries import GPJAX as adapter
from gpcert.testing.adapter_contract import AdapterContract

jax = pytest.importorskip("jax")
gpx = pytest.importorskip("gpjax")

k, jnp = gpx.kernels, jax.numpy
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 3.0, (15, 2))
Y = 3.0 * np.sin(X.sum(1, keepdims=True)) + 10.0
LATENT = RNG.normal(size=(15, 1))


def kernel():
    return k.RBF(lengthscale=jnp.array([0.9, 1.3]), variance=2.0)


def model(build=kernel, likelihood=None):
    mean = gpx.mean_functions.Constant(8.0) if likelihood is None else gpx.mean_functions.Zero()
    prior = gpx.gps.Prior(mean_function=mean, kernel=build())
    if likelihood is None:
        return prior * gpx.likelihoods.Gaussian(obs_stddev=0.3)
    return gpx.gps.NonConjugateModel(prior, likelihood, latent=jnp.asarray(LATENT))


def posterior(build=kernel, likelihood=None, x64=True):
    with jax.enable_x64(x64):
        targets = Y if likelihood is None else (Y > 10.0).astype(float)
        data = gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray(targets))
        return model(build, likelihood).condition(data)


def sparse(name, likelihood=None, x64=True):
    """A variational family at five inducing inputs, conditioned."""
    with jax.enable_x64(x64):
        mean = gpx.mean_functions.Constant(8.0)
        joint = gpx.gps.Prior(mean_function=mean, kernel=kernel()) * (
            likelihood or gpx.likelihoods.Gaussian(obs_stddev=0.3)
        )
        moments = {}
        if name.endswith("VariationalGaussian") and name[0] in "VW":
            root = np.tril(RNG.normal(size=(5, 5)), -1) * 0.2 + 0.5 * np.eye(5)
            moments = {
                "variational_mean": jnp.asarray(RNG.normal(size=(5, 1)) + 8.0),
                "variational_root_covariance": jnp.asarray(root),
            }
        family = getattr(gpx.variational_families, name)(joint, jnp.asarray(X[:5]), **moments)
        return family.condition(gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray(Y)))


class TestGPJax(AdapterContract):
    adapter = adapter
    models: ClassVar = {
        "exact": posterior,
        "bernoulli": lambda: posterior(likelihood=gpx.likelihoods.Bernoulli()),
        "collapsed": lambda: sparse("CollapsedVariationalGaussian"),
        "sparse": lambda: sparse("VariationalGaussian"),
        "whitened": lambda: sparse("WhitenedVariationalGaussian"),
        "dual": lambda: sparse("DualVariationalGaussian"),
        "sparse bernoulli": lambda: sparse("VariationalGaussian", gpx.likelihoods.Bernoulli()),
    }
    refused: ClassVar = {
        "white": (lambda: posterior(lambda: k.RBF() + k.White()), "White is not supported"),
        "arc": (lambda: posterior(k.ArcCosine), "ArcCosine is not supported.*RBF"),
        "likelihood": (
            lambda: posterior(likelihood=gpx.likelihoods.Poisson()),
            "Poisson is not supported.*Bernoulli",
        ),
    }
    not_ready: ClassVar = {"no data": (model, r"model\.condition")}


def test_the_table_names_the_kernels_of_the_code():
    from gpcert.adapters.gpjax_models import TREE

    assert TREE.names == adapter.KERNELS


KERNELS = {
    "matern 1/2": k.Matern12,
    "matern 3/2": lambda: k.Matern32(lengthscale=0.5),
    "matern 5/2": lambda: k.Matern52(active_dims=[1]) * k.RBF(active_dims=[0]),
    "rational quadratic": lambda: k.RationalQuadratic(alpha=1.7),
    "periodic": lambda: k.Periodic(lengthscale=0.8, period=1.3),
    "linear": lambda: k.Linear(variance=0.4) + k.Constant(constant=0.4),
    "polynomial": lambda: k.Polynomial(degree=2, shift=0.4, variance=0.7),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_the_librarys(name):
    measured = gpcert.adapters.agreement(posterior(KERNELS[name]))
    assert max(measured.mean, measured.variance) < 1e-8


@pytest.mark.filterwarnings("ignore:X is not of type float64", "ignore:y is not of type float64")
def test_float32_is_the_float64_function_of_the_same_numbers():
    measured = gpcert.adapters.agreement(posterior(x64=False))
    assert max(measured.mean, measured.variance) < 1e-8
    assert 1e-9 < measured.native < 1e-3
