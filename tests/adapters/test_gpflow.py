"""GPflow models: the contract of adapters, every kernel and refusals. Run by `make test-gpflow`:
the library needs a NumPy older than the other libraries do."""

from typing import ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters.libraries import GPFLOW as adapter
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


def polynomial(degree):
    count = len(gpflow.functions.Polynomial.compute_powers(degree, 2))
    return gpflow.functions.Polynomial(degree, 2, w=np.linspace(-0.6, 0.8, count))


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


def separate(likelihood, kernel=None, own_points=False, **options):
    """Three latent functions with a kernel each."""
    iv = gpflow.inducing_variables
    kernel = kernel or k.SeparateIndependent(
        [KERNEL(), k.Matern52(lengthscales=0.8), k.RationalQuadratic() + k.White(0.1)]
    )
    points = iv.SharedIndependentInducingVariables(iv.InducingPoints(Z.copy()))
    if own_points:
        each = [iv.InducingPoints(Z + 0.1 * c) for c in range(3)]
        points = iv.SeparateIndependentInducingVariables(each)
    mean = gpflow.functions.Constant(np.array([0.5, -0.3, 0.1]))
    model = gpflow.models.SVGP(
        kernel, likelihood, points, num_latent_gps=3, mean_function=mean, **options
    )
    return with_q(model, len(Z))


def coregional(likelihood=None, mean=None):
    W = np.array([[1.0, 0.3], [-0.4, 1.1], [0.6, 0.6]])
    kernel = k.LinearCoregionalization([KERNEL(), k.Matern52() + k.White(0.1)], W=W)
    iv = gpflow.inducing_variables
    points = iv.SharedIndependentInducingVariables(iv.InducingPoints(Z.copy()))
    model = gpflow.models.SVGP(
        kernel, likelihood or gl.Gaussian(), points, num_latent_gps=2, mean_function=mean
    )
    return with_q(model, len(Z))


TASKS = np.arange(20) % 2


def coregion(kind=gpflow.models.GPR):
    """The column 2 holds the task."""
    task = k.Coregion(output_dim=2, rank=1, active_dims=[2])
    task.W.assign([[0.9], [-0.5]])
    kernel = k.SquaredExponential(active_dims=[0, 1]) * task + k.Matern32(active_dims=[0])
    data = np.column_stack([X, TASKS]), Y
    if kind is gpflow.models.GPR:
        return kind(data, kernel, noise_variance=0.1)
    return kind(data, kernel, data[0][:6].copy(), noise_variance=0.1)


def vgp():
    return with_q(gpflow.models.VGP((X, LABELS), KERNEL(), gl.Bernoulli()), len(X))


class TestGPflow(AdapterContract):
    adapter = adapter
    models: ClassVar = {
        "gpr": lambda: gpr(mean=gpflow.functions.Constant(8.0)),
        "linear mean": lambda: gpr(mean=gpflow.functions.Linear(np.array([[0.7], [-0.4]]))),
        "sum of means": lambda: svgp(mean_function=linear()),
        "polynomial mean": lambda: gpr(mean=polynomial(2)),
        "polynomial and constant": lambda: sgpr(polynomial(3) + gpflow.functions.Constant(8.0)),
        "sgpr": sgpr,
        "vgp": vgp,
        "svgp": svgp,
        "svgp, diagonal and not whitened": lambda: svgp(whiten=False, q_diag=True),
        "softmax": lambda: svgp(gl.Softmax(3), 3),
        "kernels of their own": lambda: separate(gl.Gaussian()),
        "kernels of their own, not whitened": lambda: separate(
            gl.Gaussian(), whiten=False, q_diag=True
        ),
        "softmax, kernels of their own": lambda: separate(gl.Softmax(3)),
        "softmax, points of their own": lambda: separate(gl.Softmax(3), own_points=True),
        "coregionalisation": lambda: coregional(mean=linear(3)),
        "tasks": coregion,
        "sparse tasks": lambda: coregion(gpflow.models.SGPR),
        "one kernel as several": lambda: separate(gl.Softmax(3), k.SharedIndependent(KERNEL(), 3)),
        "one kernel, points of their own": lambda: separate(
            gl.Gaussian(), k.SharedIndependent(KERNEL(), 3), own_points=True
        ),
    }
    refused: ClassVar = {
        "kernel": (lambda: gpr(k.ArcCosine()), "ArcCosine is not supported.*Matern12"),
        "periodic": (lambda: gpr(k.Periodic(k.Matern12())), "Periodic of a Matern12"),
        "mean": (
            lambda: gpr(mean=gpflow.functions.Identity(2)),
            "mean_function: Identity.*Polynomial and sums.*less the mean",
        ),
        "link": (lambda: svgp(gl.Bernoulli(invlink=abs)), "invlink than inv_probit"),
        "likelihood": (lambda: svgp(gl.Poisson()), "Poisson is not supported.*Bernoulli"),
        "coupled classes": (lambda: coregional(gl.Softmax(3)), "Linear.* with Softmax is not"),
        "kernels of an exact model": (
            lambda: gpr(k.SeparateIndependent([KERNEL()]), np.hstack([Y])),
            "GPR with a SeparateIndependent kernel.*SVGP only",
        ),
        "inducing patches": (
            lambda: gpflow.models.SVGP(
                KERNEL(), gl.Gaussian(), gpflow.inducing_variables.Multiscale(Z, np.ones_like(Z))
            ),
            "Multiscale is not supported.*InducingPoints",
        ),
        "model": (
            lambda: gpflow.models.GPRFITC((X, Y), KERNEL(), Z),
            "GPRFITC is not supported.*SGPR",
        ),
    }


