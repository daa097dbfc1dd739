"""An indefinite S (variational models): both factors through every enclosure."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.model.posterior import Posterior
from gpcert.quantities import Probability, Variance
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint
from tests.enclosures.enclosure_checks import (
    check_deviation,
    check_goal,
    check_variance,
    evaluation_of,
)
from tests.strategies import Case, seeds


@st.composite
def indefinite(draw, likelihood=None):
    """Posteriors with random A and C, and boxes near their points."""
    rng = np.random.default_rng(draw(seeds))
    N, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    kernel = draw(
        st.sampled_from([SquaredExponential(1.0, 2.0), Matern(1.0, 0.5), Matern(0.7, 2.5, 3.0)])
    )
    points = rng.normal(size=(N, d))
    A = rng.normal(size=(N, N)) * draw(st.sampled_from([0.1, 0.5]))
    C = rng.normal(size=(2, N)) * draw(st.sampled_from([0.1, 1.0, 5.0]))
    options = {} if likelihood is None else {"likelihood": likelihood}
    posterior = Posterior(kernel, points, rng.normal(size=N), A, negative_factor=C, **options)
    center, half = rng.normal(size=d), rng.random(d) * draw(st.sampled_from([0.0, 0.3, 3.0]))
    return Case(posterior, Box(center - half, center + half), rng)


@settings(max_examples=examples(60), deadline=None)
@given(case=indefinite(), optional=st.booleans())
def test_variance(case, optional):
    check_variance(case, evaluation=evaluation_of(case, optional=optional, keep=3))


@settings(max_examples=examples(40), deadline=None)
@given(case=indefinite(Probit()), sign=st.sampled_from([1, -1]))
def test_goals(case, sign):
    evaluation = evaluation_of(case, keep=3)
    reference = ArbPosterior(case.posterior)
    check_goal(
        case, QuantityGoal(Variance(0, sign)), lambda x: sign * reference.variance(x, 0), evaluation
    )
    goal = QuantityGoal(Probability(Probit(), 0, sign))
    check_goal(case, goal, lambda x: sign * reference.probability(x), evaluation)


@pytest.mark.parametrize("form", ["factors", "precision"])
@settings(max_examples=examples(30), deadline=None)
@given(case=indefinite())
def test_products_with_the_precision(form, case):
    """`S k` and `k.S k` within their errors, by the factors and by S itself."""
    evaluation = evaluation_of(case, keep=2)
    built, arb = evaluation.local.precisions[0], flint().arb
    S = case.posterior.unit.precisions[0] if form == "precision" else None
    precision = replace(built, precision=S)
    found = precision.center(evaluation.local.kernel, evaluation.expansion)
    assert not np.any(found.missed)
    reference = ArbPosterior(case.posterior.unit)
    for b, x in enumerate(evaluation.cells.points_full(evaluation.cells.center)):
        row = reference.row(x)
        y = [arb(0)] * len(row)
        for sign, rows in ((1, reference.factors[0]), (-1, reference.negative[0])):
            for a in rows:
                along = sum((u * k for u, k in zip(a, row, strict=True)), arb(0))
                y = [v + sign * along * u for v, u in zip(y, a, strict=True)]
        check_deviation(reference, found.weights[b], y, found.deviation[b])
        product = sum((u * k for u, k in zip(y, row, strict=True)), arb(0))
        allowed = arb(float(found.error[b]))
        assert not abs(product - arb(float(found.explained[b]))) > allowed


@settings(max_examples=examples(30), deadline=None)
@given(case=indefinite())
def test_gain(case):
    """`C K C^T <= (gain - 1) I` in ball arithmetic."""
    posterior, arb = case.posterior, flint().arb
    C = [exact(row) for row in posterior.negative_factor[0]]
    K = ArbPosterior(posterior).gram()
    rows = flint().arb_mat(C)
    M = rows * K * rows.transpose()
    height = arb(posterior.gain) - 1 + arb("1e-40") * (1 + abs(M.trace()))
    first = height - M[0, 0]
    assert first > 0
    # two rows: positive definite where the corner and the determinant are positive
    assert first * (height - M[1, 1]) - M[0, 1] * M[1, 0] > 0


def test_from_precision_splits_an_indefinite_matrix(tmp_path):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6, 2))
    kernel = SquaredExponential(1.0)
    K = kernel.value(points, points)
    L = np.linalg.cholesky(K)
    inner = np.diag([0.9, 0.5, 0.1, -0.2, -3.0, -0.5])  # I - S_q of a whitened variational model
    U = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    S = np.linalg.solve(L.T, U @ inner @ U.T) @ np.linalg.inv(L)
    posterior = Posterior.from_precision(kernel, points, np.zeros(6), (S + S.T) / 2)
    np.testing.assert_allclose(posterior.precision(), S, atol=1e-9 * np.abs(S).max())
    assert posterior.gain == pytest.approx(4.0, rel=1e-6)
    X = rng.normal(size=(5, 2))
    kx = kernel.value(X, points)
    expected = 1.0 - np.einsum("ni,ij,nj->n", kx, S, kx)
    np.testing.assert_allclose(posterior.predict(X)[1][:, 0], expected, rtol=1e-8)
    posterior.save(tmp_path / "model.npz")
    again = Posterior.load(tmp_path / "model.npz")
    assert np.array_equal(again.negative_factor, posterior.negative_factor)
