"""Profiles of radial kernels against their formulas in ball arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.kernels.matern import Matern, remainder_series
from gpcert.kernels.nodes.radial_profiles import PositiveSeries, all_at, reverse_bessel
from gpcert.kernels.nodes.radial_variations import DistanceRange, radial_variations
from gpcert.kernels.radial import RationalQuadratic, SquaredExponential
from gpcert.kernels.radial import remainder_series as gaussian_series
from gpcert.numerics.rounding import TINY, U, gamma
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint

PROFILES = [
    SquaredExponential(1.0).profile,
    *(RationalQuadratic(1.0, a).profile for a in (0.01, 0.6, 3.0, 1e8)),
    *(Matern(1.0, p + 0.5).profile for p in (0, 1, 2, 3, 6, 10)),
]
some = pytest.mark.parametrize("profile", PROFILES, ids=str)
distances = st.one_of(
    st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 1.0, 40.0, 45.9, 1e3, 1e6]),
    st.floats(0.0, 10.0),
    st.floats(0.0, 100.0),
)


def shape(profile, n, r):
    """F_n(r) as a ball, r > 0: `(-1/r d/dr)^n` by power series in q = r^2."""
    module = flint()
    arb = module.arb
    q = module.arb_series([r * r, 1], 6)
    if isinstance(profile, SquaredExponential):
        found = (-q / 2).exp()
    elif isinstance(profile, RationalQuadratic):
        alpha = arb(profile.alpha)
        found = (-alpha * (1 + q / (2 * alpha)).log()).exp()
    else:
        p = profile.p
        t = (q * (2 * p + 1)).sqrt()
        found = 0 * q
        for i in range(p + 1):
            weight = math.factorial(p + i) * math.factorial(p)
            weight = arb(weight) / (
                math.factorial(i) * math.factorial(p - i) * math.factorial(2 * p)
            )
            found = found + weight * (2 * t) ** (p - i)
        found = found * (-t).exp()
    coefficient = [*found.coeffs(), *[arb(0)] * 6][n]
    return coefficient * math.factorial(n) * (-2) ** n


@some
@settings(max_examples=examples(40), deadline=None)
@given(r=distances)
def test_terms_and_growth(profile, r):
    """F_n r^k within `roundings`, growth likewise."""
    module = flint()
    arb = module.arb
    pairs = [(n, k) for n in range(4) for k in range(4)]
    at = np.asarray([r])
    found = profile.terms(at, *pairs)
    allowed = float(np.ravel(profile.roundings(at))[0]) * U
    with module.ctx.workprec(600):
        for (n, k), array in zip(pairs, found, strict=True):
            value = float(array[0])
            assert not math.isnan(value)
            if r == 0 or not math.isfinite(value):
                continue
            real = shape(profile, n, arb(r)) * arb(r) ** k
            assert not abs(arb(value) - real) > real * allowed + arb(TINY), (n, k)
        for n in range(3):
            growth = arb(float(profile.growth(n, at)[0]))
            here = shape(profile, n, arb(r)) if r > 0 else None
            if here is not None and here > arb(1e-250):
                real = arb(r) ** 2 * shape(profile, n + 1, arb(r)) / here
                slack = max(allowed, 1e-9 if r > 1e3 else 0.0)
                assert not abs(growth - real) > real * slack + arb(TINY), n


@some
@settings(max_examples=examples(40), deadline=None)
@given(r=distances, a=st.sampled_from([1.0, -0.7, 1e5]))
def test_weighted_terms(profile, r, a):
    """All F_n at once, to the roundings of `terms` and two more."""
    module = flint()
    arb = module.arb
    at = np.asarray([[r]])
    with np.errstate(all="ignore"):
        found = profile.weighted(at, np.asarray([a]), 4)
    allowed = float(np.ravel(profile.roundings(at))[0] + 2.0) * U
    with module.ctx.workprec(600):
        for n, array in enumerate(found):
            value = float(array[0, 0])
            assert not math.isnan(value)
            if r > 0 and math.isfinite(value):
                real = arb(a) * shape(profile, n, arb(r))
                assert not abs(arb(value) - real) > abs(real) * allowed + arb(TINY), n


def test_subnormal_exponentials_cost_less_than_tiny():
    """Polynomials of degree 10 raise e^-t above TINY where it is subnormal."""
    module, profile = flint(), Matern(1.0, 10.5).profile
    pairs = [(n, k) for n in range(5) for k in range(n + 1)]
    for r in np.linspace(152.0, 168.0, 40):
        at = np.asarray([r])
        found = [*profile.terms(at, *pairs), *profile.weighted(at[None], np.ones(1), 4)]
        allowed = float(profile.roundings(at)[0]) * U
        with module.ctx.workprec(600):
            for (n, k), value in zip([*pairs, *((n, 0) for n in range(5))], found, strict=True):
                real = shape(profile, n, module.arb(float(r))) * module.arb(float(r)) ** k
                gap = abs(module.arb(float(value.reshape(-1)[0])) - real)
                assert not gap > real * allowed + module.arb(TINY), (n, k)


@some
@settings(max_examples=examples(30), deadline=None)
@given(r=st.floats(1e-6, 50.0), share=st.sampled_from([1e-15, 1e-9, 1e-3, 0.02]), up=st.booleans())
def test_relative_errors(profile, r, share, up):
    """Of F_n where r is known up to an error, and the shortcut for all n at once."""
    module = flint()
    arb = module.arb
    error = share * r
    other = r + error * (0.999 if up else -0.999)
    at, away = np.asarray([r]), np.asarray([error])
    shortcut = profile.uniform_error(at, share, np.zeros(1))
    shifted = profile.uniform_error(at, 0.0, away) if error <= 1e-8 else None
    with module.ctx.workprec(400):
        for n in range(3):
            value = float(profile.terms(at, (n, 0))[0][0])
            gap = abs(shape(profile, n, arb(other)) - arb(value))
            bounds = [float(profile.relative_errors(n, (at, at), away)[0])]
            for more in (shortcut, shifted):
                if more is not None and more[0] <= 0.1:
                    bounds.append(float(more[0]))
            for bound in bounds:
                assert not gap > arb(bound) * arb(value) + arb(TINY)


@some
def test_peaks(profile):
    """`w_n = k` there, to far less than `PEAK_SLACK`; where there is none, w_n is above k."""
    for n, k in ((1, 1), (2, 3), (2, 1), (3, 3)):
        at = profile.peak(n, k)
        growth = float(profile.growth(n, np.asarray([at if at > 0 else 1e-12]))[0])
        assert abs(growth - k) <= 1e-11 if at > 0 else growth >= k * (1 - 1e-12)


def test_growth_of_matern_is_increasing():
    """`theta^2 - theta theta' - t theta theta'' + t theta'^2` has no negative coefficient."""

    def times(a, b):
        out = [0] * (len(a) + len(b) - 1)
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                out[i + j] += x * y
        return out

    for m in range(11):
        theta = reverse_bessel(m)
        first = [i * c for i, c in enumerate(theta)][1:] or [0]
        second = [i * c for i, c in enumerate(first)][1:] or [0]
        total = [0] * (2 * m + 2)
        parts = (
            (1, times(theta, theta)),
            (-1, times(theta, first)),
            (-1, [0, *times(theta, second)]),
            (1, [0, *times(first, first)]),
        )
        for sign, part in parts:
            for i, c in enumerate(part):
                total[i] += sign * c
        assert min(total) >= 0


@pytest.mark.parametrize("order", [0, 1, 2])
@settings(max_examples=examples(40), deadline=None)
@given(
    x=st.one_of(st.sampled_from([0.0, 1e-200, 1e-30, 1e-8, 1.0, 1.1, 800.0, 1e9]), st.floats(0, 30))
)
def test_positive_series(order, x):
    """Above the real number, and by little."""
    module = flint()
    arb = module.arb
    for family in (gaussian_series(), *(remainder_series(p) for p in range(order, 11))):
        series = family[order]
        bound = float(all_at((series,), np.asarray([x]))[0][0])
        with module.ctx.workprec(4000):
            g, h = (
                sum(
                    (arb(c.numerator) / c.denominator * arb(x) ** i for i, c in enumerate(p)),
                    arb(0),
                )
                for p in (series.g, series.h)
            )
            real = g - (-arb(x)).exp() * h
        assert not arb(bound) < real
        assert bound <= float(real) * (1 + 1e-9) + 1e-290
        assert x > 0 or bound == 0.0


def test_positive_series_refuses_negative_coefficients():
    two, three = reverse_bessel(0), reverse_bessel(1)
    with pytest.raises(ValueError, match="negative"):
        PositiveSeries(tuple(map(int, two)), tuple(2 * c for c in three))  # type: ignore[arg-type]


@some
@settings(max_examples=examples(40), deadline=None)
@given(
    low=st.one_of(st.just(0.0), st.floats(1e-4, 5.0)),
    width=st.one_of(st.sampled_from([0.0, 1e-9, 1e9]), st.floats(0.0, 4.0)),
)
def test_variations_over_distances(profile, low, width):
    """Above all sampled derivatives, and not far above the largest of them."""
    ends = DistanceRange(np.asarray([[low]]), np.asarray([[low + width]]))
    S = [float(part[0, 0]) for part in radial_variations(profile, 1.0, ends, np.ones(1))]
    assert not any(map(math.isnan, S))
    most = min(width, 12.0)
    r = low + most * np.concatenate([np.linspace(0.0, 1.0, 301), np.logspace(-6, 0, 100)])
    r = r[r > 1e-30]
    if len(r) == 0:
        return
    F0, F1r, F1, F2r2, F2r, F3r3 = profile.terms(r, (0, 0), (1, 1), (1, 0), (2, 2), (2, 1), (3, 3))
    tau = np.linspace(0.0, 1.0, 201)[:, None]
    second = np.abs(F2r2 * tau**2 - F1)
    third = np.abs(3.0 * F2r * tau - F3r3 * tau**3)
    real = [part.max() for part in (F0, F1r, second, third)]
    for n, (bound, most) in enumerate(zip(S, real, strict=True)):
        assert bound >= most * (1 - 1e-12), f"S_{n}"
        regular = math.isfinite(profile.at_zero[3]) or low > 0.1
        if regular and width < 1e-3:
            assert bound <= 1.02 * most + 1e-6, f"S_{n} is loose"
        elif regular and n < 3:
            assert bound <= 1.01 * most + 1e-6, f"S_{n} is loose"


@pytest.mark.parametrize("nu", [0.0, 1.0, -0.5, 0.6, 11.5, math.nan, math.inf, "rough"])
def test_matern_rejects(nu):
    with pytest.raises(InputError, match="nu"):
        Matern(1.0, nu)


@pytest.mark.parametrize("alpha", [0.0, -1.0, 1e-12, 1e20, math.nan, math.inf])
def test_rational_quadratic_rejects(alpha):
    with pytest.raises(InputError, match="alpha"):
        RationalQuadratic(1.0, alpha)


def test_gamma_is_what_the_slack_assumes():
    """All relative roundings of a profile stay far below the slack of the variations."""
    for profile in PROFILES:
        worst = np.max(profile.roundings(np.asarray([0.0, 1.0, 1e3, 1e9])))
        assert 8 * gamma(float(worst)) < 1e-10
