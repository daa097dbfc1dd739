"""Variances of nearly noiseless models, through the public verbs, against the exact process of the
stored kernel, points and noise in 200 bits. Nothing on the unsafe side, ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.testing.balls import exact, flint
from gpcert.testing.effort import examples
from tests.enclosures.noiseless_cases import BETA, NoiselessCase, Regression, noiseless_cases
from tests.enclosures.variance_truth import assert_contains

QUANTITIES: tuple[Any, ...] = ("variance", "std", "band")


@pytest.mark.parametrize("library", ["sklearn", "gpcert"])
@settings(max_examples=examples(100))
@given(case=noiseless_cases(), quantity=st.sampled_from(QUANTITIES), boxes=st.sampled_from([1, 30]))
def test_a_range_contains_the_exact_process(
    library: str, case: NoiselessCase, quantity: Any, boxes: int
) -> None:
    regression: Regression = getattr(case, library)()
    found = gpcert.prediction_range(
        regression.model,
        case.box,
        tol=1e-9,
        quantity=quantity,
        beta=BETA if quantity == "band" else None,
        budget=gpcert.Budget(boxes=boxes),
        random_state=0,
    )
    for truth in regression.truths(case.samples(6)):
        low, high = truth[quantity]
        assert_contains(found.minimum.lower, np.inf, low)
        assert_contains(-np.inf, found.maximum.upper, high)
    # what is claimed of the other ends is attained where the range says so
    for side, place, end in (
        (found.minimum.upper, found.argmin, 0),
        (found.maximum.lower, found.argmax, 1),
    ):
        if place is not None:
            value = regression.truths(np.atleast_2d(place))[0][quantity][end]
            assert_contains(*((-np.inf, side) if end == 0 else (side, np.inf)), value)


@pytest.mark.parametrize("library", ["sklearn", "gpcert"])
@settings(max_examples=examples(60))
@given(case=noiseless_cases())
def test_many_boxes_contain_the_exact_process(library: str, case: NoiselessCase) -> None:
    regression: Regression = getattr(case, library)()
    low, high = case.box.lower, case.box.upper
    ends = np.sort(case.rng.uniform(low, high, (4, 2, case.box.dim)), axis=1)
    lower = np.concatenate([ends[:, 0], case.X[:2], case.samples(0)])
    upper = np.concatenate([ends[:, 1], case.X[:2], lower[4 + len(case.X[:2]) :]])
    found = gpcert.bound_boxes(regression.model, lower, upper, quantity=QUANTITIES, beta=BETA)
    for side in (lower, upper, np.clip(case.rng.uniform(lower, upper), lower, upper)):
        for r, truth in enumerate(regression.truths(side)):
            for quantity in QUANTITIES:
                at_least, at_most = found[quantity][r, 0]
                low_end, high_end = truth[quantity]
                assert_contains(at_least, np.inf, low_end)
                assert_contains(-np.inf, at_most, high_end)


@settings(max_examples=examples(60))
@given(case=noiseless_cases(max_points=25))
def test_the_truth_solves_its_equations(case: NoiselessCase) -> None:
    """Of the reference itself: `v = k(x, x) - k.w` with proved w, and v at most its prior."""
    regression = case.gpcert()
    x, truth = case.box.center, regression.exact
    [v] = truth.variances([x])
    prior = truth.prior(x)
    cross = truth.cross(x)
    w = truth.matrix.solve(flint().arb_mat([[value] for value in cross]), algorithm="precond")
    solved = prior - sum((value * w[i, 0] for i, value in enumerate(cross)), flint().arb(0))
    assert v.overlaps(solved)
    assert not v > prior
    assert not v < 0
    predicted = float(regression.posterior.predict(x[None])[1][0, 0])
    scale = float(regression.posterior.scale[0] ** 2 * prior.mid())
    exactly = float((exact([regression.posterior.scale[0]])[0] ** 2 * v).mid())
    assert abs(predicted - exactly) <= 1e-3 * scale
