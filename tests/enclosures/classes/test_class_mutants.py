"""Parts of the class bounds alone, where a whole bound would hide that they are off."""

import math
from itertools import product

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from gpcert.enclosures.classes.jets import ClassJet, weighted_jet
from gpcert.enclosures.classes.latent import mean_first_order, variance_first_order
from gpcert.enclosures.classes.metric import Norms, coordinates_of
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.classes.reference import inverse_error
from gpcert.enclosures.classes.remainder import degree_bound, higher_degrees, shrunk_bounds
from gpcert.enclosures.classes.taylor_bound import second_norm, with_curvature
from gpcert.enclosures.goals import QuantityGoal
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.integrals import gumbel_rule
from gpcert.integrals.gumbel import gumbel_moments
from gpcert.integrals.gumbel_rule import transforms
from gpcert.integrals.moments import UNIMODAL_BOUNDS
from gpcert.integrals.normal_rule import normal_rule
from gpcert.integrals.sectors import Sector, sector_moments
from gpcert.integrals.softmax_moments import frobenius_norms
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.class_layout import ClassLayout
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.numerics.spectral import largest_eigenvalue
from gpcert.quantities import ClassSums
from gpcert.quantities.compound import margins
from gpcert.regions import Box
from gpcert.testing.effort import crossed, examples
from gpcert.testing.node_case import cell_points
from tests.enclosures.classes.class_cases import (
    class_cases,
    evaluation_of,
    observed_once,
    random_evaluation,
)

seeds = st.integers(0, 2**32 - 1)


LIKELIHOODS = [Softmax(), MultinomialProbit()]


@settings(max_examples=examples(50))
@given(seed=seeds, n=st.integers(1, 4), off=st.sampled_from([0.0, 1e-9, 1e-3, -1e-3, 0.2]))
def test_inverse_error(seed, n, off):
    """`L^-1 = T R`, in ball arithmetic, for inverses that are off by a factor as well."""
    rng = np.random.default_rng(seed)
    L = np.tril(rng.normal(size=(n, n))) + np.diag(10.0 ** rng.uniform(-3, 2, n))
    R = np.linalg.inv(L) * (1.0 + off)
    error = float(inverse_error(R[None], L[None])[0])
    if not np.isfinite(error):
        return
    with ctx.workprec(300):
        T = (arb_mat(R.tolist()) * arb_mat(L.tolist())).inv()
        T = np.array([[float(T[i, j] - (i == j)) for j in range(n)] for i in range(n)])
    assert np.linalg.norm(T, 2) * (1.0 - 1e-9) <= error


@given(seed=seeds, n=st.integers(1, 4))
def test_norms_of_covariances(seed, n):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-2, 2)
    W = W + W.T if rng.random() < 0.7 else np.outer(W[0], W[0]) - np.diag(rng.random(n))
    sizes = np.abs(coordinates_of(W[None, None]))[:, :, 0]
    values = np.abs(np.linalg.eigvalsh(W))
    found = Norms.of(sizes, n)
    assert float(found.nuclear[0]) >= values.sum() * (1.0 - 1e-12)
    assert float(found.spectral[0]) >= values.max() * (1.0 - 1e-12)


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
@pytest.mark.parametrize("independent", [True, False])
def test_layout_is_that_of_differences(classes, independent):
    """Means, variances and ranks for random outputs, coupled ones as `Posterior.differences`."""
    rng = np.random.default_rng(classes)
    layout = ClassLayout(classes, np.eye(classes) if independent else None)
    f = rng.normal(size=classes)
    root = rng.normal(size=(classes, classes))
    C = np.diag(rng.random(classes)) if independent else root @ root.T
    first, second = np.triu_indices(classes, 1)
    outputs, y = f, np.diag(C)
    if not independent:
        outputs = f[second] - f[first]
        y = C[first, first] + C[second, second] - 2.0 * C[first, second]
    T = np.concatenate([-np.ones((classes - 1, 1)), np.eye(classes - 1)], axis=1)
    np.testing.assert_allclose(np.tensordot(y, layout.matrices, 1), T @ C @ T.T, atol=1e-12)
    assert np.all(layout.ranks >= [np.linalg.matrix_rank(M) for M in layout.matrices])
    for k in range(classes):
        for other in range(classes):
            if other != k:
                mean = sum(sign * outputs[j] for j, sign in layout.pair(k, other))
                assert mean == pytest.approx(f[other] - f[k])


