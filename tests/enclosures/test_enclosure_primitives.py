"""The small certified functions below the models: tails, chords, precision products."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
import gpcert.enclosures.precision as precision_module
from gpcert import Budget, Posterior
from gpcert.enclosures import Evaluation, local_model
from gpcert.enclosures.lower_model import weight_fall
from gpcert.enclosures.precision import LocalPrecision
from gpcert.enclosures.square import second_covariance
from gpcert.kernels import Linear, Matern, SquaredExponential
from gpcert.kernels.expansions.base import Combination
from gpcert.kernels.expansions.exponentials import LARGEST_EXPONENT, exponential_tail, growth_chord
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.regions import Box, Cells
from gpcert.regions.scaled import Stretch
from gpcert.testing.arb_reference import ArbPosterior, regression_posterior
from gpcert.testing.effort import backend_or_skip, examples
from gpcert.testing.kernel_references import exact, flint
from tests.enclosures.enclosure_checks import (
    arb,
    check_deviation,
    displacement,
    evaluation_of,
    points_of,
    squared,
)
from tests.strategies import cases

squares = st.one_of(
    st.floats(0.0, 4.0),
    st.floats(0.0, LARGEST_EXPONENT),
    st.sampled_from([0.0, 1e-300, 1e-30, 1e-12, 1e-8, 1.0, math.nextafter(1.0, 2.0), 190.0]),
)


@pytest.mark.parametrize("order", range(7))
@settings(max_examples=examples(60))
@given(x=squares)
def test_exponential_tail(order, x):
    """At least the real tail; and close, so that it is not merely large."""
    bound = float(exponential_tail(np.asarray(x), order))
    with flint().ctx.workprec(2000):  # the sum cancels for small x
        polynomial = sum((arb(x) ** k / math.factorial(k) for k in range(order + 1)), arb(0))
        real = arb(x).exp() - polynomial
        assert not arb(bound) < real
    assert bound <= float(real) * (1 + 1e-2) + 1e-12 * math.exp(x) + 1e-290


@pytest.mark.parametrize("rate", [0.5, 1.0])
@settings(max_examples=examples(60))
@given(rho2=squares, part=st.floats(0.0, 1.0))
def test_chords(rate, rho2, part):
    """`fall r <= 1 - exp(-rate r)` and `exp(rate r) - 1 <= chord r` for r up to rho2."""
    chord = arb(float(growth_chord(rate, np.asarray([rho2]))[0]))
    fall = arb(float(weight_fall(rate, np.asarray([rho2]))[0]))
    for r in (rho2, part * rho2):
        grown = (arb(rate) * arb(r)).expm1()
        shrunk = -(-arb(rate) * arb(r)).expm1()
        assert not grown > chord * arb(r)
        assert not shrunk < fall * arb(r)


def exact_precision(reference, row):
    """`y = A^T A k` as balls."""
    A = reference.factors[0]
    q = [sum((a * k for a, k in zip(line, row, strict=True)), arb(0)) for line in A]
    return [
        sum((A[r][i] * q[r] for r in range(len(q))), arb(0)) for i in range(len(reference.points))
    ]


@settings(max_examples=examples(200))
@given(x=squares, variance=st.sampled_from([1e-4, 1.0, 300.0]))
def test_remainders_of_order_zero_and_one(x, variance):
    """`R0^2 = 2 s^2 (1 - e)`, `R1^2 = s^2 (2 + x - 2 e (1 + x))`, e = exp(-x/2), in 200 bits."""
    points, region = np.zeros((1, 1)), Box([-1.0], [1.0])
    local = SquaredExponential(1.0, variance).localize(points, region, Backend())
    real, s2 = arb(x), arb(variance)
    e = (-real / 2).exp()
    zeroth = arb(float(local.zeroth_remainder(np.asarray(x))))
    first = arb(float(local.first_remainder(np.asarray(x))))
    assert not zeroth**2 < 2 * s2 * (1 - e)
    assert not first**2 < s2 * (2 + real - 2 * e * (1 + real))
    if x > 1e-3:  # and they are not loose: below, b2/2 stands for R1, which is third order close
        assert first**2 < s2 * (2 + real - 2 * e * (1 + real)) * arb("1.01")


@pytest.mark.parametrize("form", ["factor", "precision"])
@settings(max_examples=examples(40))
@given(case=cases())
def test_precision_products(form, case):
    """`S k` and `k.S k` lie within their stated errors, for both ways to form them."""
    evaluation = evaluation_of(case)
    local, expansion = evaluation.local, evaluation.expansion
    A = case.posterior.unit.factor[0]
    host = Backend()
    precision = LocalPrecision(
        host.asarray(A),
        host.asarray(A.T @ A) if form == "precision" else None,
        local.precisions[0].size,
        local.precisions[0].root_trace,
        local.precisions[0].image,
    )
    found = precision.center(local.kernel, expansion)
    assert not np.any(found.missed)
    reference = ArbPosterior(case.posterior.unit)
    for b, x in enumerate(evaluation.cells.points_full(evaluation.cells.center)):
        row = reference.row(x)
        real = exact_precision(reference, row)
        check_deviation(reference, found.weights[b], real, found.deviation[b])
        product = sum((k * r for k, r in zip(row, real, strict=True)), arb(0))
        assert not abs(product - arb(float(found.explained[b]))) > arb(float(found.error[b]))


@pytest.mark.parametrize(("pieces", "name"), [(1, "numpy"), (2**18, "numpy"), (1, "torch")])
def test_triangular_factors_save_work_alone(pieces, name, monkeypatch):
    backend = backend_or_skip(name)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20, 2))
    kernel = SquaredExponential([0.5, 0.7])
    factor = np.linalg.inv(np.linalg.cholesky(kernel.value(X, X) + 0.1 * np.eye(20)))
    posterior = Posterior(kernel, X, rng.normal(size=20), np.tril(factor))
    region = Box([-1.0, -1.0], [1.0, 1.0])
    local = local_model(posterior, region, backend, True)
    low = rng.uniform(-1, 0.9, (7, 2))
    cells = Cells(region, backend.asarray(low), backend.asarray(low + 0.1))
    expansion = local.expand(cells)
    assert local.precisions is not None
    triangular = local.precisions[0]
    assert triangular.triangular
    monkeypatch.setattr(precision_module, "STRIP", 3)
    monkeypatch.setattr(precision_module, "NEAR_NUMBERS", pieces)
    center = triangular.center(local.kernel, expansion)
    found, plain = (
        each.derivative_covariance(local.kernel, expansion, center).form
        for each in (triangular, replace(triangular, triangular=False))
    )
    gap = np.linalg.norm(to_numpy(found.matrix - plain.matrix), axis=(1, 2))
    assert np.all(gap <= to_numpy(found.error + plain.error))
    assert np.all(to_numpy(found.error) < 1e-9)


@pytest.mark.parametrize(
    "kernel", [Linear([1.0, 2.0]), Matern([0.5, 0.7], nu=2.5), SquaredExponential([0.5, 0.7])]
)
def test_what_the_kernel_knows_of_a_batch_stays(kernel):
    """A covariance is formed from its derivatives, which later bounds and values read again."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20, 2))
    factor = np.linalg.inv(np.linalg.cholesky(kernel.value(X, X) + 0.1 * np.eye(20)))
    posterior = Posterior(kernel, X, rng.normal(size=20), np.tril(factor))
    region = Box([-1.0, -1.0], [1.0, 1.0])
    local = local_model(posterior, region, Backend(), True)
    expansion = local.expand(region.root())
    assert local.precisions is not None
    assert local.precisions[0].triangular
    before = local.kernel.derivatives(expansion).copy()
    center = local.precisions[0].center(local.kernel, expansion)
    for _ in range(2):
        local.precisions[0].derivative_covariance(local.kernel, expansion, center)
    assert np.array_equal(local.kernel.derivatives(expansion), before)
    found = gpcert.prediction_range(posterior, region, quantity="variance", budget=Budget(boxes=1))
    for point, value in ((found.argmin, found.minimum.upper), (found.argmax, found.maximum.lower)):
        assert np.allclose(posterior.predict(point[None])[1], value, rtol=1e-6)


