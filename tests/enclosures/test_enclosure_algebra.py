"""The algebra of enclosures on functions that are their own models: only rounding may be lost."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.lower_model import QuadraticLowerModel, plain_geometry, region_units
from gpcert.enclosures.mean import TwoSided, Units, unit_slope
from gpcert.regions import Box
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact
from tests.enclosures.enclosure_checks import arb, below
from tests.strategies import seeds


@st.composite
def sharp_models(draw):
    """A cell and a weighted model of a function that is that model: nothing is left over."""
    rng = np.random.default_rng(draw(seeds))
    f = draw(st.integers(1, 3))
    half = 10.0 ** rng.uniform(-3.0, 0.3, f) * draw(st.sampled_from([1e-9, 1e-3, 1.0]))
    center = rng.normal(size=f)
    cells = Box(center - half, center + half).root()
    lengths = np.exp2(rng.integers(-3, 4, f))  # exact, as the frames of the kernels are
    geometry = ScaledCells.of(cells, 1.0 / lengths, np.ones(f), lengths)
    H = rng.normal(size=(f, f)) * draw(st.sampled_from([0.0, 1.0, 30.0]))
    model = QuadraticLowerModel(
        geometry,
        rng.normal(size=1) * draw(st.sampled_from([0.0, 1.0, 100.0])),
        rng.normal(size=(1, f)),
        (H + H.T)[None],
        rng.random(1) * draw(st.sampled_from([0.0, 1.0])),
        draw(st.sampled_from([0.0, 0.5, 1.0])),
    )
    drawn = rng.uniform(-1.0, 1.0, (6, f))
    ends = np.where(rng.random((4, f)) < 0.5, -1.0, 1.0)
    return model, lengths, np.concatenate([np.zeros((1, f)), drawn, ends])


def moves(model, lengths, points):
    """Displacements d of points of the cell from points of [-1, 1]^f, as balls."""
    cells = model.geometry.cells
    low, high = cells.lower[0], cells.upper[0]
    for point in points:
        x = np.clip(0.5 * (low + high) + 0.5 * point * (high - low), low, high)
        y = [a - c for a, c in zip(exact(x), exact(cells.center[0]), strict=True)]
        yield [a / arb(w) for a, w in zip(y, lengths.tolist(), strict=True)]


def polynomial(model, d):
    g = exact(model.gradient[0])
    value = arb(float(model.value[0])) - arb(float(model.error[0]))
    for j, a in enumerate(d):
        value += g[j] * a
        if model.hessian is not None:
            row = exact(model.hessian[0, j])
            value += sum((a * h * b for h, b in zip(row, d, strict=True)), arb(0)) / 2
    return value


def weight(rate, d):
    return (arb(rate) * sum((a * a for a in d), arb(0))).exp()


NAMES = ("value", "gradient", "hessian")


@settings(max_examples=examples(200))
@given(sharp=sharp_models())
def test_weights_are_taken_away(sharp):
    model, lengths, points = sharp
    geometry = plain_geometry(model.geometry.cells)
    plain = model.unweighted(geometry)
    bound = float(plain.minimum().lower[0])
    units = region_units(model.geometry.cells).tolist()
    for d in moves(model, lengths, points):
        y = [a * arb(w) / arb(u) for a, w, u in zip(d, lengths.tolist(), units, strict=True)]
        assert not polynomial(plain, y) > polynomial(model, d) / weight(model.rate, d)
        below(bound, polynomial(plain, y), "minimum of a plain model")


@settings(max_examples=examples(200))
@given(sharp=sharp_models(), factor=st.floats(0.0, 100.0), constant=st.floats(-100.0, 100.0))
def test_sums_multiples_and_shifts(sharp, factor, constant):
    """Against exact arithmetic on the parts' own coefficients."""
    model, lengths, points = sharp
    other = replace(model, value=model.value / 3 - 0.1, gradient=model.gradient / 7)
    add, slope = np.array([constant]), np.sin(np.arange(len(lengths)) + constant)[None]
    shifted, scaled = model.shifted(add), model.scaled(np.array([factor]))
    tilted, total = model.shifted(add, slope=slope), model + other
    for d in moves(model, lengths, points):
        own, omega = polynomial(model, d), weight(model.rate, d)
        line = sum((arb(float(s)) * a for s, a in zip(slope[0], d, strict=True)), arb(0))
        assert not polynomial(shifted, d) > own + arb(constant) * omega
        assert not polynomial(tilted, d) > own + (arb(constant) + line) * omega
        assert not polynomial(scaled, d) > arb(factor) * own
        assert not polynomial(total, d) > own + polynomial(other, d)
        assert not polynomial(model.lowered(np.array([0.5])), d) > own - arb(0.5)
        assert polynomial(model.where(np.array([True]), other), d).overlaps(own)
        for result in (shifted, tilted, scaled, total):
            magnitudes = polynomial(replace(result, **positive(result)), [abs(a) for a in d])
            assert not arb(float(result.size[0])) < magnitudes