def test_errors_of_a_weighted_sum_add_up():
    zero = np.zeros((1, 2))
    parts = [
        ClassJet(np.array([0.5]), (zero, zero[:, :, None] + zero[:, None]), np.array([error]))
        for error in ([0.1, 0.2, 0.3], [0.05, 0.2, 0.6])
    ]
    for weights in ((1.0, -1.0), (-2.0, 1.0)):
        found = weighted_jet(tuple(zip(weights, parts, strict=True))).errors[0]
        added = sum(abs(w) * p.errors[0] for w, p in zip(weights, parts, strict=True))
        assert np.all(found >= added)


@pytest.mark.parametrize("operator", [0.0, 0.5, 0.75, 0.99])
def test_bounds_grow_as_the_covariance_shrinks(operator):
    """A smoothing by sqrt(1 - operator) standard deviations: every derivative has its power."""
    found = shrunk_bounds(UNIMODAL_BOUNDS, np.array([operator]))
    for order, (bound, e) in enumerate(zip(found, UNIMODAL_BOUNDS, strict=True), 1):
        assert float(bound[0]) >= e * (1.0 - operator) ** (-0.5 * order) * (1.0 - 1e-14)


@given(a=st.floats(0.0, 3.0), m=st.floats(0.0, 2.0), s=st.floats(0.0, 2.0))
def test_degrees_of_an_exponential(a, m, s):
    """`exp(a m t + a^2 s t / 2)` is what the operators' calculus gives for `D_j = a^j`: all degrees
    are attained, and what is not known up to degree 2 is left to the rest."""
    norms = [np.array([a**j]) for j in range(1, 9)]
    mean, spread = np.array([m]), np.array([s])
    x = a * m + 0.5 * a * a * s
    for degree in (1, 2, 3, 4):
        bound = float(degree_bound(degree, norms, mean, spread)[0])
        assert bound >= x**degree / special.factorial(degree) * (1.0 - 1e-12)
    largest = np.exp(x)
    bounds = [norm * largest for norm in norms]
    rest = np.exp(x) - 1.0 - x
    for known, expanded in ((norms[:2], (a * m) ** 2), (norms[:4], x**2)):
        found = float(higher_degrees(known, bounds, mean, spread)[0])
        assert found >= (rest - 0.5 * expanded) * (1.0 - 1e-9) - 1e-12 * largest


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("radius", [0.1, 0.5, 2.0])
def test_weight_of_the_curvature(likelihood, coupled, radius):
    """`(omega - 1) |d^T M d| / 2 <= bend` at corners: the models carry the weight, M does not."""
    posterior = observed_once(likelihood, 0.5, coupled=coupled)
    own = evaluation_of(posterior, Box([0.5 - radius], [0.5 + radius]))
    rate = own.evaluation.local.kernel.weight_rate
    assert rate > 0
    half = own.place.geometry.half
    zero = 0.0 * half[:, 0]
    flat = QuadraticLowerModel(
        own.place.geometry, zero, 0.0 * half, 0.0 * half[:, :, None], zero, rate
    )
    for weights in ((1.0, 0.0, 0.0), (0.0, 1.0, -1.0)):
        curved, bend = with_curvature(flat, own.jet(weights), own.place)
        moved = 0.5 * abs(float(curved.hessian[0, 0, 0])) * float(half[0, 0]) ** 2
        assert moved > 1e-9
        assert float(bend[0]) >= np.expm1(rate * float(half[0, 0]) ** 2) * moved * (1.0 - 1e-12)


