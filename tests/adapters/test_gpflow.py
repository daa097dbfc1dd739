"""GPflow models: the contract of adapters, every kernel and refusals. Run by `make test-gpflow`:
the library needs a NumPy older than the other libraries do."""

from typing import ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters import gpflow as adapter
from gpcert.testing.adapter_contract import AdapterContract

gpflow = pytest.importorskip("gpflow")

k, gl = gpflow.kernels, gpflow.likelihoods
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 3.0, (20, 2))
Y = 3.0 * np.sin(X.sum(1, keepdims=True)) + 10.0
LABELS = (Y > 10.0).astype(float)
Z = RNG.uniform(0.0, 3.0, (6, 2))
KERNEL = lambda: k.SquaredExponential(variance=2.0, lengthscales=[0.9, 1.3])  # noqa: E731


def gpr(kernel=None, targets=Y, mean=None, noise=0.1):
    return gpflow.models.GPR(
        (X, targets), kernel or KERNEL(), mean_function=mean, noise_variance=noise
    )


def linear(outputs=1):
    """A constant added to a Linear: another kind of mean function, their sum."""
    A = np.array([[0.7], [-0.4]]) * np.arange(1.0, outputs + 1.0)
    return gpflow.functions.Linear(A, 0.3 * np.ones(outputs)) + gpflow.functions.Constant(2.0)


def sgpr(mean=None):
    mean = mean or gpflow.functions.Constant(9.0)
    return gpflow.models.SGPR((X, Y), KERNEL(), Z, noise_variance=0.1, mean_function=mean)


def with_q(model, points):
    """Other values than those that a model starts with, as if it were trained."""
    random = np.random.default_rng(1)
    model.q_mu.assign(random.normal(size=model.q_mu.shape))
    if model.q_sqrt.shape.ndims == 2:
        model.q_sqrt.assign(random.uniform(0.3, 1.5, size=model.q_sqrt.shape))
    else:
        roots = np.tril(random.normal(size=model.q_sqrt.shape)) / 3.0 + 0.7 * np.eye(points)
        model.q_sqrt.assign(roots)
    return model


def svgp(likelihood=None, outputs=1, **options):
    likelihood = likelihood or gl.Bernoulli()
    model = gpflow.models.SVGP(KERNEL(), likelihood, Z, num_latent_gps=outputs, **options)
    return with_q(model, len(Z))


def vgp():
    return with_q(gpflow.models.VGP((X, LABELS), KERNEL(), gl.Bernoulli()), len(X))


class TestGPflow(AdapterContract):
    adapter = adapter
    models: ClassVar = {
        "gpr": lambda: gpr(mean=gpflow.functions.Constant(8.0)),
        "linear mean": lambda: gpr(mean=gpflow.functions.Linear(np.array([[0.7], [-0.4]]))),
        "sum of means": lambda: svgp(mean_function=linear()),
        "sgpr": sgpr,
        "vgp": vgp,
        "svgp": svgp,
        "svgp, diagonal and not whitened": lambda: svgp(whiten=False, q_diag=True),
        "softmax": lambda: svgp(gl.Softmax(3), 3),
    }
    refused: ClassVar = {
        "kernel": (lambda: gpr(k.ArcCosine()), "ArcCosine is not supported.*Matern12"),
        "periodic": (lambda: gpr(k.Periodic(k.Matern12())), "Periodic of a Matern12"),
        "mean": (
            lambda: gpr(mean=gpflow.functions.Polynomial(2, 2)),
            "mean_function: Polynomial.*Linear and sums.*less the mean",
        ),
        "link": (lambda: svgp(gl.Bernoulli(invlink=abs)), "invlink than inv_probit"),
        "likelihood": (lambda: svgp(gl.Poisson()), "Poisson is not supported.*Bernoulli"),
        "model": (
            lambda: gpflow.models.GPRFITC((X, Y), KERNEL(), Z),
            "GPRFITC is not supported.*SGPR",
        ),
    }


def test_the_table_names_the_kernels_of_the_code():
    from gpcert.adapters.gpflow_kernels import TREE

    assert TREE.names == adapter.KERNELS


KERNELS = {
    "matern 1/2": lambda: k.Matern12(1.3, 0.8),
    "matern 3/2": lambda: k.Matern32(lengthscales=[0.5, 2.0]),
    "matern 5/2": k.Matern52,
    "exponential": lambda: k.Exponential(1.2, 0.7),
    "rational quadratic": lambda: k.RationalQuadratic(1.3, 0.8, alpha=1.7),
    "periodic": lambda: k.Periodic(k.SquaredExponential(1.2, 0.8), period=1.3),
    "periodic, a period a feature": lambda: k.Periodic(
        k.SquaredExponential(lengthscales=[0.8, 1.1]), period=[1.3, 2.0]
    ),
    "cosine": lambda: k.Cosine(2.0, lengthscales=[3.0, 4.0]) * k.SquaredExponential(),
    "linear": lambda: k.Linear(variance=[0.5, 0.3]) + k.Constant(0.4),
    "polynomial": lambda: k.Polynomial(degree=2, variance=0.7, offset=0.4),
    "parts": lambda: (
        k.SquaredExponential(active_dims=[1]) * k.Matern52(active_dims=slice(0, 1)) + k.White(0.3)
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_the_librarys(name):
    measured = gpcert.adapters.agreement(gpr(KERNELS[name]()))
    assert max(measured.mean, measured.variance) < 1e-8


def test_several_outputs_and_white_noise_at_inducing_inputs():
    for model in (
        gpr(targets=np.hstack([Y, Y**2]), mean=gpflow.functions.Constant(np.array([8.0, 70.0]))),
        gpflow.models.SGPR((X, Y), KERNEL() + k.White(0.2), Z, noise_variance=0.1),
        svgp(gl.Gaussian(), 2, whiten=False),
        gpr(targets=np.hstack([Y, Y**2]), mean=linear(2)),
        gpr(targets=np.hstack([Y, Y**2]), mean=linear()),
        sgpr(linear()),
        svgp(gl.Gaussian(), 2, whiten=False, mean_function=linear(2)),
        svgp(gl.Softmax(3), 3, mean_function=linear(3)),
    ):
        measured = gpcert.adapters.agreement(model)
        assert max(measured.mean, measured.variance) < 1e-8


def test_the_probability_is_that_of_predict_y():
    model = svgp()
    found = gpcert.prediction_range(model, gpcert.Ball(Z[0], 0.0))
    said = float(model.predict_y(Z[:1])[0][0, 0])
    assert found.minimum.lower - 1e-12 <= said <= found.maximum.upper + 1e-12
