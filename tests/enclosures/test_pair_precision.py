"""Pairs of many coupled classes: products shared, variances of all pairs as one batch."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.stacked import ClassPrecisions
from gpcert.enclosures.variance import VarianceOptions
from gpcert.kernels import Matern, SquaredExponential
from gpcert.kernels.expansions.exponentials import gram_terms
from gpcert.likelihoods import Softmax
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint
from gpcert.testing.node_case import cell_points
from tests.enclosures.classes.class_cases import coupled_by_one, displacement
from tests.strategies import random_cells

arb, arb_mat = flint().arb, flint().arb_mat


def posterior_of(seed, m=5, N=6, dim=3, smooth=True, size=1.0):
    rng = np.random.default_rng(seed)
    lengths = 0.5 + rng.random(dim)
    kernel = SquaredExponential(lengths, 3.0) if smooth else Matern(lengths, 2.5, 3.0)
    Z = rng.normal(size=(N, dim))
    p = np.exp(2.0 * rng.normal(size=(m, N)))
    F, C = coupled_by_one(kernel.value(Z, Z), p / p.sum(axis=0))
    return Posterior(
        kernel,
        Z,
        rng.normal(size=(m, N)),
        size * F,
        negative_factor=size * C,
        noise=rng.random(m),
        scale=1.5,
        coupled=True,
        likelihood=Softmax(),
    )


def evaluation_of(posterior, center, half, cells=None):
    region = Box(center - half, center + half)
    local = LocalPosterior.build(posterior.differences, region, backend_from_name("numpy"), True)
    return Evaluation(local, region.root() if cells is None else cells(region))


def rows(matrix):
    return arb_mat([[arb(float(v)) for v in row] for row in to_numpy(matrix)])


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_products_of_pairs_in_high_precision(smooth, size):
    """With the computed kernel values as the true ones: what is left is the products' rounding."""
    posterior = posterior_of(0, smooth=smooth, size=size)
    own = evaluation_of(posterior, posterior.points[0] + 0.1, 0.1)
    precisions, expansion, kernel = own.local.precisions, own.expansion, own.local.kernel
    assert isinstance(precisions, ClassPrecisions)
    unit = own.local.unit
    pairs = range(len(unit.pairs))
    precision = precisions.on(expansion, pairs)
    found = precision.center(kernel, expansion)
    alone = precision.explained(kernel)
    covariance, missed, _ = precision.derivative_covariance(kernel, expansion, found)
    assert not np.any(missed)
    assert not np.any(found.missed)
    gram = ArbPosterior(unit).gram()
    prior = kernel.derivative_covariance(expansion)
    k, D = rows(expansion.K).transpose(), rows(kernel.derivatives(expansion)[0])
    for j in pairs:
        A, C = (rows(part) for part in unit.factors_of(j))
        S = A.transpose() * A - C.transpose() * C
        y = S * k
        gap = y - rows(found.weights[j][:, None])
        assert (gap.transpose() * gram * gap)[0, 0] <= arb(float(found.deviation[j])) ** 2
        square = (k.transpose() * y)[0, 0]
        for value, error in ((found.explained, found.error), alone):
            assert abs(square - arb(float(value[j]))) <= arb(float(error[j]))
        G = D * S * D.transpose()
        for a in range(3):
            for b in range(3):
                true = arb(float(prior.matrix[0, a, b])) - G[a, b]
                gap = abs(true - arb(float(covariance.matrix[j, a, b])))
                assert gap <= arb(float(covariance.error[j]))
        assert float(found.deviation[j]) < 1e-9
        assert float(covariance.error[j]) < 1e-9


