"""Parts of the class bounds alone, where a whole bound would hide that they are off."""

from fractions import Fraction

import numpy as np
import pytest
from class_cases import evaluation_of, true_sums
from flint import arb_mat, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from gpcert.enclosures.classes.layout import ClassLayout
from gpcert.enclosures.classes.metric import _coordinates, _nuclear, _spectral
from gpcert.enclosures.classes.moments import Jet, weighted_jet
from gpcert.enclosures.classes.reference import _inverse_error
from gpcert.enclosures.classes.remainder import degree_bound, higher_degrees, shrunk_bounds
from gpcert.enclosures.goals.classes import Classes, ClassGoal, margins
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.likelihoods.smoothing import PROBABILITY_LINES, UNIMODAL_BOUNDS, unimodal_bound
from gpcert.posterior import Posterior, on_grid
from gpcert.regions import Box

seeds = st.integers(0, 2**32 - 1)
LIKELIHOODS = [Softmax(), MultinomialProbit()]


@settings(max_examples=50)
@given(seed=seeds, n=st.integers(1, 4), off=st.sampled_from([0.0, 1e-9, 1e-3, -1e-3, 0.2]))
def test_inverse_error(seed, n, off):
    """`L^-1 = T R`, in ball arithmetic, for inverses that are off by a factor as well."""
    rng = np.random.default_rng(seed)
    L = np.tril(rng.normal(size=(n, n))) + np.diag(10.0 ** rng.uniform(-3, 2, n))
    R = np.linalg.inv(L) * (1.0 + off)
    error = float(_inverse_error(R[None], L[None])[0])
    if not np.isfinite(error):
        return
    precision, ctx.prec = ctx.prec, 300
    try:
        T = (arb_mat(R.tolist()) * arb_mat(L.tolist())).inv()
        T = np.array([[float(T[i, j] - (i == j)) for j in range(n)] for i in range(n)])
    finally:
        ctx.prec = precision
    assert np.linalg.norm(T, 2) * (1.0 - 1e-9) <= error


@given(seed=seeds, n=st.integers(1, 4))
def test_norms_of_covariances(seed, n):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-2, 2)
    W = W + W.T if rng.random() < 0.7 else np.outer(W[0], W[0]) - np.diag(rng.random(n))
    sizes = np.abs(_coordinates(W[None, None]))[:, :, 0]
    values = np.abs(np.linalg.eigvalsh(W))
    assert float(_nuclear(sizes, n)[0]) >= values.sum() * (1.0 - 1e-12)
    assert float(_spectral(sizes, n)[0]) >= values.max() * (1.0 - 1e-12)


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
@pytest.mark.parametrize("independent", [True, False])
def test_layout_is_that_of_differences(classes, independent):
    """Means, variances and ranks for random outputs, coupled ones as `Posterior.differences`."""
    rng = np.random.default_rng(classes)
    layout = ClassLayout(classes, independent)
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
        Jet(np.array([0.5]), (zero, zero[:, :, None] + zero[:, None]), np.array([error]))
        for error in ([0.1, 0.2, 0.3], [0.05, 0.2, 0.6])
    ]
    for weights in ((1.0, -1.0), (-2.0, 1.0)):
        found = weighted_jet(tuple(zip(weights, parts, strict=True))).errors[0]
        assert np.all(found >= sum(abs(w) * p.errors[0] for w, p in zip(weights, parts)))


@pytest.mark.parametrize("operator", [0.0, 0.5, 0.75, 0.99])
def test_bounds_grow_as_the_covariance_shrinks(operator):
    """A smoothing by sqrt(1 - operator) standard deviations: every derivative has its power."""
    found = shrunk_bounds(UNIMODAL_BOUNDS, np.array([operator]))
    for order, (bound, e) in enumerate(zip(found, UNIMODAL_BOUNDS, strict=True), 1):
        assert float(bound[0]) >= e * (1.0 - operator) ** (-0.5 * order) * (1.0 - 1e-14)
    assert np.isinf(shrunk_bounds(UNIMODAL_BOUNDS, np.ones(1))[0][0])


@given(a=st.floats(0.0, 3.0), w=st.floats(0.0, 3.0), m=st.floats(0.0, 2.0), s=st.floats(0.0, 2.0))
def test_degrees_of_an_exponential(a, w, m, s):
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
    for known, expanded in ((norms[:2], (a * m) ** 2), (norms[:4], x**2), (norms[:6], x**2)):
        found = float(higher_degrees(known, bounds, mean, spread)[0])
        assert found >= (rest - 0.5 * expanded) * (1.0 - 1e-9) - 1e-12 * largest


def drop(u, slope, step):
    """Upper bound (M,) of `u(a) - u(b)` over a < b; u given at nodes, slope bounds |u'|.

    On the cell around a node u is within `|u'(node)| step / 2 + max |u''| step^2 / 8`.
    """
    first, second = slope
    room = 0.5 * step * np.abs(first) + 0.125 * step * step * second + 1e-12
    high = np.maximum.accumulate(u + room)
    return float(np.max(high - (u - room)))


