"""The expansion about several covariances, and bends of sums: where the variance changes a lot."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import gpcert
from gpcert.enclosures.classes.jets import class_jet, weighted_jet
from gpcert.enclosures.classes.latent import Shapes, variance_first_order
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.classes.taylor_bound import moved_reference, piece_bound, taylor_bound
from gpcert.enclosures.goals import QuantityGoal
from gpcert.enclosures.goals.compound import classes_of
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.class_layout import class_layout
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.quantities import ClassSums
from gpcert.quantities.compound import margins
from gpcert.regions import Box
from gpcert.testing.effort import crossed, examples
from tests.enclosures.classes.class_cases import (
    class_cases,
    difference_map,
    evaluation_of,
    points_of_cells,
    random_evaluation,
    sums_of,
    true_sums,
)


@settings(max_examples=examples(60, quick=4))
@given(case=class_cases(coupled=True))
def test_random_cells(case):
    own = random_evaluation(case, splits=2, keep=3)
    if own.layout.n > 2:
        return
    points = points_of_cells(own.evaluation, case.rng)
    for weights in sums_of(own.layout.classes, case.rng):
        lower = to_numpy(own.by_pieces(weights))
        for b, X in enumerate(points):
            if len(X):
                assert lower[b] <= true_sums(case.posterior, X, weights)[1].min()
        if case.posterior.outputs == 3:
            for known in (lower, lower - 0.1, lower + case.rng.normal(0.0, 0.1, len(lower))):
                found = to_numpy(own.by_pieces(weights, known))
                np.testing.assert_array_equal(np.fmax(found, known), np.fmax(lower, known))


def well(amplitude, offset, likelihood, m=2):
    """One point that is known, and nothing elsewhere: the variance grows from 0 to the prior's."""
    kernel = SquaredExponential(1.0, amplitude)
    factor = np.eye(m)[:, :, None] / np.sqrt(amplitude * 1.0001)
    weights = np.zeros((m, 1))
    return Posterior(
        kernel, [[0.0]], weights, factor, offset=offset, likelihood=likelihood, coupled=True
    )


@crossed(
    {
        "likelihood": [Softmax(), MultinomialProbit(0.5)],
        "amplitude": [0.5, 4.0, 40.0],
        "ends": [(0.3, 0.6), (0.3, 1.0), (0.5, 2.0)],
        "shift": [0.3, -1.0, 4.0],
    }
)
def test_only_the_variance_changes(likelihood, amplitude, ends, shift):
    """Nothing but the variance moves, so a piece that is too short or too cheap is noticed."""
    posterior = well(amplitude, [0.0, shift], likelihood)
    own = evaluation_of(posterior, Box([ends[0]], [ends[1]]))
    X = np.linspace(*ends, 200)[:, None]
    for weights in ((1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (-1.0, 1.0)):
        least = true_sums(posterior, X, weights)[1].min()
        assert float(to_numpy(own.by_pieces(weights))[0]) <= least


@crossed(
    {
        "likelihood": [Softmax(), MultinomialProbit(0.5)],
        "amplitude": [1.0, 20.0],
        "ends": [(0.3, 0.6), (0.6, 1.2)],
    }
)
def test_three_classes_whose_variance_changes(likelihood, amplitude, ends):
    posterior = well(amplitude, [0.0, 1.0, -0.5], likelihood, m=3)
    own = evaluation_of(posterior, Box([ends[0]], [ends[1]]))
    X = np.linspace(*ends, 200)[:, None]
    for weights in ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (-1.0, 1.0, 0.0), (0.0, 1.0, -1.0)):
        least = true_sums(posterior, X, weights)[1].min()
        assert float(to_numpy(own.by_pieces(weights))[0]) <= least


def test_pieces_pay_where_the_variance_changes():
    posterior = well(20.0, [0.0, 1.0, -0.5], Softmax(), m=3)
    own = evaluation_of(posterior, Box([0.5], [1.0]))
    weights = (0.0, 1.0, 0.0)
    pieces = float(to_numpy(own.by_pieces(weights))[0])
    one = float(to_numpy(taylor_bound(own.latent, own.place, own.jet(weights)).lower)[0])
    truth = true_sums(posterior, np.linspace(0.5, 1.0, 100)[:, None], weights)[0].min()
    assert truth - pieces < 0.05
    assert one < pieces - 0.05


