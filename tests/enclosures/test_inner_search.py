"""Polynomials of degree 3 on boxes: what sub-boxes prove, against rational arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.enclosures import Evaluation, inner_search
from gpcert.enclosures.goals import QuantityGoal
from gpcert.enclosures.inner_search import CellPolynomial, Level, at_least, stays_above
from gpcert.enclosures.local_posterior import LocalPosterior
from gpcert.enclosures.lower_model import QuadraticLowerModel, plain_geometry
from gpcert.enclosures.polynomials import Minimum
from gpcert.kernels import Matern, SquaredExponential
from gpcert.kernels.nodes.moments import dense, sorted_index
from gpcert.likelihoods import Probit
from gpcert.models import GPClassifier
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Probability
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples, variants
from tests.enclosures.enclosure_checks import (
    arb,
    check_goal,
    check_model,
    evaluation_of,
    points_of,
    unit_mean,
)
from tests.strategies import cases

KINDS = ["mixed", "steep", "cubic", "flat", "cancelling", "huge", "tiny"]


def random_polynomial(rng, f, kind, B=1):
    n = len(sorted_index(f, 3).orders)
    g, H, T = rng.normal(size=(B, f)), rng.normal(size=(B, f, f)), rng.normal(size=(B, n))
    H = H + np.swapaxes(H, 1, 2)
    half = rng.uniform(0.0, 1.5, (B, f)) * rng.choice([0.0, 1.0, 1.0, 1.0], (B, f))
    if kind == "steep":
        g = 20.0 * g
    elif kind == "cubic":
        g, H = 0.1 * g, 0.1 * H
    elif kind == "flat":
        g, H, T = (np.round(part) for part in (g, H, T))
    elif kind == "cancelling":
        g = -np.einsum("bjk,bk->bj", H, half)
    elif kind in ("huge", "tiny"):
        size = 1e100 if kind == "huge" else 1e-100
        g, H, T = size * g, size * H, size * T
    return CellPolynomial(g, H, T, half)


def rational(polynomial, b, d):
    """p(d), exactly, for floats d."""
    g, H, T, _ = (part[b] for part in polynomial)
    entries = dense(T[None], len(d), 3)[0]
    d = [Fraction(float(x)) for x in d]
    total = Fraction(0)
    for j, x in enumerate(d):
        total += Fraction(float(g[j])) * x
        for k, y in enumerate(d):
            total += Fraction(float(H[j, k])) * x * y / 2
            for m, z in enumerate(d):
                total += Fraction(float(entries[j, k, m])) * x * y * z / 6
    return total


def about(polynomial, b, D):
    """p in floating point at rows of D."""
    g, H, T, _ = (part[b] for part in polynomial)
    entries = dense(T[None], D.shape[1], 3)[0]
    bend = np.einsum("nj,jk,nk->n", D, H, D)
    return D @ g + bend / 2 + np.einsum("nj,nk,nl,jkl->n", D, D, D, entries) / 6


def lowest_point(polynomial, b, rng):
    """The best of corners, random points and steps from them."""
    half = polynomial.half[b]
    f = len(half)
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=f))) * half
    spread = np.clip(rng.uniform(-1.5, 1.5, (600, f)), -1.0, 1.0) * half  # many on faces
    D = np.concatenate([np.zeros((1, f)), corners, spread])
    best = D[np.argmin(about(polynomial, b, D))]
    for scale in (0.3, 0.1, 0.03, 0.01):
        near = np.clip(best + scale * half * rng.normal(size=(200, f)), -half, half)
        near = np.concatenate([best[None], near])
        best = near[np.argmin(about(polynomial, b, near))]
    return best


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from(KINDS))
def test_what_is_proved_holds(seed, f, kind):
    rng = np.random.default_rng(seed)
    polynomial = random_polynomial(rng, f, kind)
    without = rng.random() < 0.3
    if without:
        polynomial = polynomial._replace(tensor=0.0 * polynomial.tensor)
    exact = rational(polynomial, 0, lowest_point(polynomial, 0, rng))
    size = float(np.abs(about(polynomial, 0, polynomial.half)).max()) + abs(float(exact))
    asked = polynomial._replace(tensor=None) if without else polynomial
    for gap in (0.0, 1e-15, 1e-9, 1e-3, 0.3):
        need = np.array([float(exact) + gap * size])
        if Fraction(float(need[0])) > exact:
            assert not at_least(asked, need)[0]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from(KINDS[:4]))
def test_what_holds_by_a_tenth_is_proved(seed, f, kind):
    rng = np.random.default_rng(seed)
    polynomial = random_polynomial(rng, f, kind)
    least = about(polynomial, 0, lowest_point(polynomial, 0, rng)[None])[0]
    need = np.array([least - 0.1 * (1e-6 + abs(least))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner_search, "MAX_PARTS", 4096)
        assert at_least(polynomial, need)[0]


def test_a_batch_is_its_cells_one_by_one():
    rng = np.random.default_rng(3)
    batch = random_polynomial(rng, 3, "mixed", 40)
    need = np.array([about(batch, b, lowest_point(batch, b, rng)[None])[0] for b in range(40)])
    need = need - rng.choice([-0.1, 0.02, 0.5], 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner_search, "BLOCK", 7 * 27)
        together = at_least(batch, need)
    alone = [at_least(CellPolynomial(*(p[[b]] for p in batch)), need[[b]])[0] for b in range(40)]
    assert together.tolist() == alone
    assert 0 < sum(alone) < 40


@pytest.mark.parametrize("need", [np.nan, np.inf])
def test_nothing_is_proved_of_no_number(need):
    polynomial = random_polynomial(np.random.default_rng(0), 2, "mixed")
    assert not at_least(polynomial, np.array([need]))[0]


@settings(max_examples=examples(60), deadline=None)
@given(case=cases())
def test_levels_that_are_proved_hold(case):
    """Of means, weighted or not, at levels around their values, against ball arithmetic."""
    evaluation = evaluation_of(case, variance=False)
    points, g = points_of(evaluation, case.rng), unit_mean(evaluation, 0)
    for sign in (1, -1):
        model = evaluation.mean(0).side(sign)
        values = [[sign * g(x, b) for x in rows] for b, rows in enumerate(points)]
        least = np.array([min((float(v.mid()) for v in row), default=0.0) for row in values])
        for gap in (0.0, 1e-12, 1e-3, 0.1):
            level = least - gap * (1.0 + np.abs(least))
            proved = stays_above(model, level, np.isfinite(model.error))
            for b in np.flatnonzero(proved):
                for v in values[b]:
                    assert not v < arb(float(level[b]))


def check_at_levels(case, quantity, function, **options):
    """Bounds of a goal for which some level would be enough, between its bound and its values."""
    goal, evaluation = QuantityGoal(quantity), evaluation_of(case, **options)
    lower, ceiling = goal.bound(evaluation, None).lower, goal.ceiling(evaluation)
    worst = int(np.argmin(lower))
    for share in (0.02, 0.3, 0.9, 1.0, 1.1):
        again = evaluation_of(case, cells=evaluation.cells)
        again.enough = float(lower[worst] + share * (ceiling[worst] - lower[worst]))
        if np.isfinite(again.enough):
            found = check_goal(case, goal, function, again)
            assert np.all(found.lower >= lower)


@settings(max_examples=examples(60, quick=4), deadline=None)
@given(case=cases(likelihood=Probit()))
def test_probabilities_at_levels(case):
    reference = ArbPosterior(case.posterior)
    for sign in (1, -1):
        quantity = Probability(case.posterior.likelihood, 0, sign)
        check_at_levels(case, quantity, lambda x, s=sign: s * reference.probability(x))


@settings(max_examples=examples(30), deadline=None)
@given(case=cases(), factor=st.floats(0.1, 10.0))
def test_multiples_and_sums_keep_degree_3(case, factor):
    evaluation = evaluation_of(case, variance=False)
    points, g = points_of(evaluation, case.rng), unit_mean(evaluation, 0)
    mean = evaluation.mean(0)
    each = factor + 0.0 * mean.center
    times = mean.above.scaled(each)

    def function(x, b, more=0):
        return -(more + arb(factor)) * g(x, b)

    check_model(evaluation, times, function, points, "multiple")
    check_model(evaluation, times + mean.above, lambda x, b: function(x, b, 1), points, "sum")


def test_degree_3_of_a_variance_and_of_two_sides():
    """That of its linear part twice, with the sign of the side, chosen with the side."""
    rng = np.random.default_rng(2)
    X, box = rng.uniform(-1.0, 1.0, (40, 2)), gpcert.Box([-0.05, -0.05], [0.05, 0.05])
    kernel = Matern(1.0, nu=2.5)
    factor = np.linalg.inv(np.linalg.cholesky(kernel.value(X, X) + 0.1 * np.eye(40)))
    model = gpcert.Posterior(kernel, X, rng.normal(size=40), factor)
    cells = box.root().split(np.zeros(1, dtype=int))
    evaluation = Evaluation(LocalPosterior.build(model, box, Backend(), True), cells)
    variance = evaluation.variance(0)
    below, above = variance.below.cubic, variance.above.cubic
    assert below is not None
    assert above is not None
    unit = 1.0 / np.asarray(evaluation.local.kernel.inverse_length)
    both = np.arange(2)
    for b, c in enumerate(cells.center):
        y = factor.T @ (factor @ kernel.value(c[None], X)[0])

        def slope(h, c=c, y=y):  # second difference of -2 y.k along the first feature
            at = c + np.array([[h - 0.01, 0.0], [h, 0.0], [h + 0.01, 0.0]])
            return -2.0 * (kernel.value(at, X) @ y) @ np.array([1.0, -2.0, 1.0]) / 1e-4

        third = (slope(0.01) - slope(-0.01)) / 0.02 * unit[0] ** 3
        assert np.isclose(below.tensor(both)[b, 0], third, rtol=0.02)
    assert np.allclose(above.tensor(both), -below.tensor(both))
    mixed = variance.below.where(np.array([True, False]), variance.above).cubic
    assert mixed is not None
    assert np.array_equal(mixed.tensor(both[:1]), below.tensor(both[:1]))
    assert np.array_equal(mixed.tensor(both[1:]), above.tensor(both[1:]))
    assert len(mixed.parts) == 1, "one tensor, not one per side"


@pytest.mark.parametrize(
    ("kernel", "most"), [(Matern([0.5] * 7, nu=2.5), 120), (SquaredExponential([0.5] * 7), 75)]
)
def test_a_range_needs_fewer_boxes(kernel, most):
    """Where degree 3 and the off-diagonal curvature are most of what is lost."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 1.0, (150, 7))
    y = np.sin(4.0 * X).sum(axis=1) + 3.0 * X[:, 0] * X[:, 1]
    t = np.linalg.solve(kernel.value(X, X) + 0.01 * np.eye(150), y)
    model, box = gpcert.Posterior(kernel, X, t), gpcert.Box([0.4] * 7, [0.6] * 7)
    found = gpcert.prediction_range(model, box, tol=0.01)
    assert found.boxes <= most
    D = rng.uniform(0.4, 0.6, (2000, 7))
    values = kernel.value(D, X) @ t
    assert found.minimum.lower <= values.min()
    assert values.max() <= found.maximum.upper
    assert max(found.minimum.width, found.maximum.width) <= 0.01


