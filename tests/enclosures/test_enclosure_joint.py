"""q - beta max(v, 0) as one enclosure, and `Square`, in ball arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.square import posterior_square, prior_square, second_square
from gpcert.numerics.arrays import to_numpy
from gpcert.testing.arb_reference import ArbPosterior, kernel_reference
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import dot, exact
from tests.enclosures.enclosure_checks import (
    arb,
    check_model,
    displacement,
    evaluation_of,
    points_of,
    quadratic,
    squared,
    unit_mean,
)
from tests.strategies import cases


def check_combination(case, beta_size, sign, v_low=lambda low: low):
    """Of `sign g - beta max(v, 0)` for betas of both signs; `v_low` lets a test lie."""
    evaluation = evaluation_of(case)
    reference = ArbPosterior(case.posterior.unit)
    points = points_of(evaluation, case.rng)
    variance = evaluation.variance(0)
    vars(variance)["range"] = (v_low(variance.range[0]), variance.range[1])
    for beta in (beta_size, -beta_size):
        falls = variance.times(np.full(len(evaluation.cells), -beta))
        model = evaluation.mean(0).side(sign) + falls

        def function(x, b, beta=beta):
            v = reference.canonical_variance(x, 0).max(arb(0))
            return sign * unit_mean(evaluation)(x, b) - arb(beta) * v

        check_model(evaluation, model, function, points, f"q - {beta} v")


@settings(max_examples=examples(50))
@given(case=cases(), size=st.sampled_from([1e-8, 0.3, 10.0, 1e5]), sign=st.sampled_from([1, -1]))
def test_combination_is_a_lower_model(case, size, sign):
    check_combination(case, size, sign)


def covariance_term(reference, kernel, x, center, s2, rho2):
    """`<Psi - e0, P (Psi - e0)> = omega^2 v(x) - 2 omega p(c, x) + v(c)`, p the covariance."""
    row_x, row_c = reference.row(x), reference.row(center)
    cross = kernel_reference(kernel, exact(x), exact(center))
    for a in reference.factors[0]:
        left = sum((u * k for u, k in zip(a, row_x, strict=True)), arb(0))
        right = sum((u * k for u, k in zip(a, row_c, strict=True)), arb(0))
        cross -= left * right
    omega = (rho2 / 2).exp()
    v_x, v_c = reference.canonical_variance(x, 0), reference.canonical_variance(center, 0)
    return omega**2 * v_x - 2 * omega * cross + v_c


def weights_term(reference, x, center, weights, rho2):
    """`<P e0 - p, Psi - e0>`, p that of float weights y: the functions k(., z_i) of Psi - e0, with
    coefficients y - S k(c)."""
    row_x, row_c = reference.row(x), reference.row(center)
    step = list(weights)
    for a in reference.factors[0]:
        along = dot(a, row_c)
        step = [s - along * u for s, u in zip(step, a, strict=True)]
    omega = (rho2 / 2).exp()
    return dot(step, [omega * u - v for u, v in zip(row_x, row_c, strict=True)])


@pytest.mark.parametrize("kind", ["prior", "posterior", "second", "pairs", "better"])
@settings(max_examples=examples(30))
@given(case=cases())
def test_square_encloses_the_quadratic_term(kind, case):
    evaluation = evaluation_of(case)
    local, expansion = evaluation.local, evaluation.expansion
    geometry = expansion.geometry
    reference = ArbPosterior(case.posterior.unit)
    step = local.kernel.squared_step(expansion)
    precision, operator = local.precisions[0], local.operator
    center = precision.center(local.kernel, expansion)
    square = prior_square(step, geometry, operator, center)
    own = posterior_square(local.kernel, expansion, precision, step, operator, center)
    f = geometry.half.shape[1]
    some = tuple(k for k in range(f * (f + 1) // 2) if case.rng.random() < 0.5)
    degrees = local.kernel.second_degree(expansion, some if kind == "pairs" else None)
    finer = second_square(degrees, geometry, precision, step, operator, center)
    if kind == "better":
        square = square.better(own, geometry)[0].better(finer, geometry)[0]
    elif kind != "prior":
        square = own if kind == "posterior" else finer
    centers = evaluation.cells.points_full(evaluation.cells.center)
    zero = np.zeros(len(case.region.free))
    for b, rows in enumerate(points_of(evaluation, case.rng)):
        for x in rows:
            d = displacement(evaluation, b, x)
            if float(squared(d)) > 200.0:
                continue
            term = covariance_term(
                reference, local.unit.kernel, x, centers[b], local.kernel.variance, squared(d)
            )
            low = 2 * quadratic(zero, square.below[b], d)
            low -= arb(float(to_numpy(square.below_error)[b]))
            high = 2 * quadratic(zero, square.above[b], d)
            high += arb(float(to_numpy(square.above_error)[b]))
            off = weights_term(
                reference, x, centers[b], exact(to_numpy(center.weights)[b]), squared(d)
            )
            for whole in (term, term + 2 * off):
                assert not whole < low
                assert not whole > high
