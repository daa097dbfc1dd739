"""Simplified sums, products and powers have the values of the plain ones."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.kernels import (
    Constant,
    Linear,
    Matern,
    Periodic,
    Product,
    RationalQuadratic,
    Scale,
    SquaredExponential,
    Sum,
    White,
)
from gpcert.kernels.algebra import power_of, product_of, sum_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 2)), RNG.normal(size=(4, 2))
SE = SquaredExponential([0.7, 2.0], 3.0)


def same(simplified, expected):
    np.testing.assert_allclose(simplified.value(X, Y), expected, rtol=1e-12, atol=1e-14)


def test_squared_exponentials_merge():
    product = product_of([SE, Constant(2.0), SquaredExponential(1.3), Scale(Constant(0.5), 4.0)])
    assert isinstance(product, SquaredExponential)
    same(product, 4.0 * SE.value(X, Y) * SquaredExponential(1.3).value(X, Y))
    total = sum_of(
        [SE, SquaredExponential([0.7, 2.0], 0.5), Constant(1.0), Sum((Constant(2.0), SE))]
    )
    assert isinstance(total, Sum)
    assert len(total.kernels) == 2
    same(total, 2.0 * SE.value(X, Y) + SE.value(X, Y) * 0.5 / 3.0 + 3.0)


def test_others_stay_as_they_are():
    product = product_of([Linear(1.0), Product((SE, Matern(1.0, 1.5))), 2.0])
    assert [k.name for k in product.kernels] == ["squared_exponential", "linear", "matern"]
    same(product, 2.0 * Linear(1.0).value(X, Y) * SE.value(X, Y) * Matern(1.0, 1.5).value(X, Y))
    assert product_of([Linear(1.0), 3.0]).name == "scale"
    assert product_of([2.0, 3.0]).variance == 6.0
    assert sum_of([White(0.5), White(1.0)]).variance == 1.5


@pytest.mark.parametrize(
    "kernel",
    [
        SE,
        Constant(2.0),
        RationalQuadratic([0.5, 1.0], 1.7, 2.0),
        Periodic(1.5, 0.8, 0.5),
        Scale(SE, 2.0),
        Product((SE, RationalQuadratic(1.0, 2.0))),
    ],
    ids=lambda k: k.name,
)
@pytest.mark.parametrize("p", [0.5, 1, 2, 3.7])
def test_closed_powers(kernel, p):
    same(power_of(kernel, p), kernel.value(X, Y) ** p)


def test_whole_powers_of_all_others():
    kernel = SE + Linear(0.5)
    same(kernel**3, kernel.value(X, Y) ** 3)
    with pytest.raises(InputError, match="whole number"):
        kernel**0.5
    for bad in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError, match="power of a kernel: expected"):
            power_of(SE, bad)
    with pytest.raises(InputError, match="at least one"):
        sum_of([])
