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
]


def assert_same(kernel):
    converted, white = convert_kernel(kernel)
    np.testing.assert_allclose(converted.value(A, B), kernel(A, B), rtol=1e-12)
    np.testing.assert_allclose(converted.diagonal(A) + white, kernel.diag(A), rtol=1e-12)
    training = converted.value(A, A) + white * np.eye(len(A))
    np.testing.assert_allclose(training, kernel(A), rtol=1e-12)


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
SMOOTH = st.recursive(
    st.builds(RBF, POSITIVE | st.lists(POSITIVE, min_size=2, max_size=2)),
    lambda inner: (
        st.builds(sk.Product, inner, inner)
        | st.builds(sk.Product, st.builds(ConstantKernel, POSITIVE), inner)
        | st.builds(sk.Sum, inner, st.builds(WhiteKernel, POSITIVE))
        | st.builds(sk.Exponentiation, inner, st.sampled_from([1, 2]))
    ),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(SMOOTH)
def test_random_expressions_agree(kernel):
    try:
        assert_same(kernel)
    except UnsupportedModelError as error:
        # (RBF + white)^2 stays one RBF; nothing in this grammar makes two
        raise AssertionError(f"refused {kernel}") from error


REFUSED = {
    "Matern": sk.Matern(),
    "RationalQuadratic": 2.0 * sk.RationalQuadratic(),
    "ExpSineSquared": RBF() * sk.ExpSineSquared(),
    "DotProduct": RBF() + sk.DotProduct(),
    "PairwiseKernel": sk.PairwiseKernel(metric="laplacian"),
    "CompoundKernel": sk.CompoundKernel([RBF(), RBF()]),
    "additive ConstantKernel": RBF() + ConstantKernel(2.0),
    "got 2 different ones": RBF(1.0) + RBF(2.0),
    "expected one RBF term, got 0": ConstantKernel(2.0),
    "expected one RBF term, got 0 different ones": WhiteKernel(),
    "Exponentiation of a sum by 0.5": (RBF() + WhiteKernel()) ** 0.5,
    "Exponentiation of a sum by 0 ": RBF() ** 0,
    "more than 1000 terms": ((RBF() + WhiteKernel()) ** 8) ** 1e9,
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals_name_the_part_and_show_the_expression(message):
    kernel = REFUSED[message]
    with pytest.raises(UnsupportedModelError) as caught:
        convert_kernel(kernel)
    assert message in str(caught.value)
    assert str(kernel) in str(caught.value)


class MyRBF(RBF):
    """A subclass may be another function."""


def test_custom_kernels_are_refused():
    with pytest.raises(UnsupportedModelError, match="kernel: MyRBF is not supported"):
        convert_kernel(2.0 * MyRBF())


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(np.nan), "RBF.length_scale"),
        (RBF([1.0, np.inf]), "RBF.length_scale"),
        (ConstantKernel(np.nan) * RBF(), "ConstantKernel.constant_value"),
        (ConstantKernel(-1.0) * RBF(), "ConstantKernel.constant_value"),
        (ConstantKernel(0.0) * RBF(), "variance"),
        (RBF() + WhiteKernel(np.nan), "WhiteKernel.noise_level"),
        (RBF() + WhiteKernel(-0.1), "WhiteKernel.noise_level"),
        (RBF() ** -1.0, "Exponentiation.exponent"),
    ],
)
def test_bad_hyperparameters_are_refused(kernel, name):
    with pytest.raises(InputError, match=name):
        convert_kernel(kernel)
