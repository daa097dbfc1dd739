"""Sums, products, scalings and active dimensions: the values are the arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.composite import Product, Scale, Sum
from gpcert.kernels.constant import Constant, White
from gpcert.kernels.linear import Linear, Polynomial
from gpcert.testing.effort import examples

LEAVES = (
    Constant(0.7),
    Linear([1.0, 0.5, 2.0], center=0.2),
    Polynomial(2, 0.3, 0.5),
    Linear(0.25, [1.0, -1.0, 0.0]),
)


def value_of(tree, X, Y):
    """The value of a tree of ("leaf", i), ("sum", ...), ("product", ...), by the arithmetic."""
    kind, *rest = tree
    if kind == "leaf":
        return LEAVES[rest[0]].value(X, Y)
    if kind == "scale":
        return rest[0] * value_of(rest[1], X, Y)
    if kind == "active":
        return value_of(rest[1], X[:, rest[0]], Y[:, rest[0]])
    parts = [value_of(part, X, Y) for part in rest]
    total = parts[0]
    for part in parts[1:]:
        total = total + part if kind == "sum" else total * part
    return total


def kernel_of(tree):
    kind, *rest = tree
    if kind == "leaf":
        return LEAVES[rest[0]]
    if kind == "scale":
        return Scale(kernel_of(rest[1]), rest[0])
    if kind == "active":
        return ActiveDimensions(kernel_of(rest[1]), rest[0])
    return (Sum if kind == "sum" else Product)(kernel_of(part) for part in rest)


def grow(children):
    parts = st.lists(children, min_size=1, max_size=3)
    return st.one_of(
        parts.map(lambda p: ("sum", *p)),
        parts.map(lambda p: ("product", *p)),
        children.map(lambda p: ("scale", 1.5, p)),
        st.permutations([0, 1, 2]).flatmap(lambda o: children.map(lambda p: ("active", o, p))),
    )


trees = st.recursive(st.integers(0, 3).map(lambda i: ("leaf", i)), grow, max_leaves=8)


@settings(max_examples=examples(60), deadline=None)
@given(tree=trees, seed=st.integers(0, 2**32 - 1))
def test_any_nesting_is_its_arithmetic(tree, seed):
    """Values, diagonals, gradients, configuration and rescaling of random trees."""
    rng = np.random.default_rng(seed)
    X, Y, C = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(4, 5))
    kernel = kernel_of(tree)
    kernel.check_dimension(3)
    np.testing.assert_allclose(kernel.value(X, Y), value_of(tree, X, Y), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(kernel.value(X, X)), rtol=1e-9)
    np.testing.assert_allclose(kernel.training_covariance(X), kernel.value(X, X), rtol=1e-12)
    gradient = kernel.gradient(X, Y)
    size = 1.0 + np.abs(gradient).max()
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        slope = (kernel.value(X + step, Y) - kernel.value(X - step, Y)) / 2e-6
        np.testing.assert_allclose(gradient[:, :, j], slope, atol=1e-4 * size)
    np.testing.assert_allclose(
        kernel.gradient_product(X, Y, C), np.einsum("ij,ijk->ik", C, gradient), atol=1e-10 * size
    )
    again = type(kernel).from_config(kernel.config())
    assert again.config() == kernel.config()
    assert np.array_equal(again.value(X, Y), kernel.value(X, Y))
    scale, shift = rng.uniform(0.5, 2.0, 3), rng.normal(size=3)
    moved = kernel.rescaled(scale, shift).value(X * scale + shift, Y * scale + shift)
    np.testing.assert_allclose(moved, kernel.value(X, Y), rtol=1e-9, atol=1e-9 * size)


def test_operators_keep_sums_and_products_apart():
    """`(k1 k2) + k3`, `(k1 + k2) k3`, `k1 (k2 + k3)`: flattening must not mix them."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    k1, k2, k3 = LEAVES[1], LEAVES[2], LEAVES[3]
    a, b, c = (k.value(X, Y) for k in (k1, k2, k3))
    cases = {
        "(ab)+c": ((k1 * k2) + k3, a * b + c),
        "c+(ab)": (k3 + (k1 * k2), c + a * b),
        "(a+b)c": ((k1 + k2) * k3, (a + b) * c),
        "a(b+c)": (k1 * (k2 + k3), a * (b + c)),
        "a+b+c": (k1 + k2 + k3, a + b + c),
        "abc": (k1 * (k2 * k3), a * b * c),
        "3(a+2)": (3.0 * (k1 + 2), 3.0 * (a + 2.0)),
        "(a+b)(a+c)": ((k1 + k2) * (k1 + k3), (a + b) * (a + c)),
        "(a+b)^3": ((k1 + k2) ** 3, (a + b) ** 3),
        "2(ab)3": (2.0 * (k1 * k2) * 3.0, 6.0 * a * b),
    }
    for name, (kernel, expected) in cases.items():
        np.testing.assert_allclose(kernel.value(X, Y), expected, rtol=1e-12, err_msg=name)
    assert len((k1 + k2 + k3).kernels) == 3
    assert len((k1 * (k2 * k3)).kernels) == 3
    assert len((k1 * k2 + k3).kernels) == 2


def test_white_noise_in_compositions():
    """It reaches the training covariance only, multiplied and scaled like any other part."""
    X = np.random.default_rng(0).normal(size=(3, 3))
    k = LEAVES[1]
    noisy = Sum((k, White(0.5)))
    np.testing.assert_array_equal(noisy.value(X, X), k.value(X, X))
    np.testing.assert_array_equal(noisy.diagonal(X), k.diagonal(X))
    np.testing.assert_allclose(
        noisy.training_covariance(X), k.value(X, X) + 0.5 * np.eye(3), rtol=1e-14
    )
    scaled = Scale(ActiveDimensions(Sum((Linear(1.0), White(0.5))), (1,)), 2.0)
    np.testing.assert_allclose(
        scaled.training_covariance(X), 2.0 * (np.outer(X[:, 1], X[:, 1]) + 0.5 * np.eye(3))
    )
    product = Product((noisy, Constant(2.0)))
    np.testing.assert_allclose(
        product.training_covariance(X), 2.0 * k.value(X, X) + np.eye(3), rtol=1e-14
    )


@pytest.mark.parametrize("kind", [Sum, Product])
@pytest.mark.parametrize("kernels", [(), (1.0,), (Constant(1.0), "white"), Constant(1.0)])
def test_composites_reject_what_is_no_kernel(kind, kernels):
    with pytest.raises(InputError, match="kernel"):
        kind(kernels)


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, [1.0]])
def test_scale_rejects_bad_factors(factor):
    with pytest.raises(InputError, match="factor"):
        Scale(Constant(1.0), factor)


@pytest.mark.parametrize("dimensions", [(), (0, 0), (-1,), (0.5,), [[0]], 1, "ab", (True,)])
def test_active_dimensions_rejects_bad_indices(dimensions):
    with pytest.raises(InputError, match="dimensions"):
        ActiveDimensions(Constant(1.0), dimensions)


def test_dimensions_are_checked_throughout():
    ActiveDimensions(Linear([1.0, 2.0]), (0, 4)).check_dimension(5)
    with pytest.raises(InputError, match="below 4"):
        ActiveDimensions(Linear([1.0, 2.0]), (0, 4)).check_dimension(4)
    with pytest.raises(InputError, match="3 entries"):
        ActiveDimensions(Linear([1.0, 2.0]), (0, 1, 2))
    with pytest.raises(InputError, match="3 entries"):
        Product((Constant(1.0), Sum((Scale(Linear([1.0, 2.0]), 2.0),)))).check_dimension(3)
