"""Factors with more rows than columns, and values at single points without their enclosures."""

from dataclasses import replace

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.kernels import Matern, SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.regions import Box

KERNELS = [SquaredExponential([0.8, 1.1, 0.6], 3.0), Matern([0.8, 1.1, 0.6], 2.5, 3.0)]


def tall_posterior(kernel, scale=1.0):
    rng = np.random.default_rng(0)
    N = 6
    Z = rng.normal(size=(N, 3))
    root = np.linalg.inv(np.linalg.cholesky(kernel.value(Z, Z) + 0.3 * np.eye(N)))
    turn = np.linalg.qr(rng.normal(size=(20, N)))[0]
    return Posterior(kernel, Z, rng.normal(size=N), scale * turn @ root)


def local_of(posterior, region):
    return LocalPosterior.build(posterior, region, backend_from_name("numpy"), True)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_derivative_covariance_by_the_precision(kernel):
    """Against the products of the computed derivatives in 200 bits, and against the factor."""
    posterior = tall_posterior(kernel)
    x = posterior.points[0] + 0.1
    evaluation = Evaluation(
        local_of(posterior, Box(x - 0.1, x + 0.1)), Box(x - 0.1, x + 0.1).root()
    )
    local, expansion = evaluation.local.kernel, evaluation.expansion
    precisions = evaluation.local.precisions
    assert precisions is not None
    precision = precisions[0]
    assert precision.precision is not None
    fine, fine_error = precision.derivative_square(local, expansion)
    plain = replace(precision, precision=None)
    other, other_error = plain.derivative_square(local, expansion)
    size = np.linalg.norm(to_numpy(fine - other)[0])
    assert size <= float(fine_error[0] + other_error[0])
    assert float(fine_error[0]) < 1e-10
    before, ctx.prec = ctx.prec, 200
    try:
        rows = arb_mat(
            [[arb(float(v)) for v in row] for row in to_numpy(local.derivatives(expansion))[0]]
        )
        A = arb_mat([[arb(float(v)) for v in row] for row in to_numpy(precision.factor)])
        Q = rows * A.transpose()
        exact = Q * Q.transpose()
        for i in range(3):
            for j in range(3):
                gap = abs(exact[i, j] - arb(float(fine[0, i, j])))
                assert gap <= arb(float(fine_error[0]))
    finally:
        ctx.prec = before


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_values_at_points_are_those_of_the_enclosures(kernel, scale):
    posterior = tall_posterior(kernel, scale)
    x = posterior.points[:2].mean(axis=0)
    region = Box(x, x)
    local = local_of(posterior, region)
    alone, whole = (LatentOutputs(Evaluation(local, region.root())) for _ in range(2))
    whole.mean(0)
    whole.variance(0)
    for kind in ("mean_at_center", "variance_at_center"):
        value, error, units = getattr(alone, kind)(0)
        other, other_error, other_units = getattr(whole, kind)(0)
        assert units == other_units
        assert np.all(np.abs(value - other) <= error + other_error)
        assert np.all(0.5 * other_error <= error)
        assert np.all(error <= 2.0 * other_error + 1e-300)
    assert not alone.evaluation.knows("variance", 0)
    mean, variance = posterior.predict(x[None])
    for kind, truth in (("mean_at_center", mean), ("variance_at_center", variance)):
        value, error, units = getattr(alone, kind)(0)
        assert abs(units.about(value)[0] - truth[0, 0]) <= units.factor * error[0] + 1e-12
