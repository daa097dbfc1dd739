"""Ctrl-C, by real signals to a process of its own: an end that is soon, and bounds that hold."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gpcert.testing.effort import variants
from tests.api.interrupt_case import DIM, hard_level, model

CASE = Path(__file__).with_name("interrupt_case.py")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals to process groups")

SOON = 5.0
"""Seconds from the signal to the end on a busy machine; about one on an idle one."""


def started(verb):
    process = subprocess.Popen(
        [sys.executable, str(CASE), verb],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "READY\n"
    return process


def interrupted(process, whole_group=True):
    """The answer, and the seconds that it took to come."""
    sent = time.perf_counter()
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return json.loads(out.splitlines()[-1]), time.perf_counter() - sent


def check(verb, answer):
    """Bounds contain what sampling finds; nothing claims to be finished."""
    if "raised" in answer:
        return
    assert answer["reason"] == "INTERRUPTED"
    posterior = model()
    X = np.random.default_rng(2).uniform(-1.0, 1.0, (2_000, DIM))
    mean, variance = posterior.predict(X)
    if verb in ("range", "ranges", "variance"):
        values = variance if verb == "variance" else mean
        assert answer["minimum"][0] <= values.min()
        assert answer["maximum"][1] >= values.max()
        if np.isfinite(answer["minimum"][1]) and verb == "range":
            attained = float(posterior.predict(np.array([answer["argmin"]]))[0][0, 0])
            assert answer["minimum"][0] - 1e-9 <= attained <= answer["minimum"][1] + 1e-9
    elif verb == "certify":
        margin = mean.min() - (hard_level(posterior))
        assert answer["margin"][0] <= margin
    else:
        assert 0.0 <= answer["lower"] <= answer["upper"]
        inside = np.abs(X).max(axis=1) < answer["lower"]
        assert np.all(mean[inside] > hard_level(posterior))


@variants("verb", ["range", "certify", "radius", "variance"])
def test_an_interrupt_at_any_moment_leaves_bounds_that_hold(verb):
    process = started(verb)
    time.sleep(float(np.random.default_rng(len(verb)).uniform(0.3, 1.0)))
    answer, seconds = interrupted(process)
    check(verb, answer)
    assert seconds < SOON


def test_an_interrupt_while_processes_search_leaves_bounds_that_hold():
    process = started("range2")
    time.sleep(8.0)
    answer, seconds = interrupted(process)
    check("range", answer)
    assert seconds < SOON


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("verb", ["range", "ranges", "variance", "certify", "radius"])
def test_interrupts_at_many_moments(verb, seed):
    process = started(verb)
    time.sleep(float(np.random.default_rng(seed).uniform(0.0, 3.0)))
    answer, seconds = interrupted(process, whole_group=bool(seed % 2))
    check(verb, answer)
    assert seconds < SOON


@variants(("jobs", "whole_group"), [(2, True), (2, False)])
def test_points_finished_behind_a_hard_one_are_kept(jobs, whole_group):
    process = started(f"many{jobs}")
    done = [process.stdout.readline() for _ in range(5)]
    answer, seconds = interrupted(process, whole_group)
    assert sorted(done) == [f"POINT {row}\n" for row in range(1, 6)]
    assert answer["labels"] == [1, 2, 3, 4, 5]
    assert not answer["complete"]
    assert answer["statuses"] == ["ROBUST"] * 5
    assert seconds < SOON
    if sys.platform == "linux":
        assert not orphans(process.pid)


@pytest.mark.slow
def test_one_process_keeps_what_the_hard_point_reached():
    process = started("many1")
    time.sleep(0.5)
    answer, seconds = interrupted(process)
    if "raised" not in answer:
        assert not answer["complete"]
        assert answer["labels"] in ([], [0])
        assert answer["reasons"] in ([], ["INTERRUPTED"])
    assert seconds < SOON


def orphans(group):
    """Processes of the group that still run some seconds after its leader has ended."""
    end = time.perf_counter() + SOON
    while left := [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if alive(pid, group)
    ]:
        if time.perf_counter() > end:
            return left
        time.sleep(0.05)
    return []


def alive(pid, group):
    """Whether a process runs (is no zombie) in a process group."""
    try:
        state, _, own = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(own) == group and state != "Z"
