"""Level sets: what is proved of points holds in ball arithmetic, also at the planes that cut cells;
volumes hold those that are known exactly."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Linear, Matern, SquaredExponential
from gpcert.likelihoods import Probit, Softmax
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint

arb = flint().arb
BUMP = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0])
SQUARE = [(-2.0, 2.0), (-2.0, 2.0)]


def fitted(seed, n=8, d=2, outputs=1, **options):
    rng = np.random.default_rng(seed)
    kernel = (
        SquaredExponential(rng.uniform(0.4, 1.0, d), variance=1.3),
        Matern(rng.uniform(0.5, 1.0, d), nu=2.5),
        Matern(rng.uniform(0.5, 1.0, d), nu=1.5),
    )[seed % 3]
    X = rng.uniform(-1, 1, (n, d))
    K = kernel.value(X, X) + 0.05 * np.eye(n)
    weights = np.linalg.solve(K, rng.normal(size=(n, outputs))).T
    factor = np.linalg.inv(np.linalg.cholesky(K))
    return gpcert.Posterior(kernel, X, weights, factor, **options)


def truth(model, x, quantity):
    reference = ArbPosterior(model)
    x = exact(x)
    std = reference.variance(x, 0).sqrt() if quantity != "mean" else 0
    if quantity == "std":
        return std
    mean = reference.mean(x, 0)
    return {"mean": mean, "lcb": mean - 2 * std, "ucb": mean + 2 * std}[quantity]


def points_of(cells, rng, free):
    """A point in each cell, moved to the planes that cut it where there are any; corners too."""
    u = rng.random(cells.low.shape)
    u[::3] = np.round(u[::3])
    X = cells.low + u * (cells.high - cells.low)
    plane = cells.planes[np.arange(len(cells)), 0, rng.integers(0, 2, len(cells))]
    slope, offset = plane[:, :-1], plane[:, -1]
    size = np.sum(slope**2, axis=1)
    cut = (size > 0) & (rng.random(len(cells)) < 0.8)
    value = np.sum(slope * X, axis=1) + np.where(np.isfinite(offset), offset, 0.0)
    near = value * (1.0 - 10.0 ** -rng.uniform(2, 16, len(cells)))
    X[cut] -= (near / np.where(size > 0, size, 1.0))[cut, None] * slope[cut]
    return np.clip(X, cells.low, cells.high)


@given(
    seed=st.integers(0, 10**6),
    quantity=st.sampled_from(["mean", "lcb", "ucb", "std"]),
    side=st.sampled_from([">=", "<="]),
)
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_what_is_proved_of_points_holds(seed, quantity, side):
    model = fitted(seed, offset=[0.3], scale=[2.0])
    rng = np.random.default_rng(seed)
    level = float(truth(model, rng.uniform(-1, 1, 2), quantity))
    box = gpcert.Box([-1.0, -1.5], [1.0, 1.0])
    found = gpcert.level_set(model, box, level, side=side, quantity=quantity, tol=0.02, budget=5)
    X = points_of(found.cells, rng, box.free)
    X = X[rng.permutation(len(X))[:60]]
    states = found.contains(X)
    assert any(state is not None for state in states)
    for x, state in zip(X, states, strict=True):
        if state is not None:
            above = truth(model, x, quantity) - arb(level)
            wrong = above < 0 if state == (side == ">=") else above > 0
            assert not wrong, (x, state)


def test_the_area_of_a_disk():
    disk = gpcert.level_set(BUMP, SQUARE, math.exp(-0.5), tol=1e-3)
    assert disk.converged
    assert disk.volume.lower <= math.pi <= disk.volume.upper
    assert disk.undecided <= 1e-3
    assert disk.volume.upper - disk.volume.lower <= 16.01 * disk.undecided
    outside = disk.volumes[False]
    assert outside.lower <= 16.0 - math.pi <= outside.upper
    around = disk.share
    assert (around.lower, around.upper) == (disk.shares[True].lower, disk.shares[True].upper)


def test_a_half_space_is_known_from_one_cell():
    plane = gpcert.Posterior(Linear([1.0, 1.0, 1.0]), [[1.0, 2.0, 3.0]], [1.0])
    found = gpcert.level_set(plane, [(0.0, 1.0)] * 3, 3.0, tol=1e-9)
    assert found.boxes == 1
    assert found.share.lower <= 0.5 <= found.share.upper  # by symmetry about the middle


@pytest.mark.parametrize(("d", "volume"), [(1, 2.0), (3, 4 * math.pi / 3)])
def test_volumes_of_balls(d, volume):
    bump = gpcert.Posterior(SquaredExponential(1.0), np.zeros((1, d)), [1.0])
    found = gpcert.level_set(bump, [(-1.5, 2.0)] * d, math.exp(-0.5), tol=0.01)
    assert found.converged
    assert found.volume.lower <= volume <= found.volume.upper


def test_two_conditions_hold_together():
    conditions = [(None, ">=", math.exp(-0.5)), (None, "<=", math.exp(-0.125))]
    ring = gpcert.level_set(BUMP, SQUARE, conditions, tol=2e-3)
    assert ring.volume.lower <= 0.75 * math.pi <= ring.volume.upper
    assert [ring.contains(x) for x in ([0.0, 0.0], [0.7, 0.0], [0.0, 1.1])] == [False, True, False]
    assert len(ring.meaning) == 2


def test_conditions_on_several_models():
    shifted = gpcert.Posterior(SquaredExponential(1.0), points=[[1.0, 0.0]], weights=[1.0])
    models = {"yield": BUMP, "impurity": shifted}
    level = math.exp(-0.5)
    lens = gpcert.level_set(
        models, SQUARE, [("yield", ">=", level), ("impurity", ">=", level)], tol=2e-3
    )
    area = 2 * math.pi / 3 - math.sqrt(3) / 2  # of two unit disks at distance 1
    assert lens.volume.lower <= area <= lens.volume.upper
    assert "impurity: mean >= " in lens.meaning[1]


def test_a_band_is_compared_as_a_whole():
    model = fitted(4)
    asked = {"quantity": "band", "beta": 1.5, "tol": 0.05}
    for side, end in ((">=", "lcb"), ("<=", "ucb")):
        band = gpcert.level_set(model, SQUARE, 0.1, side=side, **asked)
        one = gpcert.level_set(model, SQUARE, 0.1, side=side, **(asked | {"quantity": end}))
        assert band.share == one.share


@pytest.mark.parametrize(
    ("quantity", "level", "words"),
    [("variance", 0.3, {}), ("pi", 0.5, {"best_f": 0.1}), ("ei", 0.2, {"best_f": 0.0})],
)
def test_quantities_with_planes_and_without(quantity, level, words):
    """Against plain values, which are far nearer than the undecided slab."""
    model = fitted(6)
    for side in (">=", "<="):
        found = gpcert.level_set(
            model, [(-1, 1)] * 2, level, quantity=quantity, side=side, tol=0.08, **words
        )
        X = np.random.default_rng(0).uniform(-1, 1, (12, 2))
        values = np.array(
            [gpcert.prediction_range(model, gpcert.Box(x, x), quantity=quantity, **words)
             .nominal for x in X]
        )  # fmt: skip
        for value, state in zip(values, found.contains(X), strict=True):
            assert state in {None, bool(value >= level if side == ">=" else value <= level)}


def test_regions_of_two_classes_and_of_three():
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (3, 2))
    two = gpcert.Posterior(
        SquaredExponential(1.0), points, [1.0, -1.0, 0.5], 0.3 * np.eye(3),
        likelihood=Probit(), classes=("no", "yes"),
    )  # fmt: skip
    three = gpcert.Posterior(
        SquaredExponential(1.0), points, np.eye(3), likelihood=Softmax(), classes=("a", "b", "c")
    )
    for model, tol in ((two, 0.01), (three, 0.4)):
        found = gpcert.level_set(model, SQUARE, tol=tol)
        assert found.undecided <= tol
        assert sum(each.lower for each in found.shares.values()) <= 1.0
        X = rng.uniform(-2, 2, (500, 2))
        scores, states = model.prediction(X), found.decided(X)
        winner = np.argmax(scores, 1) if scores.shape[1] > 1 else scores[:, 0] > 0.5
        plain = np.array(model.labels)[winner.astype(int)]
        known = np.array([state is not None for state in states])
        assert np.all(states[known] == plain[known])
        assert known.mean() > 0.5
        one = gpcert.level_set(model, SQUARE, tol=tol, output=model.labels[0])
        assert one.target == model.labels[0]
        assert one.contains(X[known][0]) == (states[known][0] == model.labels[0])
    assert found.target is None
    assert "class b" in str(found)
    with pytest.raises(InputError, match="label: expected one of 'a', 'b', 'c'"):
        _ = found.volume


def test_the_probability_of_the_first_of_two_classes():
    model = fitted(3, likelihood=Probit(), classes=("no", "yes"))
    words = {"quantity": "probability", "tol": 0.05}
    first = gpcert.level_set(model, SQUARE, 0.4, output="no", **words)
    second = gpcert.level_set(model, SQUARE, 0.6, output="yes", side="<=", **words)
    assert first.share == second.share
    X = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    at_least = 1.0 - model.prediction(X)[:, 0] >= 0.4
    states = first.contains(X)
    assert all(state in {None, bool(plain)} for state, plain in zip(states, at_least, strict=True))
    assert sum(state is not None for state in states) > 250


@pytest.mark.parametrize(
    "region",
    [
        gpcert.Ball([0.0, 0.0], 1.5, norm=2),
        gpcert.Polytope(gpcert.Box([-2, -2], [2, 2]), ({0: 1.0, 1: 1.0}, "<=", 1.0)),
    ],
    ids=["ball", "polytope"],
)
def test_regions_with_a_shape(region):
    found = gpcert.level_set(BUMP, region, math.exp(-0.5), tol=0.02)
    X = np.random.default_rng(0).uniform(-2, 2, (2000, 2))
    inside = region.contains(X) & (np.sum(X**2, axis=1) <= 1.0)
    states = found.contains(X)
    assert all(state in {None, bool(each)} for state, each in zip(states, inside, strict=True))
    box = 4.0 * np.prod(0.5 * (region.upper - region.lower))
    area = math.pi if region.kind == "ball" else None
    if area:
        assert found.volume.lower <= area <= found.volume.upper <= area + 0.03 * box


def test_features_that_are_fixed_and_names():
    model = fitted(0, d=3)
    found = gpcert.level_set(model, [(-1, 1)] * 3, 0.0, fixed={1: 0.25}, tol=0.02)
    assert found.cells.low.shape[1] == 2
    x = np.array([0.9, 0.25, -0.9])
    assert found.contains(x) in {None, bool(model.mean(x[None])[0, 0] >= 0)}
    assert found.contains([0.9, 0.2, -0.9]) is False  # not in the region


def test_budgets_interrupts_and_memory():
    model = fitted(1, d=4)
    words = {"tol": 1e-4}
    few = gpcert.level_set(model, [(-1, 1)] * 4, 0.0, budget=gpcert.Budget(boxes=50), **words)
    assert few.reason is gpcert.StopReason.BOXES
    assert 0.0 <= few.share.lower <= few.share.upper <= 1.0
    small = gpcert.Budget(seconds=20, memory=3e5)
    bounded = gpcert.level_set(model, [(-1, 1)] * 4, 0.0, budget=small, **words)
    assert bounded.reason is gpcert.StopReason.MEMORY
    arrays = (bounded.cells.low, bounded.cells.high, bounded.cells.planes)
    assert sum(each.nbytes for each in arrays) < 1e6
    short = gpcert.level_set(model, [(-1, 1)] * 4, 0.0, budget=0.2, **words)
    assert short.reason is gpcert.StopReason.TIME
    assert short.seconds < 3.0


@given(seed=st.integers(0, 10**6), about=st.booleans(), square=st.booleans())
@settings(max_examples=examples(30, quick=5), deadline=None)
def test_boxes_and_balls_inside_hold(seed, about, square):
    model, rng = fitted(seed), np.random.default_rng(seed)
    level = float(np.quantile(model.mean(rng.uniform(-1, 1, (50, 2))), 0.4))
    found = gpcert.level_set(model, [(-1, 1)] * 2, level, tol=0.03)
    if found.share.lower == 0:
        return
    box = found.largest_box(aspect=[2.0, 1.0] if square else None)
    if about:
        box = found.largest_box(center=0.7 * box.lower + 0.3 * box.upper)
    ball = found.inside_ball(box.center)
    u = rng.random((12, 2))
    u[::2] = np.round(u[::2])
    X = box.lower + u * (box.upper - box.lower)
    angle = rng.uniform(0, 2 * math.pi, 6)
    rim = ball.center + 0.999999 * ball.radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for x in [*X, *rim]:
        assert not truth(model, x, "mean") < arb(level)


def test_the_largest_square_and_ball_of_a_disk():
    disk = gpcert.level_set(BUMP, SQUARE, math.exp(-0.5), tol=2e-3)
    for box in (disk.largest_box(), disk.largest_box(center=[0.0, 0.0])):
        assert 1.9 < np.prod(box.upper - box.lower) <= 2.0
    flat = disk.largest_box(aspect=[3.0, 1.0])
    assert np.ptp((flat.upper - flat.lower) / [3.0, 1.0]) < 1e-9
    assert 1.1 < np.prod(flat.upper - flat.lower) <= 1.2
    ball = disk.inside_ball([0.3, 0.4])
    assert 0.49 < ball.radius <= 0.5
    assert 0.2 < disk.inside_ball([0.3, 0.4], norm="inf").radius <= 0.37
    hole = disk.inside_ball([1.5, 0.0], label=False)
    assert 0.49 < hole.radius <= 0.5
    for call, message in (
        (lambda: disk.largest_box(center=[1.9, 1.9]), "no box is proved to be inside about"),
        (lambda: disk.largest_box(center=[3.0, 0.0]), "center: expected a point of the region"),
        (lambda: disk.largest_box(aspect=[1.0, 0.0]), "aspect: expected 2 positive numbers"),
        (lambda: disk.inside_ball([1.9, 1.9]), "x: expected a point that is proved"),
        (lambda: disk.inside_ball([0.0, 0.0], norm=1), "norm: expected 2 or 'inf'"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_saved_and_loaded(tmp_path):
    found = gpcert.level_set(BUMP, SQUARE, 0.5, tol=0.01)
    found.save(tmp_path / "set.npz")
    again = gpcert.load(tmp_path / "set.npz")
    assert isinstance(again, gpcert.LevelSet)
    assert (again.shares, again.meaning, again.reason) == (
        found.shares,
        found.meaning,
        found.reason,
    )
    X = np.random.default_rng(0).uniform(-2.1, 2.1, (200, 2))
    assert np.array_equal(again.contains(X), found.contains(X))
    assert repr(found).startswith("LevelSet(mean >= 0.5; share of the box")
    assert "volume in [" in str(found)
    with pytest.raises(InputError):
        gpcert.LevelSet.load(__file__)


def test_a_table_of_cells():
    pytest.importorskip("pandas")
    frame = gpcert.level_set(BUMP, SQUARE, 0.5, tol=0.02).to_frame()
    assert list(frame.columns) == [
        "low 0", "high 0", "low 1", "high 1", "state", "part False", "part True"
    ]  # fmt: skip
    assert set(frame["state"]) == {True, False, None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"threshold": float("nan")}, "threshold"),
        ({"threshold": "high"}, "threshold"),
        ({"threshold": None}, "only a classifier has regions without one"),
        ({"threshold": []}, "one condition or more"),
        ({"threshold": [("a",)]}, r"\(output or model"),
        ({"threshold": [(None, ">=", 0.5, {"colour": 1})]}, "words out of quantity"),
        ({"threshold": [(None, "=", 0.5)]}, "side: expected one of '>=', '<='"),
        ({"threshold": [(None, ">=", 0.5)], "quantity": "std"}, "quantity: several conditions"),
        ({"threshold": 0.5, "side": ">"}, "side: expected one of"),
        ({"threshold": 0.5, "tol": 1.5}, "tol"),
        ({"threshold": 0.5, "beta": 2.0}, "beta: belongs to"),
        ({"threshold": 0.5, "output": 3}, "output: expected"),
        ({"threshold": 0.5, "region": [(0.0, 0.0), (1.0, 1.0)]}, "some feature moves"),
        ({"threshold": 0.5, "region": [(0.0, 1.0)]}, "bounds"),
        ({"threshold": 0.5, "model": {}}, "a model or several, got none"),
        ({"threshold": 0.5, "model": [BUMP, BUMP]}, "several models need several conditions"),
        ({"threshold": [("b", ">=", 0.5)], "model": {"a": BUMP, "c": BUMP}}, "one of the models"),
    ],
)
def test_bad_input_is_an_error_in_words(words, message):
    given = {"model": BUMP, "region": SQUARE} | words
    with pytest.raises(InputError, match=message):
        gpcert.level_set(given.pop("model"), given.pop("region"), **given)
