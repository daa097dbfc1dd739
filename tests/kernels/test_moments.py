"""Weighted moments of points about centres: within the error that they are said to have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels.expansions.exponentials import Triples, cubic_terms
from gpcert.kernels.nodes.moments import MAX_FEATURES_PER_BATCH, MomentTable
from gpcert.numerics.rounding import gamma
from gpcert.testing.effort import examples


@pytest.mark.parametrize("f", [2, MAX_FEATURES_PER_BATCH, MAX_FEATURES_PER_BATCH + 9])
@settings(max_examples=examples(30, quick=8))
@given(seed=st.integers(0, 2**32 - 1))
def test_moments_are_within_their_error(f, seed):
    """Few and many features, some of them 0 at all points; coefficients of both signs and sizes."""
    rng = np.random.default_rng(seed)
    N, B = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    z = rng.normal(size=(N, f)) * 10.0 ** rng.uniform(-3, 3, f)
    z[:, rng.random(f) < rng.choice([0.0, 0.5, 1.0])] = 0.0
    a = rng.normal(size=(B, N)) * 10.0 ** rng.uniform(-200, 3, (B, N))
    a[rng.random((B, N)) < 0.2] = 0.0
    c = rng.normal(size=(B, f))
    zeroth, first, second = MomentTable(z).moments(a, c)
    assert np.array_equal(second, np.swapaxes(second, 1, 2))
    wide = np.longdouble
    u = z[None].astype(wide) - c[:, None].astype(wide)
    exact = (
        a.astype(wide).sum(1),
        np.einsum("bi,bij->bj", a.astype(wide), u),
        np.einsum("bi,bij,bik->bjk", a.astype(wide), u, u),
    )
    sizes = np.linalg.norm(z, axis=1) + np.linalg.norm(c, axis=1)[:, None]
    for n, (found, true) in enumerate(zip((zeroth, first, second), exact, strict=True)):
        error = gamma(N + 2 * f + 32) * (np.abs(a) * sizes**n).sum(1)
        off = np.sqrt((np.asarray(found - true, float).reshape(B, -1) ** 2).sum(1))
        assert np.all(off <= error + 1e-290)


def test_many_features_are_the_same_on_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    z, a, c = rng.normal(size=(7, 40)), rng.normal(size=(2, 7)), rng.normal(size=(2, 40))
    plain = MomentTable(z).moments(a, c)
    other = MomentTable(torch.as_tensor(z)).moments(torch.as_tensor(a), torch.as_tensor(c))
    for first, second in zip(plain, other, strict=True):
        np.testing.assert_allclose(first, second.numpy(), atol=1e-12)


@settings(max_examples=examples(60, quick=15))
@given(seed=st.integers(0, 2**32 - 1))
def test_third_moments_are_within_their_error(seed):
    """Points near the origin and centres far from it too, where the shifts are all there is."""
    rng = np.random.default_rng(seed)
    N, B, f = int(rng.integers(1, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
    z = rng.normal(size=(N, f)) * 10.0 ** rng.uniform(-3, 1)
    a, c = rng.normal(size=(B, N)), rng.normal(size=(B, f)) * 10.0 ** rng.uniform(-1, 3)
    triples = Triples.of(f, z)
    lower, raw = MomentTable(z).moments_and_cubes(a, c)
    for found, plain in zip(lower, MomentTable(z).moments(a, c), strict=True):
        assert np.allclose(found, plain, rtol=1e-12, atol=1e-12 * np.abs(c).max() ** 2)
    box = (np.ones((B, f)), np.full(B, f**0.5))
    cubic = cubic_terms(raw, c, lower, triples, np.zeros(B), box).cubic
    u = z[None].astype(np.longdouble) - c[:, None].astype(np.longdouble)
    cubes = np.prod([u[:, :, j] for j in triples.features], axis=0)
    off = np.einsum("bi,bin->bn", a.astype(np.longdouble), cubes) - cubic.tensor
    sizes = np.linalg.norm(z, axis=1) + np.linalg.norm(c, axis=1)[:, None]
    error = gamma(N + 2 * f + 128) * (np.abs(a) * sizes**3).sum(1)
    assert np.all(np.sqrt(np.asarray(off, float) ** 2 @ triples.orders) <= error)
