"""Classes whose latent values are sums of outputs with real coefficients, and outputs with kernels
of their own: layouts against exact fractions, bounds against the truth at points of the cells."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.latent import mean_first_order, variance_first_order
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Softmax, likelihood_from_config
from gpcert.model.class_layout import ClassLayout, class_layout
from gpcert.model.multi_output import SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Box
from gpcert.testing.effort import THOROUGH, crossed, examples, variants
from gpcert.testing.node_case import cell_points
from tests.enclosures.classes.class_cases import (
    evaluation_of,
    mixed_cases,
    random_evaluation,
    random_weights,
    sums_of,
    true_sums,
)
from tests.enclosures.classes.test_class_bounds import check_bounds


def exact_rows(layout):
    return [[Fraction(w) for w in row] for row in layout.mixing.tolist()]


@settings(max_examples=examples(100))
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 6), J=st.integers(1, 6))
def test_coefficients_of_sums_and_covariances(seed, m, J):
    """Differences are exact, products within their stated rounding."""
    rng = np.random.default_rng(seed)
    layout = ClassLayout(m, Softmax(random_weights(rng, m, J)).mixed(J))
    rows = exact_rows(layout)
    for k, other in permutations(range(m), 2):
        own = dict(layout.pair(k, other))
        assert [Fraction(own.get(j, 0.0)) for j in range(J)] == [
            b - a for a, b in zip(rows[k], rows[other], strict=True)
        ]
        assert set(own) == {j for j in range(J) if rows[k][j] != rows[other][j]} or own == {0: 0.0}
    for c, k in permutations(range(m), 2):
        for other in set(range(m)) - {c}:
            own = dict(layout.covariance(c, k, other))
            for j in range(J):
                true = (rows[k][j] - rows[c][j]) * (rows[other][j] - rows[c][j])
                assert abs(Fraction(own.get(j, 0.0)) - true) <= Fraction(layout.rounding) * abs(
                    true
                )
    assert layout.matrices.shape == (J, m - 1, m - 1)
    assert np.all(layout.ranks >= [np.linalg.matrix_rank(M) for M in layout.matrices])


def test_only_the_identity_is_independent():
    assert ClassLayout(3, np.eye(3)).independent
    assert ClassLayout(3, np.eye(3)).rounding == 0.0
    for other in (None, 2.0 * np.eye(3), np.eye(3)[::-1]):
        assert not ClassLayout(3, other).independent


def test_mixing_weights_are_checked_and_stored_on_a_grid():
    tiny = Softmax([[1.0, 1e-30], [0.3, -2.0]])
    assert tiny.mixed(2)[0, 1] == 0.0
    assert likelihood_from_config("softmax", tiny.config()) == tiny
    assert Softmax().config() == {}
    for wrong in ([1.0, 2.0], [[1.0, 2.0]], [[0.0], [0.0]], [[1e40], [0.0]], [[math.nan], [1.0]]):
        with pytest.raises(InputError, match="mixing"):
            Softmax(wrong)
    with pytest.raises(InputError, match="expected 3 weights per class, one per output, got 2"):
        tiny.mixed(3)


@settings(max_examples=examples(120, quick=4))
@given(case=mixed_cases())
def test_bounds_hold(case):
    check_bounds(case)


@settings(max_examples=examples(30, quick=4))
@given(case=mixed_cases())
def test_bounds_without_the_optional_ones_hold(case):
    check_bounds(case, optional=False)


@settings(max_examples=examples(40, quick=8))
@given(case=mixed_cases())
def test_first_orders_hold_in_coordinates_that_all_share(case):
    own = random_evaluation(case, keep=2)
    cells, latent, J = own.evaluation.cells, own.latent, own.layout.outputs
    models = (mean_first_order(latent, J), variance_first_order(latent, J), own.place.change.means)
    mixing = case.posterior.likelihood.mixed(J)
    scale = to_numpy(latent.geometry.inverse_length)
    for b in range(len(cells)):
        points = cell_points(cells, b, case.rng)
        if not len(points):
            continue
        free = points[:, cells.region.free]
        d = (free - to_numpy(cells.center)[b]) * scale
        mean, variance = case.posterior.predict(points)
        differences = mean @ (mixing[1:] - mixing[:1]).T
        for model, truth in zip(models, (mean, variance, differences), strict=True):
            line = to_numpy(model.reference)[b] + d @ to_numpy(model.slope)[b].T
            room = to_numpy(model.bend)[b] + 1e-9 * (1.0 + np.abs(truth).max())
            assert np.all(np.abs(truth - line) <= room)


def test_large_coefficients_enlarge_what_the_outputs_bend():
    weights = [[0.0, 0.0], [100.0, 0.0], [0.0, -100.0]]
    model = Posterior(SquaredExponential(1.0), [[0.0]], [[1.0], [0.5]], likelihood=Softmax(weights))
    own = evaluation_of(model, Box([-0.4], [0.4]))
    means, x = own.place.change.means, np.linspace(-0.4, 0.4, 41)
    truth = model.mean(x[:, None]) @ np.array([[100.0, 0.0], [0.0, -100.0]])
    d = x * float(own.latent.geometry.inverse_length[0])
    line = to_numpy(means.reference)[0] + d[:, None] * to_numpy(means.slope)[0, :, 0]
    assert np.all(np.abs(truth - line).max(0) <= to_numpy(means.bend)[0])


def test_differences_of_opposite_signs_are_not_associated():
    """f = (0, u, -u): class 0 seldom wins, though it beats each of the others half of the time."""
    kernel = SquaredExponential(1.0, 100.0)
    model = Posterior(kernel, [[50.0]], [0.0], likelihood=Softmax([[0.0], [1.0], [-1.0]]))
    own = evaluation_of(model, Box([-0.1], [0.1]))
    pi = float(model.prediction(np.zeros((1, 1)))[0, 0])
    assert pi < 0.15
    low, high = own.pairs.range(0)
    assert float(low[0]) <= pi <= float(high[0])
    assert float(own.pairs.covariance(0, 1, 2)[1][0]) < 0.0


def mixed_pair(weights, radius=0.02):
    """Two latent functions with an exact normal law, mixed; the region's bounds."""
    kernel = SquaredExponential(1.0, 2.0)
    factor = np.array([[[0.5]], [[0.1]]])
    model = Posterior(
        kernel, [[0.0]], [[0.7], [-0.4]], factor, offset=[0.2, -0.1], likelihood=Softmax(weights)
    )
    return model, evaluation_of(model, Box([0.4 - radius], [0.4 + radius]))


