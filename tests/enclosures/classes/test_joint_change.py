"""How all variances of many classes change together, by hand-made sizes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.joint_change import (
    JointBends,
    joint_sizes,
    longest_change,
    spectral_size,
)
from gpcert.enclosures.classes.latent import FirstOrder
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Softmax
from gpcert.model.class_layout import ClassLayout
from gpcert.model.posterior import Posterior
from gpcert.regions import Box
from gpcert.testing.effort import crossed, examples
from tests.enclosures.classes.class_cases import (
    diagonal_posterior,
    evaluation_of,
)


def still(values):
    """Variances (1, J) that do not move, seen from references beside them."""
    zero = np.zeros_like(values)
    beside = values * np.linspace(0.5, 1.5, values.shape[1])
    return FirstOrder(beside, np.zeros((*values.shape, 0)), zero, zero, values)


def still_geometry():
    """Of a single point."""
    posterior = diagonal_posterior(5, np.random.default_rng(0), Softmax())
    return evaluation_of(posterior, Box([0.0, 0.0], [0.0, 0.0])).latent.geometry


def hand_made_sizes(growth, seed, bent=0.0, metric=None):
    """`joint_sizes` of a covariance that is V_0 at the centre but for a shift of the references,
    and bends by at most `bent` times V_0; in the metric of V_0, or another one."""
    rng = np.random.default_rng(seed)
    layout = ClassLayout(5)
    V = np.eye(4) + 1.0
    wanted = V + 0.3 * np.diag(rng.random(4))
    pairs = [(k, other) for k in range(5) for other in range(k + 1, 5)]
    full = np.zeros((5, 5))
    full[1:, 1:] = wanted
    y = np.array([[full[k, k] + full[o, o] - 2.0 * full[k, o] for k, o in pairs]])
    variances = still(y)
    L = np.linalg.cholesky(V)[None]
    R = np.linalg.inv(L) if metric is None else metric[None]
    offset = V[None] - np.tensordot(variances.reference, layout.matrices, axes=1)
    zero = np.zeros(1)
    joint = JointBends(0.0 * y, zero, zero + bent, V, zero + growth, np.zeros((4, 4)), L)
    change = SimpleNamespace(
        variances=variances, matrices=layout.matrices, offset=offset, offset_error=zero
    )
    sizes = joint_sizes(change, joint, R, still_geometry())
    return [float(x[0]) for x in sizes], R[0], wanted


@pytest.mark.parametrize("seed", range(3))
def test_the_centre_is_measured_from_the_references(seed):
    (trace, skew), R, wanted = hand_made_sizes(0.0, seed)
    W = R @ wanted @ R.T - np.eye(4)
    assert trace == pytest.approx(np.trace(W), rel=1e-9)
    assert trace >= np.trace(W) * (1.0 - 1e-12)
    left = np.linalg.norm(W - np.trace(W) / 4.0 * np.eye(4))
    assert skew == pytest.approx(left, rel=1e-9)


@pytest.mark.parametrize("growth", [0.1, 0.4])
def test_the_weight_shrinks_all_variances_alike(growth):
    """Weighted variances are those of `hand_made_sizes`; the true ones are less by the weight."""
    (trace, skew), R, wanted = hand_made_sizes(growth, 0)
    for factor in np.linspace(1.0 / (1.0 + growth), 1.0, 5):
        W = factor * R @ wanted @ R.T - np.eye(4)
        assert abs(np.trace(W)) <= trace
        assert np.linalg.norm(W - np.trace(W) / 4.0 * np.eye(4)) <= skew * (1.0 + 1e-12)
    (trace, _), R, _ = hand_made_sizes(growth, 0)
    assert trace >= 4.0 * growth / (1.0 + growth)


@pytest.mark.parametrize("growth", [0.1, 0.4])
@pytest.mark.parametrize("scales", [(3.0, 3.0, 3.0, 3.0), (5.0, 1.0, 0.2, 0.0)])
def test_the_weight_in_any_metric(growth, scales):
    """That of the links, say, in which V_0 is neither the identity nor a multiple of it."""
    (trace, skew), R, wanted = hand_made_sizes(growth, 0, metric=np.diag(scales))
    V = np.eye(4) + 1.0
    for factor in np.linspace(1.0 / (1.0 + growth), 1.0, 5):
        W = R @ (factor * wanted - V) @ R.T
        assert abs(np.trace(W)) <= trace * (1.0 + 1e-12)
        assert np.linalg.norm(W - np.trace(W) / 4.0 * np.eye(4)) <= skew * (1.0 + 1e-12)


def test_the_squares_of_all_outputs_are_one_matrix():
    """Whatever lies between plus and minus the prior's part may be added to the covariance."""
    (trace, skew), R, wanted = hand_made_sizes(0.0, 0, bent=0.5)
    V = np.linalg.inv(R.T @ R)
    for shape in (np.eye(4), -np.eye(4), np.diag([1.0, -1.0, 1.0, -1.0])):
        L = np.linalg.cholesky(V)
        W = R @ (wanted + 0.5 * L @ shape @ L.T) @ R.T - np.eye(4)
        assert abs(np.trace(W)) <= trace * (1.0 + 1e-12)
        assert np.linalg.norm(W - np.trace(W) / 4.0 * np.eye(4)) <= skew * (1.0 + 1e-12)


