"""Adaptive partitions: bounds of sums hold at every moment, cells cover what was partitioned."""

import math
import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import SoundnessError
from gpcert.search import Budget, Progress, StopReason
from gpcert.search.partition import Contributions, PartitionProblem, partition
from gpcert.testing.effort import examples

LOW, HIGH = np.array([[-1.0, -1.0]]), np.array([[1.0, 1.0]])


def disk(low, high, data):
    """Contributions to the area of the unit disk, exact but for rounding, on dyadic corners."""
    nearest = np.sum(np.maximum(0.0, np.maximum(low, -high)) ** 2, axis=1)
    farthest = np.sum(np.maximum(abs(low), abs(high)) ** 2, axis=1)
    area = np.prod(high - low, axis=1)
    inside, outside = farthest <= 1.0, nearest > 1.0
    data = np.where(inside, 1, np.where(outside, 2, 0)).astype(np.uint8)[:, None]
    lower, upper = np.where(inside, area, 0.0), np.where(outside, 0.0, area)
    return Contributions(lower, upper, inside | outside, high - low, data)


def asked(evaluate=disk, low=LOW, high=HIGH, tol=0.01, **more):
    more = {"batch_size": 256, "data": np.zeros(1, dtype=np.uint8), **more}
    return PartitionProblem(low, high, evaluate, lambda a, b: b - a <= tol, **more)


def test_area_of_a_disk():
    result = partition(asked(tol=0.01, record=True))
    assert result.lower < math.pi < result.upper
    assert result.upper - result.lower <= 0.01
    assert result.reason is StopReason.CONVERGED
    cells = [result.open, result.decided]
    areas = [np.prod(part.high - part.low, axis=1).sum() for part in cells]
    assert sum(areas) == 4.0  # dyadic cells: exact
    inside = result.decided.data[:, 0] == 1
    assert np.prod(result.decided.high - result.decided.low, axis=1)[inside].sum() <= math.pi
    assert len(result.open)
    assert np.all(result.open.data == 0)


def test_every_report_holds_and_none_is_worse():
    seen = []
    progress = Progress(report=lambda state: seen.append((state.lower[0], state.upper[0])))
    partition(asked(tol=0.02, progress=progress))
    assert len(seen) > 3
    assert all(lower < math.pi < upper for lower, upper in seen)
    assert all(a[0] <= b[0] and a[1] >= b[1] for a, b in pairwise(seen))


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(boxes=100), StopReason.BOXES),
        (Budget(seconds=1e-9), StopReason.TIME),
        (Budget(memory=1e4), StopReason.MEMORY),
    ],
)
def test_a_budget_ends_it_with_bounds_that_hold(budget, reason):
    result = partition(asked(tol=1e-9, budget=budget))
    assert result.reason is reason
    assert result.lower <= math.pi <= result.upper
    assert result.boxes <= 2000


def test_an_interrupt_ends_it_with_bounds_that_hold():
    calls = []

    def interrupted(*cells):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return disk(*cells)

    result = partition(asked(interrupted, tol=1e-6))
    assert result.reason is StopReason.INTERRUPTED
    assert 0.0 < result.lower <= math.pi <= result.upper < 4.0


def test_a_deadline_inside_a_batch_drops_it():
    def slow(*cells):
        time.sleep(0.02)
        return disk(*cells)

    result = partition(asked(slow, tol=1e-9, budget=Budget(seconds=0.15)))
    assert result.reason is StopReason.TIME
    assert result.seconds < 1.0


def test_it_repeats_exactly():
    first, second = partition(asked()), partition(asked())
    assert (first.lower, first.upper, first.boxes) == (second.lower, second.upper, second.boxes)
    assert np.array_equal(first.open.low, second.open.low)


def test_cells_without_a_float_inside_end_it():
    low = np.array([[1.0]])
    result = partition(asked(_never, low, np.nextafter(low, 2.0), tol=0.0))
    assert result.reason is StopReason.RESOLUTION
    assert result.lower <= 0.0
    assert result.upper == 1.0


def test_a_single_point_is_one_cell():
    point = np.zeros((1, 0))
    result = partition(asked(_never, point, point, tol=0.0))
    assert (result.boxes, result.reason) == (1, StopReason.RESOLUTION)


def _never(low, high, data):
    n = len(low)
    return Contributions(np.zeros(n), np.ones(n), np.zeros(n, dtype=bool), high - low, data)


def test_parts_are_evaluated_with_the_data_of_their_cells():
    """A cell's generation is counted in its data: volumes are as small as it says."""

    def counted(low, high, data):
        volume = np.prod(high - low, axis=1)
        own = disk(low, high, data)
        generation = np.round(-np.log2(volume / 4.0)).astype(np.uint8)
        assert np.all(data[:, 0] <= generation)
        return Contributions(own.lower, own.upper, own.decided, own.scores, generation[:, None])

    result = partition(asked(counted, tol=0.2, record=True, budget=Budget(boxes=500)))
    volume = np.prod(result.open.high - result.open.low, axis=1)
    assert np.all(volume == 4.0 * 0.5 ** result.open.data[:, 0].astype(float))


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-300, 1e-9, 1.0, 1e300]))
@settings(max_examples=examples(60, quick=20), deadline=None)
def test_sums_are_rounded_outwards(seed, scale):
    """Random parts of 0, which cancel: the bounds hold in rational arithmetic."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30)) if seed % 5 else 5000  # many are summed another way
    values = rng.normal(size=n) * scale * 10.0 ** rng.integers(-8, 3, n)

    def given_values(low, high, data):
        index = low[:, 0].astype(int)
        return Contributions(
            values[index], values[index], np.ones(len(low), dtype=bool), high - low, data
        )

    low = np.arange(n, dtype=float)[:, None]
    result = partition(asked(given_values, low, low + 1.0, tol=0.0, batch_size=max(7, n)))
    exact = sum(map(Fraction, values.tolist()))
    assert Fraction(result.lower) <= exact <= Fraction(result.upper)
    near = 1e-14 * max(1.0, n / 10) * abs(values).sum() + 1e-300 * (n > 30) + 1e-320
    assert result.upper - result.lower <= near


def test_contributions_that_are_not_bounds_are_refused():
    def crossed(low, high, data):
        own = disk(low, high, data)
        return Contributions(own.upper + 1.0, own.lower, own.decided, own.scores, own.data)

    with pytest.raises(SoundnessError):
        partition(asked(crossed))
