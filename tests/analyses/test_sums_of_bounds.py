"""Differences and averages of bounds hold in exact arithmetic, at every combination."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert import explain
from gpcert.analyses.robustness import difference
from gpcert.certificates import Interval, PredictionRange
from gpcert.explain.effects import differences
from gpcert.explain.sides import Sides
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.search import StopReason
from gpcert.testing.effort import examples

NUMBERS = st.floats(-1e6, 1e6) | st.floats(0.0, 1.0)
QUICK = settings(max_examples=examples(100), deadline=None)


def range_of(minimum, maximum, quantity="mean"):
    rest = (None, None, True, quantity, 0, {})
    cost = {"reason": StopReason.CONVERGED, "boxes": 1, "seconds": 0.0}
    return PredictionRange(Interval(*minimum), Interval(*maximum), *rest, **cost)


@QUICK
@given(ends=st.lists(NUMBERS, min_size=4, max_size=4))
def test_delta_holds_every_minimum_and_maximum_that_the_bounds_allow(ends):
    a, b, c, d = sorted(ends)
    found = range_of((a, c), (b, d))  # the bounds may overlap
    delta = difference(found)
    for low, high in product((a, c), (b, d)):
        if low <= high:
            assert delta.lower <= Fraction(high) - Fraction(low) <= delta.upper
    tight = difference(range_of((a, b), (c, d)))
    assert tight.lower <= max(Fraction(c) - Fraction(b), 0)
    assert Fraction(d) - Fraction(a) <= tight.upper


@QUICK
@given(ends=st.lists(st.lists(NUMBERS, min_size=4, max_size=4), min_size=2, max_size=2))
def test_effects_hold_every_extreme_that_the_bounds_allow(ends):
    """Both ends of minimum and maximum, upwards and downwards: sixteen exact sums."""
    sides = []
    for four in ends:
        a, b, c, d = sorted(four)
        sides.append(((a, b), (c, d)))
    arrays = [
        np.array([side[which][end] for side in sides]).reshape(1, 1, 2, 1)
        for which, end in product((0, 1), (0, 1))
    ]
    lower, upper = differences(Sides(*arrays, StopReason.CONVERGED, 1), "mean")
    (low_up, high_up), (low_down, high_down) = sides
    for hu, hd, lu, ld in product(high_up, high_down, low_up, low_down):
        exact = Fraction(hu) - Fraction(hd) + Fraction(lu) - Fraction(ld)
        assert lower.item() <= exact <= upper.item()


@QUICK
@given(values=st.lists(NUMBERS, min_size=1, max_size=9))
def test_average_effects_hold_the_exact_average(values):
    n = len(values)
    ends = np.array(values).reshape(n, 1, 1)
    effects = explain.Effects(
        X=np.zeros((n, 1)), lower=ends, upper=ends, features=(0,), feature_names=("x0",),
        outputs=(0,), quantity="mean", radius=np.ones(1), reason=StopReason.CONVERGED, boxes=1,
        seconds=0.0, labels=tuple(range(n)),
    )  # fmt: skip
    mean = effects.mean()
    exact = sum(map(Fraction, values)) / n
    assert Fraction(mean.lower.item()) <= exact <= Fraction(mean.upper.item())


@pytest.mark.parametrize("label", ["a", "b"])
def test_a_point_at_a_tie_is_neither_certified_nor_called_wrong(label):
    model = gpcert.Posterior(
        SquaredExponential(1.0), [[0.0]], [1.0], likelihood=Probit(), classes=("a", "b")
    )
    tied = replace(model, weights=0.0 * model.weights)
    found = gpcert.certified_accuracy(tied, [[0.5]], [label], [0.1])
    assert found.certified().tolist() == [0.0]
    assert found.attacked().tolist() == [1.0]