@settings(max_examples=examples(60, quick=15))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 6), f=st.integers(1, 12))
def test_many_features_move_a_covariance_together(seed, n, f):
    """Every change of the box is shorter than its bound, at corners found by ascent, too."""
    rng = np.random.default_rng(seed)
    J = 4
    symmetric = rng.normal(size=(1 + f + J, n, n))
    symmetric = symmetric + np.swapaxes(symmetric, 1, 2)
    still, slope, own = np.split(symmetric.reshape(-1, n * n).T[None], [1, 1 + f], axis=2)
    half, left = rng.random((1, f)), rng.random((1, J)) * rng.choice([0.0, 1.0])
    still = still[:, :, 0] * rng.choice([0.0, 0.1, 1.0])
    geometry = replace(still_geometry(), half=half)
    found = float(longest_change((still, slope, own), left, geometry)[0])
    d, N = rng.choice([-1.0, 1.0], (1, f)) * half, rng.choice([-1.0, 1.0], (1, J)) * left
    for _ in range(10):
        whole = still + (slope @ d[:, :, None] + own @ N[:, :, None])[:, :, 0]
        assert np.linalg.norm(whole) <= found
        pulls = np.sign(whole[:, None] @ slope)[:, 0], np.sign(whole[:, None] @ own)[:, 0]
        d, N = pulls[0] * half, pulls[1] * left


@settings(max_examples=examples(60, quick=20))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9))
def test_the_largest_eigenvalue_by_trace_and_the_rest(seed, n):
    values = np.random.default_rng(seed).standard_cauchy(n)
    trace = abs(values.sum())
    skew = np.linalg.norm(values - values.mean())
    bound = float(spectral_size(np.array([trace]), np.array([skew]), n)[0])
    assert np.abs(values).max() <= bound * (1.0 + 1e-12)


def test_one_eigenvalue_attains_it():
    n = 5
    values = np.full(n, -1.0 / (n - 1))
    values[0] = 1.0
    skew = np.array([np.linalg.norm(values)])
    assert float(spectral_size(0.0 * skew, skew, n)[0]) == pytest.approx(1.0)


@crossed({"shift": [-3.0, 2.0], "ends": [(0.5, 0.7), (0.6, 1.0)]})
def test_pieces_of_many_classes_where_only_the_variance_changes(shift, ends):
    """One known point: variances rise from 0 to the prior's, the means stay."""
    m, amplitude = 5, 9.0
    factor = np.eye(m)[:, :, None] / np.sqrt(amplitude * 1.0001)
    offset = shift * np.eye(m)[0]
    posterior = Posterior(
        SquaredExponential(1.0, amplitude),
        [[0.0]],
        np.zeros((m, 1)),
        factor,
        offset=offset,
        likelihood=Softmax(),
        coupled=True,
    )
    own = evaluation_of(posterior, Box([ends[0]], [ends[1]]))
    X = np.linspace(ends[0], ends[1], 50)[:, None]
    mean, variance = posterior.predict(X)
    for weights in ((1.0, 0.0, 0.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 0.0, 0.0), (1.0, -1.0, 0, 0, 0)):
        found = Softmax().independent_moments(mean, variance, np.asarray(weights))
        lower = float(own.by_pieces(weights)[0])
        assert lower <= (found.value + found.errors[:, 0]).min() + 1e-9
        if ends == (0.5, 0.7):
            assert lower >= found.value.min() - 0.1
