"""A search on a GPU begins on the CPU: small questions are answered there."""

import pytest

import gpcert.search.region_evaluator as region_evaluator
from gpcert.enclosures.goals import QuantityGoal
from gpcert.numerics.arrays import Backend, backend_from_name
from gpcert.quantities import Mean, Probability
from gpcert.regions import Box
from gpcert.search import Problem, solve
from tests.search.search_problems import random_posterior

pytest.importorskip("torch")


@pytest.fixture
def places(monkeypatch):
    """Where models were bound; torch on the CPU stands for a GPU."""
    monkeypatch.setattr(Backend, "gpu", property(lambda backend: backend.name == "torch"))
    built = []
    bind = region_evaluator.local_model

    def watched(posterior, region, backend, variance):
        built.append(backend.name)
        return bind(posterior, region, backend, variance)

    monkeypatch.setattr(region_evaluator, "local_model", watched)
    return built


def _asked(backend, half=1.0, tol=1e-3):
    posterior = random_posterior(4, binary=True)
    goals = [QuantityGoal(Mean(0, 1)), QuantityGoal(Probability(posterior.likelihood, 0, -1))]
    region = Box([-half, -half], [half, half])
    return Problem(posterior, region, goals, tol=tol, backend=backend_from_name(backend))


def test_a_small_question_never_leaves_the_cpu(places):
    found = solve(_asked("torch", half=0.01))
    assert found.reason.name == "CONVERGED"
    assert places == ["numpy"]


def test_a_large_one_moves_once_and_finds_the_same(places, monkeypatch):
    monkeypatch.setattr(region_evaluator, "HOST_SHARE", 1e-3)
    found = solve(_asked("torch"))
    assert places == ["numpy", "torch"]
    alone = solve(_asked("numpy"))
    assert found.reason == alone.reason
    for one, other in zip(found.goals, alone.goals, strict=True):
        assert one.lower == pytest.approx(other.lower, abs=2e-3)
        assert one.upper == pytest.approx(other.upper, abs=2e-3)
        assert one.lower <= other.upper
        assert other.lower <= one.upper
