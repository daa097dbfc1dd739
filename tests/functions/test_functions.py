"""Certified values of increasing functions against 200 bits."""

import json

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert import functions as fn
from gpcert.errors import InputError
from gpcert.functions.quantiles import normal_quantile_bounds
from gpcert.testing.effort import backend_or_skip, examples

LIBRARY = {
    "log": mp.log,
    "log1p": mp.log1p,
    "exp": mp.exp,
    "expm1": mp.expm1,
}


def bend(u, p):
    return u if p == 0 else mp.expm1(mp.mpf(p) * u) / mp.mpf(p)


def unbent(y, p):
    return y if p == 0 else mp.log1p(mp.mpf(p) * y) / mp.mpf(p)


def two_sided(x, above, below):
    return above(x) if x >= 0 else -below(-x)


def exact_piecewise(f, x):
    at = [i for i, knot in enumerate(f.x) if x == mp.mpf(knot)]
    if len(at) == 3:
        return mp.mpf(f.y[at[1]])
    values = []
    for side in ("left", "right"):
        after = int(np.searchsorted(np.array(f.x), float(x), side=side))
        i, j = max(after - 1, 0), min(after, len(f.x) - 1)
        run = mp.mpf(f.x[j]) - mp.mpf(f.x[i])
        part = (x - mp.mpf(f.x[i])) / run if run > 0 else mp.mpf(0)
        part = min(max(part, mp.mpf(0)), mp.mpf(1))
        values.append(mp.mpf(f.y[i]) + part * (mp.mpf(f.y[j]) - mp.mpf(f.y[i])))
    return sum(values) / 2


def exact(step, x):
    """The function in real arithmetic."""
    if step.name in LIBRARY:
        return LIBRARY[step.name](x)
    if step.name == "affine":
        return (x - mp.mpf(step.shift)) / mp.mpf(step.scale)
    if step.name == "clip":
        return min(max(x, mp.mpf(step.low)), mp.mpf(step.high))
    if step.name == "round":
        return mp.mpf(float(np.round(float(x))))
    if step.name == "power":
        return mp.sign(x) * abs(x) ** mp.mpf(step.exponent)
    if step.name == "bilog":
        return two_sided(x, mp.log1p, mp.log1p)
    if step.name == "inverse-bilog":
        return two_sided(x, mp.expm1, mp.expm1)
    if step.name == "power-bend":
        return two_sided(x, lambda u: bend(u, step.p), lambda u: bend(u, step.q))
    if step.name == "inverse-power-bend":
        return two_sided(x, lambda u: unbent(u, step.p), lambda u: unbent(u, step.q))
    if step.name == "kumaraswamy":
        return 1 - (1 - x ** mp.mpf(step.a)) ** mp.mpf(step.b)
    if step.name == "piecewise":
        return exact_piecewise(step, x)
    if step.name == "normal-cdf":
        return mp.ncdf(x)
    assert step.name == "normal-quantile"
    if x <= 0 or x >= 1:
        return mp.mpf(step.limit) * (-1 if x <= 0 else 1)
    z = mp.sqrt(2) * mp.erfinv(2 * x - 1)
    return min(max(z, -mp.mpf(step.limit)), mp.mpf(step.limit))


