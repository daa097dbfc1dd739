"""A cheap experiment in the catalogue."""

import sys

import pytest
import toy_experiment

from gpcert.experiments import catalogue


@pytest.fixture
def toy(monkeypatch):
    """The module of the experiment "toy", in the catalogue while the test runs."""
    monkeypatch.setattr(catalogue, "NAMES", (*catalogue.NAMES, "toy"))
    monkeypatch.setitem(sys.modules, "gpcert.experiments.toy", toy_experiment)
    toy_experiment.COMPUTED.clear()
    toy_experiment.FAILS.clear()
    return toy_experiment
