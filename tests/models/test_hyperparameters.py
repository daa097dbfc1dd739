"""The search over hyper-parameters: epochs, best seen, bounds, restarts, failures."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gpcert.errors import InputError
from gpcert.models.hyperparameters import Search, all_starts, maximise

TOP = np.array([0.7, -1.2])


def hill(vector):
    """A Rosenbrock valley upside down: many evaluations to the top at (1, 1)."""
    x, y = vector
    value = -((1 - x) ** 2 + 100 * (y - x * x) ** 2)
    slope = np.array([2 * (1 - x) + 400 * x * (y - x * x), -200 * (y - x * x)])
    return value, slope, tuple(vector)


def parabola(vector):
    away = vector - TOP
    return -float(away @ away), -2 * away, None


def search(max_epochs=50, **changes):
    made = Search(
        names=("a", "b"),
        starts=np.zeros((1, 2)),
        bounds=np.array([[-3.0, 3.0], [-3.0, 3.0]]),
        logarithmic=np.array([True, False]),
        max_epochs=max_epochs,
        random=np.random.RandomState(0),
    )
    return replace(made, **changes)


@pytest.mark.parametrize("max_epochs", [1, 2, 10, 25])
def test_stops_after_exactly_max_epochs_and_keeps_the_best_seen(max_epochs):
    calls = []

    def counted(vector):
        calls.append(vector.copy())
        return hill(vector)

    found = maximise(counted, search(max_epochs))
    assert len(calls) == len(found.trace) == max_epochs
    assert found.evidence == found.trace.evidence.max()
    best = int(found.trace.evidence.argmax())
    np.testing.assert_array_equal(found.vector, calls[best])
    np.testing.assert_array_equal(found.trace.vectors, calls)
    assert found.payload == tuple(found.vector)
    assert [one.epoch for one in found.trace.evaluations] == list(range(1, max_epochs + 1))


def test_ends_early_at_a_maximum():
    found = maximise(parabola, search(100))
    np.testing.assert_allclose(found.vector, TOP, atol=1e-5)
    assert len(found.trace) < 20


def test_the_first_step_is_short_however_steep_the_evidence():
    """L-BFGS-B alone would try a corner of the box first, and end on the plateau there."""

    def plateau(vector):
        value, slope, payload = parabola(vector)
        if np.abs(vector).max() > 2.9:
            return 0.0, np.zeros(2), payload
        return 1e4 * value - 1e3, 1e4 * slope, payload

    found = maximise(plateau, search(60))
    assert np.linalg.norm(found.trace.vectors[1] - found.trace.vectors[0]) <= 1.0 + 1e-12
    np.testing.assert_allclose(found.vector, TOP, atol=1e-5)


def test_trace_gives_parameters_in_their_own_units():
    trace = maximise(parabola, search()).trace
    np.testing.assert_allclose(trace.parameters[:, 0], np.exp(trace.vectors[:, 0]))
    np.testing.assert_array_equal(trace.parameters[:, 1], trace.vectors[:, 1])
    assert set(trace.runs) == {0}


def test_restarts_are_reproducible_within_bounds_and_find_the_higher_peak():
    def two_peaks(vector):
        low, high = (np.exp(-np.sum((vector - c) ** 2)) for c in (-1.5, 1.5))
        slope = -2 * (low * (vector + 1.5) + 3 * high * (vector - 1.5))
        return low + 3 * high, slope, None

    start = np.array([-0.7, -0.5])
    alone = maximise(two_peaks, search(starts=start[None]))
    assert alone.vector[0] < 0
    runs = [
        maximise(
            two_peaks, search(starts=start[None], n_restarts=12, random=np.random.RandomState(3))
        )
        for _ in range(2)
    ]
    np.testing.assert_allclose(runs[0].vector, [1.5, 1.5], atol=1e-2)
    np.testing.assert_array_equal(runs[0].trace.vectors, runs[1].trace.vectors)
    assert set(runs[0].trace.runs) == set(range(13))
    assert np.all(np.abs(runs[0].trace.vectors) <= 3.0)


def test_starts_are_tried_in_turn_and_equal_ones_once():
    starts = np.array([[-2.0, 2.0], [-2.0, 2.0], [2.0, -2.0], [9.0, -2.0], [3.0, -2.0]])
    trace = maximise(parabola, search(4, starts=starts)).trace
    first = [trace.vectors[trace.runs == run][0].tolist() for run in range(3)]
    assert first == [[-2.0, 2.0], [2.0, -2.0], [3.0, -2.0]]
    assert set(trace.runs) == {0, 1, 2}


def test_restarts_are_drawn_about_the_last_start_with_a_shift_per_field():
    names = ("length_scale[0]", "length_scale[1]", "variance")
    wide = Search(
        names,
        np.array([[0.0, 0.0, 0.0], [2.0, -1.0, 1.0]]),
        np.array([[-50.0, 50.0]] * 3),
        np.array([True, True, True]),
        1,
        4000,
        np.random.RandomState(0),
    )
    drawn = np.array(all_starts(wide)[2:])
    np.testing.assert_allclose(drawn.mean(axis=0), [2.0, -1.0, 1.0], atol=0.1)
    correlation = np.corrcoef(drawn.T)
    assert correlation[0, 1] > 0.5
    assert abs(correlation[0, 2]) < 0.1


@pytest.mark.parametrize("kind", [np.linalg.LinAlgError, OverflowError, InputError, ValueError])
def test_failures_count_as_minus_infinity_and_are_left(kind):
    def brittle(vector):
        if vector[0] > 0.9:
            raise kind("not positive definite")
        return hill(vector)

    found = maximise(brittle, search(80))
    assert np.isneginf(found.trace.evidence).any()
    assert found.vector[0] <= 0.9
    assert found.evidence > -0.1  # on along the valley up to where inference fails: -0.01


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_or_slope_that_is_no_number_is_a_failure(bad):
    def broken(vector):
        value, slope, payload = parabola(vector)
        if vector[0] > 0.5:
            return (bad, slope, payload) if vector[1] > -0.5 else (value, slope * bad, payload)
        return value, slope, payload

    found = maximise(broken, search())
    assert np.isfinite(found.evidence)
    assert found.vector[0] <= 0.5


def test_a_run_that_fails_at_its_start_leaves_the_others():
    def narrow(vector):
        if np.abs(vector - TOP).max() > 1.5:
            raise np.linalg.LinAlgError("not positive definite")
        return parabola(vector)

    start = np.array([3.0, 0.5])
    found = maximise(narrow, search(starts=start[None], n_restarts=20))
    np.testing.assert_allclose(found.vector, TOP, atol=1e-5)
    with pytest.raises(InputError, match=r"failed at every.*not positive definite"):
        maximise(narrow, search(starts=start[None]))


def test_warns_of_parameters_at_a_bound():
    with pytest.warns(ConvergenceWarning, match=r"a = 1\.49.*widen"):
        found = maximise(parabola, search(bounds=np.array([[-3.0, 0.4], [-3.0, 3.0]])))
    assert found.vector[0] == 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        maximise(parabola, search())
        # a parameter that is held fixed is not at a bound
        held = maximise(parabola, search(bounds=np.array([[0.0, 0.0], [-3.0, 3.0]])))
    assert held.vector[0] == 0.0


def test_the_start_is_moved_within_the_bounds():
    found = maximise(parabola, search(1, starts=np.array([[9.0, 0.0]])))
    np.testing.assert_array_equal(found.trace.vectors[0], [3.0, 0.0])


def test_without_parameters_there_is_one_evaluation():
    empty = search(
        names=(), starts=np.zeros((1, 0)), bounds=np.zeros((0, 2)), logarithmic=np.zeros(0)
    )
    found = maximise(lambda vector: (-1.0, vector, "kept"), empty)
    assert (found.evidence, found.payload, len(found.trace)) == (-1.0, "kept", 1)


def test_every_evaluation_is_reported():
    heard = []
    found = maximise(hill, search(7, report=heard.append))
    np.testing.assert_array_equal(heard, found.trace.evidence)


def test_trace_can_be_stored():
    trace = maximise(hill, search(5)).trace
    again = pickle.loads(pickle.dumps(trace))
    np.testing.assert_array_equal(again.evidence, trace.evidence)
    assert again.names == trace.names
