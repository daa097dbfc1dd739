"""Attacks on many points at once: they stay inside, repeat, and find what is there to find."""

import numpy as np
import pytest

from gpcert.attacks import Decision, Effort, Neighbourhoods, attack_points, decision_margins
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.regions import Ball, Box
from gpcert.testing.effort import crossed, examples
from tests.attacks.attack_models import MODELS, WORDS, points

METHODS = ["gpfgs", "gpfgs_probability", "pgd", "square", "best"]
SHORT = Effort(restarts=1, iterations=6)


def words_of(name):
    return {"output_norm": np.inf, **WORDS[name]} if name in WORDS else {}


def attacked(name, regions, X, method, seed=0, effort=SHORT):
    margins = decision_margins(MODELS[name](), X, Decision(**words_of(name)))
    found = attack_points(margins, Neighbourhoods.of(regions), X, method, effort, seed)
    return margins, found


@crossed({"norm": [1, 1.5, 2, np.inf], "name": MODELS}, quick=8)
def test_points_stay_in_their_regions(name, norm):
    X = points(examples(4, quick=2))
    domain = (X.min(axis=0) - 0.1, X.max(axis=0) + 0.1)
    balls = [Ball(x, 0.4, norm=norm, features=[0, 2], domain=domain) for x in X]
    for method in METHODS:
        _, found = attacked(name, balls, X, method, effort=Effort(1, 3))
        inside = np.stack([ball.project(x) for ball, x in zip(balls, found, strict=True)])
        np.testing.assert_allclose(found, inside, rtol=0, atol=1e-12)
        assert np.array_equal(found[:, 1], X[:, 1])


@crossed({"method": ["pgd", "square", "best"], "name": MODELS})
def test_never_worse_than_where_it_started(name, method):
    X = points(examples(6, quick=3))
    margins, found = attacked(name, [Ball(x, 0.5) for x in X], X, method)
    rows = np.arange(len(X))
    assert np.all(margins.value(False, found, rows) <= margins.value(False, X, rows))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_finds_the_same_points(method):
    X = points()
    balls = [Ball(x, 0.5, norm=2) for x in X]
    first, second = (attacked("binary", balls, X, method, seed=3)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_gpfgs_is_the_sign_of_the_gradient_of_the_mean():
    model, X = MODELS["binary"](), points()
    margins, found = attacked("binary", [Ball(x, 0.2) for x in X], X, "gpfgs")
    _, gradient = margins.value_and_gradient(True, X, np.arange(len(X)))
    np.testing.assert_allclose(found, X - 0.2 * np.sign(gradient), atol=1e-12)
    assert model.dim == 3


def test_gpfgs_on_a_deviation_goes_the_way_that_moves_most():
    bump = Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    X = np.array([[1.0]])
    margins = decision_margins(bump, X, Decision(delta=0.1, output_norm=np.inf))
    found = attack_points(margins, Neighbourhoods.of([Ball(X[0], 0.5)]), X, "gpfgs", SHORT, 0)
    # exp(-1/8) - exp(-1/2) = 0.276 to the left, exp(-1/2) - exp(-9/8) = 0.282 to the right
    assert found[0, 0] == pytest.approx(1.5)


@pytest.mark.parametrize("method", ["pgd", "square", "best"])
def test_a_valley_beside_a_hill_is_found(method):
    """The gradient at x points away from the nearest counter-example, as in the paper's figure."""
    model = Posterior(SquaredExponential(0.5), [[0.0], [-1.2]], [1.0, -3.0])
    X = np.array([[0.3]])
    margins = decision_margins(model, X, Decision(threshold=0.0))
    places = Neighbourhoods.of([Ball(X[0], 1.5)])
    one_step = attack_points(margins, places, X, "gpfgs", SHORT, 0)
    assert margins.margin(one_step, np.array([0]))[0] > 0
    found = attack_points(margins, places, X, method, Effort(), 0)
    assert margins.margin(found, np.array([0]))[0] < -1.0


def test_stacked_regions_do_what_one_region_does():
    X = points(5)
    rng = np.random.default_rng(0)
    for norm in (1, 1.7, 2, np.inf):
        balls = [Ball(x, 0.1 + 0.1 * k, norm=norm, domain=(-3, 3)) for k, x in enumerate(X)]
        places = Neighbourhoods.of(balls)
        far, slope = X + rng.normal(size=X.shape), rng.normal(size=X.shape)
        rows = np.arange(5)
        one = np.stack([ball.project(x) for ball, x in zip(balls, far, strict=True)])
        np.testing.assert_allclose(places.project(far, rows), one, atol=1e-12)
        one = np.stack([ball.linear_minimizer(g) for ball, g in zip(balls, slope, strict=True)])
        np.testing.assert_allclose(places.linear_minimizers(slope, rows), one, atol=1e-9)
        drawn = places.sample(rows, rng)
        one = np.stack([ball.project(x) for ball, x in zip(balls, drawn, strict=True)])
        np.testing.assert_allclose(drawn, one, atol=1e-12)


def test_boxes_and_balls_of_several_norms_are_not_mixed():
    balls = [Ball([0.0], 1.0, norm=1), Ball([0.0], 1.0, norm=2)]
    with pytest.raises(InputError, match="one norm"):
        Neighbourhoods.of(balls)
    with pytest.raises(InputError, match="got both"):
        Neighbourhoods.of([balls[0], Box([0.0], [1.0])])


@pytest.mark.parametrize("words", [{"restarts": -1}, {"iterations": 0}, {"iterations": 2.5}])
def test_effort_is_checked(words):
    with pytest.raises(InputError, match="expected a whole number"):
        Effort(**words)


def test_unknown_methods_are_named():
    with pytest.raises(InputError, match="gpfgs, gpfgs_probability"):
        attacked("binary", [Ball(x, 0.5) for x in points()], points(), "fgsm")
