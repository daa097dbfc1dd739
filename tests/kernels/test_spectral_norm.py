"""Upper bounds of spectral norms against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels.sizes import spectral_norm
from gpcert.testing.effort import examples


def exact_square(P, x):
    """`|P x|^2 / |x|^2`, exactly: at most the squared norm of P."""
    x = [Fraction(float(v)) for v in x]
    rows = [sum(Fraction(float(a)) * v for a, v in zip(row, x, strict=True)) for row in P]
    return sum(r * r for r in rows) / sum(v * v for v in x)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.sampled_from(["any", "rank one", "orthogonal", "huge", "tiny"]),
)
def test_bounds_hold_and_are_near(seed, n, kind):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(n, n))
    if kind == "rank one":
        P = np.outer(P[0], P[:, 0])
    elif kind == "orthogonal":
        P = np.linalg.qr(P)[0]
    elif kind in ("huge", "tiny"):
        P = P * (1e150 if kind == "huge" else 1e-150)
    bound = float(spectral_norm(P[None])[0])
    top = np.linalg.svd(P / np.abs(P).max())[2][0]
    assert exact_square(P, top) <= Fraction(bound) ** 2
    largest = np.linalg.norm(P / np.abs(P).max(), 2) * np.abs(P).max()
    assert bound <= n ** (1 / 16) * largest * (1 + 1e-12)


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan])
def test_matrices_without_a_size(value):
    bound = spectral_norm(np.full((1, 3, 3), value))[0]
    assert bound < 1e-290 if value == 0 else not np.isfinite(bound)
