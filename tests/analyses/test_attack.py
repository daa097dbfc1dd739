"""`gpcert.attack`: a success is only a claim, a confirmed one is a counter-example."""

from importlib import import_module

import numpy as np
import pytest

import gpcert
from gpcert.analyses.attack import attack_regions
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.regions import Ball
from gpcert.testing.effort import examples, variants

SHORT = {"iterations": 8, "restarts": 1}


def check(model, X, radius, **words):
    table = gpcert.attack(model, X, radius, **SHORT, **words)
    shape = {name: words.pop(name) for name in ("norm", "features", "domain") if name in words}
    for x, row in zip(X, table, strict=True):
        ball = Ball(x, radius, **shape)
        assert ball.contains(row.point)
        assert row.distance <= radius * (1 + 1e-12)
        assert row.confirmed <= row.success
        if row.confirmed:
            # a proof of robustness would contradict the counter-example
            status = gpcert.certify(model, x, region=ball, **words).status
            assert status is not gpcert.Status.ROBUST
    return table


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_binary(binary, X, norm):
    table = check(binary, X, 0.8, norm=norm)
    assert table.confirmed.any()
    assert not table.confirmed.all()
    for row in table:
        assert (row.new_decision != row.decision) == row.success
        assert row.after == pytest.approx(float(binary.prediction(row.point[None])[0, 0]))


def test_threshold_and_features(binary, X):
    table = check(binary, X, 0.8, threshold=0.7, features=[1])
    assert np.array_equal(table.points[:, 0], X[:, 0])
    for row in table:
        assert row.success == ((row.before > 0.7) != (row.after > 0.7))


@variants("kind", ["committee", "softmax"])
def test_several_classes(kind, X, request):
    model = request.getfixturevalue(kind)
    table = check(model, X[: examples(5, quick=3)], 0.7)
    assert table.confirmed.any()
    assert all((row.new_decision != row.decision) == row.success for row in table)


def test_regression(regression, X):
    table = check(regression, X, 0.4, delta=0.2)
    assert table.confirmed.any()
    for row in table:
        assert row.success == (abs(row.after - row.before) > 0.2)
    check(regression, X, 0.4, threshold=0.1)


def test_a_region_for_all_points(binary):
    box = gpcert.Box([-1.0, -1.0], [1.0, 1.0])
    table = gpcert.attack(binary, [[0.0, 0.0], [0.5, 0.5]], region=box, **SHORT)
    assert all(box.contains(row.point) for row in table)
    assert len({row.after for row in table if row.decision == table[0].decision}) <= 2
    with pytest.raises(InputError, match="row 1 outside"):
        gpcert.attack(binary, [[0.0, 0.0], [5.0, 0.5]], region=box)


def test_what_is_not_asked_is_not_confirmed(binary, X):
    table = gpcert.attack(binary, X, 0.8, confirm=False, **SHORT)
    assert table.success.any()
    assert not table.confirmed.any()


def test_a_lying_attack_is_not_confirmed(binary, X, monkeypatch):
    """Success by a wrong computation stays a claim: certified bounds are asked."""
    module = import_module("gpcert.analyses.attack")  # the package has a verb of that name

    class Lying:
        quantity = "lie"

        def __init__(self, *_):
            pass

        def margin(self, points, rows):
            return np.full(len(points), -1.0)

        def displayed(self, points, rows):
            return np.zeros(len(points))

        def decided(self, points):
            return [None] * len(points)

        def value(self, latent, points, rows):
            return np.zeros(len(points))

        def first_gradients(self, points, rows, *, latent):
            return [np.zeros_like(points)]

    monkeypatch.setattr(module, "decision_margins", Lying)
    balls = [Ball(x, 1e-6) for x in X]
    table = attack_regions(binary, X, balls, module.Decision(), "gpfgs", module.Effort(), True, 0)
    assert table.success.all()
    assert not table.confirmed.any()


def test_nothing_is_confirmed_of_a_point_at_a_tie():
    """Two equal bumps of opposite sign: at 0 the mean is 0 in real arithmetic, and no decision."""
    tie = gpcert.Posterior(
        SquaredExponential(1.0), [[-1.0], [1.0]], [-1.0, 1.0], likelihood=Probit()
    )
    table = gpcert.attack(tie, [[0.0]], 0.5, **SHORT)
    assert table.success.tolist() == [True]
    assert table.confirmed.tolist() == [False]


def test_no_points_are_an_empty_table(binary):
    assert len(gpcert.attack(binary, np.zeros((0, 2)), 0.1)) == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"radius": None}, "exactly one of radius"),
        ({"radius": -1.0}, "radius"),
        ({"radius": 0.1, "method": "magic"}, "method: expected one of"),
        ({"radius": 0.1, "delta": 0.1}, "delta"),
        ({"radius": 0.1, "threshold": 1.5}, "between 0 and 1"),
        ({"radius": 0.1, "threshold": float("nan")}, "threshold"),
        ({"radius": 0.1, "features": [7]}, "features"),
        ({"radius": 0.1, "region": gpcert.Box([0.0, 0.0], [1.0, 1.0])}, "exactly one"),
    ],
)
def test_bad_input(binary, X, words, text):
    with pytest.raises(InputError, match=text):
        gpcert.attack(binary, X, **words)


def test_a_table_saves_loads_and_draws(binary, X, tmp_path):
    from matplotlib.figure import Figure

    table = gpcert.attack(binary, X, 0.8, norm=2, **SHORT)
    table.save(tmp_path / "attacks.json")
    again = gpcert.load(tmp_path / "attacks.json")
    assert again.to_frame().equals(table.to_frame())
    np.testing.assert_array_equal(again.points, table.points)
    ax = Figure().subplots()
    assert table.plot(ax) is ax
    assert "confirmed" in repr(table)