@pytest.mark.parametrize("spreads", [(), (1.0,), (2.0, 0.5)])
@pytest.mark.parametrize("order", [0, 1, 4])
def test_errors_of_all_entries_of_a_tensor(spreads, order):
    """Entry by entry: an index that occurs r times in the last coordinate has sqrt(r!)."""
    rule = normal_rule(spreads)
    n = len(spreads) + 1
    for found, parts in zip(frobenius_norms(rule, order), (rule.errors, rule.sizes), strict=True):
        known = dict(zip(rule.indices, parts, strict=True))
        for degree in range(order + 1):
            total = 0.0
            for entry in product(range(n), repeat=degree):
                counts = [entry.count(k) for k in range(n)]
                total += known[tuple(counts[:-1])] ** 2 * math.factorial(counts[-1])
            assert found[degree] >= math.sqrt(total) * (1.0 - 1e-13)


@pytest.mark.parametrize("step", [0.5, 0.75, 1.0])
def test_aliasing_of_derivatives(monkeypatch, step):
    """Sure outputs on a coarse grid in t: derivatives err by more than values do."""
    monkeypatch.setattr(gumbel_rule, "FINEST", step)
    w = np.array([0.7, -0.1, -0.3])
    mu = 2.0 * np.random.default_rng(0).normal(size=(100, 3))
    found = gumbel_moments(mu, 0.0 * mu, w)
    p = special.softmax(mu, axis=1)
    a = w - (p @ w)[:, None]
    hessian = -p[:, :, None] * p[:, None, :] * (a[:, :, None] + a[:, None, :])
    hessian[:, range(3), range(3)] = p * (1.0 - 2.0 * p) * a
    gaps = (found.value - p @ w, found.gradient - p * a, found.hessian - hessian)
    for order, gap in enumerate(gaps):
        sizes = np.abs(gap).reshape(100, -1).max(axis=1)
        assert np.all(sizes <= found.errors[:, order] + 1e-14)


@pytest.mark.parametrize("beyond", [-4.0, 0.0, 1.0, 4.0])
def test_latent_values_right_of_the_grid(beyond):
    """What of a wide value lies beyond the last node of its lattice was moved away."""
    grid = gumbel_rule.Grid(0.25, 1)
    end = grid.step * (grid.lattice - 1 - grid.below)
    found = transforms(np.array([end + beyond]), np.array([4.0]), grid)
    assert float(found.moved[0]) >= special.ndtr(beyond / 4.0) * (1.0 - 1e-12)


@settings(max_examples=examples(40))
@given(seed=seeds)
def test_gradient_of_thin_sectors(seed):
    """Where an edge is cut, `t = (k - rho h) / s`, loses digits as the sector gets thin."""
    rng = np.random.default_rng(seed)
    angle, h = float(10.0 ** rng.uniform(-5.5, -0.5)), float(rng.normal())
    k = h + angle * float(rng.normal())
    normals = np.array([[1.0, 0.0]]), np.array([[math.cos(angle), math.sin(angle)]])
    sector = Sector(*normals, np.array([h]), np.array([k]), np.array([math.sin(angle)]))
    tensors, errors = sector_moments(sector, 1)
    with ctx.workprec(300):
        cos, sin, gradient = arb(angle).cos(), arb(angle).sin(), [arb(0), arb(0)]
        for n, own, other in (((arb(1), arb(0)), h, k), ((cos, sin), k, h)):
            cut = (arb(other) - cos * arb(own)) / sin
            edge = (-(arb(own) ** 2) / 2).exp() / (2 * arb.pi()).sqrt()
            edge *= (-cut / arb(2).sqrt()).erfc() / 2
            gradient = [g - e * edge for g, e in zip(gradient, n, strict=True)]
        off = [float(abs(g - arb(float(x)))) for g, x in zip(gradient, tensors[1][0], strict=True)]
    assert math.hypot(*off) * (1.0 - 1e-9) <= float(errors[1][0])