def positive(model):
    found = {name: np.abs(getattr(model, name)) for name in NAMES}
    return {**found, "error": 0.0 * model.error}


@settings(max_examples=examples(200))
@given(sharp=sharp_models(), rises=st.booleans(), lowest=st.sampled_from([0.0, 0.3, 1.0]))
def test_a_smaller_weight_for_functions_of_known_sign(sharp, rises, lowest):
    """The function that the model allows, moved to the right side of zero."""
    model, lengths, points = sharp
    if model.rate == 0.0:
        return
    sign = 1 if rises else -1
    gap = 1.01 * model.size + model.error + 1e-6
    model = replace(model, value=model.value + sign * gap, error=np.zeros(1), known_size=None)
    displaced = list(moves(model, lengths, points))
    values = [polynomial(model, d) / weight(model.rate, d) for d in displaced]
    assert all(sign * value > 0 for value in values)
    # `least` may be anything that |q| is at least on the whole cell
    least = lowest * 0.009 * gap / float(model.heaviest[0])
    light = model.lighter(0.5 * model.rate, np.array([rises]), least, 0.0)
    assert light.rate == 0.5 * model.rate
    for d, value in zip(displaced, values, strict=True):
        assert not polynomial(light, d) > value * weight(light.rate, d)


@settings(max_examples=examples(100))
@given(sharp=sharp_models(), lowest=st.sampled_from([0.0, 1.0]))
def test_a_larger_weight_of_a_positive_function(sharp, lowest):
    model, lengths, points = sharp
    gap = 1.01 * model.size + model.error + 1e-6
    model = replace(model, value=model.value + gap, error=np.zeros(1), known_size=None)
    least = lowest * 0.009 * gap / float(model.heaviest[0])
    heavy = model.heavier(model.rate + 0.5, least)
    assert heavy.rate == model.rate + 0.5
    for d in moves(model, lengths, points):
        true = polynomial(model, d) / weight(model.rate, d)
        assert not polynomial(heavy, d) > true * weight(heavy.rate, d)


@pytest.mark.parametrize("rises", [True, False])
def test_a_dip_to_the_other_sign_is_paid_for(rises):
    """A constant function that is `dip` on the wrong side of zero everywhere."""
    cells = Box([-1.0], [1.0]).root()
    geometry = ScaledCells.of(cells, np.ones(1), np.ones(1), np.ones(1))
    q = -0.25 if rises else 0.25
    # exp(|d|^2) q against its tangent, or its chord, at the value
    bend = 2.0 * q * (np.e - 1.0 if q < 0 else 1.0)
    model = QuadraticLowerModel(
        geometry, np.array([q]), np.zeros((1, 1)), np.full((1, 1, 1), bend), np.zeros(1), 1.0
    )
    light = model.lighter(0.5, np.array([rises]), np.zeros(1), 0.25)
    for x in np.linspace(-1.0, 1.0, 9):
        d = [arb(float(x))]
        assert not polynomial(light, d) > arb(q) * weight(0.5, d)


