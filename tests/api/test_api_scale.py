"""`scale=`: radii in units of each feature's spread in the training data, or of any numbers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC

import gpcert
from gpcert import explain
from gpcert.inputs.tabular import spread_of
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier, GPRegressor
from gpcert.numerics.rounding import product_up
from gpcert.testing.effort import examples, variants

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3)) * [1.0, 20.0, 0.01] + [0.0, 100.0, 5.0]
Y = (X[:, 0] + X[:, 1] / 20.0 > 5.0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
STD = X.std(axis=0)
KERNEL = RBF([1.0, 20.0, 1.0])


def spread(model):
    return gpcert.as_posterior(model).spread


def test_every_model_knows_the_spread_of_its_training_data():
    fixed = {"optimizer": None}
    models = {
        "regressor": GaussianProcessRegressor(KERNEL, alpha=0.1, **fixed).fit(X, Y),
        "classifier": GaussianProcessClassifier(KERNEL, **fixed).fit(X, Y),
        "standard": make_pipeline(
            StandardScaler(), GaussianProcessClassifier(RBF(1.0), **fixed)
        ).fit(X, Y),
        "two scalers": make_pipeline(
            MinMaxScaler(), StandardScaler(), GaussianProcessRegressor(RBF(1.0), alpha=0.1, **fixed)
        ).fit(X, Y),
        "own regressor": GPRegressor(max_epochs=0).fit(X, Y),
        "sparse": GPClassifier(
            inference="ep", sparse="fic", n_inducing=4, inducing="kmeans", max_epochs=0
        ).fit(X, Y),
        "behind a scaler": make_pipeline(
            StandardScaler(), GPClassifier(inference="ep", sparse="fic", n_inducing=4, max_epochs=0)
        ).fit(X, Y),
    }
    for name, model in models.items():
        np.testing.assert_allclose(spread(model), STD, rtol=1e-12, err_msg=name)


def test_a_scaler_knows_the_spread_for_models_without_their_data():
    both = ColumnTransformer([("a", StandardScaler(), [1]), ("b", StandardScaler(), [2, 0])])
    models = {
        "support vectors": [StandardScaler(), SVC()],
        "without mean": [StandardScaler(with_mean=False), SVR()],
        "second": [MinMaxScaler(), StandardScaler(), SVR()],
        "nested": [make_pipeline(MaxAbsScaler(), "passthrough"), StandardScaler(), SVR()],
        "components": [StandardScaler(), PCA(2), SVC()],
        "components of a process": [StandardScaler(), PCA(2), GaussianProcessRegressor(alpha=0.1)],
        "columns": [both, SVR()],
        "last": [StandardScaler(), MinMaxScaler(), NuSVC()],
    }
    for name, steps in models.items():
        model = make_pipeline(*steps).fit(X, Y)
        np.testing.assert_allclose(spread(model), STD, rtol=1e-12, err_msg=name)
    model = make_pipeline(StandardScaler(), SVC()).fit(FRAME, Y)
    found = gpcert.certify(model, X[0], 0.1, scale="std")
    np.testing.assert_allclose(found.region["radius"], 0.1 * STD, rtol=1e-12)
    constant = np.column_stack([X, np.full(len(X), 0.1)])
    assert spread(make_pipeline(StandardScaler(), SVC()).fit(constant, Y))[3] == 0.0
    some = ColumnTransformer([("a", StandardScaler(), [1])], remainder="passthrough")
    for steps in (
        [StandardScaler(with_std=False)],
        [MinMaxScaler()],
        [PCA(2), StandardScaler()],
        [some],
    ):
        unknown = make_pipeline(*steps, SVC()).fit(X, Y)
        with pytest.raises(gpcert.InputError, match="pass scale=X_train"):
            gpcert.certify(unknown, X[0], 0.1, scale="std")


@pytest.mark.parametrize("exponent", [-600, -1060, 1000])
def test_no_unit_of_a_feature_keeps_it_fixed(exponent):
    # the squares of such numbers are 0 or infinite; a spread of 0 would certify a single point
    np.testing.assert_array_equal(spread_of(X), STD)
    own = np.ldexp(X, exponent)
    found = spread_of(np.column_stack([own, np.full(len(X), own[0, 0])]))
    expected = np.ldexp(spread_of(np.ldexp(own, -exponent)), exponent)
    np.testing.assert_allclose(found, [*expected, 0.0], rtol=1e-12, atol=1e-323)
    assert np.all(found[:3] > 0)
    assert found[3] == 0


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_a_committee_spreads_as_all_its_data(multi_class):
    labels = np.repeat([0, 1, 2], [4, 18, 8])  # classes of unequal sizes
    model = GaussianProcessClassifier(KERNEL, optimizer=None, multi_class=multi_class)
    np.testing.assert_allclose(spread(model.fit(X, labels)), STD, rtol=1e-12)


def test_a_model_keeps_its_spread_in_files_and_files_without_one_load(tmp_path):
    model = gpcert.as_posterior(GPRegressor(max_epochs=0).fit(X, Y))
    model.save(tmp_path / "model.npz")
    again = gpcert.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.spread, model.spread)
    assert again.fingerprint == model.fingerprint
    plain = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    plain.save(tmp_path / "plain.npz")
    assert gpcert.load(tmp_path / "plain.npz").spread is None
    with pytest.raises(ValueError, match="read-only"):
        again.spread[0] = 1.0


def test_a_bare_posterior_asks_for_numbers():
    bare = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0])
    with pytest.raises(gpcert.InputError, match=r"pass scale=X_train.std\(axis=0\)"):
        gpcert.certify(bare, [0.0, 0.0], 0.1, threshold=0.5, scale="std")
    known = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0], spread=[0.5, 2.0])
    found = gpcert.certify(known, [0.0, 0.0], 0.5, threshold=0.5, scale="std")
    assert found.region["radius"] == [0.25, 1.0]
    for wrong in ([1.0], [1.0, -1.0], np.nan, "text"):
        with pytest.raises(gpcert.InputError, match="spread: expected"):
            gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0], spread=wrong)


MODEL = GPClassifier(SquaredExponential(STD), max_epochs=0).fit(FRAME, Y)
POINT = X[0]
UNITS = {"a": 0.5, "b": 4.0}


@pytest.mark.parametrize(
    ("radius", "scale", "radii"),
    [
        (0.25, "std", 0.25 * STD),
        ([0.25, 0.0, 0.5], "std", [0.25, 0.0, 0.5] * STD),
        ({"b": 0.5}, "std", [0.0, 0.5 * STD[1], 0.0]),
        (0.5, [1.0, 2.0, 4.0], [0.5, 1.0, 2.0]),
        (0.5, UNITS, [0.25, 2.0, 0.0]),
        ({"a": 2.0, "c": 1.0}, UNITS, [1.0, 0.0, 0.0]),
        (0.5, pd.Series(UNITS), [0.25, 2.0, 0.0]),
    ],
    ids=str,
)
def test_the_radius_is_multiplied_by_the_scale(radius, scale, radii):
    found = gpcert.certify(MODEL, POINT, radius, scale=scale)
    np.testing.assert_allclose(found.region["radius"], radii, rtol=1e-15)
    assert gpcert.certify(MODEL, POINT, found.region["radius"]).margin == found.margin


def test_every_verb_has_the_same_scale():
    words, quick = {"scale": "std"}, {"tol": 0.2}
    radii = [each.region["radius"] for each in (
        gpcert.certify(MODEL, POINT, 0.1, **words),
        gpcert.certify_many(MODEL, X[:1], 0.1, **words)[0],
        gpcert.prediction_range(MODEL, POINT, 0.1, **words, **quick),
        gpcert.prediction_ranges(MODEL, POINT, 0.1, **words, **quick)[0],
        gpcert.prediction_range_many(MODEL, X[:1], 0.1, **words, **quick)[0],
        gpcert.attack(MODEL, X[:1], 0.1, method="gpfgs", **words)[0],
        gpcert.robustness(MODEL, X[:1], 0.1, **words, **quick)[0],
        gpcert.safety_curve(MODEL, POINT, [0.1], **words, **quick)[0],
        explain.sufficient(MODEL, POINT, 0.1, **words),
        explain.pixel_budget(MODEL, POINT, [1], ranking="gradient", radius=0.1, **words, **quick),
    ) if hasattr(each, "region")]  # fmt: skip
    assert len(radii) >= 9
    for each in radii:
        assert each == radii[0]
    assert gpcert.robustness(MODEL, X[:1], 0.1, **words, **quick)[0].setting == "0.1 std"
    step = gpcert.safety_curve(MODEL, POINT, [0.1], **words, **quick)[0]
    assert step.radius == 0.1
    np.testing.assert_array_equal(step.scale, spread(MODEL))
    effects = explain.effects(MODEL, POINT, 0.1, **words)
    np.testing.assert_array_equal(effects.radius, radii[0])
    regressor = GPRegressor(SquaredExponential(STD), max_epochs=0).fit(FRAME, X[:, 0])
    (worst,) = gpcert.worst_case(regressor, X[:1], 0.1, tol=0.5, **words)
    assert worst.region["radius"] == radii[0]


@variants("norm", [np.inf, 1, 2], quick=2)
def test_a_radius_is_bracketed_in_units_of_the_scale(norm, tmp_path):
    found = gpcert.certified_radius(MODEL, POINT, norm=norm, scale="std", rtol=0.2, max_radius=4.0)
    assert 0 < found.lower < found.upper
    region = gpcert.Ball(POINT, found.region["radius"], norm)
    assert gpcert.certify(MODEL, POINT, region=region).robust
    # the region that is proved contains the ball of radius `lower` in real arithmetic
    exact = [Fraction(found.lower) * Fraction(s) for s in spread(MODEL)]
    pairs = zip(found.region["radius"], exact, strict=True)
    assert all(Fraction(r) >= e for r, e in pairs)
    moved = (found.counterexample - POINT) / spread(MODEL)
    assert np.linalg.norm(moved, norm) <= found.upper
    found.save(tmp_path / "radius.json")
    np.testing.assert_array_equal(gpcert.load(tmp_path / "radius.json").scale, spread(MODEL))
    (many,) = gpcert.certified_radius_many(
        MODEL, X[:1], norm=norm, scale="std", rtol=0.2, max_radius=4.0
    )
    assert (many.lower, many.upper) == (found.lower, found.upper)


def test_a_feature_that_was_constant_is_fixed():
    constant = X.copy()
    constant[:, 1] = 0.1  # its mean is not 0.1 in floating point
    model = make_pipeline(StandardScaler(), GPClassifier(max_epochs=0)).fit(constant, X[:, 0] > 0)
    found = gpcert.certify(model, constant[0], 0.3, scale="std")
    assert found.region["radius"][1] == 0.0
    radius = gpcert.certified_radius(model, constant[0], scale="std", rtol=0.5, max_radius=2.0)
    assert radius.counterexample is None or radius.counterexample[1] == constant[0, 1]


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("iqr", "scale: expected 'std'"),
        (2.0, "positive numbers, one per feature, got shape"),
        ([1.0, 2.0], "got shape"),
        ([1.0, 0.0, 2.0], "a radius of 0"),
        ([1.0, np.nan, 2.0], "scale: expected finite"),
        ({"z": 1.0}, "scale: expected names"),
        ({"a": -1.0}, "positive numbers"),
        ([[1.0, 1.0, 1.0]], "got shape"),
        (True, "scale"),
    ],
    ids=str,
)
def test_wrong_scales(scale, message):
    with pytest.raises(gpcert.InputError, match=message):
        gpcert.certify(MODEL, POINT, 0.1, scale=scale)


def test_breast_cancer_in_raw_units():
    """In raw units one radius for all features proves nothing; in standard deviations it does."""
    data, few = load_breast_cancer(), gpcert.Budget(boxes=4)
    inputs, labels = data.data[:100], data.target[:100]
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(RBF(8.0), optimizer=None))
    model.fit(inputs, labels)
    points = data.data[100:104]
    raw = gpcert.certify_many(model, points, 5.0, budget=few)
    scaled = gpcert.certify_many(model, points, 0.05, scale="std", budget=few)
    assert raw.count(gpcert.Status.ROBUST) == 0
    assert scaled.count(gpcert.Status.ROBUST) >= 2
    np.testing.assert_allclose(scaled[0].region["radius"], 0.05 * inputs.std(axis=0), rtol=1e-10)


numbers = st.floats(min_value=0.0, max_value=1e308)


@given(a=numbers, b=numbers)
@settings(max_examples=examples(200), deadline=None)
def test_products_are_rounded_up_and_no_further_than_needed(a, b):
    found = float(product_up(np.float64(a), np.float64(b)))
    exact = Fraction(a) * Fraction(b)
    if np.isinf(found):
        assert exact > Fraction(1.7e308)
        return
    assert Fraction(found) >= exact
    below = float(np.nextafter(found, -np.inf))
    if found and 1e-280 < found < 1e300 and max(a, b) < 1e290:
        assert Fraction(below) < exact
