"""A cheap experiment in the catalogue, and the smallest runs of the others."""

import sys
from functools import cache

import pytest

from gpcert.study.experiments import base, reproduce
from tests.study.experiments import toy_experiment


@pytest.fixture
def toy(monkeypatch):
    """The module of the experiment "toy", in the catalogue while the test runs."""
    monkeypatch.setattr(base, "NAMES", (*base.NAMES, "toy"))
    monkeypatch.setitem(sys.modules, "gpcert.study.experiments.toy", toy_experiment)
    toy_experiment.COMPUTED.clear()
    toy_experiment.FAILS.clear()
    return toy_experiment


@pytest.fixture(scope="session")
def smallest(tmp_path_factory):
    """`name -> (result, folder)`: the smallest run of an experiment, computed once."""
    folder = tmp_path_factory.mktemp("smallest")

    @cache
    def run(name):
        return reproduce(name, scale="smallest", output=folder), folder

    return run