@settings(max_examples=examples(100))
@given(sharp=sharp_models(), level=st.sampled_from([None, 0.0, 1.0, -3.0]))
def test_a_first_order_alone(sharp, level):
    model, lengths, points = sharp
    linear = replace(model, hessian=None, known_size=None)
    lower = linear.minimum(None if level is None else np.array([level])).lower
    tilted = linear.shifted(np.array([-2.0]))
    for d in moves(model, lengths, points):
        omega = weight(model.rate, d)
        below(float(lower[0]), polynomial(linear, d) / omega, "first order")
        assert not polynomial(tilted, d) > polynomial(linear, d) - 2 * omega


def test_other_coordinates_and_weights_do_not_add_up():
    cells = Box([-1.0], [1.0]).root()
    one, two = (ScaledCells.of(cells, np.array([k]), np.ones(1), np.ones(1)) for k in (1.0, 2.0))
    parts = (np.ones(1), np.ones((1, 1)), np.ones((1, 1, 1)), np.zeros(1))
    with pytest.raises(AssertionError, match="coordinates"):
        QuadraticLowerModel(one, *parts) + QuadraticLowerModel(two, *parts)
    with pytest.raises(AssertionError, match="weights"):
        QuadraticLowerModel(one, *parts, 0.5) + QuadraticLowerModel(one, *parts, 1.0)


def test_a_linear_model_is_taken_where_it_leaves_less():
    cells = Box([-1.0], [1.0]).root()
    geometry = plain_geometry(cells)
    parts = (np.ones(1), np.ones((1, 1)), np.full((1, 1, 1), 3.0))
    unknown = QuadraticLowerModel(geometry, *parts, np.full(1, np.inf), 0.5)
    found = unknown.unweighted(geometry, np.array([0.25]))
    assert np.all(found.hessian == 0.0)
    assert 0.25 <= found.error[0] < 0.2500001
    assert np.isinf(unknown.scaled(0.0).error).all()


@given(shift=st.floats(-1e6, 1e6), factor=st.floats(1e-9, 1e9), q=st.floats(-1e9, 1e9))
def test_units_enclose(shift, factor, q):
    for units in (Units(shift, factor), Units(shift, factor, -1.0), Units()):
        ends = units.range(np.array([q]), np.array([q]))
        true = arb(units.shift) + arb(units.factor) * arb(q)
        assert not arb(float(ends[0][0])) > true.max(arb(max(units.least, -1e300)))
        assert not arb(float(ends[1][0])) < true
        assert float(units.signed(-1).below(np.array([-q]))[0]) == -float(ends[1][0])
    assert Units(0.0, 1.0).below(np.array([q]))[0] == q
    with np.errstate(over="ignore"):
        assert 1e308 < Units(1.0, 2.0).below(np.array([1.7e308]))[0] < np.inf


def test_slopes_between_units_of_any_size():
    mean, variance = Units(0.0, 2.0**-700), Units(0.0, 2.0**600)
    assert unit_slope(mean, variance, np.array([2.0**-900]))[0] == 2.0**400


def test_the_side_is_chosen_by_the_coefficient():
    cells = Box([-1.0], [1.0]).root()
    geometry = plain_geometry(cells)
    low, high = ((np.array([s * 1.0]), np.zeros((1, 1)), np.zeros((1, 1, 1))) for s in (1.0, -1.0))
    sides = [
        QuadraticLowerModel(geometry, *part, np.array([e])) for part, e in ((low, 0.1), (high, 0.2))
    ]
    both = TwoSided(*sides, np.ones(1), np.zeros(1), Units())
    assert both.times(np.array([2.0])).error[0] == pytest.approx(0.2)
    assert both.times(np.array([-2.0])).error[0] == pytest.approx(0.4)
    assert both.times(np.array([-2.0])).value[0] == -2.0