@variants("kernel", [SquaredExponential([0.4] * 8), Matern([0.4] * 8, nu=2.5)])
def test_a_probability_needs_fewer_boxes(kernel, monkeypatch):
    """With sub-boxes of mean and variance together, and without; one halving at a time."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 1.0, (150, 8))
    latent = np.linalg.cholesky(4.0 * kernel.value(X, X) + 1e-6 * np.eye(150))
    y = latent @ rng.normal(size=150) > 0
    model = GPClassifier(4.0 * kernel, likelihood="probit", max_epochs=0).fit(X, y)
    box = gpcert.Box([0.41] * 8, [0.59] * 8)
    ask = {"quantity": "probability", "tol": 0.01, "budget": gpcert.Budget(boxes=5000)}
    found = gpcert.prediction_range(model, box, **ask)
    monkeypatch.setattr(Level, "reached", lambda self, lower, enough: lower)
    plain = gpcert.prediction_range(model, box, **ask)
    assert found.boxes <= 0.7 * plain.boxes


@pytest.mark.parametrize("enough", [-1.45, -1.2, -1.05])
def test_a_level_that_the_polynomial_attains_is_not_yet_proved(enough):
    """Of `x y - 1/2` on the square, whose least value is -3/2: -1 is attained without the error."""
    geometry = plain_geometry(gpcert.Box([-1.0, -1.0], [1.0, 1.0]).root())
    half = geometry.half[0, 0]
    hessian = np.array([[[0.0, 1.0], [1.0, 0.0]]]) / half**2
    polynomial = (np.zeros(1), np.zeros((1, 2)), hessian)
    model = QuadraticLowerModel.of(geometry, polynomial, np.full(1, 0.5), 0.0)
    best = Minimum(np.full(1, -1.5), half * np.array([[1.0, -1.0]]))
    found = Level(lambda q, rows: q, model, best).reached(np.full(1, -1.5), enough)
    assert found.tolist() == [-1.5]
