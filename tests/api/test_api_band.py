"""`quantity="std"` and `"band"` through the verbs: sampled truth, words, files, mistakes."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import gpcert
from gpcert.attacks.functions import plain_function
from gpcert.errors import InputError
from gpcert.explain import effects
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.model.committee import Committee
from gpcert.quantities import Band, Std
from gpcert.testing.arb_reference import regression_posterior
from gpcert.testing.effort import crossed

BOX = gpcert.Box([-0.7, -0.7], [0.7, 0.7])


def posterior(outputs=1, ridge=0.1, **options):
    rng = np.random.default_rng(0)
    points = rng.uniform(-2.0, 2.0, (30, 2))
    targets = np.stack([np.sin(points.sum(1)), np.cos(points[:, 0])][:outputs])
    return regression_posterior(SquaredExponential(1.0, 2.0), points, targets, ridge, **options)


def ends(model, X, quantity, beta, output=0):
    """Lower and upper end at every row of X."""
    mean, variance = (part[:, output] for part in model.predict(X))
    std = np.sqrt(variance)
    return (std, std) if quantity == "std" else (mean - beta * std, mean + beta * std)


@crossed({"ridge": [0.1, 1e-8], "quantity": ["std", "band"]})
def test_ranges_hold_the_sampled_truth_and_are_attained(quantity, ridge):
    model = posterior(2, ridge, scale=[1.0, 3.0], offset=[0.0, 5.0], noise=[0.0, 0.2])
    beta = 2.5 if quantity == "band" else None
    X = np.concatenate([BOX.sample(2000, 0), model.points[BOX.contains(model.points)]])
    for output in (0, 1):
        found = gpcert.prediction_range(
            model, BOX, tol=2e-3, quantity=quantity, beta=beta, output=output
        )
        low, high = ends(model, X, quantity, beta, output)
        assert found.converged
        assert found.minimum.lower <= low.min() + 1e-7  # sampled in plain floating point
        assert high.max() - 1e-7 <= found.maximum.upper
        at_low, _ = ends(model, found.argmin[None], quantity, beta, output)
        _, at_high = ends(model, found.argmax[None], quantity, beta, output)
        assert at_low[0] <= found.minimum.upper + 1e-7
        assert at_high[0] >= found.maximum.lower - 1e-7
        assert (found.output, found.quantity, found.beta) == (output, quantity, beta)
        assert ("noise variance 0.2" in found.meaning) == (output == 1)


def test_a_band_needs_no_more_boxes_than_mean_and_variance():
    model = posterior()
    boxes = {
        name: gpcert.prediction_range(model, BOX, tol=1e-3, quantity=name).boxes
        for name in ("mean", "variance", "band")
    }
    assert boxes["band"] <= boxes["mean"] + boxes["variance"]


def test_std_is_that_of_scikit_learns_predict():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2.0, 2.0, (20, 1))
    kernel = RBF(0.8) + WhiteKernel(0.05)
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True)
    model.fit(X, 7.0 + 3.0 * np.sin(2 * X[:, 0]))
    box = gpcert.Box([-0.5], [1.5])
    mean, std = model.predict(box.sample(500, 0), return_std=True)
    found = gpcert.prediction_range(model, box, tol=1e-3, quantity="std")
    assert found.minimum.lower <= std.min() <= found.minimum.upper + 1e-2
    assert found.maximum.lower - 1e-2 <= std.max() <= found.maximum.upper
    band = gpcert.prediction_range(model, box, tol=1e-3, quantity="band")
    assert band.beta == 2.0
    assert band.minimum.lower <= (mean - 2 * std).min() <= band.minimum.upper + 1e-2
    assert band.maximum.lower - 1e-2 <= (mean + 2 * std).max() <= band.maximum.upper


def test_a_band_of_no_deviations_is_the_mean():
    model = posterior()
    mean = gpcert.prediction_range(model, BOX, quantity="mean")
    band = gpcert.prediction_range(model, BOX, quantity="band", beta=0)
    assert (band.minimum, band.maximum, band.boxes) == (mean.minimum, mean.maximum, mean.boxes)
    assert (band.quantity, band.beta) == ("band", 0.0)


def test_many_and_all_outputs_save_load_and_frame(tmp_path):
    model = posterior(2)
    table = gpcert.prediction_range_many(
        model, [[0.0, 0.0], [1.0, 1.0]], 0.2, quantity="band", beta=1.5, all_outputs=True, tol=0.05
    )
    assert list(table.to_frame()["beta"]) == [1.5] * 4
    assert [row.output for row in table] == [0, 1, 0, 1]
    table.save(tmp_path / "bands.json")
    again = gpcert.load(tmp_path / "bands.json")
    assert again.to_frame().equals(table.to_frame())
    assert again[0].beta == 1.5
    one = gpcert.prediction_ranges(model, BOX, quantity="std", tol=0.05)[1]
    one.save(tmp_path / "std.json")
    assert gpcert.load(tmp_path / "std.json").to_dict() == one.to_dict()
    assert one.beta is None
    assert "beta" not in gpcert.prediction_range_many(model, [BOX], tol=0.05).to_frame()
    wrong = table[0].to_dict() | {"beta": -1.0}
    with pytest.raises(InputError, match="beta"):
        type(table[0]).from_dict(wrong)


@pytest.mark.parametrize("side", ["minimum", "maximum"])
def test_one_side_of_a_band(side):
    found = gpcert.prediction_range(posterior(), BOX, quantity="band", sides=side)
    both = gpcert.prediction_range(posterior(), BOX, quantity="band")
    assert getattr(found, side).width <= 0.01
    assert getattr(found, side).lower <= getattr(both, side).upper
    other = found.maximum if side == "minimum" else found.minimum
    assert np.isinf(other.width)


@pytest.mark.parametrize("quantity", ["std", "band"])
@pytest.mark.parametrize("method", ["paper", "both"])
def test_the_papers_method_answers_too(quantity, method):
    model, box = posterior(), gpcert.Box([-0.1, 0.1], [0.0, 0.2])
    plain = gpcert.prediction_range(model, box, quantity=quantity)
    how = {
        "method": method,
        "variance_bound": "analytic",
        "tol": 0.1,
        "budget": gpcert.Budget(boxes=200),
    }
    found = gpcert.prediction_range(model, box, quantity=quantity, **how)
    assert found.minimum.lower <= plain.minimum.upper
    assert plain.maximum.lower <= found.maximum.upper
    assert found.minimum.upper >= plain.minimum.lower
    assert found.maximum.lower <= plain.maximum.upper


@pytest.mark.parametrize("beta", [-1.0, np.nan, np.inf, "two", [1.0, 2.0]])
def test_bad_betas_are_refused(beta):
    with pytest.raises(InputError, match="beta"):
        gpcert.prediction_range(posterior(), BOX, quantity="band", beta=beta)


def test_mistakes_are_named():
    with pytest.raises(InputError, match="beta: belongs to quantity='band'"):
        gpcert.prediction_range(posterior(), BOX, quantity="std", beta=2.0)
    with pytest.raises(InputError, match="beta: belongs to quantity='band'"):
        gpcert.prediction_range_many(posterior(), [BOX], beta=2.0)
    with pytest.raises(InputError, match="two functions"):
        effects(posterior(), [0.0, 0.0], radius=0.1, quantity="band")
    member = posterior(likelihood=Probit())
    committee = Committee((member, member, member), ("a", "b", "c"), "one_vs_rest")
    with pytest.raises(InputError, match="members"):
        gpcert.prediction_range(committee, BOX, quantity="band", output="a")


def test_effects_on_the_deviation():
    model = posterior()
    found = effects(model, [0.3, 0.1], radius=0.2, quantity="std")
    assert np.all(found.lower <= found.upper)
    assert np.all(found.upper - found.lower <= 0.05)


@pytest.mark.parametrize("sign", [1, -1])
def test_plain_functions_have_their_gradients(sign):
    model = posterior(noise=0.1)
    X = BOX.sample(5, 0)
    for function in (
        plain_function(model, Band(0, sign, 2.0)),
        plain_function(model, Std(0, sign)),
    ):
        value, gradient = function(X)
        for j in range(2):
            step = 1e-6 * np.eye(2)[j]
            slope = (function(X + step)[0] - function(X - step)[0]) / 2e-6
            np.testing.assert_allclose(gradient[:, j], slope, atol=1e-5)
        assert np.all(np.isfinite(value))
    bare = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0], [[1.0]])
    value, gradient = plain_function(bare, Std(0, sign))(
        np.zeros((1, 2))
    )  # where the variance is 0
    assert value[0] == 0.0
    assert np.all(gradient == 0.0)
