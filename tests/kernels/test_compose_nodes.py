"""Compositions of kernels inside a region fulfil the whole contract."""

from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.composite import Product, Scale, Sum
from gpcert.kernels.constant import Constant, White
from gpcert.kernels.linear import Linear, Polynomial
from gpcert.kernels.matern import Matern
from gpcert.kernels.radial import RationalQuadratic
from gpcert.testing.node_contract import NodeContract


class TestSum(NodeContract):
    kernel = Sum((Linear([1.0, 0.5], center=0.3), Constant(0.7), White(0.1)))
    dim = 2


class TestProduct(NodeContract):
    kernel = Product((Linear([1.0, 0.5], center=0.3), Linear(2.0, center=-1.0), Constant(0.7)))
    dim = 2


class TestScale(NodeContract):
    kernel = Scale(Linear([1.0, 0.5], center=0.3), 3.7)
    dim = 2


class TestActiveDimensions(NodeContract):
    kernel = ActiveDimensions(Linear([1.0, 0.5], center=[0.3, -2.0]), (2, 0))
    dim = 3


class TestScaledSumOfRadialsOnSomeFeatures(NodeContract):
    """Degree 3 is known of two parts of three, and stands among other features."""

    kernel = ActiveDimensions(
        Scale(
            Sum((Matern([1.0, 0.7], nu=4.5), RationalQuadratic(1.0, alpha=2.0), Linear(0.3))), 2.3
        ),
        (2, 0),
    )
    dim = 3


class TestSumInProductInActiveDimensions(NodeContract):
    kernel = ActiveDimensions(
        Product((Sum((Linear(1.0), Constant(0.2))), Sum((Polynomial(2, 0.5, 1.0), Linear(0.1))))),
        (1, 2),
    )
    dim = 3


class TestNestedActiveDimensions(NodeContract):
    """Inputs 2 and 0 of inputs (3, 1, 0): inputs 0 and 3."""

    kernel = Scale(
        ActiveDimensions(
            Sum((ActiveDimensions(Linear([1.0, 3.0], [1.0, 0.0]), (2, 0)), Constant(1.0))),
            (3, 1, 0),
        ),
        0.3,
    )
    dim = 4
    typical = (1.0, 1e-3, 1.0, 10.0)
