"""Variances of nearly noiseless models, through the public verbs, against what is certified of them
in 200 bits: the exact process of the stored kernel, points and noise. Nothing on the unsafe side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

import gpcert
from gpcert.regions import Box
from gpcert.testing.effort import THOROUGH, examples, variants
from gpcert.testing.kernel_references import flint
from tests.enclosures.noiseless_cases import (
    BETA,
    KERNELS,
    NoiselessCase,
    noiseless_cases,
    points,
)
from tests.enclosures.variance_truth import ExactVariance, assert_contains

QUANTITIES: tuple[Any, ...] = ("variance", "std", "band")


def check(ends: Any, truth: tuple[Any, Any]) -> None:
    """A proved range holds what is least and what is most of a quantity at a point."""
    assert_contains(ends[0], np.inf, truth[0])
    assert_contains(-np.inf, ends[1], truth[1])


@pytest.mark.parametrize("library", ["sklearn", "gpcert"])
@settings(max_examples=examples(60))
@given(case=noiseless_cases(), quantity=st.sampled_from(QUANTITIES), boxes=st.sampled_from([1, 30]))
def test_a_range_contains_the_exact_process(
    library: str, case: NoiselessCase, quantity: Any, boxes: int
) -> None:
    regression = case.of(library)
    found = gpcert.prediction_range(
        regression.model,
        case.box,
        tol=1e-9,
        quantity=quantity,
        beta=BETA if quantity == "band" else None,
        budget=gpcert.Budget(boxes=boxes),
        random_state=0,
    )
    ends = (found.minimum.lower, found.maximum.upper)
    for truth in regression.truths(case.samples(6)):
        check(ends, truth[quantity])
    # what is claimed of the other ends is attained where the range says so
    for side, place, end in (
        (found.minimum.upper, found.argmin, 0),
        (found.maximum.lower, found.argmax, 1),
    ):
        if place is not None:
            value = regression.truths(np.atleast_2d(place))[0][quantity][end]
            assert_contains(*((-np.inf, side) if end == 0 else (side, np.inf)), value)


@pytest.mark.parametrize("library", ["sklearn", "gpcert"])
@settings(max_examples=examples(40))
@given(case=noiseless_cases())
def test_many_boxes_contain_the_exact_process(library: str, case: NoiselessCase) -> None:
    regression = case.of(library)
    low, high = case.box.lower, case.box.upper
    ends = np.sort(case.rng.uniform(low, high, (4, 2, case.box.dim)), axis=1)
    lower = np.concatenate([ends[:, 0], case.X[:2], case.samples(0)])
    upper = np.concatenate([ends[:, 1], case.X[:2], lower[4 + len(case.X[:2]) :]])
    found = gpcert.bound_boxes(regression.model, lower, upper, quantity=QUANTITIES, beta=BETA)
    for side in (lower, upper, np.clip(case.rng.uniform(lower, upper), lower, upper)):
        for r, truth in enumerate(regression.truths(side)):
            for quantity in QUANTITIES:
                check(found[quantity][r, 0], truth[quantity])


@settings(max_examples=examples(60))
@given(case=noiseless_cases())
def test_variances_of_two_classes_contain_the_exact_process(case: NoiselessCase) -> None:
    """Laplace's approximation: an exact process whose noise at a point is `1 / W`."""
    assume(len(case.X) > 1)
    regression = case.of("laplace")
    X = case.samples(3)
    low, high = X.min(axis=0), X.max(axis=0)
    found = gpcert.bound_boxes(
        regression.model, np.vstack([X, low]), np.vstack([X, high]), quantity=("variance", "std")
    )
    for r, truth in enumerate(regression.truths(X)):
        for quantity in ("variance", "std"):
            for row in (r, -1):
                check(found[quantity][row, 0], truth[quantity])


@variants("name", sorted(KERNELS), quick=1)
def test_many_points_contain_the_exact_process(name: str) -> None:
    N, d = (400 if THOROUGH else 150), (1 if name == "periodic" else 2)
    for ratio in (1e-4, 1e-8, 1e-12):
        rng = np.random.default_rng(N)
        kernel = sk.ConstantKernel(100.0) * KERNELS[name](np.array([0.3, 0.5])[:d])
        X = points(rng, N, d, 1e-9)
        y, box = np.sin(5.0 * X[:, 0]), Box(X[0] - 1e-3, X[0] + 1e-3)
        case = NoiselessCase(name, kernel, X, y, ratio, box, False, False, rng)
        for regression in (case.gpcert(), *([case.sklearn()] if ratio == 1e-4 else [])):
            at = np.vstack([case.samples(1), rng.uniform(size=(3, d))])
            low, high = np.vstack([at, box.lower]), np.vstack([at, box.upper])
            found = gpcert.bound_boxes(regression.model, low, high, quantity=QUANTITIES)
            for r, truth in enumerate(regression.truths(at)):
                for quantity in QUANTITIES:
                    inside = r < len(at) - 3  # of the box
                    for row in (r, -1) if inside else (r,):
                        check(found[quantity][row, 0], truth[quantity])


@settings(max_examples=examples(60))
@given(case=noiseless_cases(max_points=25))
def test_the_truth_solves_its_equations(case: NoiselessCase) -> None:
    """Of the reference itself: `v = k(x, x) - k.w` with proved w, and v at most its prior."""
    regression, x = case.gpcert(), case.box.center
    truth = ExactVariance(regression.posterior.kernel, regression.posterior.points, case.noise)
    [v] = truth.variances([x])
    prior = truth.prior(x)
    cross = truth.cross(x)
    w = truth.matrix.solve(flint().arb_mat([[value] for value in cross]), algorithm="precond")
    solved = prior - sum((value * w[i, 0] for i, value in enumerate(cross)), flint().arb(0))
    assert v.overlaps(solved)
    assert not v > prior
    assert not v < 0
    unscaled = regression.posterior.predict(x[None])[1][0, 0] / regression.posterior.scale[0] ** 2
    assert abs(unscaled - float(v.mid())) <= 1e-3 * float(prior.mid())
