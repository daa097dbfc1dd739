"""RKHS norms, the excess of A K A^T over the identity, and norms on slices, in ball arithmetic."""

import math

import numpy as np
from hypothesis import given, settings

from gpcert.kernels import SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior, kernel_reference, regression_posterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint
from tests.enclosures.enclosure_checks import arb
from tests.strategies import ill_conditioned, posteriors

KINDS = ("noise", "duplicates", "short", "long", "weights")


def assert_positive_definite(M):
    """All pivots of the LDL^T elimination are positive balls."""
    rows = M.tolist()
    n = len(rows)
    for k in range(n):
        assert rows[k][k] > 0, f"pivot {k} is {rows[k][k].str(10)}"
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            for j in range(k, n):
                rows[i][j] -= factor * rows[k][j]


def check_norm_and_excess(posterior):
    reference = ArbPosterior(posterior)
    gram = reference.gram()
    for c in range(posterior.outputs):
        assert not arb(float(posterior.norms[c])) ** 2 < reference.squared_norm(c)
        A = flint().arb_mat(reference.factors[c if len(reference.factors) > 1 else 0])
        M = A * gram * A.transpose()
        n = M.nrows()
        # strictly above: a step of 1e-40 keeps the elimination away from a zero pivot
        height = 1 + arb(posterior.excess) + arb("1e-40") * (1 + abs(M.trace()))
        diagonal = [[height if i == j else arb(0) for j in range(n)] for i in range(n)]
        assert_positive_definite(flint().arb_mat(diagonal) - M)


@settings(max_examples=examples(60))
@given(posterior=posteriors())
def test_norms_and_excess(posterior):
    check_norm_and_excess(posterior)


def test_norms_and_excess_of_ill_conditioned_models():
    for kind in KINDS:
        posterior = ill_conditioned(kind)
        check_norm_and_excess(posterior)
        if kind != "weights":
            assert (
                posterior.excess < 5e-3
            )  # an exact posterior has none: the proof nearly sees that


def check_factor_sizes(posterior):
    """`size^2 I - |A|^T |A|` is positive definite, up to a step of 1e-40."""
    unit = posterior.unit
    for A, (size, none) in zip(unit.factor, unit.factor_sizes, strict=True):
        assert none == 0.0
        M = flint().arb_mat([exact(row) for row in np.abs(A)])
        M = M.transpose() * M
        height = arb(size) ** 2 + arb("1e-40") * (1 + M.trace())
        n = M.nrows()
        diagonal = [[height if i == j else arb(0) for j in range(n)] for i in range(n)]
        assert_positive_definite(flint().arb_mat(diagonal) - M)


@settings(max_examples=examples(40))
@given(posterior=posteriors())
def test_factor_sizes(posterior):
    check_factor_sizes(posterior)


def test_factor_sizes_of_ill_conditioned_models():
    for kind in KINDS:
        check_factor_sizes(ill_conditioned(kind))


def test_excess_is_tight():
    """For an exact posterior next to nothing; for a factor twice too large, about 3."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, 2))
    exactly = regression_posterior(SquaredExponential(1.0), points, np.ones((1, 8)), 1e-2)
    assert exactly.excess < 1e-10
    doubled = Posterior(exactly.kernel, points, exactly.weights, 2.0 * exactly.factor[0])
    largest = np.linalg.eigvalsh(
        doubled.factor[0] @ exactly.kernel.value(points, points) @ doubled.factor[0].T
    )[-1]
    assert largest - 1.0 <= doubled.excess <= largest - 1.0 + 1e-9


@settings(max_examples=examples(40))
@given(posterior=posteriors(max_dim=4))
def test_slice_norm(posterior):
    """`slice_norm^2 >= t'^T K' t'` on the free features, and rarely above the whole norm."""
    d = posterior.dim
    rng = np.random.default_rng(len(posterior.points))
    lengths = np.broadcast_to(posterior.kernel.length_scale, (d,))
    center = posterior.points[0] + lengths * rng.normal(size=d) * rng.choice([0.0, 1.0])
    fixed = rng.random(d) < 0.5
    region = Box(center - np.where(fixed, 0.0, lengths), center + np.where(fixed, 0.0, lengths))
    local = posterior.kernel.localize(posterior.points, region, Backend())
    reference = ArbPosterior(posterior)
    free = [[z[j] for j in region.free] for z in reference.points]
    own = [
        sum((((z[j] - c) / w) ** 2 for j, c, w in slice_), arb(0))
        for z in reference.points
        for slice_ in [
            list(
                zip(
                    region.fixed,
                    exact(region.center[region.fixed]),
                    exact(lengths[region.fixed]),
                    strict=True,
                )
            )
        ]
    ]
    kernel = SquaredExponential(
        lengths[region.free] if len(region.free) else 1.0, posterior.kernel.variance
    )
    for c in range(posterior.outputs):
        bound = local.slice_norm(posterior.weights[c])
        if bound is None:
            continue
        assert math.isfinite(bound)
        t = [a * (-r / 2).exp() for a, r in zip(reference.weights[c], own, strict=True)]
        real = sum(
            (
                a * b * kernel_reference(kernel, x, z)
                for a, x in zip(t, free, strict=True)
                for b, z in zip(t, free, strict=True)
            ),
            arb(0),
        )
        assert not arb(bound) ** 2 < real
