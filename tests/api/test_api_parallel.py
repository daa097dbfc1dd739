"""Processes are started only where they pay, and answers do not depend on it."""

from types import SimpleNamespace

import joblib
import numpy as np
import pytest

import gpcert
from gpcert.api import running as parallel
from gpcert.api.box_work import Block
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.search import StopReason
from gpcert.utils.processes import checkpoint

P = gpcert.Posterior(SquaredExponential(1.0), [[0.0], [3.0]], [1.0, -1.0])


class Started(Exception):
    """Processes would be started now."""


@pytest.fixture
def no_processes(monkeypatch):
    def parallel_work(*arguments, **options):
        raise Started

    monkeypatch.setattr(joblib, "Parallel", parallel_work)
    number = {-1: 16, None: 1}
    monkeypatch.setattr(joblib, "effective_n_jobs", lambda n_jobs: number.get(n_jobs, n_jobs))


class Clock:
    """A clock that moves only by the work done."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        for name in ("perf_counter", "process_time"):
            monkeypatch.setattr(parallel.time, name, lambda: self.now)

    def work(self, seconds):
        self.now += seconds
        checkpoint()
        return seconds


def taken(results):
    """What came before processes were started, and whether they were."""
    found = []
    try:
        for item in results:
            found.append(item)
    except Started:
        return found, True
    return found, False


def test_a_small_job_starts_no_process(no_processes, monkeypatch):
    monkeypatch.setattr(parallel, "START_SECONDS", 1e6)  # whatever this machine does besides
    monkeypatch.setattr(parallel, "LONGEST_TRY", 1e6)
    X = np.linspace(-1.0, 1.0, 30)[:, None]
    table = gpcert.certify_many(P, X, 0.1, threshold=0.0, n_jobs=-1)
    assert table.complete
    alone = gpcert.certify_many(P, X, 0.1, threshold=0.0)
    assert [c.margin for c in table] == [c.margin for c in alone]
    radii = gpcert.certified_radius_many(P, X[:3], threshold=0.0, rtol=0.5, n_jobs=-1)
    assert radii.labels == (0, 1, 2)


def test_what_is_left_decides(no_processes, monkeypatch):
    clock = Clock(monkeypatch)
    # 143 points of 14 ms: 2 s in all, less than processes cost
    found, started = taken(parallel.numbered_results(clock.work, [(0.014,)] * 143, -1))
    assert not started
    assert found == [(k, 0.014) for k in range(143)]
    # of 0.1 s: known after the second, as the first may be slower than all others
    found, started = taken(parallel.numbered_results(clock.work, [(0.1,)] * 143, -1))
    assert started
    assert found == [(0, 0.1), (1, 0.1)]
    # a slow first point alone is no reason
    slow_first = [(0.9,), *[(0.01,)] * 50]
    assert taken(parallel.numbered_results(clock.work, slow_first, -1))[1] is False
    # with two processes half of the time is saved at most
    found, started = taken(parallel.numbered_results(clock.work, [(0.5,)] * 19, 2))
    assert started
    assert not taken(parallel.numbered_results(clock.work, [(0.5,)] * 18, 2))[1]


def test_a_long_point_is_left_to_the_processes(no_processes, monkeypatch):
    clock = Clock(monkeypatch)
    for seconds in (2.1, 60.0):
        work = [(0.01,), (seconds,), (0.01,)]
        found, started = taken(parallel.numbered_results(clock.work, work, -1))
        assert started
        assert found == [(0, 0.01)]


def test_one_point_or_none(no_processes, monkeypatch):
    clock = Clock(monkeypatch)
    assert list(parallel.numbered_results(clock.work, [(60.0,)], -1)) == [(0, 60.0)]
    assert list(parallel.numbered_results(clock.work, [], -1)) == []


def test_processes_go_on_where_this_one_stopped(monkeypatch):
    monkeypatch.setattr(parallel, "START_SECONDS", 0.0)
    X = np.linspace(-1.0, 1.0, 6)[:, None]
    alone = gpcert.certify_many(P, X, 0.1, threshold=0.0)
    pair = gpcert.certify_many(P, X, 0.1, threshold=0.0, n_jobs=2)
    assert pair.labels == alone.labels
    assert [c.margin for c in pair] == [c.margin for c in alone]


@pytest.mark.parametrize("seconds", [0.1, 3.0])
def test_an_error_for_want_of_time_is_left_to_the_processes(no_processes, monkeypatch, seconds):
    """A ranking by sufficient reasons has none where its first step ends by a deadline."""
    clock = Clock(monkeypatch)

    def hurried():
        clock.work(seconds)
        raise InputError("budget: expected enough")

    with pytest.raises(InputError if seconds < 1.0 else Started):
        list(parallel.numbered_results(hurried, [()] * 3, 2))


ENDED = SimpleNamespace(reason=StopReason.INTERRUPTED)


@pytest.mark.parametrize("found", [ENDED, (ENDED,), Block({}, 0, 1, StopReason.INTERRUPTED)])
def test_an_interrupt_while_trying_is_not_lost(monkeypatch, found):
    """A search that Ctrl-C has ended gives its bounds: the caller must see them, however long."""
    monkeypatch.setattr(parallel, "LONGEST_TRY", 0.0)
    results = parallel.numbered_results(lambda: found, [()] * 3, 2)
    assert next(results) == (0, found)
    results.close()
