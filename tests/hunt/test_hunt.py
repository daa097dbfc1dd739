"""Random models, regions and questions against the definitions: a short hunt, and a long one.

The long one has its length from the environment: `GPCERT_HUNT=100000 pytest -m slow tests/hunt`, or
`make hunt LENGTH=100000`.
"""

import os

import pytest

from gpcert.testing.effort import variants
from tests.hunt.hunt_study import run_case, show, study

FOUND = (101017, 150469, 301250)
"""Seeds that once found something: an overflow in local search, an infinite distance to a point."""


@variants("seed", [*FOUND, *range(1, 50), 0], quick=13)
def test_no_promise_is_broken(seed):
    outcome = run_case(seed, timed=False)
    assert not outcome.findings, outcome.report()


@pytest.mark.slow
def test_no_promise_is_broken_in_a_long_study(capsys):
    length = int(os.environ.get("GPCERT_HUNT", "2000"))
    with capsys.disabled():
        found, counts = study(length, jobs=int(os.environ.get("GPCERT_HUNT_JOBS", "1")))
        show(length, found, counts)
    assert not found, "\n".join(outcome.report() for outcome in found)