@settings(max_examples=examples(40))
@given(case=class_cases(coupled=True))
def test_sizes_of_a_piece(case):
    """Means and covariances of points in a piece, measured from its own reference."""
    own = random_evaluation(case, splits=1, keep=2)
    n = own.layout.n
    if n > 2:
        return
    place, T = own.place, difference_map(n + 1)
    trace = to_numpy(place.sizes.trace)
    points = points_of_cells(own.evaluation, case.rng)
    noise = case.posterior.likelihood.noise * (np.eye(n) + 1.0)
    for share in (-0.5, 0.0, 0.5):
        middle = np.maximum(share * trace, -0.9 * n)
        half = 0.4 * trace + 1e-6
        moved = moved_reference(place, middle, half)
        for b, X in enumerate(points):
            if not len(X):
                continue
            V = T @ case.posterior.covariances(X) @ T.T + noise
            d = case.posterior.predict(X)[0] @ T.T
            back = np.linalg.inv(to_numpy(place.L)[b])
            t = np.trace(back @ V @ back.T - np.eye(n), axis1=1, axis2=2)
            assert np.all(np.abs(t) <= trace[b] + 1e-6 * (1.0 + abs(t)))
            inside = np.abs(t - middle[b]) <= 0.999 * half[b]
            L = to_numpy(moved.L)[b]
            R = np.linalg.inv(L)
            W = R @ (V[inside] - L @ L.T) @ R.T
            eigenvalues = np.linalg.eigvalsh(W)
            slack = 1e-6 * (1.0 + np.abs(eigenvalues).sum(1))
            spread = to_numpy(moved.sizes.spread)[b]
            assert np.all(np.abs(eigenvalues).sum(1) <= spread + slack)
            operator = to_numpy(moved.sizes.operator)[b]
            assert np.all(np.abs(eigenvalues).max(1, initial=0.0) <= operator + slack)
            gap = (d[inside] - to_numpy(place.change.means.reference)[b]) @ R.T
            mean = to_numpy(moved.sizes.mean)[b]
            assert np.all(np.linalg.norm(gap, axis=1) <= mean + 1e-6 * (1.0 + mean))


@settings(max_examples=examples(40))
@given(case=class_cases(coupled=True))
def test_bends_of_sums(case):
    """Sums of variances bend at most as their common shape says."""
    own = random_evaluation(case, splits=2, keep=3)
    evaluation, J = own.evaluation, own.layout.outputs
    found = variance_first_order(LatentOutputs(evaluation), J)
    rows = case.rng.normal(size=(len(evaluation.cells), 4, J))
    bends = to_numpy(found.shapes.bends(rows, evaluation.expansion.geometry))
    searched = evaluation.local.posterior
    scale = to_numpy(evaluation.local.kernel.inverse_length)
    free = evaluation.cells.region.free
    for b, X in enumerate(points_of_cells(evaluation, case.rng)):
        if len(X):
            d = (np.asarray(X)[:, free] - to_numpy(evaluation.cells.center)[b]) * scale
            y = searched.predict(X)[1]
            off = y - to_numpy(found.reference)[b] - d @ to_numpy(found.slope)[b].T
            size = np.abs(y).max() + np.abs(to_numpy(found.reference)[b]).max()
            sums = np.abs(off @ rows[b].T)
            assert np.all(sums <= bends[b] + 1e-9 * size * np.abs(rows[b]).sum(1))


@settings(max_examples=examples(20))
@given(case=class_cases(coupled=True))
def test_a_piece_is_measured_from_its_own_covariance(case):
    own = random_evaluation(case, splits=1, keep=2)
    n, place = own.layout.n, own.place
    if n > 2:
        return
    moved = moved_reference(place, 0.3 * np.ones(len(place.L)), 0.1 * np.ones(len(place.L)))
    reference = to_numpy(place.change.variances.reference)
    noise = case.posterior.likelihood.noise * (np.eye(n) + 1.0)
    V = np.einsum("bj,jkl->bkl", reference, own.layout.matrices) + noise
    L = to_numpy(moved.L)
    size = np.abs(V).max() + 1.0
    np.testing.assert_allclose(moved.change.offset, L @ L.transpose(0, 2, 1) - V, atol=1e-9 * size)
    ratio = 1.0 + 0.3 / n
    np.testing.assert_allclose(L, np.sqrt(ratio) * to_numpy(place.L), rtol=1e-12)