@settings(max_examples=examples(40))
@given(case=cases())
def test_rounding_of_inexact_weights(case):
    """By Cauchy-Schwarz it is no less than term by term, up to a rounding of its own."""
    evaluation = evaluation_of(case)
    kernel, expansion = evaluation.local.kernel, evaluation.expansion
    weights = case.rng.normal(size=expansion.K.shape) * 10.0 ** case.rng.integers(-3, 4)
    none = np.zeros(len(expansion.K))
    exact_weights = Combination(weights, 1.0)
    for with_center in (False, True):
        exact = replace(exact_weights, with_center=with_center)
        a, plain, third = kernel._coefficients(expansion, exact)
        inexact = replace(exact, slack=none)
        same, found, cubic = kernel._coefficients(expansion, inexact)
        assert np.array_equal(a, same)
        assert np.all(found >= plain * (1.0 - 1e-9))
        assert np.all(cubic >= third * (1.0 - 1e-9))


def test_the_same_cells_again():
    points = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    model = regression_posterior(SquaredExponential(0.5), points, points[:, 0], 0.1)
    region = Box([-1.0, -1.0], [1.0, 1.0])
    first = Evaluation(local_model(model, region, Backend(), True), region.root(), False)
    known = first.expansion
    second = first.again(True)
    assert second.optional
    assert second.expansion is known
    fresh = Evaluation(local_model(model, region, Backend(), True), region.root(), True)
    assert np.array_equal(second.variance(0).range, fresh.variance(0).range)


