"""Links: derivatives and tilted moments against high precision, at ordinary and extreme f."""

import mpmath as mp
import numpy as np
import pytest

from gpcert.models.links import LINKS, LogisticLink, ProbitLink, softmax_log_likelihood
from gpcert.testing.effort import examples, variants

LATENT = [-1e6, -1e3, -40.0, -8.0, -3.0, -2.001, -2.0, -1.9, -1.0, -1e-3, 0.0, 0.4, 2.0, 7.0, 30.0]
MEANS = [-1e3, -50.0, -20.0, -5.0, -2.0, -0.7, 0.0, 0.4, 1.5, 4.0, 15.0, 40.0]
VARIANCES = [1e-8, 1e-4, 1e-2, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4, 1e6]


def log_probit(z):
    z = mp.mpf(z)
    if z > 0:
        return mp.log1p(-mp.erfc(z / mp.sqrt(2)) / 2)
    return mp.log(mp.erfc(-z / mp.sqrt(2)) / 2)


def log_logistic(z):
    return -mp.log1p(mp.exp(-mp.mpf(z)))


def exact_derivatives(name, z):
    """First, minus second and third derivative in z, from closed forms."""
    z = mp.mpf(z)
    if name == "logistic":
        p = 1 / (1 + mp.exp(-z))
        return 1 / (1 + mp.exp(z)), p * (1 - p), p * (1 - p) * (2 * p - 1)
    r = mp.exp(-z * z / 2 - log_probit(z)) / mp.sqrt(2 * mp.pi)
    return r, r * (r + z), r * ((r + z) * (2 * r + z) - 1)


@pytest.mark.parametrize("name", ["probit", "logistic"])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_derivatives_have_full_relative_accuracy(name, y):
    with mp.workdps(80):
        for z in LATENT:
            if name == "probit" and z <= -1e6:
                continue  # exp(-5e11): mpmath manages, slowly; the tail's law is tested below
            found = LINKS[name].derivatives(np.array([y]), np.array([y * z]))
            values = (found.first[0] * y, found.curvature[0], found.third[0] * y)
            for value, exact in zip(values, exact_derivatives(name, z), strict=True):
                # the size of a term that legitimately vanishes: d^3 at its roots
                assert float(abs(value - exact)) <= 1e-12 * float(abs(exact)) + 1e-16


def test_log_likelihoods():
    f = np.array(LATENT)
    with mp.workdps(60):
        for name, reference in (("probit", log_probit), ("logistic", log_logistic)):
            for y in (-1.0, 1.0):
                found = LINKS[name].log_likelihood(np.full(len(f), y), f)
                exact = [float(reference(y * z)) if abs(z) < 1e5 else None for z in LATENT]
                for value, expected in zip(found, exact, strict=True):
                    if expected is not None:
                        assert value == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_probit_far_left_tail():
    # r = x + 1/x - 2/x^3 ..., w = 1 - 1/x^2 + 6/x^4, d^3 = 2/x^3: Abramowitz & Stegun 26.2.12
    x = np.array([1e4, 1e6, 1e8])
    found = ProbitLink().derivatives(np.ones(3), -x)
    np.testing.assert_allclose(found.first - x, 1 / x, rtol=1e-6, atol=4e-16 * x[-1])
    np.testing.assert_allclose(found.curvature, 1 - 1 / x**2, rtol=1e-14)
    np.testing.assert_allclose(found.third, 2 / x**3, rtol=1e-6)


@pytest.mark.parametrize("link", list(LINKS.values()), ids=list(LINKS))
def test_derivatives_are_derivatives(link):
    f, y, h = np.linspace(-6, 6, 41), np.ones(41), 1e-5

    def central(function):
        return (function(f + h) - function(f - h)) / (2 * h)

    found = link.derivatives(y, f)
    slope = central(lambda x: link.log_likelihood(y, x))
    np.testing.assert_allclose(found.first, slope, atol=1e-8)
    bend = central(lambda x: link.derivatives(y, x).first)
    np.testing.assert_allclose(found.curvature, -bend, atol=1e-8)
    np.testing.assert_allclose(
        found.third, -central(lambda x: link.derivatives(y, x).curvature), atol=1e-8
    )
    assert np.all(found.curvature > 0)


