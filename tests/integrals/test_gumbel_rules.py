"""The rules of the Gumbel form: their errors in t and in the latent values, and the transforms."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from gpcert.integrals import gumbel_rule
from gpcert.testing.effort import variants

BITS = 200
EXTENDED = np.longdouble


@pytest.mark.parametrize("step", [0.25, 0.4375, 0.75, 1.5, 4.0, 8.0])
def test_aliasing_is_an_upper_bound_and_sharp(step):
    bounds = gumbel_rule.aliasing(step)
    with ctx.workprec(BITS):
        for n in range(1, 5):
            worst = arb(0)
            for offset in range(16):
                total = arb(0)
                for j in range(-math.ceil(8 / step), math.ceil(120 / step)):
                    t = arb(step) * (arb(j) + arb(offset) / 16)
                    total += (-n * t - (-t).exp()).exp()
                gap = abs(arb(step) * total / math.factorial(n - 1) - 1)
                assert gap < bounds[n - 1] * (1 + 1e-9)
                worst = gap if gap > worst else worst
            if step < 4.0:
                assert bounds[n - 1] < 2 * worst


@pytest.mark.parametrize("s", [0.0, 0.2, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("ratio", [0.4, 0.66, 0.75, 0.95])
def test_lattice_error(s, ratio):
    """Products of class probabilities in one latent value, at all offsets of the lattice."""
    spacing = ratio if s < 1.0 else ratio / s
    bound = gumbel_rule.lattice_error(np.array([s]), np.array([spacing]))[0]

    def mean(power, other, width, offset):
        z = EXTENDED(width) * (np.arange(-math.ceil(12 / width), math.ceil(12 / width)) + offset)
        p = 1 / (1 + np.exp(other - s * z))
        density = np.exp(-z * z / 2) / np.sqrt(8 * np.arctan(EXTENDED(1)))
        return np.sum(width * density * p**power * (1 - p))

    for power in (0, 1, 2):
        for other in (-1.0, 0.0, 2.0):
            fine = mean(power, EXTENDED(other), spacing / 8.0, EXTENDED(0))
            for offset in np.linspace(0.0, 1.0, 9).astype(EXTENDED):
                gap = mean(power, EXTENDED(other), spacing, offset) - fine
                assert abs(gap) <= bound + 1e-17


def replaced(d, s, step):
    """Nodes and weights that stand for N(d, s^2), in extended precision and without ends."""
    if s >= gumbel_rule.COARSE * step:
        x = EXTENDED(step) * np.arange(-2000, 2001)
        return x, step / s * np.exp(-(((x - d) / s) ** 2) / 2) / np.sqrt(8 * np.arctan(EXTENDED(1)))
    z = EXTENDED(gumbel_rule.SPACING) * np.arange(-14, 15)
    return d + s * z, (z[1] - z[0]) * np.exp(-z * z / 2) / np.sqrt(8 * np.arctan(EXTENDED(1)))


@variants("step", [0.5, 0.25])
def test_transforms_against_sums_in_extended_precision(step):
    d = np.array([3.0, -4.0, 11.0, 9.0, 6.0, -90.0, -20.0])
    s = np.array([0.0, 0.3, 0.37, 0.38, 5.0, 2.0, 12.0])
    grid = gumbel_rule.Grid(step, 4)
    found = gumbel_rule.transforms(d, s, grid)
    t = (step * np.arange(grid.nodes)).astype(EXTENDED)
    for k in range(len(d)):
        x, weight = replaced(EXTENDED(d[k]), EXTENDED(s[k]), step)
        y = np.exp(np.minimum(x[:, None] - t[None, :], 8.0))
        power = np.exp(-y)
        for n in range(3):
            truth = weight @ power  # y^n exp(-y)
            power *= y
            tolerance = found.moved[k] + math.exp(-gumbel_rule.BELOW) + 1e-14
            assert np.abs(found.values[k, n] - truth).max() <= tolerance
        kept = x < step * (grid.nodes + grid.above)
        assert weight[kept] @ np.exp(x[kept] - t[-1]) <= found.last[k] * (1 + 1e-12)
