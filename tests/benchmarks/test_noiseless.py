"""The problems of the benchmark of nearly noiseless models are those that its figures are of."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def problems() -> dict:
    return runpy.run_path(str(BENCHMARKS / "noiseless_problems.py"))


def test_a_fitted_branin_is_the_one_of_the_figures(problems) -> None:
    """N = 40, noise 1e-6: the kernel's variance is 25^2, the observations' 1."""
    [problem] = [p for p in problems["PROBLEMS"] if p.before == "15469"]
    model = problem.model
    assert np.sqrt(model.kernel_.k1.constant_value) == pytest.approx(24.93, abs=0.5)
    assert model.y_train_.std() == pytest.approx(1.0)
    assert problem.names["use"] == "tuned on"


def test_what_was_tuned_on_is_not_reported(problems) -> None:
    tuned = [p for p in problems["PROBLEMS"] if p.tuned]
    reported = [p for p in problems["PROBLEMS"] if not p.tuned]
    assert {p.function.__name__ for p in tuned} == {"branin"}
    assert not {p.seed for p in tuned} & {
        p.seed for p in reported if p.function is tuned[0].function
    }
    quick = [problems["PROBLEMS"][k] for k in problems["QUICK"]]
    assert any(p.tuned for p in quick)
    assert any(not p.tuned for p in quick)


def test_the_dynamics_are_those_of_the_figures(problems) -> None:
    case = problems["DYNAMICS"][0]
    kernel = case.model.kernel_
    assert kernel.diagonal(case.data[0][:1])[0] > 1e4