@pytest.mark.parametrize("order", range(1, 9))
def test_lines_of_small_probabilities(order):
    """The heights, over all intervals; beyond 12 the Hermite functions are below 1e-24."""
    step = 2e-4
    x = np.arange(-12.0, 12.0 + step, step)
    hermite = [special.eval_hermitenorm(j, x) for j in range(order + 2)]
    density = np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
    for slope, height in (*PROBABILITY_LINES[order - 1], (0.0, UNIMODAL_BOUNDS[order - 1])):
        worst = 0.0
        for sign in (1.0, -1.0):
            u = sign * hermite[order - 1] * density + slope * special.ndtr(x)
            first = -sign * hermite[order] * density + slope * density
            # |He_n phi| <= sqrt(n!) sqrt(phi(0) phi): Cramer's inequality, with its constant 1.09
            second = 1.09 * np.sqrt(special.factorial(order + 1)) * 0.4 + abs(slope) * 0.25
            worst = max(worst, drop(u, (first, second), step))
        # a whole line has the probability 1, nothing the probability 0
        assert worst <= height
        assert worst >= height - 1e-3 * max(1.0, abs(slope))
    ends = np.array([0.0, 0.01, 0.5, 0.99, 1.0])
    for low in ends:
        inside = ends[ends >= low]
        joint = unimodal_bound(order, np.full(len(inside), low), inside)
        points = unimodal_bound(order, inside, inside)
        assert np.all(joint >= np.maximum.accumulate(points) - 1e-12)


@given(seed=seeds, m=st.integers(2, 5))
def test_differences_are_exact(seed, m):
    rng = np.random.default_rng(seed)
    values = on_grid(rng.normal(size=m) * 10.0 ** rng.uniform(-18, 3, m))
    for a in values.tolist():
        for b in values.tolist():
            assert Fraction(a) - Fraction(b) == Fraction(a - b)
            assert Fraction(a) + Fraction(b) == Fraction(a + b)


def indefinite(likelihood, size, amplitude=1.0):
    """Three coupled outputs that explain more than the prior's variance where all of it is."""
    A = size / np.sqrt(amplitude) * np.array([[[1.0]], [[-1.0]], [[0.2]]])
    kernel = SquaredExponential(1.0, amplitude)
    weights = np.array([[0.8], [-0.3], [0.1]]) / amplitude
    return Posterior(kernel, [[0.0]], weights, A, likelihood=likelihood, coupled=True)


@pytest.mark.parametrize("size", [0.3, 0.72, 1.0, 3.0])
def test_excess_of_coupled_outputs(size):
    """`sum_c A_c K A_c^T <= (1 + excess) I`, which its parts may obey one by one."""
    posterior = indefinite(Softmax(), size)
    assert posterior.excess >= 2.04 * size * size - 1.0
    assert posterior.differences.excess == posterior.excess


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("size", [0.72, 0.75, 1.0, 1.5])
@pytest.mark.parametrize("amplitude", [1.0, 30.0])
def test_covariances_that_are_not_definite(likelihood, size, amplitude):
    """Their nearest semi-definite matrix is what is meant."""
    posterior = indefinite(likelihood, size, amplitude)
    own = evaluation_of(posterior, Box([-0.05], [0.05]))
    X = np.linspace(-0.05, 0.05, 11)[:, None]
    rows = [*np.eye(3), *-np.eye(3), [1.0, -1.0, 0.0], [0.0, -1.0, 1.0]]
    for weights in (tuple(map(float, row)) for row in rows):
        low, high = true_sums(posterior, X, weights)
        assert float(own.lower(weights, None).lower[0]) <= high.min()
        assert float(own.upper_at_center(weights)[0]) >= low[5]


@pytest.mark.parametrize("winner", [0, 1, 2])
@pytest.mark.parametrize("coupled", [True, False])
def test_goal_is_the_least_margin(winner, coupled):
    """Over all rivals, with the costs of winner and rival, for a point and around it."""
    rng = np.random.default_rng(winner)
    costs = (1.0, 3.0, 0.25)
    posterior = Posterior(
        SquaredExponential(1.0, 2.0),
        rng.normal(size=(2, 1)),
        rng.normal(size=(3, 2)),
        0.3 * rng.normal(size=(3, 2, 2)),
        likelihood=Softmax(),
        coupled=coupled,
    )
    own = evaluation_of(posterior, Box([-0.1], [0.1]))
    goal = ClassGoal(Classes(own.layout, own.likelihood), margins(3, winner, costs))
    X = np.linspace(-0.1, 0.1, 21)[:, None]
    weighted = posterior.prediction(X) * np.array(costs)
    true = weighted[:, winner] - np.delete(weighted, winner, axis=1).max(axis=1)
    assert float(goal.bound(own.evaluation, None).lower[0]) <= true.min() + 1e-7
    assert float(goal.ceiling(own.evaluation)[0]) >= true[10] - 1e-7
    searched = posterior.differences if coupled else posterior
    np.testing.assert_allclose(goal.function(searched)(X)[0], true, atol=1e-5)
