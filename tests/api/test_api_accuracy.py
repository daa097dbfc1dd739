"""`tol` and `rtol`: how near both ends of a range are once it is said to have converged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert import explain
from gpcert.api.accuracy import spreads
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Probit
from gpcert.testing.effort import examples
from tests.search.search_problems import random_posterior

BOX = gpcert.Box([-0.5, -0.3], [0.4, 0.6])


def near(side, tol, rtol):
    """Whether a side is as accurate as was asked for."""
    size = max(side.lower, -side.upper, 0.0)
    return side.width <= max(tol, rtol * size)


def noiseless(N=30, noise=1e-8, scale=1.0, offset=0.0):
    """Nearly noiseless observations of a smooth function, times a scale."""
    rng = np.random.default_rng(N)
    Z = rng.uniform(-1.0, 1.0, (N, 2))
    y = np.sin(3.0 * Z[:, 0]) + Z[:, 1] ** 2
    kernel = SquaredExponential([0.5, 0.7], 4.0)
    factor = np.linalg.inv(np.linalg.cholesky(kernel.value(Z, Z) + noise * np.eye(N)))
    return gpcert.Posterior(kernel, Z, factor.T @ (factor @ y), factor, scale=scale, offset=offset)


@given(
    seed=st.integers(0, 30),
    quantity=st.sampled_from(["mean", "std", "variance", "band"]),
    accuracy=st.sampled_from([(None, 0.01), (1e-3, None), (1e-3, 0.05), (0.2, 0.001)]),
    sides=st.sampled_from(["both", "minimum", "maximum"]),
)
@settings(max_examples=examples(80))
def test_what_has_converged_is_as_near_as_asked(seed, quantity, accuracy, sides):
    posterior = random_posterior(seed, d=2)
    tol, rtol = accuracy
    how = {"tol": tol, "rtol": rtol, "budget": gpcert.Budget(seconds=None, boxes=4000)}
    found = gpcert.prediction_range(posterior, BOX, quantity=quantity, sides=sides, **how)
    asked = (tol or 0.0, rtol or 0.0)
    each = {"minimum": found.minimum, "maximum": found.maximum}
    own = [side for name, side in each.items() if sides in {"both", name}]
    if found.converged:
        assert all(near(side, *asked) for side in own)
    else:
        assert not all(near(side, *asked) for side in own)
    mean, variance = posterior.predict(BOX.sample(500, 0))
    std, band = np.sqrt(variance), 2.0 * np.sqrt(variance)
    low = {"mean": mean, "std": std, "variance": variance, "band": mean - band}[quantity]
    high = {"mean": mean, "std": std, "variance": variance, "band": mean + band}[quantity]
    assert found.minimum.lower <= low.min()
    assert high.max() <= found.maximum.upper


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("quantity", ["std", "variance"])
def test_small_deviations_are_not_called_known_by_default(scale, quantity):
    """To a per cent, or to 0.0001 of what the outputs vary by: never within [0.001, 0.0073]."""
    model = noiseless(noise=1e-4, scale=scale)
    found = gpcert.prediction_range(model, BOX, quantity=quantity)
    assert found.converged
    negligible = (1.0001e-4 * spreads(model)[0]) ** (1 if quantity == "std" else 2)
    for side in (found.minimum, found.maximum):
        assert near(side, negligible, 0.0101)
        assert 0.0 < side.upper <= 1.05 * side.lower


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_no_deviation_is_small_beside_outputs_that_vary_much(scale):
    """Known to a per cent on either side, though it is below 1e-4 of what the outputs vary by."""
    X = np.linspace(0.0, 1.0, 12)[:, None]
    model = gpcert.Posterior(SquaredExponential(2.0), X, scale * X[:, 0], training_noise=1e-6)
    assert spreads(model)[0] > 0.1 * scale
    found = gpcert.prediction_range(model, gpcert.Box([0.0], [1.0]), quantity="std")
    assert found.converged
    assert found.maximum.upper <= 0.0015
    for side in (found.minimum, found.maximum):
        assert 0.0 < side.upper <= 1.03 * side.lower


def test_a_deviation_that_rounding_hides_is_not_called_known_by_default():
    model = noiseless(60, 1e-13)
    found = gpcert.prediction_range(model, BOX, quantity="std", budget=20)
    assert found.converged == near(found.minimum, 1e-4 * spreads(model)[0], 0.01)


def test_a_deviation_of_zero_is_known_by_default():
    """Of a function that is known at a point, and of a line through the origin there."""
    bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0], [[1.0]])
    found = gpcert.prediction_range(bump, [0.0], 0.0, quantity="std")
    assert found.converged
    assert found.maximum.upper < 1e-6


@pytest.mark.parametrize("quantity", ["mean", "band"])
def test_defaults_are_in_units_of_the_outputs(quantity):
    """The same search, whatever the unit of the target, and wherever its zero is."""
    plain = gpcert.prediction_range(noiseless(noise=1e-2), BOX, quantity=quantity)
    spread = float(spreads(noiseless(noise=1e-2))[0])
    assert 0.5 < spread < 1.0
    assert plain.converged
    assert max(plain.minimum.width, plain.maximum.width) <= 0.01 * spread
    for power in (-40, 40):
        unit = 2.0**power
        scaled = gpcert.prediction_range(noiseless(noise=1e-2, scale=unit), BOX, quantity=quantity)
        assert abs(scaled.boxes - plain.boxes) <= (0 if quantity == "mean" else 4)
        assert scaled.minimum.lower == pytest.approx(plain.minimum.lower * unit, rel=0.01)
    moved = gpcert.prediction_range(noiseless(noise=1e-2, offset=1e3), BOX, quantity=quantity)
    assert max(moved.minimum.width, moved.maximum.width) <= 0.011 * spread


def test_of_several_outputs_each_has_its_own_unit():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(2, 5))
    model = gpcert.Posterior(SquaredExponential(1.0), rng.normal(size=(5, 2)), weights,
                             scale=[1.0, 1e6])  # fmt: skip
    first, second = gpcert.prediction_ranges(model, BOX)
    assert first.converged
    assert second.converged
    spread = spreads(model)
    assert 1e4 < spread[1] / spread[0] < 1e8
    assert first.minimum.width <= 0.01 * spread[0]
    assert second.minimum.width <= 0.01 * spread[1]


def test_a_probability_is_known_to_a_hundredth_by_default():
    found = gpcert.prediction_range(random_posterior(3, binary=True), BOX)
    assert found.converged
    assert max(found.minimum.width, found.maximum.width) <= 0.01


def sure_of(label):
    """A classifier that gives one of two classes little everywhere in the box."""
    weights = [3.0 if label else -3.0]
    return gpcert.Posterior(
        SquaredExponential([1.0, 2.0]), [[0.0, 0.0]], weights, [[0.9]], likelihood=Probit()
    )


@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.parametrize("label", [0, 1])
def test_a_relative_tolerance_is_one_of_the_class_asked_about(label, output):
    """Of the rare class 1 %, of the other one 1 %: not the same."""
    model = sure_of(label)
    how = {"rtol": 0.01, "budget": gpcert.Budget(seconds=None, boxes=20_000)}
    found = gpcert.prediction_range(model, BOX, output=output, **how)
    assert found.converged
    assert near(found.minimum, 0.0, 0.0101)
    assert near(found.maximum, 0.0, 0.0101)
    both = gpcert.prediction_ranges(model, BOX, **how)
    for each in both:
        assert near(each.minimum, 0.0, 0.0101)
        assert near(each.maximum, 0.0, 0.0101)
    alone = gpcert.prediction_range(model, BOX, output=label, **how)
    assert alone.boxes <= both[0].boxes


def test_many_points_have_the_same_accuracy():
    model, X = noiseless(noise=1e-2), np.random.default_rng(0).uniform(-0.5, 0.5, (6, 2))
    how = {"quantity": "std", "rtol": 0.02}
    table = gpcert.prediction_range_many(model, X, 0.1, **how)
    for x, row in zip(X, table, strict=True):
        assert row.converged
        assert near(row.minimum, 0.0, 0.02)
        assert near(row.maximum, 0.0, 0.02)
        alone = gpcert.prediction_range(model, x, 0.1, **how)
        assert alone.minimum.lower <= row.minimum.upper
        assert row.minimum.lower <= alone.minimum.upper


def test_boxes_are_split_until_they_are_near_enough(tmp_path):
    model = noiseless(noise=1e-2)
    edges = np.linspace(-1.0, 1.0, 5)
    low = np.stack(np.meshgrid(edges[:-1], edges[:-1]), axis=-1).reshape(-1, 2)
    coarse = gpcert.bound_boxes(model, low, low + 0.5, quantity=["mean", "std"])
    fine = gpcert.bound_boxes(model, low, low + 0.5, quantity=["mean", "std"], tol=1e-3, rtol=0.01)
    assert fine.converged
    assert (fine.tol, fine.rtol) == (1e-3, 0.01)
    for name in ("mean", "std"):
        assert np.all(fine[name][..., 0] >= coarse[name][..., 0] - 1e-12)
        exact = gpcert.bound_boxes(model, low, low + 0.5, quantity=name, tol=1e-5)[name]
        size = np.maximum(np.maximum(exact[..., 0], -exact[..., 1]), 0.0)
        off = np.abs(fine[name] - exact).max(axis=-1)
        assert np.all(off <= np.maximum(1e-3, 0.011 * np.abs(exact).max(axis=-1)) + 1e-5), size
    fine.save(tmp_path / "bounds.npz")
    loaded = gpcert.load(tmp_path / "bounds.npz")
    assert (loaded.tol, loaded.rtol, loaded.converged) == (1e-3, 0.01, True)


def test_boxes_of_both_classes_are_each_near_enough():
    model = sure_of(0)
    found = gpcert.bound_boxes(
        model, [[-0.1, 0.0]], [[0.3, 0.2]], quantity="probability", rtol=0.01, budget=30
    )
    assert found.converged
    truth = model.prediction(gpcert.Box([-0.1, 0.0], [0.3, 0.2]).sample(4000, 0))[:, 0]
    rare, other = found["probability"][0, 1], found["probability"][0, 0]
    assert rare[0] <= truth.min() <= 1.02 * rare[0]
    assert other[1] - (1.0 - truth).max() <= 0.02 * other[1]
    assert rare[1] <= 1.02 * truth.max()


def test_explanations_take_a_relative_tolerance():
    model = random_posterior(2, d=2)
    found = explain.effects(model, [[0.0, 0.1], [0.3, -0.2]], 0.3, rtol=0.02)
    widest = (found.upper - found.lower).max()
    largest = np.maximum(found.lower, -found.upper).max()
    assert found.converged
    assert widest <= 0.02 * largest
    both = explain.effects(model, [0.0, 0.1], 0.3, tol=10.0, rtol=0.02)
    assert both.boxes <= found.boxes
    constant = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [0.0])
    nothing = explain.effects(constant, [0.0, 0.1], 0.3, rtol=0.02, budget=20)
    assert np.all(np.abs(nothing.upper) < 1e-9)


def test_gaps_take_a_relative_tolerance():
    model = sure_of(0)
    how = {"ranking": "gradient", "radius": 0.4}
    found = explain.pixel_budget(model, [0.1, 0.2], [1, 2], rtol=0.001, **how)
    usual = explain.pixel_budget(model, [0.1, 0.2], [1, 2], **how)
    size = np.maximum(np.maximum(found.lower, -found.upper), 0.0)
    assert found.reason is gpcert.StopReason.CONVERGED
    assert np.all(found.upper - found.lower <= 0.00101 * size)
    assert np.all(usual.upper - usual.lower <= 0.01)
    assert np.all(found.lower <= usual.upper)


def test_curves_and_tables_take_a_relative_tolerance():
    model = noiseless(noise=1e-2, offset=3.0)
    curve = gpcert.safety_curve(model, [0.0, 0.1], [0.1, 0.2, 0.3], delta=0.5, rtol=0.01)
    for step in curve:
        assert near(step.minimum, 0.0, 0.0101)
        assert near(step.maximum, 0.0, 0.0101)
    (row,) = gpcert.robustness(model, [[0.0, 0.1]], radius=0.3, rtol=0.01)
    assert row.delta.width <= 2 * 0.0101 * 5.0
    (worst,) = gpcert.worst_case(model, [[0.0, 0.1]], 0.3, rtol=0.01)
    assert near(worst.minimum, 0.0, 0.0101)
    assert near(worst.band_maximum, 0.0, 0.0101)


def test_several_classes_take_a_relative_tolerance():
    rng = np.random.default_rng(4)
    model = gpcert.Posterior(
        SquaredExponential([1.0, 1.0]), rng.normal(size=(4, 2)), rng.normal(size=(3, 4)),
        0.2 * rng.normal(size=(4, 4)), likelihood=MultinomialProbit(),
    )  # fmt: skip
    for found in gpcert.prediction_ranges(model, gpcert.Ball([0.0, 0.0], 0.1), rtol=0.05):
        assert found.converged
        assert near(found.minimum, 0.0, 0.0501)


def test_none_of_both_is_a_default_and_bad_ones_are_refused():
    model = random_posterior(1)
    usual = gpcert.prediction_range(model, BOX)
    assert gpcert.prediction_range(model, BOX, tol=None, rtol=None).boxes == usual.boxes
    with pytest.raises(InputError, match=r"rtol: expected a number in \[0, 1\)"):
        gpcert.bound_boxes(model, [[0.0, 0.0]], [[1.0, 1.0]], rtol=2.0)
