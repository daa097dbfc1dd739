"""The formulas in ball arithmetic against scikit-learn's kernels and against NumPy one-liners."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as library

from gpcert.errors import InputError
from gpcert.testing.kernel_references import (
    REFERENCES,
    coefficients,
    exact,
    flint,
    partner_configs,
    reference_of,
    series_length,
)

X, Y = np.array([[0.3, -1.2], [2.0, 0.5], [0.3, -1.2]]), np.array([[0.3, -1.2], [-0.7, 1.9]])
LENGTHS = [0.7, 1.9]


def matrix(name, config):
    k = reference_of(name, config)
    return np.array([[float(k(exact(x), exact(y))) for y in Y] for x in X])


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_matern_and_its_limit(nu):
    name = "squared_exponential" if nu == math.inf else "matern"
    config = {"length_scale": LENGTHS, "variance": 3.0}
    ours = matrix(name, config if nu == math.inf else {**config, "nu": nu})
    np.testing.assert_allclose(ours, 3.0 * library.Matern(LENGTHS, nu=nu)(X, Y), rtol=1e-12)


@pytest.mark.parametrize("nu", [3.5, 6.5, 10.5])
def test_matern_of_higher_order_by_bessel_functions(nu):
    ours = matrix("matern", {"length_scale": LENGTHS, "nu": nu, "variance": 1.0})
    np.testing.assert_allclose(ours, library.Matern(LENGTHS, nu=nu)(X, Y), rtol=1e-9)


def test_isotropic_kernels_of_scikit_learn():
    ours = matrix("rational_quadratic", {"length_scale": 0.7, "alpha": 0.4, "variance": 2.0})
    np.testing.assert_allclose(ours, 2.0 * library.RationalQuadratic(0.7, 0.4)(X, Y), rtol=1e-12)
    # their periodic kernel is a function of the distance: one feature only
    k = reference_of("periodic", {"period": 1.7, "length_scale": 0.6, "variance": 1.0})
    theirs = library.ExpSineSquared(0.6, 1.7)(X[:, :1], Y[:, :1])
    found = [[float(k(exact(x[:1]), exact(y[:1]))) for y in Y] for x in X]
    np.testing.assert_allclose(found, theirs, rtol=1e-12)


def test_polynomials():
    inner = library.DotProduct(sigma_0=0.8)(X, Y)  # sigma_0^2 + x.y
    config = {"weights": 1.0, "offset": 0.8**2, "center": 0.0}
    for degree in (1, 2, 6):
        ours = matrix("polynomial", {"degree": degree, **config})
        np.testing.assert_allclose(ours, inner**degree, rtol=1e-12)
    ours = matrix("linear", {"weights": LENGTHS, "center": [1.0, -1.0]})
    expected = ((X - [1.0, -1.0]) * LENGTHS) @ (Y - [1.0, -1.0]).T
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-14)


def test_spectral_kernels():
    difference = X[:, None, :] - Y[None, :, :]
    w, v = np.array([[0.5, 1.1], [2.0, -0.3]]), np.array([0.6, 0.2])
    lengths = np.array([[1.0, 0.4], [0.9, 2.0]])
    np.testing.assert_allclose(
        matrix("cosine", {"frequency": w[0], "variance": 0.6}),
        0.6 * np.cos(difference @ w[0]),
        rtol=1e-12,
    )
    expected = sum(
        v[q] * np.exp(-0.5 * ((difference / lengths[q]) ** 2).sum(-1)) * np.cos(difference @ w[q])
        for q in range(2)
    )
    config = {"variances": v, "frequencies": w, "length_scales": lengths}
    np.testing.assert_allclose(matrix("spectral_mixture", config), expected, rtol=1e-12)


def test_generalised_spectral_kernel_has_its_explicit_features():
    """phi = e^{theta.x} (cos(w1.x + p1) + cos(w2.x + p2), the same with sin)."""
    theta, first, second, phases = [0.3, -0.2], [0.5, 1.1], [2.0, -0.3], [0.4, -1.0]

    def features(Z):
        angles = [Z @ np.asarray(w) + p for w, p in zip((first, second), phases, strict=True)]
        tilt = np.exp(Z @ np.asarray(theta))
        return np.stack([tilt * sum(map(np.cos, angles)), tilt * sum(map(np.sin, angles))], axis=1)

    config = {
        "variances": [0.7],
        "thetas": [theta],
        "first": [first],
        "second": [second],
        "phases": [phases],
    }
    expected = 0.7 * features(X) @ features(Y).T
    np.testing.assert_allclose(matrix("generalised_spectral", config), expected, rtol=1e-12)
    pair = matrix("cosine_pair", {"first": first, "second": second, "phases": phases})
    tilt = matrix("exponential_tilt", {"theta": theta})
    np.testing.assert_allclose(0.7 * pair * tilt, expected, rtol=1e-12)
    del config["phases"]
    assert not np.allclose(matrix("generalised_spectral", config), expected)


def test_compositions():
    smooth = ["squared_exponential", {"length_scale": 1.0, "variance": 2.0}]
    line = ["linear", {"weights": 1.5, "center": 0.5}]
    A, B = matrix(*smooth), matrix(*line)
    np.testing.assert_allclose(matrix("sum", {"kernels": [smooth, line]}), A + B)
    np.testing.assert_allclose(matrix("product", {"kernels": [smooth, line]}), A * B)
    np.testing.assert_allclose(matrix("scale", {"kernel": smooth, "factor": 3.0}), 3.0 * A)
    ours = matrix("active_dimensions", {"kernel": smooth, "dimensions": [1]})
    np.testing.assert_allclose(ours, 2.0 * np.exp(-0.5 * (X[:, 1:] - Y[:, 1:].T) ** 2))
    assert np.all(matrix("white", {"variance": 3.0}) == 0.0)
    assert np.all(matrix("constant", {"variance": 3.0}) == 3.0)


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_derivatives_by_differences(name):
    """The power series of a formula along a line, against its own values."""
    k, z, step = reference_of(name, partner_configs(2)[name]), exact(Y[1]), exact([0.6, -0.8])
    with series_length(6):
        tau = flint().arb_series([0, 1])
        line = [a + s * tau for a, s in zip(exact(X[1]), step, strict=True)]
        slope = coefficients(k(line, z), 2)[1]
    h = flint().arb(2) ** -40
    ends = [k([a + s * t for a, s in zip(exact(X[1]), step, strict=True)], z) for t in (h, -h)]
    assert float(slope) == pytest.approx(float((ends[0] - ends[1]) / (2 * h)), rel=1e-15, abs=1e-18)


def test_matern_through_its_own_point():
    """One-sided series at distance zero: k(r) = 1 - r + ..., 1 - 3 r^2 / 2 + ..."""
    with series_length(6):
        tau = flint().arb_series([0, 1])
        rough = reference_of("matern", {"length_scale": 1.0, "nu": 0.5, "variance": 1.0})
        once = reference_of("matern", {"length_scale": 1.0, "nu": 1.5, "variance": 1.0})
        zero = flint().arb(0)
        found = [coefficients(k([tau, zero], [zero, zero]), 4) for k in (rough, once)]
    np.testing.assert_allclose([float(c) for c in found[0]], [1, -1, 1 / 2, -1 / 6], rtol=1e-15)
    expected = [1, 0, -3 / 2, math.sqrt(3.0)]
    np.testing.assert_allclose([float(c) for c in found[1]], expected, rtol=1e-15, atol=1e-30)


def test_unknown_kernel():
    with pytest.raises(InputError, match="matern"):
        reference_of("no-such-kernel", {})