@pytest.mark.parametrize("order", [3, 4])
def test_a_piece_pays_for_its_second_order(order):
    """A larger third or fourth derivative costs what it can do to degree 2."""
    posterior = well(6.0, [0.0, 1.0, -0.5], Softmax(), m=3)
    own = evaluation_of(posterior, Box([0.5], [0.7]))
    a = own.place.change.means.reference

    def jet_at(L, more):
        jet = class_jet(Softmax().moments(a, L, 4), 1)
        tensors = list(jet.derivatives)
        spike = np.zeros_like(tensors[order - 1])
        spike.reshape(-1)[0] = more
        tensors[order - 1] = tensors[order - 1] + spike
        return weighted_jet(((1.0, replace(jet, derivatives=tuple(tensors))),))

    middle, half = np.array([0.1]), np.array([0.2])
    place = replace(own.place, sizes=replace(own.place.sizes, mean=own.place.sizes.mean + 0.5))
    moved = moved_reference(place, middle, half)
    lower = [
        float(piece_bound(own.latent, moved, lambda place, x=x: jet_at(place.L, x))[0])
        for x in (0, 20)
    ]
    sizes = moved.sizes
    A, W = float(sizes.mean[0]), float(sizes.spread[0])
    cost = 0.5 * A * W if order == 3 else 0.125 * W * W
    assert lower[1] <= lower[0] - 19.0 * cost


def test_shapes_with_signs():
    """Sums with coefficients of either sign, of functions that bend in all ways."""
    rng = np.random.default_rng(0)
    kernel = SquaredExponential([1.0, 1.0, 1.0], 2.0)
    posterior = Posterior(
        kernel, np.zeros((1, 3)), np.zeros((2, 1)), likelihood=Softmax(), factor=None
    )
    own = evaluation_of(posterior, Box([-0.4, -0.3, -0.5], [0.4, 0.3, 0.5]))
    geometry = own.evaluation.expansion.geometry
    half = to_numpy(geometry.half)[0]
    for _ in range(examples(200)):
        H = rng.normal(size=(1, 3, 3, 3))
        H = H + H.transpose(0, 1, 3, 2)
        lost, gained, middle = rng.random((3, 1, 3)) * 0.1
        shapes = Shapes(H, -H, lost, gained, middle)
        rows = rng.normal(size=(1, 5, 3))
        low, high = (to_numpy(end)[0] for end in shapes.intervals(rows, geometry))
        bends = to_numpy(shapes.bends(rows, geometry))[0]
        d = half * rng.choice([-1.0, 0.0, 1.0], size=(60, 3))
        values = 0.5 * np.einsum("pa,jab,pb->pj", d, H[0], d)
        for slack in (-lost[0], gained[0], 0.0 * lost[0]):
            sums = (values + slack) @ rows[0].T
            assert np.all(sums >= low)
            assert np.all(sums <= high)
            assert np.all(np.abs(sums - middle[0] @ rows[0].T) <= bends)


def test_nearly_singular_covariances_converge_at_a_point():
    """Two classes that are almost the same: the links' own smoothness bounds what is missed."""
    kernel = SquaredExponential(1.0, 4.0)
    # f_0 - f_1 is observed with almost no noise: its variance is 8e-9
    factor = np.sqrt((1.0 - 1e-9) / 8.0) * np.array([1.0, -1.0, 0.0])[:, None, None]
    posterior = Posterior(
        kernel, [[0.0]], np.zeros((3, 1)), factor, likelihood=Softmax(), coupled=True
    )
    found = gpcert.prediction_range(posterior, gpcert.Box([0.0], [0.0]), output=0, tol=1e-3)
    assert found.converged
    low, high = true_sums(posterior, np.zeros((1, 1)), (1.0, 0.0, 0.0))
    assert found.minimum.lower <= high[0]
    assert found.maximum.upper >= low[0]


def test_a_batch_is_remembered_by_its_evaluation_alone():
    """What is known about a batch holds its arrays: it goes with it, without a garbage collection,
    and is found once."""
    posterior = well(4.0, [0.0, 1.0], Softmax())
    evaluation = evaluation_of(posterior, Box([0.3], [0.4])).evaluation
    sums = ClassSums(class_layout(posterior)[0], Softmax(), margins(2, 0, (1.0, 1.0)))
    goal = QuantityGoal(sums)
    goal.bound(evaluation, None)
    goal.ceiling(evaluation)
    assert classes_of(sums, evaluation).place is classes_of(sums, evaluation).place
    gone = weakref.ref(evaluation)
    gc.disable()
    try:
        del evaluation
        assert gone() is None
    finally:
        gc.enable()
