"""Many coupled classes: the expansion about the nearest law of independent ones."""

import itertools
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.metric import measure
from gpcert.enclosures.classes.reference import nearest_variances
from gpcert.enclosures.classes.remainder import unexplained
from gpcert.enclosures.classes.taylor_bound import center_range, lost_beyond, taylor_bound
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Box
from gpcert.testing.effort import THOROUGH, crossed, examples, variants
from gpcert.testing.node_case import cell_points
from tests.enclosures.classes.class_cases import (
    ClassCase,
    diagonal_posterior,
    difference_map,
    evaluation_of,
    points_of_cells,
    random_classifier,
    random_evaluation,
    random_region,
    sums_of,
    true_sums,
)


class FarSoftmax(Softmax):
    """Few classes expanded as if they were many, so that the truth is known by its own integral."""

    largest_coupled: ClassVar[int] = 1


class FarProbit(MultinomialProbit):
    """The same for the multinomial probit."""

    largest_coupled: ClassVar[int] = 1


@st.composite
def far_cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    probit = draw(st.booleans())
    likelihood = FarProbit(draw(st.sampled_from([1.0, 0.3]))) if probit else FarSoftmax()
    m, dim = draw(st.sampled_from((3,) if probit else (3, 4))), draw(st.integers(1, 3))
    posterior = random_classifier(rng, True, m, likelihood, dim)
    return ClassCase(posterior, random_region(rng, posterior), rng)


@settings(max_examples=examples(80, quick=4))
@given(case=far_cases())
def test_cells_hold_the_truth(case):
    """The expansion by itself, and with what else is tried."""
    own = random_evaluation(case)
    points = points_of_cells(own.evaluation, case.rng)
    cells = own.evaluation.cells
    centers = cells.points_full(cells.center)
    for weights in sums_of(case.posterior.outputs, case.rng):
        jet = own.jet(weights)
        alone = to_numpy(taylor_bound(own.latent, own.place, jet).lower)
        best = to_numpy(own.lower(weights, None).lower)
        best = np.maximum(best, to_numpy(own.by_pieces(weights)))
        low, high = (to_numpy(end) for end in center_range(own.latent, own.place, jet))
        least, greatest = true_sums(case.posterior, centers, weights)
        assert np.all(low <= greatest)
        assert np.all(high >= least)
        assert np.all(to_numpy(own.upper_at_center(weights)) >= least)
        for b, X in enumerate(points):
            if len(X):
                truth = true_sums(case.posterior, X, weights)[1].min()
                assert max(alone[b], best[b]) <= truth