@pytest.mark.parametrize("smooth", [True, False])
def test_all_pairs_together_are_each_alone(smooth):
    posterior = posterior_of(1, smooth=smooth)
    rng = np.random.default_rng(0)
    own = evaluation_of(
        posterior, posterior.points[1], 0.2, lambda region: random_cells(region, rng, 4, 3)
    )
    together, local = own.variances, own.local
    assert together is not None
    options = VarianceOptions(derivatives=True, second=False, pointwise=True)
    centers = local.variance_centers(own.expansion)
    for j in range(len(local.unit.pairs)):
        alone = local.variance(own.expansion, j, options)
        part = own.variance(j)
        assert part.units == alone.units
        for one, other in zip(part.range, alone.range, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
        for side in ("below", "above"):
            one, other = getattr(part, side), getattr(alone, side)
            np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(one.matrix, other.matrix, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(one.error, other.error, rtol=1e-6)
        value, error = local.variance_center(own.expansion, j)
        np.testing.assert_allclose(centers[0][j], value, rtol=1e-12)
        np.testing.assert_allclose(centers[1][j], error, rtol=1e-9)


@settings(max_examples=examples(30, quick=6))
@given(seed=st.integers(0, 2**32 - 1), dim=st.sampled_from([2, 3, 14]), smooth=st.booleans())
def test_variances_and_their_sums_hold_the_truth(seed, dim, smooth):
    """With 14 features the higher degrees come from the points' shared Gram matrices."""
    rng = np.random.default_rng(seed)
    posterior = posterior_of(seed, 4, 5, dim, smooth)
    half = float(rng.choice([0.02, 0.1, 0.4])) / np.sqrt(dim)
    own = evaluation_of(
        posterior,
        posterior.points[0] + 0.1 * rng.normal(size=dim),
        half,
        lambda region: random_cells(region, rng, 3, 3),
    )
    together, reference = own.variances, ArbPosterior(posterior.differences)
    assert together is not None
    J, B = len(together.units), len(own.cells)
    coefficients = rng.normal(size=(B, J))
    model, center = together.sum(coefficients)
    scale = own.local.unit.variance_scale[0]
    for b in range(B):
        for x in cell_points(own.cells, b, rng):
            values = [reference.canonical_variance(x, j) / arb(scale) for j in range(J)]
            values = [value.max(arb(0)) * arb(1.5) ** 2 for value in values]
            total = arb(0)
            for j, value in enumerate(values):
                low, high = own.variance(j).range
                assert not value < arb(float(low[b]))
                assert not value > arb(float(high[b]))
                total += value * arb(float(coefficients[b, j]))
            d = displacement(own, b, x)
            weight = (arb(model.rate) * sum((t * t for t in d), arb(0))).exp()
            below = arb(float(model.value[b])) - arb(float(model.error[b]))
            for i, t in enumerate(d):
                below += t * arb(float(model.gradient[b, i]))
                for k, s in enumerate(d):
                    below += t * s * arb(float(model.matrix[b, i, k])) / 2
            assert not weight * total < below
    each = [coefficients[:, j] * own.variance(j).center for j in range(J)]
    np.testing.assert_allclose(center, np.sum(each, axis=0), rtol=1e-9, atol=1e-12)


def test_degrees_of_functions_that_share_their_cells():
    rng = np.random.default_rng(3)
    J, B, N, f = 4, 3, 7, 14
    points, a = rng.normal(size=(B, N, f)), rng.normal(size=(J * B, N))
    error, drift = 1e-9 * rng.random((J * B, 4)), 1e-9 * rng.random((J * B, 4))
    rho = np.tile(rng.random(B), J)
    found = gram_terms(a, points, error, drift, rho)
    u = [[exact(row) for row in cell] for cell in points]
    for row in range(J * B):
        cell, weights = u[row % B], exact(a[row])
        size, known = arb(0), arb(0)
        for n in range(3, 7):
            square = arb(0)
            for i in range(N):
                for j in range(N):
                    dot = sum((p * q for p, q in zip(cell[i], cell[j], strict=True)), arb(0))
                    square += weights[i] * weights[j] * dot**n
            factor = arb(np.prod(np.arange(1.0, n + 1)))
            size += square.sqrt() * arb(float(rho[row])) ** n / factor
            known += square / factor
        assert size <= arb(float(found.size[row]))
        assert known >= arb(float(found.known[row]))
        assert float(found.size[row]) < 1.0001 * float(size)
    single = gram_terms(a[:B], points, error[:B], drift[:B], rho[:B])
    np.testing.assert_allclose(single.known, found.known[:B], rtol=1e-9)
    assert np.all(to_numpy(single.size) <= to_numpy(found.size[:B]) * (1 + 1e-9))


def test_a_pair_is_known_by_the_factors_of_its_classes():
    posterior = posterior_of(2)
    differences = posterior.differences
    assert differences.factor.shape[1] == 0
    x = posterior.points[:2] + 0.1
    covariances = posterior.covariances(x)
    first, second = np.triu_indices(5, 1)
    spread = covariances[:, first, first] + covariances[:, second, second]
    spread = spread - 2.0 * covariances[:, first, second]
    np.testing.assert_allclose(differences.predict(x)[1], spread, rtol=1e-12)
    unit = differences.unit
    for j in range(10):
        A, C = unit.factors_of(j)
        np.testing.assert_allclose(unit.precisions[j], A.T @ A - C.T @ C, atol=1e-12)
        for F, size in zip((A, C), unit.factor_sizes[j], strict=True):
            assert np.linalg.norm(np.abs(F), 2) <= size
    copied = replace(posterior, noise=0.0)
    assert copied.differences.outputs_of is copied
