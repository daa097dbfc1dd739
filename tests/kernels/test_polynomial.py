"""The polynomial kernel: the contract, and its expression as a product of sums."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.kernels.linear import Polynomial
from gpcert.testing.node_contract import NodeContract


class TestQuadratic(NodeContract):
    kernel = Polynomial(2, [0.7, 1.3], offset=1.0, center=[0.5, 0.0])
    dim = 2


class TestHomogeneousCubic(NodeContract):
    """Without an offset: k vanishes, changes sign, and with it its gradient."""

    kernel = Polynomial(3, 1.0, offset=0.0, center=0.25)
    dim = 1


class TestSextic(NodeContract):
    kernel = Polynomial(6, [0.1, 0.2, 0.0], offset=0.5, center=1.0)
    dim = 3


class TestDegreeOne(NodeContract):
    kernel = Polynomial(1, [2.0, 3.0], offset=0.1)
    dim = 2


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 9, 12])
@pytest.mark.parametrize("offset", [0.0, 0.7])
def test_expression_is_the_same_function(degree, offset):
    rng = np.random.default_rng(degree)
    X, Y, C = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(4, 5))
    kernel = Polynomial(degree, [1.0, 0.3, 0.0], offset, center=[0.1, 0.2, 0.3])
    same, base = kernel.expression, kernel.base
    slope = degree * base.value(X, Y) ** (degree - 1)
    gradient = slope[..., None] * base.gradient(X, Y)
    for found in (kernel, same):
        value = base.value(X, Y) ** degree
        np.testing.assert_allclose(found.value(X, Y), value, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(found.diagonal(X), base.diagonal(X) ** degree, rtol=1e-13)
        np.testing.assert_allclose(found.gradient(X, Y), gradient, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(
        kernel.gradient_product(X, Y, C), same.gradient_product(X, Y, C), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize(
    ("degree", "weights", "offset"),
    [
        (0, 1.0, 1.0),
        (13, 1.0, 1.0),
        (2.5, 1.0, 1.0),
        (2, -1.0, 1.0),
        (2, 1.0, -1.0),
        (np.nan, 1.0, 1.0),
        (2, 1.0, np.inf),
        ("two", 1.0, 1.0),
    ],
)
def test_rejects_bad_parameters(degree, weights, offset):
    with pytest.raises(InputError):
        Polynomial(degree, weights, offset)