@st.composite
def many_cases(draw):
    """Three to six coupled, mixed or independent classes whose changes are known jointly."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, dim = draw(st.sampled_from([4, 5, 6])), draw(st.integers(1, 4))
    coupled = draw(st.booleans())
    likelihood = draw(st.sampled_from([FarSoftmax(), FarProbit(0.5)]))
    posterior = random_classifier(rng, coupled, m, likelihood, dim)
    return ClassCase(posterior, random_region(rng, posterior), rng)


@settings(max_examples=examples(100, quick=15))
@given(case=many_cases())
def test_sizes_hold_the_change(case):
    """Length of the means' change; trace, traceless part and length of the covariance's."""
    own = random_evaluation(case, splits=3)
    posterior, place = case.posterior, own.place
    m = posterior.outputs
    T = difference_map(m)
    for b, X in enumerate(points_of_cells(own.evaluation, case.rng)):
        if len(X) == 0:
            continue
        inverse = np.linalg.inv(to_numpy(place.L)[b])
        V = T @ posterior.covariances(X) @ T.T
        V = V + posterior.likelihood.noise * (np.eye(m - 1) + 1.0)
        W = inverse @ V @ inverse.T - np.eye(m - 1)
        moved = (
            posterior.predict(X)[0] @ T.T - to_numpy(place.change.means.reference)[b]
        ) @ inverse.T
        trace = np.trace(W, axis1=1, axis2=2)
        skew = W - trace[:, None, None] * np.eye(m - 1) / (m - 1)
        slack = 1e-9 * (1.0 + np.abs(inverse).max() ** 2 * np.abs(V).max())
        found = place.sizes
        for size, truth in (
            (found.mean, np.linalg.norm(moved, axis=1)),
            (found.frobenius, np.linalg.norm(W, axis=(1, 2))),
            (found.operator, np.linalg.norm(W, 2, axis=(1, 2))),
            (found.spread, np.linalg.norm(W, "nuc", axis=(1, 2))),
            (found.trace, np.abs(trace)),
            (found.skew, np.linalg.norm(skew, axis=(1, 2))),
        ):
            assert truth.max() <= to_numpy(size)[b] + slack


def test_bends_together_are_smaller_than_one_by_one():
    """Many features and classes: the outputs' squares are one matrix below the prior's."""
    rng = np.random.default_rng(2)
    m, N, dim = 8, 20, 12
    kernel = SquaredExponential(2.0, 4.0)
    Z = rng.normal(size=(N, dim))
    A = np.linalg.inv(np.linalg.cholesky(kernel.value(Z, Z) + 0.5 * np.eye(N)))
    factor = np.zeros((m, m * N, N))
    for c in range(m):
        factor[c, c * N : (c + 1) * N] = A
    weights = rng.normal(size=(m, N))
    posterior = Posterior(kernel, Z, weights, factor, likelihood=Softmax(), coupled=True)
    own = evaluation_of(posterior, Box(Z[0] - 0.05, Z[0] + 0.05))
    place = own.place
    alone = replace(place.change, joint=None)
    apart = measure(alone, place.R, place.inflation, place.geometry)
    assert float(place.sizes.frobenius[0]) < 0.8 * float(apart.frobenius[0])
    weights = tuple(np.eye(m)[0])
    whole = float(taylor_bound(own.latent, own.place, own.jet(weights)).lower[0])
    assert float(own.by_pieces(weights)[0]) > whole


@crossed({"likelihood": [Softmax(), MultinomialProbit(0.5)], "spread": [20.0, 0.5, 0.0]}, quick=2)
def test_ten_independent_classes_are_known_exactly(likelihood, spread):
    """Coupled by name only: the Gumbel form is the truth. Equal classes; one that dominates."""
    rng = np.random.default_rng(3)
    posterior = diagonal_posterior(10, rng, likelihood, spread)
    x = posterior.points[0]
    own = evaluation_of(posterior, Box(x - 0.03, x + 0.03))
    X = np.vstack([x, x + rng.uniform(-0.03, 0.03, (40, 2))])
    mean, variance = posterior.predict(X)
    for weights in sums_of(10, rng)[:3]:
        found = likelihood.independent_moments(mean, variance, np.asarray(weights))
        low, high = center_range(own.latent, own.place, own.jet(weights))
        assert low[0] <= found.value[0] + 1e-9
        assert high[0] >= found.value[0] - 1e-9
        assert high[0] - low[0] <= 1e-6
        lower = float(own.lower(weights, None).lower[0])
        assert lower <= found.value.min() + 1e-9
        assert lower >= found.value.min() - 0.02


def cubature(mean, V, nodes):
    """Class probabilities (m,) of the softmax by a product rule over the differences."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    n = len(mean)
    L = np.linalg.cholesky(V)
    total = np.zeros(n + 1)
    tail = np.array(list(itertools.product(z, repeat=n - 1)))
    tail_w = np.prod(np.array(list(itertools.product(w, repeat=n - 1))), axis=1)
    for first, first_w in zip(z, w, strict=True):
        Z = np.column_stack([np.full(len(tail), first), tail])
        d = np.column_stack([np.zeros(len(tail)), mean + Z @ L.T])
        p = np.exp(d - d.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        total += first_w * (tail_w @ p)
    return total / np.sqrt(2.0 * np.pi) ** n


@variants("m, mixing", [(5, 2.0), (5, 0.05), (5, 0.0), (6, 2.0), (6, 0.05), (6, 0.0)], quick=2)
def test_five_and_six_classes_against_cubature(m, mixing):
    """Coupled a little and a lot; the rule's own error is seen from a coarser one."""
    rng = np.random.default_rng(10 * m + int(10 * mixing))
    N = 4
    Z = rng.normal(size=(N, 2))
    kernel = SquaredExponential(1.5, 2.0)
    H = np.kron(np.eye(m) + mixing * rng.normal(size=(m, m)), np.eye(N))
    S = H @ np.kron(np.eye(m), kernel.value(Z, Z)) @ H.T + 0.5 * np.eye(m * N)
    A = np.linalg.solve(np.linalg.cholesky(S), H)
    factor = np.moveaxis(A.reshape(m * N, m, N), 1, 0)
    posterior = Posterior(
        kernel, Z, rng.normal(size=(m, N)), factor, likelihood=Softmax(), coupled=True
    )
    x = Z[1] + 0.1
    X = np.vstack([x, x + 0.05, x + np.array([0.05, -0.05])])
    T = difference_map(m)
    own = evaluation_of(posterior, Box(x - 0.05, x + 0.05))
    means, covariances = posterior.predict(X)[0] @ T.T, T @ posterior.covariances(X) @ T.T
    rules = (9, 12) if m == 6 else (14, 18)
    values = [
        [cubature(mean, V, n) for mean, V in zip(means, covariances, strict=True)] for n in rules
    ]
    coarse, fine = (np.array(v) for v in values)
    error = 4.0 * np.abs(fine - coarse).max() + 1e-9
    rows = [tuple(sign * row) for row in np.eye(m) for sign in (1.0, -1.0)]
    for weights in rows if THOROUGH else rows[1:5]:
        truth = fine @ np.asarray(weights)
        low, high = center_range(own.latent, own.place, own.jet(weights))
        assert low[0] <= truth[0] + error
        assert high[0] >= truth[0] - error
        assert float(own.lower(weights, None).lower[0]) <= truth.min() + error
        if mixing <= 0.05:
            assert high[0] - low[0] <= 0.01


@crossed({"common": [1e3, 1.0], "rank": [2, 1]}, quick=1)
def test_nearly_singular_covariances(common, rank):
    """Latent values that hardly move but together: bounds stay, whatever law is nearest."""
    rng = np.random.default_rng(rank)
    m, N = 6, 3
    Z = rng.normal(size=(N, 2))
    kernel = SquaredExponential(1.0, 1.0)
    # all but `rank` directions of the classes are observed without noise
    basis = np.linalg.qr(np.column_stack([np.ones(m), rng.normal(size=(m, m - 1))]))[0]
    H = np.kron(common * basis[:, rank:].T, np.eye(N))
    S = H @ np.kron(np.eye(m), kernel.value(Z, Z)) @ H.T
    S += 1e-8 * float(np.trace(S)) / len(S) * np.eye(len(S))
    A = np.linalg.solve(np.linalg.cholesky(S), H)
    factor = np.moveaxis(A.reshape(len(A), m, N), 1, 0)
    posterior = Posterior(
        kernel, Z, rng.normal(size=(m, N)), factor, likelihood=Softmax(), coupled=True
    )
    own = evaluation_of(posterior, Box(Z[0] - 0.01, Z[0] + 0.01))
    mean, covariance = posterior.predict(Z[:1])[0][0], posterior.covariances(Z[:1])[0]
    centred = np.eye(m) - 1.0 / m  # a shift of all has no effect
    values, vectors = np.linalg.eigh(centred @ covariance @ centred)
    z, w = np.polynomial.hermite_e.hermegauss(150)
    f = mean + np.sqrt(max(values[-1], 0.0)) * z[:, None] * vectors[:, -1]
    links = np.exp(f - f.max(axis=1, keepdims=True))
    truth = (w / np.sqrt(2.0 * np.pi)) @ (links / links.sum(axis=1, keepdims=True))
    # second derivatives of the softmax are below 1: what the other directions add
    error = float(np.abs(values[:-1]).sum()) + 1e-9
    assert error < 1e-3
    for c in range(m) if THOROUGH else (0, 3):
        unit = tuple(np.eye(m)[c])
        low = float(own.lower(unit, None).lower[0])
        high = -float(own.lower(tuple(-w for w in unit), None).lower[0])
        assert low <= truth[c] + error
        assert high >= truth[c] - error
        assert float(own.upper_at_center(unit)[0]) >= truth[c] - error


@settings(max_examples=examples(60, quick=10))
@given(seed=st.integers(0, 2**32 - 1), m=st.sampled_from([3, 4, 6, 10]))
def test_a_diagonal_up_to_a_shift_is_found(seed, m):
    rng = np.random.default_rng(seed)
    D = 10.0 ** rng.uniform(-1.5, 2.0, (3, m))
    T = difference_map(m)
    full = D[:, :, None] * np.eye(m) + rng.uniform(0.0, 100.0, (3, 1, 1))
    found = nearest_variances(T @ full @ T.T)
    if m > 3:  # three classes have as many variances of pairs: any law is independent
        V, near = T @ full @ T.T, T @ (found[:, :, None] * np.eye(m)) @ T.T
        W = np.linalg.solve(V, near) - np.eye(m - 1)
        assert np.abs(W).max() < 1.0
    assert np.all(found > 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_any_covariance_has_variances(bad):
    V = np.eye(4)[None] * 1.0
    V[0, 0, 0] = bad
    with np.errstate(all="ignore"):
        found = nearest_variances(V)
    assert np.all(np.isfinite(found))
    assert np.all(found > 0)


def test_the_part_beyond_two_degrees():
    """`unexplained` is what Hermite's polynomials of degree 0 to 2 leave of the sum."""
    rng = np.random.default_rng(1)
    posterior = diagonal_posterior(5, rng, Softmax())
    x = posterior.points[0]
    own = evaluation_of(posterior, Box(x, x))
    weights = (1.0, -0.5, 0.0, 0.0, 0.0)
    jet, place = own.jet(weights), own.place
    z = rng.normal(size=(400_000, 4))
    d = place.change.means.reference[0] + z @ place.L[0].T
    d = np.column_stack([np.zeros(len(d)), d])
    p = np.exp(d - d.max(axis=1, keepdims=True))
    s = (p / p.sum(axis=1, keepdims=True)) @ np.asarray(weights)
    first, second = (t[0] for t in jet.derivatives)
    square = 0.5 * (np.einsum("ni,ij,nj->n", z, second, z) - np.trace(second))
    left = s - jet.value[0] - z @ first - square
    assert np.sqrt(np.mean(left**2)) == pytest.approx(float(unexplained(jet)[0]), rel=0.02)
    assert lost_beyond(place, jet)[0] < 1e-3


def test_random_boxes_of_five_classes_stay_below_their_points():
    """Children are not looser than their parents by more than what they are for."""
    rng = np.random.default_rng(5)
    posterior = diagonal_posterior(5, rng, Softmax())
    x = posterior.points[0]
    region = Box(x - 0.2, x + 0.2)
    own = evaluation_of(posterior, region)
    X = cell_points(own.evaluation.cells, 0, rng)
    mean, variance = posterior.predict(X)
    for weights in sums_of(5, rng):
        found = Softmax().independent_moments(mean, variance, np.asarray(weights))
        lower = float(own.lower(weights, None).lower[0])
        assert lower <= (found.value + found.errors[:, 0]).min() + 1e-9
