"""Quadratic forms of kernel values over cells, against ball arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.leading import form_enclosures, form_norm
from gpcert.kernels import SquaredExponential
from gpcert.kernels.expansions.squared_exponential_forms import higher_degrees
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact
from tests.enclosures.enclosure_checks import (
    arb,
    below,
    displacement,
    evaluation_of,
    points_of,
    quadratic,
    squared,
)
from tests.strategies import Case, cases


def form(row, W):
    """`k W k` for a row of kernel values, as a ball."""
    W = [exact(line) for line in W]
    terms = (
        a * b * w for a, line in zip(row, W, strict=True) for b, w in zip(row, line, strict=True)
    )
    return sum(terms, arb(0))


def check_form(case, W):
    evaluation = evaluation_of(case, variance=False)
    kernel, expansion = evaluation.local.kernel, evaluation.expansion
    unit = case.posterior.unit
    norm = form_norm(unit, W)
    sides = form_enclosures(kernel, expansion, W, norm)
    minima = [to_numpy(side.minimum().lower) for side in sides]
    reference = ArbPosterior(unit)
    for b, points in enumerate(points_of(evaluation, case.rng)):
        for x in points:
            d = displacement(evaluation, b, x)
            true = form(reference.row(x), W)
            for sign, side, least in zip((1, -1), sides, minima, strict=True):
                assert side.rate == 1.0
                value, gradient, hessian, error = (
                    to_numpy(a)[b] for a in (side.value, side.gradient, side.matrix, side.error)
                )
                weighted = squared(d).exp() * true * sign
                if np.isfinite(error):
                    model = arb(float(value)) + quadratic(gradient, hessian, d)
                    below(model - arb(float(error)), weighted, "form")
                below(least[b], true * sign, "minimum")


@settings(max_examples=examples(40))
@given(case=cases())
def test_forms_stay_sound(case):
    if len(case.region.free) == 0:
        return
    N = len(case.posterior.points)
    W = case.rng.normal(size=(N, N)) * 10.0 ** case.rng.uniform(-3.0, 3.0)
    check_form(case, W + W.T)


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 2**31), width=st.sampled_from([0.05, 0.4, 1.0]))
def test_few_points_of_many_features(seed, width):
    """Degrees of 3 and more matter here, and features in which the points hardly differ."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(3, 14)) * np.where(np.arange(14) < 5, 1.0, 0.01)
    posterior = Posterior(SquaredExponential(1.5), points, rng.normal(size=3))
    half = width * rng.uniform(0.0, 1.0, 14)
    W = rng.normal(size=(3, 3))
    check_form(Case(posterior, Box(points[0] - half, points[0] + half), rng), W + W.T)


def test_degrees_beyond_six():
    """One point far from a large cell: they take a third of what degrees 3 to 6 do."""
    posterior = Posterior(SquaredExponential(1.0), [[2.5]], [1.0])
    case = Case(posterior, Box([-1.0], [1.0]), np.random.default_rng(0))
    evaluation = evaluation_of(case, variance=False, cells=case.region.root())
    _, side = form_enclosures(
        evaluation.local.kernel,
        evaluation.expansion,
        np.eye(1),
        form_norm(posterior.unit, np.eye(1)),
    )
    d = arb(1)
    weighted = -(d.exp()) * form(ArbPosterior(posterior.unit).row([1.0]), np.eye(1))
    model = arb(float(side.value[0])) + quadratic(side.gradient[0], side.matrix[0], [d])
    below(model - arb(float(side.error[0])), weighted, "form")


@pytest.mark.parametrize("degree", [3, 4, 5, 6])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_bounds_of_a_degree(degree, count):
    """No value on the unit ball may lie above them; of one point they are attained."""
    rng = np.random.default_rng(degree)
    points = np.eye(8)[:count]
    B = np.diag(rng.uniform(0.5, 1.0, count))
    lengths = np.sqrt(np.sum(points**2, axis=1))
    bound = higher_degrees(B, points, lengths, np.asarray(1e-14))[degree - 3]
    for d in [*np.eye(8), *rng.normal(size=(20, 8))]:
        y = [sum((a * b for a, b in zip(exact(u), exact(d), strict=True)), arb(0)) for u in points]
        length = squared(exact(d)).sqrt()
        # sum_ij B_ij (y_i + y_j)^n / n!, which is the part of degree n
        value = sum(
            (
                arb(float(b)) * (2 * t / length) ** degree
                for b, t in zip(np.diag(B), y, strict=True)
            ),
            arb(0),
        ) / math.factorial(degree)
        assert not arb(float(bound)) < value


@settings(max_examples=examples(30))
@given(case=cases())
def test_norm_is_not_less_than_the_trace(case):
    unit = case.posterior.unit
    N = len(unit.points)
    W = case.rng.normal(size=(N, N))
    W = W + W.T
    K = [ArbPosterior(unit).row(z) for z in case.posterior.points]
    rows = [exact(line) for line in W]
    X = [[sum((w * K[j][k] for j, w in enumerate(row)), arb(0)) for k in range(N)] for row in rows]
    trace = sum((X[i][j] * X[j][i] for i in range(N) for j in range(N)), arb(0))
    assert not arb(form_norm(unit, W)) ** 2 < trace


@pytest.mark.parametrize("width", [0.02, 0.01])
def test_the_rest_is_of_third_order(width):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6, 3))
    posterior = Posterior(SquaredExponential(1.0), points, np.ones(6))
    errors = []
    for half in (2.0 * width, width):
        case = Case(posterior, Box(points[0] - half, points[0] + half), rng)
        evaluation = evaluation_of(case, variance=False, cells=case.region.root())
        W = np.diag(np.arange(6.0) - 2.5)
        norm = form_norm(posterior.unit, W)
        side, _ = form_enclosures(evaluation.local.kernel, evaluation.expansion, W, norm)
        errors.append(float(side.error[0]))
    assert errors[1] < errors[0] / 7.0