ANYWHERE, POSITIVE, UNIT = (-30.0, 30.0), (1e-9, 1e3), (0.0, 1.0)
KNOTS = fn.Piecewise((0.0, 0.1, 0.1, 0.4, 1.0, 1.0, 1.0), (-1.0, 0.0, 0.3, 0.3, 2.0, 2.1, 3.0))
CASES = {
    "affine": (fn.Affine(0.3, 1.7), ANYWHERE),
    "clip": (fn.Clip(-0.5, 0.7), (-2.0, 2.0)),
    "round": (fn.Round(), (-3.0, 3.0)),
    "log": (fn.Log(), POSITIVE),
    "log1p": (fn.Log1p(), (-0.999, 50.0)),
    "exp": (fn.Exp(), ANYWHERE),
    "expm1": (fn.Expm1(), ANYWHERE),
    "root": (fn.Power(0.5), (0.0, 100.0)),
    "cube": (fn.Power(3.0, True), (-5.0, 5.0)),
    "bilog": (fn.Bilog(), ANYWHERE),
    "inverse bilog": (fn.InverseBilog(), ANYWHERE),
    "bend": (fn.PowerBend(0.6, 1.4), (-5.0, 5.0)),
    "falling bend": (fn.PowerBend(-1.5, 0.0), (-5.0, 5.0)),
    "inverse bend": (fn.InversePowerBend(0.6, 1.4), (-5.0, 5.0)),
    "falling inverse bend": (fn.InversePowerBend(-0.1, -0.05), (-5.0, 5.0)),
    "kumaraswamy": (fn.Kumaraswamy(1.7, 0.6), UNIT),
    "steep kumaraswamy": (fn.Kumaraswamy(0.3, 4.0), UNIT),
    "piecewise": (KNOTS, (-0.5, 1.5)),
    "normal cdf": (fn.NormalCdf(), (-6.0, 6.0)),
    "normal quantile": (fn.NormalQuantile(5.2), UNIT),
}


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_ends_hold_what_the_function_is(name: str, backend: str) -> None:
    """Statements 18.1 to 18.4: at random floats, at the ends, near whole numbers and near knots."""
    place = backend_or_skip(backend)
    step, (low, high) = CASES[name]
    random = np.random.default_rng(0)
    x = np.concatenate(
        [
            np.linspace(low, high, 9),
            low + (high - low) * random.uniform(size=examples(200, quick=40)),
            np.clip(low + (high - low) * 10.0 ** -random.uniform(0, 16, 20), low, high),
            np.clip(high - (high - low) * 10.0 ** -random.uniform(0, 16, 20), low, high),
            np.clip([0.0, 0.1, 0.4, 0.5, 1.5, np.nextafter(0.5, 0)], low, high),
        ]
    )
    below, above = (np.asarray(end) for end in fn.Curve((step,)).ends(*[place.asarray(x)] * 2))
    with mp.workprec(200):
        truth = [exact(step, mp.mpf(float(each))) for each in x]
        assert all(mp.mpf(float(b)) <= t for b, t in zip(below, truth, strict=True))
        assert all(t <= mp.mpf(float(a)) for a, t in zip(above, truth, strict=True))
        values = np.array([float(t) for t in truth])
    assert np.all(above - below <= 1e-11 * (1.0 + np.abs(values)))
    np.testing.assert_allclose(np.asarray(step.value(x)), values, rtol=1e-9, atol=1e-12)
    ordered = np.argsort(x)
    assert np.all(np.diff(values[ordered]) >= 0.0)


@pytest.mark.parametrize("name", [n for n in CASES if n not in {"clip", "round", "piecewise"}])
def test_inverse_and_slope(name: str) -> None:
    """Both are about right: they guide searches."""
    step, (low, high) = CASES[name]
    x = np.linspace(low, high, 12)[3:-3]
    np.testing.assert_allclose(step.inverse(step.value(x)), x, rtol=1e-6)
    h = 1e-6 * (high - low)
    difference = (step.value(x + h) - step.value(x - h)) / (2 * h)
    np.testing.assert_allclose(step.slope(x), difference, rtol=1e-4)


@given(low=st.floats(-3.0, 3.0), width=st.floats(0.0, 2.0), part=st.floats(0.0, 1.0))
def test_a_curve_bounds_all_points_of_an_interval(low: float, width: float, part: float) -> None:
    curve = fn.Curve((fn.Exp(), fn.Log1p(), fn.PowerBend(0.5, 1.5), fn.Affine(-1.0, 3.0)))
    high = low + width
    x = min(max(low + part * width, low), high)
    below, above = (float(end[0]) for end in curve.ends(np.array([low]), np.array([high])))
    with mp.workprec(200):
        value = mp.mpf(x)
        for step in curve.steps:
            value = exact(step, value)
        assert mp.mpf(below) <= value <= mp.mpf(above)


@given(p=st.floats(1e-12, 1.0 - 1e-12))
def test_normal_quantiles(p: float) -> None:
    low, high = normal_quantile_bounds(p)
    with mp.workprec(300):
        z = mp.sqrt(2) * mp.erfinv(2 * mp.mpf(p) - 1)
        assert mp.mpf(low) <= z <= mp.mpf(high)
    assert high - low < 1e-10


@pytest.mark.parametrize("name", list(CASES))
def test_files_hold_curves(name: str) -> None:
    curve = fn.Curve((CASES[name][0],))
    again = fn.curve_from_config(json.loads(json.dumps(curve.config())))
    assert again == curve


def test_errors_say_what_to_do() -> None:
    with pytest.raises(InputError, match="above 0, where Log is defined"):
        fn.Curve((fn.Log(),)).check(np.array([0.0]), np.array([1.0]), "region: feature 0")
    with pytest.raises(InputError, match="positive number"):
        fn.Affine(0.0, -1.0)
    with pytest.raises(InputError, match="neither decreasing"):
        fn.Piecewise((1.0, 0.0), (0.0, 1.0))
    with pytest.raises(InputError, match="name, parameters"):
        fn.curve_from_config("log")
