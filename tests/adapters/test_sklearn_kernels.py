"""Kernel expressions: the converted kernel has the same values, everything else is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from gpcert.adapters import as_posterior
from gpcert.adapters.sklearn_kernels import convert_kernel
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.testing.effort import examples

RNG = np.random.default_rng(9)
A, B = RNG.normal(size=(12, 2)), RNG.normal(size=(9, 2))

SUPPORTED = [
    RBF(0.7),
    RBF([0.7, 2.0]),
    2.0 * RBF(0.7) * 3.0,
    RBF(0.7) * RBF([1.0, 4.0]),
    RBF([0.5, 0.6]) * RBF([1.0, 4.0]) * RBF(2.0),
    RBF(1.5) ** 2,
    (3.0 * RBF([1.5, 0.4])) ** 2.5,
    RBF(1.0) ** 0.5,
    RBF(1.0) + WhiteKernel(0.1) + 2.0 * WhiteKernel(0.2),
    4.0 * (RBF(1.0) + WhiteKernel(0.1)),
    (RBF(1.0) + WhiteKernel(0.1)) ** 3,
    (2.0 * RBF(1.0) + WhiteKernel(0.1)) * (RBF(2.0) + 0.3 * WhiteKernel(0.5)),
    RBF(1.0) + RBF(3.0) * WhiteKernel(0.2),
    (ConstantKernel(1.0) + ConstantKernel(2.0)) * RBF(0.5),
    (ConstantKernel(1.0) + WhiteKernel(2.0)) * RBF(0.5),
    RBF(0.5) + 2.0 * RBF(0.5),
    RBF(0.5) + ConstantKernel(0.0, "fixed") * WhiteKernel(1.0),
    RBF() + ConstantKernel(2.0),
    RBF(1.0) + RBF(2.0),
    sk.Matern([0.7, 2.0], nu=0.5),
    sk.Matern(1.5, nu=1.5) + WhiteKernel(0.1),
    sk.Matern(nu=2.5) * RBF([2.0, 1.0]),
    sk.Matern(nu=3.5),
    sk.Matern([1.0, 2.0], nu=np.inf),
    2.0 * sk.RationalQuadratic(0.8, 1.7),
    sk.RationalQuadratic(0.8, 1.7) ** 2.5,
    RBF() + sk.DotProduct(1.3),
    sk.DotProduct(0.0, "fixed") * RBF(),
    sk.DotProduct(0.5) ** 2,
    (RBF() + sk.DotProduct()) * (sk.Matern(nu=1.5) + 0.5) + WhiteKernel(0.1),
    (RBF() * sk.Matern(nu=2.5)) + sk.RationalQuadratic(),
    ((RBF(0.5) + sk.Matern(nu=0.5)) * WhiteKernel(0.3)) + RBF(2.0),
    ConstantKernel(2.0),
]


def assert_same(kernel, left=A, right=B):
    converted, white = convert_kernel(kernel, left.shape[1])
    close = {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(converted.value(left, right), kernel(left, right), **close)
    np.testing.assert_allclose(converted.diagonal(left) + white, kernel.diag(left), **close)
    training = converted.value(left, left) + white * np.eye(len(left))
    np.testing.assert_allclose(training, kernel(left), **close)


@pytest.mark.parametrize(
    "kernel",
    [
        sk.ExpSineSquared(0.8, 1.7),
        2.0 * RBF(3.0) * sk.ExpSineSquared(1.1, 0.9) + WhiteKernel(0.1),
        sk.ExpSineSquared() ** 1.5 + sk.RationalQuadratic(),
    ],
    ids=str,
)
def test_periodic_kernels_of_one_feature(kernel):
    assert_same(kernel, A[:, :1], B[:, :1])


@pytest.mark.parametrize("kernel", SUPPORTED, ids=str)
def test_values_agree(kernel):
    assert_same(kernel)


@pytest.mark.parametrize("kernel", SUPPORTED, ids=str)
def test_regressors_are_accepted(kernel):
    model = GaussianProcessRegressor(kernel, alpha=1e-3, optimizer=None).fit(A, A.sum(1))
    mean, variance = as_posterior(model).predict(B)
    expected, deviation = model.predict(B, return_std=True)
    np.testing.assert_allclose(mean[:, 0], expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(variance[:, 0], deviation**2, rtol=1e-8, atol=1e-9)


POSITIVE = st.floats(0.1, 10.0)
LENGTHS = POSITIVE | st.lists(POSITIVE, min_size=2, max_size=2)
LEAVES = (
    st.builds(RBF, LENGTHS)
    | st.builds(sk.Matern, LENGTHS, nu=st.sampled_from([0.5, 1.5, 2.5, 4.5]))
    | st.builds(sk.RationalQuadratic, POSITIVE, POSITIVE)
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(sk.Product, inner, inner)
        | st.builds(sk.Sum, inner, inner)
        | st.builds(sk.Product, st.builds(ConstantKernel, POSITIVE), inner)
        | st.builds(sk.Sum, inner, st.builds(WhiteKernel, POSITIVE))
        | st.builds(sk.Exponentiation, inner, st.sampled_from([1, 2]))
    ),
    max_leaves=5,
)


@settings(max_examples=examples(60), deadline=None)
@given(EXPRESSIONS)
def test_random_expressions_agree(kernel):
    assert_same(kernel)


REFUSED = {
    "Matern with nu=1.3": sk.Matern(nu=1.3),
    "ExpSineSquared on 2 features": RBF() * sk.ExpSineSquared(),
    "not positive definite": sk.ExpSineSquared(),
    "PairwiseKernel": sk.PairwiseKernel(metric="laplacian"),
    "CompoundKernel": sk.CompoundKernel([RBF(), RBF()]),
    "without a smooth part": WhiteKernel(),
    "without a smooth part is": ConstantKernel(0.0, "fixed") * RBF(),
    "whole number from 1 to 16 for a Sum, got 0.5": (RBF() + RBF(2.0)) ** 0.5,
    "a positive number, got 0": RBF() ** 0,
    "whole number from 1 to 16": (RBF() + RBF(2.0)) ** 1000,
    "its noise would depend on the input": RBF() + sk.DotProduct() * WhiteKernel(),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals_name_the_part_and_show_the_expression(message):
    kernel = REFUSED[message]
    with pytest.raises(UnsupportedModelError) as caught:
        convert_kernel(kernel, 2)
    assert message in str(caught.value)
    assert str(kernel) in str(caught.value)


class MyRBF(RBF):
    """Another function."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return super().__call__(X, Y, eval_gradient) ** 2


def test_kernels_that_compute_something_else_are_refused():
    with pytest.raises(UnsupportedModelError, match="kernel: MyRBF is not supported"):
        convert_kernel(2.0 * MyRBF(), 2)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(np.nan), "RBF.length_scale"),
        (RBF([1.0, np.inf]), "RBF.length_scale"),
        (ConstantKernel(np.nan) * RBF(), "ConstantKernel.constant_value"),
        (ConstantKernel(-1.0) * RBF(), "ConstantKernel.constant_value"),
        (RBF() + WhiteKernel(np.nan), "WhiteKernel.noise_level"),
        (RBF() + WhiteKernel(-0.1), "WhiteKernel.noise_level"),
        (RBF() ** -1.0, "Exponentiation.exponent"),
    ],
)
def test_bad_hyperparameters_are_refused(kernel, name):
    with pytest.raises(InputError, match=name):
        convert_kernel(kernel, 2)
