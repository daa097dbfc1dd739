"""Every count of roundings that a shadow run meets is large enough, and most are not larger than
needed; a count that is halved is noticed. How it is done: docs/soundness.md."""

import ast

import numpy as np
import pytest

from gpcert.likelihoods import SklearnLogistic
from gpcert.numerics import rounding
from gpcert.numerics.arrays import namespace
from gpcert.testing.effort import variants
from gpcert.testing.rounding import shadow_run as run
from gpcert.testing.rounding.ledger import (
    ARGUMENTS,
    RECORDS,
    RESULTS,
    STATED,
    STATED_ARGUMENTS,
    Ledger,
    all_counts,
    syntax_of,
)
from tests.rounding.problems import QUICK, SLOW, shadow_run


@variants("seed", (*QUICK, *SLOW), quick=len(QUICK))
def test_counts_are_large_enough(seed):
    faults = shadow_run(seed).faults
    assert not faults, "\n".join(f"{where}: {text}" for where, text in faults.items())


@variants("seed", (*QUICK, *SLOW), quick=2)
def test_halved_counts_are_noticed(seed):
    """Of those that are called needed, a few of each case."""
    needs = shadow_run(seed).needs
    needed = sorted(c for c, n in needs.items() if n.observed > 0.501)
    chosen = np.random.default_rng(seed).permutation(len(needed))[:2]
    for count in (needed[i] for i in chosen):
        ledger = shadow_run(seed, Ledger(halved=count))
        assert count in ledger.faults, f"{count}: half of it was not noticed"


def test_names_of_given_numbers_exist():
    functions = {
        f"{scope}{node.name}"
        for module in run.library()
        for scope, node in _functions(syntax_of(module.__name__))
    }
    names = {*ARGUMENTS, *RESULTS, *STATED, *STATED_ARGUMENTS}
    assert not names - functions, "renamed? see gpcert.testing.rounding.ledger"
    assert {kind.__name__ for kind in run.records(frozenset(RECORDS))} == set(RECORDS)


def _functions(tree, scope=""):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{scope}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield scope, node
        elif isinstance(node, ast.If):
            yield from _functions(node, scope)


def test_a_run_leaves_nothing_behind():
    before = {module.__name__: dict(vars(module)) for module in run.library()}
    with pytest.raises(ZeroDivisionError), run.counted():
        raise ZeroDivisionError
    for module in run.library():
        assert vars(module) == before[module.__name__]
    assert rounding.up(1.0, 1) > 1.0


def test_later_calls_see_plain_arrays():
    shadow_run(65)
    one = np.ones(1)
    assert namespace(one) is np
    assert type(SklearnLogistic().enclose(one, one)[0]) is np.ndarray


def test_counts_are_found():
    counts = all_counts()
    assert len(set(counts)) == len(counts) > 1000
    assert {count.call for count in counts} == {"up", "down", "up_float", "raised", "gamma"}
