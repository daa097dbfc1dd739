"""tinygp models: the contract of adapters, every kernel, float32 and refusals. Run by
`make test-jax`."""

from typing import ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters.libraries import TINYGP as adapter
from gpcert.testing.adapter_contract import AdapterContract

jax = pytest.importorskip("jax")
tinygp = pytest.importorskip("tinygp")

k, transforms = tinygp.kernels, tinygp.transforms
L2 = k.distance.L2Distance()
X = np.random.default_rng(0).uniform(0.0, 3.0, (15, 2))
Y = 3.0 * np.sin(X.sum(1)) + 10.0


def process(kernel=None, inputs=X, x64=True, mean=9.0):
    with jax.enable_x64(x64):
        kernel = 2.0 * k.ExpSquared(0.9) if kernel is None else kernel()
        gp = tinygp.GaussianProcess(kernel, jax.numpy.asarray(inputs), diag=0.1, mean=mean)
        return gp.condition(jax.numpy.asarray(Y)).gp


class TestTinygp(AdapterContract):
    adapter = adapter
    models: ClassVar = {
        "exact": process,
        "one feature, plain numbers": lambda: process(lambda: k.Matern32(0.7), X[:, 0]),
    }
    refused: ClassVar = {
        "distance": (lambda: process(lambda: k.Matern32(0.7)), "L1Distance.*L2Distance"),
        "cosine": (lambda: process(lambda: k.Cosine(0.7)), "positive definite.*Subspace"),
        "matrix": (
            lambda: process(lambda: transforms.Linear(np.eye(2), k.ExpSquared())),
            "Linear with a matrix",
        ),
        "mean": (lambda: process(mean=lambda x: x[0]), "mean: a function"),
        "custom": (lambda: process(lambda: k.Custom(lambda x, y: 1.0)), "Custom is not supported"),
    }
    not_ready: ClassVar = {
        "no data": (
            lambda: tinygp.GaussianProcess(k.ExpSquared(), X, diag=0.1),
            r"gp\.condition\(y\)",
        ),
    }


def test_the_table_names_the_kernels_of_the_code():
    from gpcert.adapters.tinygp_models import TREE

    assert TREE.names == adapter.KERNELS


KERNELS = {
    "exponential, L1": lambda: k.Exp(1.2),
    "exponential, L2": lambda: k.Exp(1.2, distance=L2),
    "matern 3/2": lambda: transforms.Linear(np.array([0.5, -2.0]), k.Matern32(distance=L2)),
    "matern 5/2": lambda: transforms.Cholesky(np.array([0.5, 2.0]), k.Matern52(distance=L2)),
    "rational quadratic": lambda: k.RationalQuadratic(0.8, distance=L2, alpha=1.7),
    "periodic": lambda: transforms.Subspace(0, k.ExpSineSquared(1.3, gamma=0.7)) * k.ExpSquared(),
    "cosine": lambda: transforms.Subspace(1, k.Cosine(2.1)) * k.ExpSquared(),
    "linear": lambda: k.DotProduct() + 0.4,
    "polynomial": lambda: k.Polynomial(order=2.0, scale=1.5, sigma=0.6),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_the_librarys(name):
    measured = gpcert.adapters.agreement(process(KERNELS[name]))
    assert max(measured.mean, measured.variance) < 1e-8
    assert measured.native is None


def test_float32_is_the_float64_function_of_the_same_numbers():
    measured = gpcert.adapters.agreement(process(x64=False))
    assert max(measured.mean, measured.variance) < 1e-8
    assert 1e-9 < measured.native < 1e-3
