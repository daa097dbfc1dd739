"""Kernels as sums of Gaussians: the error holds, against ball arithmetic."""

import numpy as np
import pytest
from flint import arb, ctx

from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Linear,
    Matern,
    RationalQuadratic,
    SquaredExponential,
    White,
)
from gpcert.kernels.gaussian_sums import gaussian_sum


def matern(nu, r):
    t = (arb(2 * nu)).sqrt() * r
    return {0.5: 1 + 0 * t, 1.5: 1 + t, 2.5: 1 + t + t * t / 3}[nu] * (-t).exp()


SHAPES = {
    "se": (SquaredExponential(1.0), lambda r: (-r * r / 2).exp()),
    "1/2": (Matern(1.0, nu=0.5), lambda r: matern(0.5, r)),
    "3/2": (Matern(1.0, nu=1.5), lambda r: matern(1.5, r)),
    "5/2": (Matern(1.0, nu=2.5), lambda r: matern(2.5, r)),
    "rq": (RationalQuadratic(1.0, alpha=0.3), lambda r: (1 + r * r / arb(0.6)) ** arb(-0.3)),
    "rq 40": (RationalQuadratic(1.0, alpha=40.0), lambda r: (1 + r * r / 80) ** -40),
}


def summed(total, x, y):
    """The sum of Gaussians of the stored numbers."""
    value = arb(0)
    for weight, rates in zip(total.weights.tolist(), total.rates.tolist(), strict=True):
        pairs = zip(rates, x, y, strict=True)
        value += (
            arb(weight) * (-sum(arb(r) * (arb(a) - arb(b)) ** 2 for r, a, b in pairs) / 2).exp()
        )
    return value


def allowed(total, x, y):
    """The error there, narrow parts with it."""
    error = arb(total.error)
    for weight, rates in total.narrow:
        pairs = zip(rates.tolist(), x, y, strict=True)
        square = sum(arb(r) * (arb(a) - arb(b)) ** 2 for r, a, b in pairs)
        error += arb(weight) * (-square / 2).exp()
    return error


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-11])
def test_a_radial_kernel_is_within_its_error(name, tolerance):
    kernel, shape = SHAPES[name]
    total = gaussian_sum(kernel, 1, tolerance)
    assert total.error <= 4.0 * tolerance + 1e-15
    assert np.all(total.weights > 0)
    with ctx.workprec(120):
        for r in (0.0, 1e-7, 1e-3, 0.1, 0.7, 2.0, 11.0, 1e3):
            gap = abs(summed(total, [r], [0.0]) - shape(arb(r)))
            assert not gap > allowed(total, [r], [0.0])


def test_sums_products_and_choices_of_features():
    rng = np.random.default_rng(1)
    first = ActiveDimensions(Matern([0.7, 2.0], nu=1.5, variance=1.7), (2, 0))
    kernel = first * SquaredExponential([1.0, 3.0, 0.3]) + 0.4 * (
        Constant(0.5) + RationalQuadratic(2.0, alpha=1.5)
    )
    total = gaussian_sum(kernel, 3, 1e-7)
    assert total.error < 1e-5
    with ctx.workprec(120):
        for x, y in rng.normal(size=(20, 2, 3)):
            parts = [arb(a) - arb(b) for a, b in zip(x, y, strict=True)]
            r = ((parts[2] / arb(0.7)) ** 2 + (parts[0] / 2) ** 2).sqrt()
            lengths = (arb(1), arb(3), arb(0.3))
            e = sum((p / length) ** 2 for p, length in zip(parts, lengths, strict=True))
            q = sum((p / 2) ** 2 for p in parts)
            real = arb(1.7) * matern(1.5, r) * (-e / 2).exp()
            real += arb(0.4) * (arb(0.5) + (1 + q / 3) ** arb(-1.5))
            places = x.tolist(), y.tolist()
            assert not abs(summed(total, *places) - real) > allowed(total, *places)


def test_what_is_no_mixture_is_none():
    assert gaussian_sum(Linear([1.0]), 1, 1e-3) is None
    assert gaussian_sum(SquaredExponential(1.0) + Linear([1.0]), 1, 1e-3) is None
    assert gaussian_sum(RationalQuadratic(1.0, alpha=1e-6), 1, 1e-3) is None
    assert len(gaussian_sum(SquaredExponential(1.0) + White(0.1), 1, 1e-3).weights) == 1