PLAIN_ERROR = 1e-7
"""Relative to the sizes of latent means and variances: what floating point loses, by far."""


@settings(max_examples=examples(40))
@given(case=class_cases())
def test_first_order_of_means_and_variances(case):
    """`|q - reference - slope.d| <= bend` and `|q - reference| <= reach` at points of cells."""
    own = random_evaluation(case, keep=2)
    evaluation, cells = own.evaluation, own.evaluation.cells
    searched, outputs = evaluation.local.posterior, own.layout.outputs
    inverse_length = to_numpy(evaluation.expansion.geometry.inverse_length)
    models = (
        mean_first_order(LatentOutputs(evaluation), outputs),
        variance_first_order(LatentOutputs(evaluation), outputs),
    )
    for b in range(len(cells)):
        points = cell_points(cells, b, case.rng)
        if len(points) == 0:
            continue
        moves = points[:, case.region.free] - to_numpy(cells.center)[b]
        for model, values in zip(models, searched.predict(points), strict=True):
            rest = values - model.reference[b]
            error = PLAIN_ERROR * (np.abs(values).max() + np.abs(searched.offset).max() + 1.0)
            assert np.all(np.abs(rest) <= model.reach[b] + error)
            rest = rest - (moves * inverse_length) @ model.slope[b].T
            assert np.all(np.abs(rest) <= model.bend[b] + error)


def test_first_order_at_a_maximum():
    """The weighted mean is constant there, and so is a weighted variance's model."""
    weights = [[1.0], [-1.0], [0.5]]
    posterior = Posterior(SquaredExponential(1.0, 1.0), [[0.0]], weights, likelihood=Softmax())
    own = evaluation_of(posterior, Box([-0.5], [0.5]))
    model = mean_first_order(LatentOutputs(own.evaluation), 3)
    x = np.linspace(-0.5, 0.5, 21)
    rest = np.outer(np.exp(-0.5 * x * x), [1.0, -1.0, 0.5]) - model.reference[0]
    assert np.all(np.abs(rest - np.outer(x, model.slope[0, :, 0])) <= model.bend[0])


@settings(max_examples=examples(60))
@given(case=class_cases())
def test_correlations_of_pairs(case):
    """Of `f_k - f_c` and `f_l - f_c`, the likelihood's noise included, at points of cells."""
    posterior = case.posterior
    m = posterior.outputs
    if m < 3:
        return
    own = random_evaluation(case, keep=2)
    cells = own.evaluation.cells
    c, k, other = case.rng.choice(m, 3, replace=False).tolist()
    low, high = (to_numpy(end) for end in own.pairs.correlation(c, k, other))
    T = np.zeros((2, m))
    T[:, c], T[0, k], T[1, other] = -1.0, 1.0, 1.0
    for b in range(len(cells)):
        points = cell_points(cells, b, case.rng)
        for C in posterior.covariances(points) if len(points) else ():
            V = T @ (C + posterior.likelihood.noise * np.eye(m)) @ T.T
            if np.linalg.eigvalsh(V)[0] > 1e-6 * np.trace(V):
                correlation = V[0, 1] / np.sqrt(V[0, 0] * V[1, 1])
                assert low[b] - 1e-7 <= correlation <= high[b] + 1e-7


