"""Nasty trees of kernels fulfil the whole contract: rough times smooth, signs, partial inputs."""

from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.composite import Product, Scale, Sum
from gpcert.kernels.constant import Constant, White
from gpcert.kernels.linear import Linear, Polynomial
from gpcert.kernels.matern import Matern
from gpcert.kernels.periodic import Periodic
from gpcert.kernels.radial import RationalQuadratic, SquaredExponential
from gpcert.kernels.spectral import Cosine
from gpcert.testing.node_contract import NodeContract


class TestRoughAndSmoothPlusLinear(NodeContract):
    kernel = Sum(
        (
            Product((SquaredExponential([1.0, 2.0], 1.5), Matern(1.5, 1.5, 0.7))),
            Linear([0.3, 0.1], center=[1.0, 0.0]),
        )
    )
    dim = 2
    compose = False
    smooth_orders = 1
    orders = (1.0, 1.5, 1.5)


class TestSquaredExponentialTimesAffine(NodeContract):
    kernel = Product((SquaredExponential(1.0), Sum((Linear([1.0, 0.5], 0.2), Constant(0.4)))))
    dim = 2
    compose = False


class TestScaledCosineTimesRationalQuadratic(NodeContract):
    kernel = Scale(Product((Cosine([1.3, -0.4], 2.0), RationalQuadratic([1.0, 0.7], 0.5))), 2.5)
    dim = 2
    compose = False


class TestPartialPolynomialTimesPeriodic(NodeContract):
    kernel = Product(
        (
            ActiveDimensions(Polynomial(2, 0.5, 1.0, 0.1), (2, 0)),
            Periodic([3.0, 2.0, 4.0], [1.0, 1.5, 2.0], 0.8),
        )
    )
    dim = 3
    compose = False


class TestExponentialKernelWithNoise(NodeContract):
    """Matern 1/2 has no gradient where points meet: infinite errors, no NaN."""

    kernel = Sum((Matern(1.0, 0.5), White(0.2)))
    dim = 2
    compose = False
    smooth_orders = 0
    orders = (0.5,)


class TestExponentialKernelTimesLinear(NodeContract):
    """Zero times a derivative that does not exist."""

    kernel = Product((Matern(1.0, 0.5), Linear(1.0)))
    dim = 1
    compose = False
    smooth_orders = 0
    orders = (0.5,)


class TestFourLevels(NodeContract):
    kernel = Sum(
        (
            Product(
                (
                    Sum((Cosine([0.5, 0.2]), SquaredExponential(2.0))),
                    Scale(Sum((Linear(0.2), Matern(1.0, 2.5))), 0.5),
                )
            ),
            ActiveDimensions(Product((Periodic(2.0, 1.0), SquaredExponential(3.0))), (1,)),
        )
    )
    dim = 2
    compose = False
    smooth_orders = 2
    orders = (1.0, 2.0, 2.5)