@crossed({"m": [3, 4], "seed": range(4)}, quick=2)
def test_against_quadrature_written_from_the_definition(m, seed):
    """E softmax(W u) by a product rule over u, not by differences of classes."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(m, 2)) * 2.0
    model, own = mixed_pair(W)
    nodes = np.linspace(-9.0, 9.0, 401)  # the trapezoidal rule converges geometrically
    w = np.exp(-0.5 * nodes**2)
    w = w / w.sum()
    X = np.linspace(0.38, 0.42, 5)[:, None]
    mean, variance = model.predict(X)
    u = mean[:, None, None, :] + np.sqrt(variance)[:, None, None, :] * np.stack(
        np.meshgrid(nodes, nodes, indexing="ij"), axis=-1
    )
    logits = u @ W.T
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    truth = np.einsum("i,j,xijc->xc", w, w, p)
    np.testing.assert_allclose(model.prediction(X), truth, atol=1e-8)
    for weights in sums_of(m, rng):
        value = truth @ np.asarray(weights)
        lower = float(own.lower(weights, None).lower[0])
        assert lower <= value.min() + 1e-9
        assert lower >= value.min() - 0.1  # and says something


def test_the_products_rounding_is_counted():
    """Weights whose products round, a variance of 1e12: what they lose is more than all else."""
    third = 1.0 / 3.0
    layout = ClassLayout(3, Softmax([[0.0], [third], [0.1]]).mixed(1))
    y = Fraction(10) ** 12
    rows = exact_rows(layout)
    true = y * rows[1][0] * rows[2][0]
    stored = y * Fraction(layout.matrices[0, 0, 1])
    assert true != stored
    model = Posterior(
        SquaredExponential(1.0, 1e12), [[50.0]], [0.0], likelihood=Softmax(layout.mixing)
    )
    own = evaluation_of(model, Box([0.0], [0.0]))
    assert float(own.place.change.offset_error[0]) >= float(abs(true - stored))
    low, high = own.pairs.covariance(0, 1, 2)
    assert Fraction(float(low[0])) <= true <= Fraction(float(high[0]))


def test_many_mixed_classes_hold_the_truth():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(7, 3))
    kernel = SquaredExponential([0.8, 1.1])
    model = Posterior(
        kernel, rng.normal(size=(5, 2)), rng.normal(size=(3, 5)), likelihood=Softmax(W)
    )
    own = evaluation_of(model, Box([0.0, 0.0], [0.1, 0.1]))
    X = rng.uniform(0.0, 0.1, (200, 2))
    p = model.prediction(X)
    for c in range(7) if THOROUGH else (0, 3, 6):
        unit = tuple(float(c == k) for k in range(7))
        low = float(own.lower(unit, None).lower[0])
        high = -float(own.lower(tuple(-x for x in unit), None).lower[0])
        assert low <= p[:, c].min() + 1e-6
        assert high >= p[:, c].max() - 1e-6
        assert high < 1.0


def alike(likelihood=None):
    """The same classifier as one posterior and as separate outputs."""
    rng = np.random.default_rng(3)
    kernel, Z = Matern([0.7, 1.2], 2.5), rng.normal(size=(6, 2))
    A = np.linalg.inv(np.linalg.cholesky(kernel.value(Z, Z) + 0.1 * np.eye(6)))
    options = {"offset": rng.normal(size=3), "scale": [0.5, 1.0, 2.0], "noise": [0.0, 0.1, 0.2]}
    likelihood = likelihood or Softmax()
    one = Posterior(kernel, Z, rng.normal(size=(3, 6)), A, likelihood=likelihood, **options)
    members = tuple(
        Posterior(
            kernel,
            Z,
            one.weights[c],
            A,
            **{name: getattr(one, name)[c] for name in ("offset", "scale", "noise")},
        )
        for c in range(3)
    )
    return one, SeparateOutputs(members, likelihood)


@variants("mixing", [[[1.0, 0.2, 0.0], [-0.3, 1.0, 0.5], [0.0, 0.4, -1.0]], None])
def test_separate_outputs_of_one_kernel_are_the_posterior(mixing):
    """Matern has no weight, and the units are powers of two: the bounds are nearly the same."""
    one, several = alike(Softmax(mixing))
    X = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(several.prediction(X), one.prediction(X), rtol=1e-12)
    region = Box([0.0, -0.1], [0.1, 0.1])
    own, other = evaluation_of(one, region), evaluation_of(several, region)
    for weights in sums_of(3, np.random.default_rng(1)):
        low, again = (float(each.lower(weights, None).lower[0]) for each in (own, other))
        assert again == pytest.approx(low, abs=1e-4)
        low, again = (float(each.upper_at_center(weights)[0]) for each in (own, other))
        assert again == pytest.approx(low, abs=1e-7)


def test_identity_weights_are_no_weights():
    one, _ = alike()
    mixed = replace(one, likelihood=Softmax(np.eye(3)))
    assert class_layout(mixed)[0].independent
    region = Box([0.0, -0.1], [0.1, 0.1])
    evaluations = [evaluation_of(m, region) for m in (one, mixed)]
    for weights in sums_of(3, np.random.default_rng(1)):
        first, second = (own.lower(weights, None) for own in evaluations)
        assert float(first.lower[0]) == float(second.lower[0])


def test_bounds_shrink_with_the_cell():
    """At second order at least, down to what singular covariances leave."""
    _, several = alike(Softmax([[1.0, 0.2, 0.0], [-0.3, 1.0, 0.5], [0.0, 0.4, -1.0]]))
    gaps = []
    for radius in (0.1, 0.05, 0.025):
        region = Box([0.2 - radius, -radius], [0.2 + radius, radius])
        own = evaluation_of(several, region)
        X = region.sample(2000, 0)
        weights = (1.0, -1.0, 0.0)
        value = true_sums(several, X, weights)[0].min()
        gaps.append(value - float(own.lower(weights, None).lower[0]))
    assert gaps[1] < 0.5 * gaps[0]
    assert gaps[2] < 0.5 * gaps[1]


def test_coupled_outputs_are_not_mixed():
    kernel, factor = SquaredExponential(1.0), np.full((2, 1, 1), 0.1)
    with pytest.raises(InputError, match="mixing: expected independent outputs"):
        Posterior(
            kernel,
            [[0.0]],
            [[1.0], [2.0]],
            factor,
            likelihood=Softmax(np.eye(2) * 2.0),
            coupled=True,
        )
