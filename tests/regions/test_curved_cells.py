"""Models behind increasing functions of single inputs: ranges in the user's units."""

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.functions import Affine, Clip, Curve, Exp, Kumaraswamy, Log, PowerBend, Round
from gpcert.kernels import Matern, SquaredExponential
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Slope
from gpcert.regions import Ball, Box, Discrete, LinearMap, Region, Union
from gpcert.regions.cells import widths_as_units
from gpcert.regions.image import Image
from gpcert.search import Budget
from gpcert.testing.effort import examples, variants

CURVES = {
    0: Curve((Log(), PowerBend(0.5, -0.5), Affine(-2.0, 2.0))),
    1: Curve((Clip(1e-8, 1.0 - 1e-8), Kumaraswamy(1.7, 0.6))),
}
MIXED = np.array([[0.8, 0.6, 0.1], [-0.6, 0.8, 0.3]])
MATRICES = {"plain": np.eye(3), "mixed": MIXED}
KERNELS = {"se": SquaredExponential, "matern": lambda lengths: Matern(lengths, 2.5)}
SMALL = Budget(boxes=20)


def posterior(matrix: np.ndarray, kernel, scale: float = 1.0) -> gpcert.Posterior:
    random = np.random.default_rng(0)
    Z = random.uniform(0.0, 1.0, (15, 3)) @ matrix.T
    k = kernel(np.linspace(0.4, 0.7, len(matrix)))
    weights = np.linalg.solve(k.value(Z, Z) + 0.01 * np.eye(15), np.sin(4.0 * Z[:, 0]) + Z[:, 1])
    return gpcert.Posterior(
        k,
        Z,
        weights,
        training_noise=0.01,
        scale=scale,
        features=LinearMap(matrix, curves=CURVES),
    )


LOW, HIGH = np.array([0.2, 0.1, 0.5]), np.array([2.0, 0.9, 0.5])


@variants("matrix, kernel", [(m, k) for m in MATRICES for k in KERNELS], quick=2)
@pytest.mark.parametrize("quantity", ["mean", "variance"])
def test_ranges_contain_predictions(matrix: str, kernel: str, quantity: str) -> None:
    model = posterior(MATRICES[matrix], KERNELS[kernel])
    X = LOW + (HIGH - LOW) * np.random.default_rng(1).uniform(size=(2000, 3))
    values = model.predict(X)[quantity == "variance"][:, 0]
    box = Box(LOW, HIGH)
    found = gpcert.prediction_range(model, region=box, quantity=quantity, budget=SMALL)
    assert found.minimum.lower <= values.min() <= values.max() <= found.maximum.upper
    for point in (found.argmin, found.argmax):
        assert box.contains(point)
    for bound in (found.minimum.upper, found.maximum.lower):  # attained
        assert found.minimum.lower <= bound <= found.maximum.upper
    tight = gpcert.prediction_range(model, region=box, quantity=quantity, budget=Budget(boxes=250))
    width = values.max() - values.min()
    assert tight.maximum.upper - tight.minimum.lower <= 1.3 * width
    assert tight.maximum.upper <= found.maximum.upper + 1e-9


@pytest.mark.parametrize("norm", [1, 2])
def test_balls_are_in_the_users_units(norm: int) -> None:
    model, x = posterior(np.eye(3), SquaredExponential), np.array([0.7, 0.5, 0.5])
    ball = Ball(x, 0.2, norm)
    values = model.predict(ball.sample(2000, 0))[0][:, 0]
    found = gpcert.prediction_range(model, x, 0.2, norm=norm, budget=SMALL)
    assert found.minimum.lower <= values.min() <= values.max() <= found.maximum.upper


def test_cells_hold_what_the_functions_make_of_their_points() -> None:
    """Statement 18.5, centres included, for random cells, some of them single points."""
    random = np.random.default_rng(2)
    region, features = Box(LOW, HIGH), LinearMap(MIXED, curves=CURVES)
    image = Image.of(features, region, widths_as_units(region), Backend())
    root = region.root()
    for _ in range(examples(300)):
        ends = np.sort(random.uniform(LOW[:2], HIGH[:2], (2, 2)), axis=0)
        if random.random() < 0.2:
            ends[1] = ends[0]
        cells = image.cells(root.with_ends(ends[:1], ends[1:]))
        free = ends[0] + (ends[1] - ends[0]) * random.uniform(size=(50, 2))
        X = np.column_stack([free, np.full(50, 0.5)])
        e = features(X) - cells.center
        assert np.all(np.abs(e) <= cells.half + 1e-15)
        middle = features(np.array([[*cells.source.source.center[0], 0.5]])) - cells.center
        assert np.all(np.abs(middle) <= cells.offset + 1e-15)
        g = random.standard_normal((1, 2))
        assert cells.linear_minimum(g)[0] <= (e @ g[0]).min() + 1e-14
        assert cells.squared_norm_maximum(np.ones(2))[0] >= np.square(e).sum(1).max() - 1e-14


