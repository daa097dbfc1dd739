"""Ctrl-C at random moments: every verb ends soon, with valid bounds and what was finished."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.hunt.hunt_interrupts import DIM, HARD_AT, SECONDS, VERBS, model, rows

PATIENCE = 15.0
"""Seconds from the signal to the end that are soon even on a busy machine, far below the budget."""


def interrupted(verb, wait):
    """The answer and the seconds from the signal to the end."""
    script = Path(__file__).with_name("hunt_interrupts.py")
    process = subprocess.Popen(
        [sys.executable, str(script), verb],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as on a terminal: the whole group is interrupted
    )
    try:
        assert process.stdout.readline() == "asked\n", process.stderr.read()
        time.sleep(wait)
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS + 30.0)
        seconds = time.perf_counter() - start
    finally:
        process.kill()
    assert process.returncode == 0, err[-2000:]
    return json.loads(out), seconds


def check_bounds(verb, records):
    """The bounds hold at sampled points, within the rounding of plain predictions."""
    X = np.random.default_rng(5).uniform(-2.0, 2.0, (400, DIM))
    mean = model().predict(X)[0]
    for output, record in enumerate(records):
        if verb.startswith("prediction"):
            assert record["lower"] <= mean[:, output].min() + 1e-9
            assert record["upper"] >= mean[:, output].max() - 1e-9
        elif verb.startswith("certify_many"):
            rest = record["rows"]
            assert not record["complete"] or len(rest) == len(rows())
            assert len(rest) >= HARD_AT, f"{len(rest)} of the finished points came back"
            centers = [center for center, reason in rest if reason != "INTERRUPTED"]
            expected = [x.tolist() for x in rows() if x[0] != 0.0][: len(centers)]
            assert centers == expected, "not in the order of the rows"
        elif verb == "certify":
            assert record["status"] == "UNKNOWN"
        else:
            assert 0.0 <= record["lower"] <= record["upper"]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["prediction_range", "certified_radius", "certify_many"])
def test_an_interrupt_ends_soon_with_valid_bounds(verb):
    records, seconds = interrupted(verb, 1.5)
    assert seconds < PATIENCE
    check_bounds(verb, records)
    if not verb.startswith("certify_many"):
        assert records[0]["reason"] == "INTERRUPTED"


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seed", range(5))
def test_interrupts_at_random_moments(verb, seed):
    records, seconds = interrupted(verb, 0.3 + 4.0 * float(np.random.default_rng(seed).random()))
    assert seconds < PATIENCE
    check_bounds(verb, records)
