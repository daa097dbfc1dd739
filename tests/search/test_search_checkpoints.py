"""Keys of searches: what tells one from another in a file."""

from dataclasses import replace

import numpy as np

import gpcert
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import SquaredExponential
from gpcert.quantities import Mean
from gpcert.search import Budget, Problem
from gpcert.search.branch_and_bound import solve
from gpcert.search.checkpoints import Checkpoint, Journal, keeping

POINTS = [[0.0, 0.0], [1.0, 2.0]]
SQUARE = ([-1.0, -1.0], [1.0, 1.0])
CALL = {"verb": "test", "digest": "0", "arguments": {}}


def problem(weights=(1.0, -1.0), region=None, **how):
    model = gpcert.Posterior(SquaredExponential(1.0), POINTS, list(weights))
    region = gpcert.Ball([0.0, 0.0], 1.0) if region is None else region
    how = {"goals": [QuantityGoal(Mean(0, 1))], "tol": 1e-3} | how
    return Problem(model, region, **how)


def keys(problems, path):
    """The keys of searches, as a file has them."""
    journal = Journal(Checkpoint(path), CALL, b"")
    with keeping(journal):
        for each in problems:
            solve(each)
    path.unlink()
    return list(journal.searches)


def test_one_question_has_one_key(tmp_path):
    path, first = tmp_path / "x.ckpt", problem()
    other_cost = replace(first, budget=Budget(seconds=5, boxes=100))
    assert len(keys([first, problem(), other_cost], path)) == 1
    other = [
        problem(weights=(1.0, -2.0)),
        problem(region=gpcert.Ball([0.0, 0.0], 1.0, norm=2)),
        problem(region=gpcert.Ball([0.0, 0.0], 1.0, norm=1)),
        problem(region=gpcert.Ball([0.0, 0.0], 1.0, domain=([-1.0, -1.0], [1.0, 0.5]))),
        problem(region=gpcert.Polytope(SQUARE, A=[[1.0, 1.0]], b=[0.5])),
        problem(region=gpcert.Polytope(SQUARE, A=[[1.0, 1.0]], b=[0.6])),
        problem(goals=[QuantityGoal(Mean(0, -1))]),
        problem(goals=[QuantityGoal(Mean(0, 1)), QuantityGoal(Mean(0, -1))]),
        problem(tol=1e-4),
        problem(target=0.5),
        problem(random_state=1),
        problem(record=True),
    ]
    assert len(keys([first, *other], path)) == 1 + len(other)


def test_leaves_of_a_kept_search_are_those_of_another(tmp_path):
    path, asked = tmp_path / "x.ckpt", problem(record=True, tol=1e-6)
    whole = solve(asked)
    with keeping(Journal(Checkpoint(path, 0.0), CALL, b"")):
        part = solve(replace(asked, budget=Budget(boxes=whole.boxes // 2)))
    assert part.boxes < whole.boxes
    again = Journal(Checkpoint(path, 0.0), CALL, b"")
    with keeping(again):
        rest = solve(asked)
    assert rest.leaves is not None
    assert whole.leaves is not None
    inside = np.prod(rest.leaves.high - rest.leaves.low, axis=1).sum()
    assert inside == np.prod(whole.leaves.high - whole.leaves.low, axis=1).sum()
    assert rest.goals[0].lower <= whole.goals[0].upper
