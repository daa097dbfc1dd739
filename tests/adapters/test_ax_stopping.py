"""Ax's global stopping with a proved regret bound."""

import math

import numpy as np
import pytest

from gpcert.errors import InputError

pytest.importorskip("ax")

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.global_stopping.strategies.base import BaseGlobalStoppingStrategy

from gpcert.ax import CertifiedStopping


def value(x, rate, colour):
    return -((x - 0.4) ** 2) - 0.1 * (math.log10(rate) + 2.0) ** 2 + (0.3 if colour == "b" else 0)


def run(n, objective="y", flip=1.0):
    client = Client()
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name="x", parameter_type="float", bounds=(-1.0, 2.0)),
            RangeParameterConfig(
                name="rate", parameter_type="float", bounds=(1e-4, 1.0), scaling="log"
            ),
            ChoiceParameterConfig(
                name="colour", parameter_type="str", values=["a", "b", "c"], is_ordered=False
            ),
        ]
    )
    client.configure_optimization(objective=objective)
    rng = np.random.default_rng(0)
    for _ in range(n):
        given = {
            "x": float(rng.uniform(-1.0, 2.0)),
            "rate": float(10.0 ** rng.uniform(-4.0, 0.0)),
            "colour": str(rng.choice(["a", "b", "c"])),
        }
        index = client.attach_trial(parameters=given)
        client.complete_trial(index, raw_data={"y": (flip * value(**given), 0.0)})
    return client._experiment


@pytest.mark.parametrize("objective", ["y", "-y"])
def test_the_bound_covers_what_is_left(objective):
    flip = -1.0 if objective == "-y" else 1.0
    experiment = run(20, objective, flip)
    strategy = CertifiedStopping(1e-3)
    assert isinstance(strategy, BaseGlobalStoppingStrategy)
    best = max(value(**arm.parameters) for arm in experiment.arms_by_name.values())
    assert 0.3 - best <= strategy.regret(experiment) < 3.0  # the optimum is 0.3
    stop, why = strategy.should_stop_optimization(experiment)
    assert not stop
    assert "proved" in why


def test_it_ends_an_experiment():
    strategy = CertifiedStopping(10.0, min_trials=5)
    assert not strategy.should_stop_optimization(run(3))[0]
    assert strategy.should_stop_optimization(run(8))[0]
    assert strategy.estimate_global_stopping_savings(run(3), 1) == 0.25
    with pytest.raises(InputError, match="one objective"):
        strategy.regret(run(0, "y, z"))