@settings(max_examples=examples(40))
@given(case=cases())
def test_derivative_covariance(case):
    """`|d^T (fl(G) - G) d| <= e |d|^2` for the axes and a random direction."""
    evaluation = evaluation_of(case)
    local, expansion = evaluation.local, evaluation.expansion
    precision = local.precisions[0]
    center = precision.center(local.kernel, expansion)
    form, missed, crossed = precision.derivative_covariance(local.kernel, expansion, center)
    G, error = form.matrix, form.error
    assert not np.any(missed)
    assert crossed is None
    reference = ArbPosterior(case.posterior.unit)
    region = case.region
    free = region.free
    lengths = exact(np.broadcast_to(case.posterior.kernel.length_scale, (region.dim,))[free])
    for b, x in enumerate(evaluation.cells.points_full(evaluation.cells.center)):
        row, center = reference.row(x), exact(x[free])
        directions = [*np.eye(len(free)), case.rng.normal(size=len(free))]
        for direction in directions:
            d = exact(direction)
            real = arb(local.kernel.variance) * sum((a * a for a in d), arb(0))
            slopes = []
            for i, z in enumerate(reference.points):
                along = sum(
                    (
                        a * (z[j] - c) / w
                        for a, j, c, w in zip(d, free, center, lengths, strict=True)
                    ),
                    arb(0),
                )
                slopes.append(row[i] * along)
            for line in reference.factors[0]:
                real -= sum((a * s for a, s in zip(line, slopes, strict=True)), arb(0)) ** 2
            stored = sum(
                (
                    d[j] * arb(float(G[b, j, k])) * d[k]
                    for j in range(len(free))
                    for k in range(len(free))
                ),
                arb(0),
            )
            size = sum((a * a for a in d), arb(0))
            assert not abs(stored - real) > arb(float(error[b])) * size


@settings(max_examples=examples(40))
@given(case=cases())
def test_geometry_covers_the_cells(case):
    """`|d_j| <= half_j` and `|d|^2 <= rho2` at points of every cell."""
    evaluation = evaluation_of(case, variance=False)
    geometry = evaluation.expansion.geometry
    stretch = Stretch.of(geometry)
    assert np.all(np.frexp(stretch.factors)[0] == 0.5)
    for b, rows in enumerate(points_of(evaluation, case.rng)):
        for x in rows:
            d = displacement(evaluation, b, x)
            e = [a / t for a, t in zip(d, stretch.factors[b].tolist(), strict=True)]
            assert not squared(e) > arb(float(stretch.rho2[b]))
            assert not squared(e) > arb(float(stretch.rho[b])) ** 2
            assert not squared(d) > arb(float(geometry.rho2[b]))
            assert not squared(d) > arb(float(geometry.rho[b])) ** 2
            for j, a in enumerate(d):
                assert not abs(a) > arb(float(geometry.half[b, j]))


@settings(max_examples=examples(40))
@given(case=cases())
def test_second_covariance(case):
    """Forms of degree 2, 3 and 4 against `A k (u.d)^n` in ball arithmetic, for random d."""
    evaluation = evaluation_of(case, keep=2)
    local, expansion = evaluation.local, evaluation.expansion
    precision, degrees = local.precisions[0], local.kernel.second_degree(expansion)
    center = precision.center(local.kernel, expansion)
    *found, forms = second_covariance(precision, degrees, expansion.scaled.shape[1], center)
    assert not any(np.any(missed) for missed in forms.missed.values())
    assert forms.crossed is None
    reference, region = ArbPosterior(case.posterior.unit), case.region
    free, f = region.free, len(region.free)
    lengths = exact(np.broadcast_to(case.posterior.kernel.length_scale, (region.dim,))[free])
    s2 = arb(local.kernel.variance)
    for b, x in enumerate(evaluation.cells.points_full(evaluation.cells.center)):
        row, center = reference.row(x), exact(x[free])
        step = case.rng.normal(size=f)
        d = exact(step)
        size2 = sum((a * a for a in d), arb(0))
        along = [
            sum(
                (a * (z[j] - c) / w for a, j, c, w in zip(d, free, center, lengths, strict=True)),
                arb(0),
            )
            for z in reference.points
        ]
        first = second = mixed = arb(0)
        for a in reference.factors[0]:
            q = sum((u * k * t for u, k, t in zip(a, row, along, strict=True)), arb(0))
            e = sum((u * k * t * t / 2 for u, k, t in zip(a, row, along, strict=True)), arb(0))
            first, mixed, second = first + q * q, mixed + 2 * q * e, second + e * e
        size = size2.sqrt()
        real = [s2 * size2 - first, -mixed, s2 * size2**2 / 2 - second]
        for value, (form, error), degree in zip(real, found, (2, 3, 4), strict=True):
            total = arb(0)
            for index in np.ndindex(*(f,) * degree):
                term = arb(float(form[(b, *index)]))
                for j in index:
                    term *= d[j]
                total += term
            assert not abs(value - total) > arb(float(error[b])) * size**degree
