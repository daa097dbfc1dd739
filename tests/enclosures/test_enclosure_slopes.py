"""Slopes of means through every enclosure, and sums and norms of several means, against ball
arithmetic."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals import QuantityGoal
from gpcert.enclosures.local_posterior import local_model
from gpcert.errors import InputError
from gpcert.kernels.slope import smooth
from gpcert.model.slopes import slope_model, slope_of
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Deviation, Mean, WeightedMeans
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples, variants
from gpcert.testing.kernel_references import flint, total
from tests.enclosures.enclosure_checks import (
    check_goal,
    check_mean,
    evaluation_of,
    refused_growth,
)
from tests.kernels.slope_references import known_slopes
from tests.strategies import any_kernels, cases, kernels, random_cells

arb = flint().arb

slow = settings(
    max_examples=examples(60, quick=8),
    deadline=None,
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def smooth_kernels(dim):
    return any_kernels(dim).filter(smooth)


any_case = cases(max_points=5, max_dim=3, make_kernels=smooth_kernels)
seeds = st.integers(0, 2**32 - 1)


def direction_of(case, seed):
    """A feature, or any direction."""
    rng, d = np.random.default_rng(seed), case.posterior.dim
    if rng.random() < 0.5:
        return np.eye(d)[rng.integers(d)]
    return rng.normal(size=d) * 10.0 ** rng.uniform(-3, 3)


@contextmanager
def refused_trends():
    """Trends whose slope is no float are refused, and so are directions of extreme sizes."""
    try:
        yield
    except InputError as error:
        if not str(error).startswith(("slope:", "direction:")):
            raise
        reject()


def sloped(case, seed):
    """The case with a slope in its posterior's place."""
    with refused_trends():
        return replace(case, posterior=slope_of(case.posterior, direction_of(case, seed)))


@variants("backend", ["numpy", "torch"])
@slow
@given(case=any_case, optional=st.booleans(), seed=seeds)
def test_slope(backend, case, optional, seed):
    if backend == "torch":
        pytest.importorskip("torch")
    case = sloped(case, seed)
    with known_slopes(), refused_growth():
        options = {"variance": False, "optional": optional, "keep": 3, "backend": backend}
        check_mean(case, evaluation=evaluation_of(case, **options))


@slow
@given(case=cases(max_points=6, make_kernels=kernels), seed=seeds, sign=st.sampled_from([1, -1]))
def test_slope_goal(case, seed, sign):
    """Squared exponentials of all sizes."""
    case = sloped(case, seed)
    with known_slopes():
        reference = ArbPosterior(case.posterior)
        evaluation = evaluation_of(case, variance=False)
        goal = QuantityGoal(Mean(0, sign))
        check_goal(case, goal, lambda x: sign * reference.mean(x, 0), evaluation)


def gradient_case(case):
    """The evaluation of all partial derivatives, and their references."""
    d = case.posterior.dim
    model = slope_model(case.posterior, list(np.eye(d)), 0)
    local = local_model(model, case.region, Backend(), False)
    cells = random_cells(case.region, case.rng, 6, 4, "numpy")
    return Evaluation(local, cells), [ArbPosterior(member) for member in model.members]


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
@slow
@given(case=any_case)
def test_gradient_norm(norm, case):
    with known_slopes(), refused_growth():
        with refused_trends():
            evaluation, references = gradient_case(case)
        zeros = (0.0,) * len(references)

        def minus_norm(x):
            sizes = [abs(reference.mean(x, 0)) for reference in references]
            if norm == 2.0:
                return -total(s * s for s in sizes).sqrt()
            return -total(sizes) if norm == 1.0 else -max(sizes, key=float)

        check_goal(case, QuantityGoal(Deviation(zeros, zeros, norm)), minus_norm, evaluation)


@slow
@given(case=any_case, seed=seeds)
def test_weighted_means(case, seed):
    with known_slopes(), refused_growth():
        with refused_trends():
            evaluation, references = gradient_case(case)
        weights = np.random.default_rng(seed).choice([1.0, -1.0, 0.0, 0.3, -7.0], len(references))
        quantity = WeightedMeans(tuple(weights.tolist()))

        def value(x):
            each = zip(weights.tolist(), references, strict=True)
            return total(arb(w) * reference.mean(x, 0) for w, reference in each)

        check_goal(case, QuantityGoal(quantity), value, evaluation)


@slow
@given(case=cases(max_points=4, max_dim=2, make_kernels=kernels), seed=seeds)
def test_deviations_of_several_outputs(case, seed):
    """References that are not 0, known up to an error."""
    rng, posterior = np.random.default_rng(seed), case.posterior
    if posterior.outputs == 1:
        t = np.concatenate([posterior.weights, rng.normal(size=posterior.weights.shape)])
        posterior = replace(posterior, weights=t, offset=0.0, scale=1.0, slope=None, noise=0.0)
    around = tuple(rng.normal(size=posterior.outputs).tolist())
    errors = tuple((1e-3 * rng.random(posterior.outputs)).tolist())
    evaluation = evaluation_of(replace(case, posterior=posterior), variance=False)
    reference = ArbPosterior(posterior)
    for norm in (1.0, 2.0):
        goal = QuantityGoal(Deviation(around, errors, norm))
        shifts = [
            arb(a) + arb(e) * int(rng.choice([-1, 1])) for a, e in zip(around, errors, strict=True)
        ]

        def value(x, shifts=shifts, norm=norm):
            sizes = [abs(reference.mean(x, c) - at) for c, at in enumerate(shifts)]
            return -total(sizes) if norm == 1.0 else -total(s * s for s in sizes).sqrt()

        check_goal(replace(case, posterior=posterior), goal, value, evaluation)