@pytest.mark.parametrize("union", [False, True])
def test_cells_hold_the_indicators_of_their_categories(union: bool) -> None:
    """Statement 18.6, beside a function of another input, for random cells."""
    random = np.random.default_rng(5)
    codes = np.array([0.0, 1.0, 2.0])  # the middle of a union's cell may be a category
    matrix = random.standard_normal((3, 2 + 3 + 2))
    matrix[:, 1] = 0.0
    levels, curves = {1: (0.0, 1.0, 2.0), 2: (4.0, 7.0)}, {0: CURVES[0]}
    features = LinearMap(np.insert(matrix, 2, 0.0, axis=1), levels=levels, curves=curves)
    low, high = np.array([0.2, 0.0, 4.0]), np.array([2.0, 2.0, 7.0])
    region: Region = Discrete(Box(low, high), values={1: codes, 2: [4.0, 7.0]})
    if union:
        ends = [(np.array([a, b]), np.array([0.2, 2.0])) for a in codes for b in (4.0, 7.0)]
        region = Union([Box([w[0], *v], [w[1], *v]) for v, w in ends])
    image = Image.of(features, region, widths_as_units(region), Backend())
    for _ in range(examples(300)):
        ends = np.sort(random.uniform(low, high, (2, 3)), axis=0)
        ends[:, 1] = np.sort(random.choice(codes, 2))
        ends[:, 2] = np.sort(random.choice([4.0, 7.0], 2))
        cells = image.cells(region.root().with_ends(ends[:1], ends[1:]))
        X = ends[0] + (ends[1] - ends[0]) * random.uniform(size=(50, 3))
        for j, values in ((1, codes), (2, np.array([4.0, 7.0]))):
            X[:, j] = random.choice(values[(values >= ends[0, j]) & (values <= ends[1, j])], 50)
        e = features(X) - cells.center
        assert np.all(np.abs(e) <= cells.half + 1e-14)
        middle = cells.source.source.center
        if region.contains(middle)[0]:
            assert np.all(np.abs(features(middle) - cells.center) <= cells.offset + 1e-14)
        g = random.standard_normal((1, 3))
        assert cells.linear_minimum(g)[0] <= (e @ g[0]).min() + 1e-13
        assert cells.squared_norm_maximum(np.ones(3))[0] >= np.square(e).sum(1).max() - 1e-13
        assert cells.split_scores(np.ones(3)).shape == (1, 3)


def test_a_fixed_input_behind_a_function_is_known_up_to_rounding() -> None:
    """What a function makes of a fixed input is no float: the offset counts its enclosure."""
    features = LinearMap(np.eye(2), curves={1: Curve((Exp(),))})
    region = Box([0.0, 0.1], [1.0, 0.1])
    image = Image.of(features, region, widths_as_units(region), Backend())
    assert image.offset[1] >= np.spacing(np.exp(0.1)) / 2
    assert image.offset[1] > 4.0 * image.offset[0]


def test_whole_numbers() -> None:
    """Rounded inputs: sound over boxes, exact where an input stays between two halves."""
    model = gpcert.Posterior(
        SquaredExponential(1.0),
        [[0.0], [2.0]],
        [1.0, -1.0],
        features=LinearMap(np.eye(1), curves={0: Curve((Round(),))}),
    )
    at_two = model.mean([[2.0]])[0, 0]
    inside = gpcert.prediction_range(model, region=Box([1.6], [2.4]), budget=SMALL)
    assert inside.minimum.lower == pytest.approx(at_two, abs=1e-9)
    assert inside.maximum.upper == pytest.approx(at_two, abs=1e-9)
    wide = gpcert.prediction_range(model, region=Box([0.0], [2.4]), budget=SMALL)
    values = model.mean([[0.0], [1.0], [2.0]])
    assert wide.minimum.lower <= values.min() <= values.max() <= wide.maximum.upper


def test_attacks_follow_the_functions() -> None:
    """Gradients are those of finite differences in the user's units."""
    model = posterior(MIXED, SquaredExponential)
    X = np.array([[0.7, 0.4, 0.5], [1.4, 0.2, 0.5]])
    gradient = gpcert.predict_gradient(model, X)[1]
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        difference = (model.mean(X + step) - model.mean(X - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, :, j], difference, rtol=1e-5, atol=1e-8)


def test_files_hold_them(tmp_path) -> None:
    model = posterior(MIXED, SquaredExponential)
    model.save(tmp_path / "model.npz")
    again = gpcert.Posterior.load(tmp_path / "model.npz")
    assert again.fingerprint == model.fingerprint
    assert again.features is not None
    assert again.features.curves == CURVES


def test_errors() -> None:
    model = posterior(np.eye(3), SquaredExponential)
    with pytest.raises(InputError, match="feature 0: expected values above 0"):
        gpcert.prediction_range(model, region=Box([0.0, 0.1, 0.5], [1.0, 0.2, 0.5]))
    with pytest.raises(InputError, match="not linear before the kernel"):
        gpcert.prediction_range(model, [0.7, 0.5, 0.5], 0.1, quantity=Slope(0))
    with pytest.raises(InputError, match="mix or reverse"):
        LinearMap(MIXED).then(LinearMap(np.eye(2), curves={0: Curve((Round(),))}))


def test_a_proof_that_the_checker_does_not_cover_is_refused_before_the_search() -> None:
    model = posterior(np.eye(3), SquaredExponential)
    with pytest.raises(InputError, match="does not cover a model behind functions of its inputs"):
        gpcert.prediction_range(model, [0.7, 0.5, 0.5], 0.1, proof=True, budget=SMALL)
