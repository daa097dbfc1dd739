"""GPy models: the contract of adapters, every kernel, inference, scaling and refusals."""

from typing import ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters.libraries import GPY as adapter
from gpcert.testing.adapter_contract import AdapterContract

GPy = pytest.importorskip("GPy")

k = GPy.kern
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 3.0, (22, 2))
Y = 3.0 * np.sin(X.sum(1, keepdims=True)) + 10.0
LABELS = (Y > 10.0).astype(float)
Laplace = GPy.inference.latent_function_inference.Laplace


def regression(kernel=None, targets=Y, **options):
    kernel = k.RBF(2, 2.0, [0.9, 1.3], ARD=True) if kernel is None else kernel
    return GPy.models.GPRegression(X, targets, kernel, noise_var=0.1, **options)


def by_laplace(likelihood, targets=Y):
    return GPy.core.GP(X, targets, k.RBF(2), likelihood, inference_method=Laplace())


def poisson(link=None):
    return by_laplace(GPy.likelihoods.Poisson(link), np.round(Y / 4.0))


def tasks(kind="GPCoregionalizedRegression", terms=1, **options):
    kernels = [k.RBF(2, 2.0, [0.9, 1.3], ARD=True), k.Matern32(2)][:terms]
    kernel = GPy.util.multioutput.LCM(2, 2, kernels, W_rank=1)
    return getattr(GPy.models, kind)([X, X[:9]], [Y, Y[:9] ** 2 / 10.0], kernel=kernel, **options)


class TestGPy(AdapterContract):
    adapter = adapter
    models: ClassVar = {
        "normalizer": lambda: regression(normalizer=True),
        "linear mean": lambda: regression(mean_function=GPy.mappings.Linear(2, 1), normalizer=True),
        "ep": lambda: GPy.models.GPClassification(X, LABELS, k.RBF(2, 4.0)),
        "laplace": lambda: GPy.models.GPClassification(
            X, LABELS, k.RBF(2, 4.0), inference_method=Laplace()
        ),
        "sparse": lambda: GPy.models.SparseGPRegression(X, Y, num_inducing=6),
        "tasks": tasks,
        "tasks of two kernels": lambda: tasks(terms=2),
        "sparse tasks": lambda: tasks("SparseGPCoregionalizedRegression", 2, num_inducing=6),
        "variational": lambda: GPy.models.GPVariationalGaussianApproximation(
            X, LABELS, k.RBF(2, 4.0), GPy.likelihoods.Bernoulli()
        ),
        "heavy tails": lambda: by_laplace(GPy.likelihoods.StudentT()),
        "counts": poisson,
        "counts, softplus": lambda: poisson(GPy.likelihoods.link_functions.Log_ex_1()),
        "motion": lambda: GPy.models.GPRegression(
            np.vstack([[[0.0]], X[1:, :1]]), Y, k.Brownian(1, 2.0)
        ),
        "motion and others": lambda: GPy.models.GPRegression(
            X, Y, k.RBF(1, active_dims=[0]) * k.Brownian(1, active_dims=[1]) + k.Bias(2)
        ),
        "sparse classes": lambda: GPy.models.SparseGPClassification(X, LABELS, num_inducing=6),
    }
    refused: ClassVar = {
        "kernel": (lambda: regression(k.MLP(2)), "MLP is not supported.*RBF.*Fit"),
        "cosine": (lambda: regression(k.Cosine(2) * k.RBF(2)), "Cosine on 2.*positive definite"),
        "mean": (
            lambda: regression(mean_function=GPy.mappings.MLP(2, 1)),
            "mean_function: MLP.*Linear.*less the mean",
        ),
        "warped": (
            lambda: GPy.models.WarpedGP(X, Y),
            "WarpedGP is not supported.*TransformedTarget",
        ),
        "likelihood": (
            lambda: by_laplace(GPy.likelihoods.Exponential(), Y),
            "Exponential.*Poisson.*pass a model with one of these",
        ),
        "brownian": (
            lambda: GPy.models.GPRegression(X[:, :1], Y, k.Brownian(1) * k.RBF(1)),
            "Brownian: expected input 0 of no other kernel",
        ),
        "white alone": (lambda: regression(k.White(2)), "without a smooth part"),
    }


def test_the_table_names_the_kernels_of_the_code():
    from gpcert.adapters.gpy_models import TREE

    assert TREE.names == adapter.KERNELS


KERNELS = {
    "squared exponential": lambda: k.ExpQuad(2, 1.5),
    "exponential": lambda: k.Exponential(2),
    "ornstein-uhlenbeck": lambda: k.OU(2, 0.7, 1.2),
    "matern 3/2": lambda: k.Matern32(2, lengthscale=[0.5, 2.0], ARD=True),
    "matern 5/2": lambda: k.Matern52(2),
    "rational quadratic": lambda: k.RatQuad(2, 1.3, 0.8, power=1.7),
    "periodic": lambda: k.StdPeriodic(2, 1.2, period=1.3, lengthscale=0.8),
    "linear": lambda: k.Linear(2, variances=[0.5, 0.3], ARD=True) + k.Bias(2, 0.4),
    "polynomial": lambda: k.Poly(2, order=2, scale=0.7, bias=0.4, variance=0.3),
    "cosine": lambda: k.Cosine(1, 2.0, 0.6, active_dims=[1]) * k.RBF(2),
    "white inside a product": lambda: (
        k.RBF(1, active_dims=[1]) + k.Matern52(1, active_dims=[0]) * k.White(2, 0.3) + k.White(2)
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_the_librarys(name):
    measured = gpcert.adapters.agreement(regression(KERNELS[name]()))
    assert max(measured.mean, measured.variance) < 1e-8


def test_several_outputs_constant_mean_and_noise_of_each_point():
    for model in (
        regression(targets=np.hstack([Y, Y**2]), normalizer=True),
        regression(mean_function=GPy.mappings.Constant(2, 1, 3.0)),
        regression(
            mean_function=GPy.mappings.Additive(
                GPy.mappings.Constant(2, 1, 3.0), GPy.mappings.Linear(2, 1)
            )
        ),
        regression(targets=np.hstack([Y, Y**2]), mean_function=GPy.mappings.Linear(2, 2)),
        GPy.models.GPHeteroscedasticRegression(X, Y),
    ):
        measured = gpcert.adapters.agreement(model)
        assert max(measured.mean, measured.variance) < 1e-8


def test_an_altered_model_is_converted_again():
    model = regression()
    before = gpcert.as_posterior(model).fingerprint
    model.kern.lengthscale[0] *= 1.01
    assert gpcert.as_posterior(model).fingerprint != before
