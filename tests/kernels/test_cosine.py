"""The cosine kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.kernels.nodes.phases import circle_remainders, swing
from gpcert.kernels.spectral import Cosine
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint
from gpcert.testing.node_contract import NodeContract


class TestOneFeature(NodeContract):
    kernel = Cosine([2.5], variance=1.7)
    dim = 1
    typical = 0.4


class TestThreeFeatures(NodeContract):
    kernel = Cosine([0.3, -7.0, 0.0])
    dim = 3
    typical = (3.0, 0.15, 1.0)


@pytest.mark.parametrize("arguments", [{"frequency": 1.0}, {"variance": 0.0}])
def test_bad_arguments(arguments):
    with pytest.raises(InputError):
        Cosine(**{"frequency": [1.0], **arguments})


def test_remainders_are_exact():
    """One direction: R_n = sqrt(v) |e^{iu} - ...| at the corner u = |w|.h."""
    kernel = Cosine([2.0, -1.0], variance=4.0)
    u = 2.0 * 0.3 + 0.5
    e = np.exp(1j * u)
    h = [[0.3, 0.5]]
    assert kernel.R0(h)[0] == pytest.approx(2.0 * abs(e - 1), rel=1e-12)
    assert kernel.R1(h)[0] == pytest.approx(2.0 * abs(e - 1 - 1j * u), rel=1e-12)


sizes = st.sampled_from([0.0, 1e-300, 1e-12, 1e-5, 1e-2, 0.3, 1.0, 3.0, math.pi, 7.0, 99.0, 1e9])


@settings(max_examples=examples(60), deadline=None)
@given(u=sizes, share=st.floats(-1.0, 1.0))
def test_circle_remainders(u, share):
    """`|e^{it} - polynomial|` for |t| <= u; no tolerance, and tight at the end."""
    module = flint()
    bounds = [float(r) for r in circle_remainders(np.asarray(u))]
    with module.ctx.workprec(4000):
        for t in (module.arb(u), module.arb(share) * module.arb(u)):
            value = module.acb(t.cos(), t.sin())
            for n, bound in enumerate(bounds):
                value -= module.acb(0, t) ** n / math.factorial(n)
                assert not abs(value) > module.arb(bound), f"order {n}"
                if t == module.arb(u) and (n > 0 or u <= 3.0):
                    assert bound <= float(abs(value)) * 1.001 + 1e-299


@settings(max_examples=examples(100), deadline=None)
@given(t=st.floats(-50.0, 50.0), spread=sizes, share=st.floats(-1.0, 1.0))
def test_swing(t, spread, share):
    """|sin| over an interval lies between the two ends; both are attained, nearly."""
    arb = flint().arb
    low, high = (float(x) for x in swing(*np.asarray([math.sin(t), math.cos(t), spread])))
    grid = t + np.linspace(-1.0, 1.0, 4001) * min(spread, 4.0)
    for x in (arb(t), arb(t) + arb(share) * arb(spread), arb(t) + arb(spread)):
        assert not abs(x.sin()) < arb(low)
        assert not abs(x.sin()) > arb(high)
    found = np.abs(np.sin(grid))
    assert found.min() <= low + 3e-3
    assert found.max() >= high - 1e-5


@settings(max_examples=examples(100), deadline=None)
@given(
    t=st.floats(-50.0, 50.0),
    spread=sizes,
    share=st.floats(-1.0, 1.0),
    size=st.sampled_from([1e-6, 0.3, 1.0, 2.0]),
    error=st.sampled_from([0.0, 1e-12, 0.01, 0.5]),
    off=st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)),
)
def test_swing_of_numbers_with_errors(t, spread, share, size, error, off):
    """|r sin| for sines and cosines times r <= amplitude, off by at most `error`."""
    arb = flint().arb
    r = size * abs(share)
    ends = (r * math.sin(t) + 0.99 * error * off[0], r * math.cos(t) + 0.99 * error * off[1])
    low, high = (float(x) for x in swing(*np.asarray([*ends, spread]), size, error))
    assert high <= size
    for x in (arb(t), arb(t) + arb(share) * arb(spread), arb(t) + arb(spread)):
        assert not abs(arb(r) * x.sin()) < arb(low)
        assert not abs(arb(r) * x.sin()) > arb(high)