@pytest.mark.parametrize("radius", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_plain_metric_is_the_spread(radius, m):
    """`max u - min u` over all classes, u_0 = 0, and for two classes `|V - V_0|`."""
    rng = np.random.default_rng(m)
    weights, A = rng.normal(size=(m, 2)), 0.4 * rng.normal(size=(m, 2, 2))
    kernel = SquaredExponential(1.0, 2.0)
    posterior = Posterior(kernel, [[-1.0], [2.0]], weights, A, likelihood=Softmax())
    own = evaluation_of(posterior, Box([0.2 - radius], [0.2 + radius]))
    X = np.linspace(0.2 - radius, 0.2 + radius, 31)[:, None]
    mean, variance = posterior.predict(X)
    u = mean[:, 1:] - mean[:, :1] - own.place.change.means.reference[0]
    spread = np.maximum(u.max(axis=1), 0.0) - np.minimum(u.min(axis=1), 0.0)
    sizes = own.place.plain_sizes
    assert float(sizes.mean[0]) >= spread.max() - 1e-12
    if m == 2:
        moved = variance.sum(axis=1) - float(own.place.L[0, 0, 0]) ** 2
        assert float(sizes.spread[0]) >= np.abs(moved).max() - 1e-12


@given(seed=seeds, size=st.sampled_from([0.0, 1e-12, 1e-3, 0.1]))
def test_eigenvalue_of_a_matrix_with_errors(seed, size):
    """The matrix that is meant lies anywhere within the errors of the one that is given."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, 5))
    root = rng.normal(size=(N, N))
    K, factors = root @ root.T, rng.normal(size=(2, 3, N))
    off = size * rng.choice([-1.0, 1.0], N)
    given_K, errors = K - np.outer(off, off), np.full((N, N), size * size)
    true = np.linalg.eigvalsh(sum(A @ K @ A.T for A in factors))[-1]
    found = largest_eigenvalue(tuple(factors), given_K, errors * (1.0 + 1e-9))
    assert found >= true * (1.0 - 1e-13)


@crossed({"winner": [0, 1, 2], "coupled": [True, False]})
def test_goal_is_the_least_margin(winner, coupled):
    """Over all rivals, with the costs of winner and rival, for a point and around it."""
    rng = np.random.default_rng(winner)
    costs = (1.0, 3.0, 0.25)
    Z, weights, A = rng.normal(size=(2, 1)), rng.normal(size=(3, 2)), rng.normal(size=(3, 2, 2))
    kernel = SquaredExponential(1.0, 2.0)
    posterior = Posterior(kernel, Z, weights, 0.1 * A, likelihood=Softmax(), coupled=coupled)
    own = evaluation_of(posterior, Box([-0.1], [0.1]))
    goal = QuantityGoal(ClassSums(own.layout, own.likelihood, margins(3, winner, costs)))
    X = np.linspace(-0.1, 0.1, 21)[:, None]
    weighted = posterior.prediction(X) * np.array(costs)
    true = weighted[:, winner] - np.delete(weighted, winner, axis=1).max(axis=1)
    assert float(goal.bound(own.evaluation, None).lower[0]) <= true.min() + 1e-7
    assert float(goal.ceiling(own.evaluation)[0]) >= true[10] - 1e-7
    searched = posterior.differences if coupled else posterior
    np.testing.assert_allclose(goal.function(searched)(X)[0], true, atol=1e-5)


@settings(max_examples=examples(60, quick=20))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9))
def test_the_second_derivative_as_a_form(seed, n):
    """Its norm is that of the largest eigenvalue in size, of either sign, errors added."""
    rng = np.random.default_rng(seed)
    D2 = rng.normal(size=(3, n, n)) * 10.0 ** rng.uniform(-8, 2)
    D2 = D2 + np.swapaxes(D2, 1, 2) + rng.choice([-3.0, 0.0, 3.0]) * np.eye(n)
    errors = rng.random((3, 3))
    jet = ClassJet(np.zeros(3), (np.zeros((3, n)), D2), errors)
    found = second_norm(jet)
    truth = np.linalg.norm(D2, 2, axis=(1, 2)) + errors[:, 2]
    assert np.all(found >= truth * (1.0 - 1e-12))
    assert np.all(found <= truth * (1.0 + 1e-9))
