"""Which experiments there are; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from gpcert.errors import InputError
from gpcert.experiments.base import Experiment

NAMES = (
    "safety",
    "robustness",
    "sparse",
    "interpretability-global",
    "interpretability-images",
    "multiclass",
    "convergence",
    "scaling",
    "full-image",
    "sufficient-reasons",
)


def names() -> tuple[str, ...]:
    """The names that `reproduce` knows, in the order of the paper."""
    return NAMES


def experiment_named(name: str) -> Experiment:
    """The experiment of this name.

    >>> experiment_named("safety").name
    'safety'
    """
    if name not in NAMES:
        raise InputError(f"experiment: expected one of {', '.join(NAMES)}; got {name!r}")
    found = import_module(f"gpcert.experiments.{name.replace('-', '_')}").EXPERIMENT
    assert isinstance(found, Experiment)
    return found
