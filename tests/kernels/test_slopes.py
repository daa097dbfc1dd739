"""Slopes of kernels as nodes, against ball arithmetic, with no tolerance on the unsafe side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Scale,
    SquaredExponential,
    White,
)
from gpcert.kernels.slope import SlopeKernel
from gpcert.numerics.arrays import Backend
from gpcert.regions import Box
from gpcert.testing.effort import backend_or_skip
from gpcert.testing.kernel_contract import drawn
from gpcert.testing.kernel_references import coefficients, exact, flint, reference_of
from gpcert.testing.node_case import node_case
from gpcert.testing.node_checks import CHECKS
from gpcert.testing.node_contract import BACKENDS
from tests.kernels.slope_references import (
    covariance,
    curvature,
    curved_covariance,
    known_slopes,
    slope,
)

RAMP = [0.5, 1.0, 2.0]

KERNELS = {
    "squared exponential": SquaredExponential(RAMP, 2.0),
    "matern 3/2": Matern(RAMP, 1.5, 0.7),
    "matern 5/2": Matern(RAMP, 2.5, 1.3),
    "matern 7/2": Matern(0.8, 3.5),
    "matern 9/2": Matern(RAMP, 4.5),
    "rational quadratic": RationalQuadratic(RAMP, 0.6, 3.0),
    "linear": Linear([1.0, 0.0, 2.0], 0.3),
    "sum": SquaredExponential(0.7) + Linear(0.5) + Constant(2.0) + White(0.1),
    "scale": Scale(Matern(RAMP, 2.5), 3.0),
    "product": SquaredExponential(RAMP) * Matern(2.0, 2.5) * Constant(2.0),
    "product with linear": RationalQuadratic(1.0, 1.5) * Linear(1.0),
    "power": Polynomial(3, 0.4, 0.5, -0.2),
    "active": ActiveDimensions(SquaredExponential([0.7, 1.1]), (2, 0)),
    "sum of active": ActiveDimensions(Matern(0.7, 2.5), (1,)) + SquaredExponential(RAMP),
}

seeds = st.integers(0, 2**32 - 1)
directions = st.sampled_from([[1.0, 0.0, 0.0], [0.0, 0.0, -3.0], [0.3, -1.0, 1e-3], [0.0] * 3])


CURVED = {name: KERNELS[name] for name in KERNELS if name not in {"matern 3/2", "power"}}
SMOOTH = ("squared exponential", "rational quadratic", "matern 9/2")


def case_of(kernel, direction, seed, backend="numpy", order=1.0):
    where = backend_or_skip(backend)
    with known_slopes():
        return node_case(SlopeKernel(kernel, direction, order), np.ones(3), seed, where, 1e5)


@pytest.mark.parametrize("check", ["values", "contraction", "variations", "beyond second"])
@pytest.mark.parametrize("name", sorted(KERNELS))
@drawn(30, quick=4)
@given(seed=seeds, direction=directions, backend=st.sampled_from(BACKENDS))
def test_slopes_as_functions(name, check, seed, direction, backend):
    CHECKS[check](case_of(KERNELS[name], direction, seed, backend))


@pytest.mark.parametrize("check", ["values", "contraction", "variations", "beyond second"])
@pytest.mark.parametrize("name", sorted(CURVED))
@drawn(30, quick=3)
@given(seed=seeds, direction=directions, backend=st.sampled_from(BACKENDS))
def test_curvatures_as_functions(name, check, seed, direction, backend):
    CHECKS[check](case_of(CURVED[name], direction, seed, backend, 2.0))


@pytest.mark.parametrize("name", SMOOTH)
@drawn(40, quick=8)
@given(seed=seeds, direction=directions)
def test_curvature_features(name, seed, direction):
    """Inner products of derivatives of `D_u^2 phi`, and its remainders."""
    case = case_of(KERNELS[name], direction, seed, order=2.0)
    config, name = case.kernel.kernel.config(), case.kernel.kernel.name
    case.reference = lambda x, y: curved_covariance(config, name, exact(direction), x, y)
    CHECKS["feature sizes"](case)


@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"power"}))
@drawn(40, quick=5)
@given(seed=seeds, direction=directions)
def test_slope_features(name, seed, direction):
    """Inner products of derivatives of `D_u phi`, and its remainders."""
    case = case_of(KERNELS[name], direction, seed)
    kernel = (case.kernel.kernel.name, case.kernel.kernel.config())
    case.reference = lambda x, y: covariance(kernel, exact(direction), x, y)
    CHECKS["feature sizes"](case)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_references_are_the_derivatives_of_the_kernels(name):
    kernel, rng = KERNELS[name], np.random.default_rng(0)
    parts = (kernel.name, kernel.config())
    u = exact([0.3, -1.0, 2.0])
    tau = flint().arb_series([0, 1])
    for pair in rng.normal(size=(5, 2, 3)):
        x, z = map(exact, pair)
        at = [a + tau * b for a, b in zip(x, u, strict=True)]
        real = coefficients(reference_of(*parts)(at, z), 2)[1]
        assert float(abs(real - slope(parts, u, x, z))) < 1e-40
        if name in CURVED:
            moved = coefficients(slope(parts, u, at, z), 2)[1]
            assert float(abs(moved - curvature(parts, u, x, z))) < 1e-40
        if name != "power":
            moved = coefficients(slope(parts, u, z, at), 2)[1]
            assert float(abs(moved - covariance(parts, u, z, x))) < 1e-40


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_plain_values_and_gradients(name):
    kernel, rng = KERNELS[name], np.random.default_rng(1)
    X, Z, u = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), np.array([0.3, -1.0, 2.0])
    slopes = SlopeKernel(kernel, u)
    np.testing.assert_allclose(slopes.value(X, Z), kernel.gradient(X, Z) @ u, rtol=1e-9, atol=1e-12)
    step = 1e-6
    gradient, C = slopes.gradient(X, Z), rng.normal(size=(4, 5))
    for j, e in enumerate(np.eye(3)):
        difference = (slopes.value(X + step * e, Z) - slopes.value(X - step * e, Z)) / (2.0 * step)
        np.testing.assert_allclose(gradient[:, :, j], difference, atol=1e-5)
    product = np.einsum("ij,ijk->ik", C, gradient)
    np.testing.assert_allclose(slopes.gradient_product(X, Z, C), product, atol=1e-6)


def test_kernels_without_slopes_are_refused_by_name():
    with pytest.raises(InputError, match=r"Matern .* no derivative"):
        SlopeKernel(Matern(1.0, 0.5) + Linear(1.0), [1.0])
    with pytest.raises(InputError, match="Periodic"):
        SlopeKernel(Periodic(1.0, 1.0) * SquaredExponential(1.0), [1.0])


def test_kernels_without_second_derivatives_are_refused_by_name():
    with pytest.raises(InputError, match=r"Matern .* second derivatives"):
        SlopeKernel(SquaredExponential(1.0) * Matern(1.0, 1.5), [1.0], 2.0)


def test_a_direction_that_the_region_holds_fixed():
    """The slope of a feature that is no free one of the region."""
    kernel = SquaredExponential([1.0, 2.0])
    points = np.array([[0.0, 0.5], [1.0, -1.0]])
    slopes = SlopeKernel(kernel, [0.0, 1.0])
    region = Box([0.0, 0.3], [1.0, 0.3])
    expansion = slopes.localize(points, region, Backend()).expand(region.root())
    np.testing.assert_allclose(expansion.K, slopes.value(np.array([[0.5, 0.3]]), points))
