"""Linear, constant and white kernels: the contract, and what is exact about them."""

from fractions import Fraction

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.kernels.constant import Constant, White
from gpcert.kernels.linear import Linear
from gpcert.numerics.arrays import Backend
from gpcert.regions import Box, Cells
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.node_contract import NodeContract


class TestLinear(NodeContract):
    kernel = Linear([1.0, 0.5], center=[0.3, -2.0])
    dim = 2


class TestLinearUnits(NodeContract):
    """Weights over twelve decades, one of them zero, a centre far away."""

    kernel = Linear([1e6, 0.0, 1e-6], center=[0.0, 1.0, 1e5])
    dim = 3
    typical = (1e-3, 1.0, 1e3)


class TestConstant(NodeContract):
    kernel = Constant(0.3)
    dim = 2


class TestWhite(NodeContract):
    kernel = White(0.3)
    dim = 2


def test_linear_remainders_are_exact():
    """Order 0 is the length of the displacement; all above is exactly zero."""
    kernel = Linear([4.0, 1.0], center=5.0)
    sizes = kernel.derivative_bounds(np.array([[3.0, 8.0], [0.0, 0.0]]), np.ones((2, 2)))
    np.testing.assert_allclose(sizes.remainder(0), [10.0, 0.0], rtol=1e-14)
    assert sizes.remainder(0)[1] == 0.0
    for n in (1, 2):
        assert np.all(np.asarray(sizes.remainder(n)) == 0.0)
    for n in (2, 3):
        assert np.all(np.asarray(sizes.lengths[n]) == 0.0)


@pytest.mark.parametrize("unit", [2.0**-511, 2.0**-534, 2.0**-600])
def test_linear_in_units_whose_squares_underflow(unit):
    """k(c, c) = 0.7 within its error, where `w unit^2` has lost digits to underflow, or all."""
    center, none = np.ones((1, 1)), np.zeros(0)
    frame = Frame(
        np.arange(1), none.astype(int), none, np.zeros(1), np.full(1, unit), np.ones(1), Backend()
    )
    cells = Cells(Box([0.0], [2.0]), center, center)
    geometry = ScaledCells.in_frame(cells, frame)
    jet, errors = Linear(0.7).node(np.zeros((1, 1)), frame).at(geometry).diagonal_jet()
    assert abs(Fraction(float(jet.value[0])) - Fraction(0.7)) <= errors[0][0]


def test_white_is_noise_of_observations_only():
    X = np.zeros((3, 2))
    kernel = White(0.5)
    assert not kernel.value(X, X).any()
    assert not kernel.diagonal(X).any()
    np.testing.assert_array_equal(kernel.training_covariance(X), 0.5 * np.eye(3))


@pytest.mark.parametrize(
    ("weights", "center"),
    [(-1.0, 0.0), ([1.0, -1.0], 0.0), (np.nan, 0.0), ([[1.0]], 0.0), (1.0, [[0.0]]), (1.0, "far")],
)
def test_linear_rejects_bad_parameters(weights, center):
    with pytest.raises(InputError):
        Linear(weights, center)


@pytest.mark.parametrize("variance", [0.0, -1.0, np.inf, [1.0], "large"])
def test_constant_rejects_bad_variance(variance):
    with pytest.raises(InputError, match="variance"):
        Constant(variance)


@pytest.mark.parametrize("variance", [-1.0, np.nan, [1.0]])
def test_white_rejects_bad_variance(variance):
    with pytest.raises(InputError, match="variance"):
        White(variance)


def test_linear_checks_its_dimension():
    with pytest.raises(InputError, match="3 entries of weights"):
        Linear([1.0, 2.0]).check_dimension(3)
    with pytest.raises(InputError, match="3 entries of center"):
        Linear(1.0, [1.0, 2.0]).check_dimension(3)
