"""Random questions about slopes and differences; `python -m tests.hunt.hunt_slopes` asks more."""

from gpcert.testing.effort import variants
from tests.hunt.hunt_slopes import hunt


@variants("seed", range(60), quick=12)
def test_no_promise_about_slopes_is_broken(seed):
    _, findings = hunt(seed)
    assert not findings, findings