def exact_tilted(mu, v):
    """log Z, tilted mean - mu, tilted variance of the logistic link, in 18 digits."""
    mu, v = mp.mpf(mu), mp.mpf(v)
    s = mp.sqrt(v)

    def log_density(f):
        logistic = -mp.log1p(mp.exp(-f)) if f > 0 else f - mp.log1p(mp.exp(f))
        return logistic - (f - mu) ** 2 / (2 * v)

    low, high = mu, mu + v
    for _ in range(150):
        mode = (low + high) / 2
        if mode - mu < v / (1 + mp.exp(mode)):
            low = mode
        else:
            high = mode
    peak = log_density(mode)
    ends = [mode + k * s for k in (-10, -4, -1, 1, 4, 10)]
    inner = [mp.mpf(x) for x in (-30, -6, 0, 6, 30)]
    breaks = sorted({*ends, *(x for x in inner if ends[0] < x < ends[-1])})

    def moment(h):
        return mp.quad(lambda f: mp.exp(log_density(f) - peak) * h(f - mode), breaks)

    Z = moment(lambda _: 1)
    shift = moment(lambda x: x) / Z
    variance = moment(lambda x: (x - shift) ** 2) / Z
    return mp.log(Z) + peak - mp.log(2 * mp.pi * v) / 2, mode + shift - mu, variance


@variants("v", sorted(VARIANCES, key=lambda v: VARIANCES.index(v) % 4), quick=3)
def test_logistic_moments(v):
    with mp.workdps(18):
        means = [-20.0, 0.4, -5.0 * v**0.5, 1.5 * v**0.5, -2.0, 4.0]
        for mu in means[: examples(6, quick=3)]:
            found = LogisticLink().moments(np.array([1.0]), np.array([mu]), np.array([v]))
            log_z, shift, variance = (float(x) for x in exact_tilted(mu, v))
            assert found.log_z[0] == pytest.approx(log_z, rel=1e-11, abs=1e-11)
            # tilted mean in standard deviations, tilted variance relative
            assert abs(v * found.slope[0] - shift) <= 1e-11 * v**0.5 * max(1, shift / v**0.5)
            assert found.shrinkage[0] == pytest.approx(variance / v, rel=1e-10)
            assert abs(v * found.curvature[0] - (1 - variance / v)) <= 1e-10
            mirrored = LogisticLink().moments(np.array([-1.0]), np.array([-mu]), np.array([v]))
            assert mirrored.slope[0] == -found.slope[0]


@pytest.mark.parametrize("link", list(LINKS.values()), ids=list(LINKS))
def test_moments_are_finite_consistent_and_sites_have_no_negative_precision(link):
    mean, variance = (a.ravel() for a in np.meshgrid([*MEANS, -1e6, 1e6], [*VARIANCES, 1e9]))
    for y in (-1.0, 1.0):
        found = link.moments(np.full(len(mean), y), mean, variance)
        for part in (found.log_z, found.slope, found.sites(mean)):
            assert np.isfinite(part).all()
        assert np.all(found.curvature >= 0)
        assert np.all(found.sites(mean)[0] >= 0)
        assert np.all((found.shrinkage > 0) & (found.shrinkage <= 1))
        assert np.all(found.slope * y >= 0)
        np.testing.assert_allclose(found.shrinkage, 1 - variance * found.curvature, atol=1e-8)


def test_probit_moments_in_high_precision():
    with mp.workdps(60):
        for v in VARIANCES:
            for mu in MEANS[1:]:
                found = ProbitLink().moments(np.array([1.0]), np.array([mu]), np.array([v]))
                total = 1 + mp.mpf(v)
                r, w, _ = exact_derivatives("probit", mu / mp.sqrt(total))
                assert found.slope[0] == pytest.approx(float(r / mp.sqrt(total)), rel=1e-12)
                assert found.curvature[0] == pytest.approx(float(w / total), rel=1e-12)
                shrinkage = float(1 - v * w / total)
                assert found.shrinkage[0] == pytest.approx(shrinkage, rel=1e-12)


def test_softmax_of_two_classes_is_logistic():
    f = np.array([[1.0, -800.0, 0.3], [0.2, 900.0, 0.3]])
    np.testing.assert_allclose(
        softmax_log_likelihood(np.array([0, 0, 1]), f),
        LogisticLink().log_likelihood(np.array([1.0, 1.0, -1.0]), f[0] - f[1]),
    )