def test_the_table_names_the_kernels_of_the_code():
    from gpcert.adapters.gpflow_models import TREE

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


def test_classes_with_kernels_of_their_own_are_those_that_the_library_samples():
    """`predict_y` averages over samples: equal up to their noise."""
    model = separate(gl.Softmax(3))
    posterior = gpcert.as_posterior(model)
    assert isinstance(posterior, gpcert.SeparateOutputs)
    model.likelihood.num_monte_carlo_points = 20_000
    said = model.predict_y(X[:4])[0].numpy()
    np.testing.assert_allclose(posterior.prediction(X[:4]), said, atol=0.015)
    cert = gpcert.certify(model, X[0], 1e-3)
    assert (cert.status.name, cert.decision) == ("ROBUST", int(said[0].argmax()))
    found = gpcert.prediction_range(model, gpcert.Ball(X[0], 0.05), output=1, tol=0.02)
    p = posterior.prediction(gpcert.Ball(X[0], 0.05).sample(500, 0))[:, 1]
    assert found.minimum.lower <= p.min() <= p.max() <= found.maximum.upper


@pytest.fixture
def single():
    """GPflow in float32."""
    before = gpflow.config.config()
    gpflow.config.set_default_float(np.float32)
    yield np.float32
    gpflow.config.set_config(before)


def test_float32_is_the_float64_function_of_the_same_numbers(single):
    x, y, z = (part.astype(single) for part in (X, Y - 10.0, Z))
    models = [
        gpflow.models.GPR((x, y), k.SquaredExponential(2.0, [0.9, 1.3]), noise_variance=0.1),
        gpflow.models.SGPR((x, y), k.Matern32(2.0), z, noise_variance=0.1),
        with_q(gpflow.models.SVGP(k.Matern52(), gl.Bernoulli(), z), len(z)),
    ]
    for model in models:
        measured = gpcert.adapters.agreement(model)
        assert 1e-9 < measured.native < 1e-2
        posterior = gpcert.as_posterior(model)
        assert posterior.points.dtype == np.float64
        held = np.asarray(model.data[0] if hasattr(model, "data") else model.inducing_variable.Z)
        if not isinstance(model, gpflow.models.SGPR):
            np.testing.assert_array_equal(posterior.points, held.astype(float))
        found = gpcert.prediction_range(model, gpcert.Ball(X[0], 0.05), quantity="mean", tol=0.01)
        said = np.asarray(model.predict_f(x[:1])[0])[0, 0]
        slack = 1e-2 * max(1.0, abs(float(said)))
        assert found.minimum.lower - slack <= said <= found.maximum.upper + slack


def test_a_model_is_asked_in_its_own_precision(single):
    """Whatever the library's default is by then."""
    x, y = X.astype(single), (Y - 10.0).astype(single)
    model = gpflow.models.GPR((x, y), k.SquaredExponential(), noise_variance=0.1)
    gpflow.config.set_default_float(np.float64)
    double = gpr()
    assert gpcert.adapters.agreement(model).native < 1e-2
    gpflow.config.set_default_float(np.float32)
    assert gpcert.adapters.agreement(double).native is None
    assert gpcert.adapters.agreement(double).mean < 1e-8
