"""Radial kernels fulfil the contract of a kernel, outside and inside regions."""

from gpcert.kernels.matern import Matern
from gpcert.kernels.radial import RationalQuadratic, SquaredExponential
from gpcert.testing.node_contract import NodeContract

TIGHT = 1 + 1e-9


class TestSquaredExponentialNode(NodeContract):
    kernel = SquaredExponential([0.7, 1.9], 2.0)
    dim = 2
    typical = (0.7, 1.9)
    tight = TIGHT
    tight_remainders = 1.5


class TestSquaredExponentialLengths(NodeContract):
    """Length-scales over six decades, a large variance."""

    kernel = SquaredExponential([1e-3, 0.7, 1e3], 1e4)
    dim = 3
    typical = (1e-3, 0.7, 1e3)
    tight = TIGHT
    tight_remainders = 1.5


class TestRationalQuadratic(NodeContract):
    kernel = RationalQuadratic([0.7, 1.9], 0.6, 2.0)
    dim = 2
    typical = (0.7, 1.9)
    tight = TIGHT
    tight_remainders = 1.001  # R1 and R2 cancel for small displacements


class TestRationalQuadraticHeavy(NodeContract):
    """A tail that hardly falls."""

    kernel = RationalQuadratic(0.3, 0.01, 0.1)
    dim = 1
    typical = 0.3


class TestRationalQuadraticLight(NodeContract):
    """Nearly a squared exponential."""

    kernel = RationalQuadratic([3.0, 1e-2], 1e8)
    dim = 2
    typical = (3.0, 1e-2)


class TestMaternHalf(NodeContract):
    kernel = Matern([0.7, 1.9], 0.5, 2.0)
    dim = 2
    typical = (0.7, 1.9)
    smooth_orders = 0
    tight = TIGHT
    tight_remainders = TIGHT
    orders = (0.5, 0.5, 0.5)


class TestMaternThreeHalves(NodeContract):
    kernel = Matern([0.7, 1.9], 1.5, 2.0)
    dim = 2
    typical = (0.7, 1.9)
    smooth_orders = 1
    tight = TIGHT
    tight_remainders = TIGHT
    orders = (1.0, 1.5, 1.5)


class TestMaternFiveHalves(NodeContract):
    kernel = Matern([0.7, 1.9], 2.5, 2.0)
    dim = 2
    typical = (0.7, 1.9)
    smooth_orders = 2
    tight = TIGHT
    tight_remainders = TIGHT
    orders = (1.0, 2.0, 2.5)


class TestMaternSevenHalves(NodeContract):
    kernel = Matern(1.3, 3.5)
    dim = 1
    typical = 1.3
    tight = TIGHT
    tight_remainders = TIGHT


class TestMaternSmoothest(NodeContract):
    kernel = Matern([1e-3, 1.0, 1e3], 10.5, 1e-3)
    dim = 3
    typical = (1e-3, 1.0, 1e3)
    tight = TIGHT
    tight_remainders = TIGHT
