"""Columns of categories behind encoders: certified where a region keeps them, else refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import gpcert
from gpcert import explain
from gpcert.adapters import as_posterior
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.inputs.tabular import checked_levels
from gpcert.kernels import SquaredExponential
from gpcert.regions import Ball, Box, LinearMap
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples, variants

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(3)
N = 60
FRAME = pd.DataFrame(
    {
        "age": rng.normal(50.0, 10.0, N),
        "colour": rng.choice(["red", "green", "blue"], N),
        "bmi": rng.normal(25.0, 3.0, N),
        "site": rng.choice([1, 4, 9], N),
    }
)
Y = np.sin(FRAME["age"] / 10) + (FRAME["colour"] == "red") + FRAME["site"] / 20 + FRAME["bmi"] / 30
NUMBERS, CATEGORIES = ["age", "bmi"], ["colour", "site"]
LEVELS = {1: ("blue", "green", "red"), 3: (1.0, 4.0, 9.0)}
BALL = {"age": 1.0, "bmi": 0.4}
IMPUTED = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())


def columns(encoder, **options):
    parts = [("numbers", StandardScaler(), NUMBERS), ("categories", encoder, CATEGORIES)]
    return ColumnTransformer(parts, sparse_threshold=0.0, **options)


def gp(kernel=None):
    kernel = RBF(1.5) if kernel is None else kernel
    return GaussianProcessRegressor(kernel, alpha=1e-2, optimizer=None)


MODELS = {
    "one-hot": make_pipeline(columns(OneHotEncoder()), gp()),
    "dropped": make_pipeline(columns(OneHotEncoder(drop="first")), SVR()),
    "imputed": make_pipeline(columns(IMPUTED), gp(RBF(2.0) + Matern(1.0, nu=1.5))),
    "ordinal": make_pipeline(columns(OrdinalEncoder()), StandardScaler(), gp()),
    "rare": make_pipeline(columns(OneHotEncoder(min_frequency=15)), SVR()),
    "sparse": make_pipeline(
        ColumnTransformer([("c", OneHotEncoder(), CATEGORIES)], remainder="passthrough"), SVR()
    ),
    "components": make_pipeline(columns(OneHotEncoder()), PCA(4), SVR()),
}


def moved(x, count):
    """Rows of a frame with the numbers of x moved within `BALL`, as the pipeline takes them."""
    found = pd.DataFrame([x] * count).astype(FRAME.dtypes.to_dict())
    for name, radius in BALL.items():
        found[name] = x[name] + rng.uniform(-radius, radius, count)
    return found


@variants("name", list(MODELS))
def test_ranges_hold_what_the_pipeline_predicts(name, tmp_path):
    model = MODELS[name].fit(FRAME, Y)
    posterior = as_posterior(model)
    assert posterior.levels == LEVELS
    np.testing.assert_allclose(
        posterior.mean(posterior.check_inputs(FRAME))[:, 0], model.predict(FRAME), atol=1e-8
    )
    posterior.save(tmp_path / "model.npz")
    again = gpcert.load(tmp_path / "model.npz")
    assert (again.levels, again.fingerprint) == (LEVELS, posterior.fingerprint)
    for k in (0, 1):
        x = FRAME.iloc[k]
        found = gpcert.prediction_range(again, x, BALL, tol=1e-3)
        values = model.predict(moved(x, 300))
        assert found.minimum.lower - 1e-9 <= values.min()
        assert values.max() <= found.maximum.upper + 1e-9
        # the attained ends are attained: text is its number among the levels
        argmin = dict(zip(FRAME.columns, found.argmin, strict=True))
        argmin["colour"] = LEVELS[1][int(argmin["colour"])]
        assert argmin["colour"] == x["colour"]
        assert argmin["site"] == x["site"]
        assert abs(model.predict(pd.DataFrame([argmin]))[0] - found.minimum.upper) < 1e-8


@variants("kind", [SVC(), GaussianProcessClassifier(RBF(1.0), optimizer=None)])
@variants("several", [False, True])
def test_decisions_are_those_of_the_pipeline(kind, several):
    labels = np.digitize(Y, np.quantile(Y, [1 / 3, 2 / 3])) if several else (Y > 2.0).to_numpy()
    model = make_pipeline(columns(OneHotEncoder()), kind).fit(FRAME, labels)
    table = gpcert.certify_many(model, FRAME[:3], 0.1, scale="std")
    assert [row.decision for row in table] == list(model.predict(FRAME[:3]))
    for row, (_, x) in zip(table, FRAME[:3].iterrows(), strict=True):
        single = gpcert.certify(model, x, 0.1, scale="std")
        assert (single.status, single.decision) == (row.status, row.decision)
        radius = [0.1 * FRAME["age"].std(ddof=0), 0.0, 0.1 * FRAME["bmi"].std(ddof=0), 0.0]
        np.testing.assert_allclose(row.region["radius"], radius, rtol=1e-12)
    found = gpcert.certified_radius(model, FRAME.iloc[0], features=NUMBERS, norm=2, rtol=0.1)
    assert 0 < found.lower <= found.upper
    attacks = gpcert.attack(model, FRAME[:3], 1.0, scale="std", method="pgd", iterations=5)
    for row, certificate in zip(
        attacks, gpcert.certify_many(model, FRAME[:3], 1.0, scale="std"), strict=True
    ):
        assert not (row.confirmed and certificate.robust)
        assert row.point[1] == row.x[1]
        assert row.point[3] == row.x[3]


def test_a_region_that_moves_a_column_of_categories_names_it():
    model = MODELS["one-hot"].fit(FRAME, Y)
    x = FRAME.iloc[0]
    held = r"expected column 'colour', which holds categories \(blue, green, red\), to stay fixed"
    X = as_posterior(model).check_inputs(FRAME[:3])
    asked = [
        lambda: gpcert.certify(model, x, 0.1, delta=0.5),
        lambda: gpcert.certify(model, x, {"colour": 1.0}, delta=0.5),
        lambda: gpcert.certify_many(model, FRAME[:3], 0.1, delta=0.5),
        lambda: gpcert.certified_radius(model, x, delta=0.5),
        lambda: gpcert.prediction_range(model, Box(X[0] - 0.1, X[0] + 0.1)),
        lambda: gpcert.prediction_range_many(model, [Ball(X[0], 0.1)]),
        lambda: gpcert.attack(model, FRAME[:3], 0.1, delta=0.5),
        lambda: gpcert.bound_boxes(model, X * [1, 0, 1, 1], X * [1, 0, 1, 1] + [0, 2, 0, 0]),
        lambda: explain.effects(model, FRAME[:2], 0.1),
    ]
    for ask in asked:
        with pytest.raises(InputError, match=held):
            ask()
    with pytest.raises(InputError, match="lower: expected one of the categories blue, green, red"):
        gpcert.bound_boxes(model, X - 0.1, X + 0.1)
    # below the verbs, too
    features = LinearMap(np.ones((1, 4)), levels={0: ("a", "b")})
    with pytest.raises(InputError, match="expected feature 0 to be one of the categories a, b"):
        features.extended(Box([0.0, 0.0], [1.0, 1.0]))


def freed(x, count, norm):
    """Rows with the numbers of x moved within `BALL`, of each colour and site."""
    step = rng.uniform(-1.0, 1.0, (count, 2))
    step = step[np.linalg.norm(step, norm, axis=1) <= 1.0]
    rows = pd.DataFrame([x] * len(step)).astype(FRAME.dtypes.to_dict())
    for name, radius, part in zip(BALL, BALL.values(), step.T, strict=True):
        rows[name] = x[name] + radius * part
    rows["colour"] = rng.choice(LEVELS[1], len(rows))
    rows["site"] = rng.choice([1, 4, 9], len(rows))
    return rows


@variants("name", ["one-hot", "dropped", "imputed", "components"], quick=2)
@pytest.mark.parametrize("norm", [2, np.inf])
def test_free_categories(name, norm):
    """All values of a category are checked, and are no part of the distance."""
    model, x = MODELS[name].fit(FRAME, Y), FRAME.iloc[1]
    radius = {**BALL, "colour": "any", "site": "any"}
    answer = gpcert.prediction_range(model, x, radius, norm=norm, tol=1e-3)
    values = model.predict(freed(x, 600, norm))
    assert answer.minimum.lower - 1e-9 <= values.min()
    assert values.max() <= answer.maximum.upper + 1e-9
    assert answer.maximum.upper - answer.minimum.lower < 1.1 * (values.max() - values.min())
    posterior = as_posterior(model)
    for point, end in ((answer.argmin, answer.minimum), (answer.argmax, answer.maximum)):
        assert end.lower - 1e-9 <= posterior.mean(point[None])[0, 0] <= end.upper + 1e-9
    both = [
        gpcert.prediction_range(model, {**x, "colour": each}, {**BALL, "site": "any"}, norm=norm)
        for each in LEVELS[1]
    ]
    assert answer.minimum.upper <= min(each.minimum.upper for each in both) + 2e-3
    assert answer.minimum.lower >= min(each.minimum.lower for each in both) - 2e-3


def test_a_counterexample_names_its_category(tmp_path):
    model, x = MODELS["one-hot"].fit(FRAME, Y), FRAME.iloc[1]
    certificate = gpcert.certify(model, x, {"colour": "any"}, delta=0.05)
    certificate.save(tmp_path / "c.json")
    assert f"colour from {x['colour']} to " in str(gpcert.load(tmp_path / "c.json"))
    point = certificate.counterexample
    moved_to = LEVELS[1][int(point[1])]
    change = model.predict(pd.DataFrame([{**x, "colour": moved_to}])) - model.predict(FRAME[1:2])
    assert abs(change[0]) > 0.05
    # a radius, a table, an attack and an optimum know free categories, too
    scale = {"age": 1.0, "colour": "any"}
    answer = gpcert.certified_radius(model, x, scale=scale, delta=1.5, rtol=0.5)
    assert 0.0 < answer.lower <= answer.upper
    nearer = gpcert.certify(model, x, {**scale, "age": 0.99 * answer.lower}, delta=1.5)
    assert nearer.robust
    table = gpcert.certify_many(model, FRAME[:3], {"age": 0.5, "site": "any"}, delta=0.3)
    attacks = gpcert.attack(model, FRAME[:3], {"age": 0.5, "site": "any"}, delta=0.3)
    assert not any(a.confirmed and c.robust for a, c in zip(attacks, table, strict=True))
    low, high = as_posterior(model).check_inputs(FRAME[:1])[0] * np.ones((2, 1))
    low[1], high[1] = 0.0, 2.0
    domain = gpcert.Discrete(Box(low, high), values={1: [0, 2]})
    best = gpcert.maximize(model, domain)
    rows = [{**FRAME.iloc[0], "colour": each} for each in ("blue", "red")]
    assert best.bound >= model.predict(pd.DataFrame(rows)).max() - 1e-9


def test_what_any_may_stand_for():
    model, x = MODELS["one-hot"].fit(FRAME, Y), FRAME.iloc[1]
    with pytest.raises(InputError, match="'age' holds numbers"):
        gpcert.prediction_range(model, x, {"age": "any"})
    with pytest.raises(InputError, match="'colour' has no effect, as features= leaves it out"):
        gpcert.prediction_range(model, x, {"age": 1.0, "colour": "any"}, features=["age"])
    with pytest.raises(InputError, match="to stay fixed, got a region that moves it"):
        gpcert.prediction_range(model, gpcert.Discrete(Box([0, 0, 0, 1.0], [1, 2, 1, 9]), [1, 3]))


@pytest.mark.parametrize("tol", [None, 0.01])
def test_boxes_of_several_categories(tol):
    """Each is bounded as in a call of its own categories; corners may be tables with text."""
    model = MODELS["one-hot"].fit(FRAME, Y)
    X = as_posterior(model).check_inputs(FRAME[:8])
    half = np.array([0.5, 0.0, 0.1, 0.0])
    given = {} if tol is None else {"tol": tol}
    bounds = gpcert.bound_boxes(model, X - half, X + half, **given)
    assert bounds.complete
    for row in range(8):
        alone = gpcert.bound_boxes(model, X[row] - half[None], X[row] + half[None], **given)
        np.testing.assert_allclose(bounds["mean"][row], alone["mean"][0], atol=tol or 1e-9)
    lower, upper = FRAME[:8].copy(), FRAME[:8].copy()
    for name, step in (("age", 0.5), ("bmi", 0.1)):
        lower[name], upper[name] = lower[name] - step, upper[name] + step
    named = gpcert.bound_boxes(model, lower, upper, **given)
    np.testing.assert_array_equal(named["mean"], bounds["mean"])


@pytest.mark.parametrize("how", ["ignore", "infrequent_if_exist"])
def test_a_category_that_the_encoder_ignores(how):
    """All other text is one more category, where the encoder was told to take it."""
    encoder = OneHotEncoder(handle_unknown=how)
    model = make_pipeline(columns(encoder), gp()).fit(FRAME, Y)
    posterior = as_posterior(model)
    assert posterior.levels == {1: (*LEVELS[1], "(any other)"), 3: LEVELS[3]}
    x = FRAME.iloc[0].copy()
    x["colour"] = "pink"
    found = gpcert.prediction_range(model, x, BALL)
    truth = model.predict(pd.DataFrame([x]))[0]
    assert found.minimum.lower <= truth <= found.maximum.upper
    x["site"] = 2  # any number might be meant
    with pytest.raises(InputError, match="expected one of the categories 1, 4, 9 in column 'site'"):
        gpcert.prediction_range(model, x, BALL)


def test_points_of_other_categories_are_refused_by_name():
    model = MODELS["one-hot"].fit(FRAME, Y)
    posterior = as_posterior(model)
    for name, value in (
        ("colour", "pink"),
        ("colour", 3.0),
        ("site", 2),
        ("site", "4"),
        ("colour", None),
    ):
        x = FRAME.iloc[0].copy()
        x[name] = value
        with pytest.raises(
            InputError, match=f"expected one of the categories .* in column '{name}'"
        ):
            gpcert.certify(model, x, BALL, delta=0.5)
        with pytest.raises(
            InputError, match=f"expected one of the categories .* in column '{name}'"
        ):
            gpcert.certify_many(model, pd.DataFrame([x]), BALL, delta=0.5)
    with pytest.raises(InputError, match="expected one of the categories"):
        posterior.mean(np.array([[50.0, 0.5, 25.0, 4.0]]))
    mixed = {"bmi": 25.0, "site": 4, "age": 50.0, "colour": "red"}  # names in any order
    assert gpcert.certify(model, mixed, BALL, delta=5.0).robust
    assert gpcert.certify(model, [50.0, 2.0, 25.0, 4.0], BALL, delta=5.0).robust  # text by number


def test_arrays_of_any_kind_without_names():
    data = FRAME.to_numpy(dtype=object)
    parts = [("n", StandardScaler(), [0, 2]), ("c", OneHotEncoder(), [1, 3])]
    model = make_pipeline(ColumnTransformer(parts, sparse_threshold=0), gp()).fit(data, Y)
    posterior = as_posterior(model)
    assert (posterior.levels, posterior.feature_names) == (LEVELS, None)
    np.testing.assert_allclose(
        posterior.mean(posterior.check_inputs(data))[:, 0], model.predict(data)
    )
    found = gpcert.prediction_range(model, list(data[0]), [1.0, 0.0, 0.4, 0.0])
    assert found.minimum.lower <= model.predict(data[:1])[0] <= found.maximum.upper
    with pytest.raises(InputError, match="feature 1, which holds categories"):
        gpcert.prediction_range(model, data[0], 0.1)


def test_what_cannot_be_certified_is_said():
    only = make_pipeline(OneHotEncoder(), SVR()).fit(FRAME[CATEGORIES], Y)
    with pytest.raises(UnsupportedModelError, match="got categories only"):
        as_posterior(only)
    gaps = FRAME.assign(colour=FRAME["colour"].where(FRAME["colour"] != "red", None))
    with pytest.raises(UnsupportedModelError, match="fill in missing values before the fit"):
        as_posterior(make_pipeline(columns(OneHotEncoder()), SVR()).fit(gaps, Y))
    scaled = ColumnTransformer(
        [("s", make_pipeline(StandardScaler(), OneHotEncoder()), ["site"])], remainder="drop"
    )
    with pytest.raises(InputError, match="categories: expected an input as it is"):
        as_posterior(make_pipeline(scaled, SVR()).fit(FRAME, Y))
    with pytest.raises(InputError, match="not known for a model behind linear features"):
        gpcert.prediction_range(
            MODELS["one-hot"].fit(FRAME, Y), FRAME.iloc[0], BALL, method="paper"
        )


@pytest.mark.parametrize(
    "levels",
    [{0: ()}, {0: ("a", 1)}, {0: ("a", "a")}, {-1: ("a",)}, {0: "ab"}, {0: (np.nan,)}, [1]],
)
def test_wrong_levels_are_refused(levels):
    with pytest.raises(InputError, match="levels: expected distinct labels"):
        checked_levels(levels)


def test_a_map_has_a_column_for_each_level():
    with pytest.raises(InputError, match="with a column more for each level"):
        LinearMap(np.ones((1, 3)), levels={0: ("a", "b"), 1: (7.0,)})
    with pytest.raises(InputError, match="expected one set of categories, got two"):
        LinearMap.of_blocks(
            np.ones((1, 1)),
            np.zeros(1),
            [(0, (1.0,), np.ones((1, 1)))] * 2 + [(0, (2.0,), np.ones((1, 1)))],
        )


def test_a_file_with_other_levels_is_refused(tmp_path):
    posterior = as_posterior(MODELS["one-hot"].fit(FRAME, Y))
    posterior.save(tmp_path / "model.npz")
    arrays = dict(np.load(tmp_path / "model.npz"))
    header = json.loads(str(arrays["header"]))
    for levels in (
        {"1": ["blue"]},
        {"x": ["a"]},
        {"9": ["a", "b", "c"], "3": [1, 2, 3]},
        [1],
        {"1": "abc"},
    ):
        changed = {**arrays, "header": np.array(json.dumps({**header, "levels": levels}))}
        np.savez(tmp_path / "other.npz", **changed)
        with pytest.raises(InputError, match=r"other\.npz"):
            gpcert.load(tmp_path / "other.npz")


@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_bounds_hold_in_ball_arithmetic(seed):
    """Two inputs of numbers, one of categories, mixed by a matrix: means and variances over balls
    lie in what is proved."""
    random = np.random.default_rng(seed)
    q, labels = int(random.integers(1, 4)), ("a", "b", "c")
    matrix = random.normal(size=(q, 6)) * 10.0 ** random.uniform(-3, 3, size=6)
    features = LinearMap(matrix, random.normal(size=q), {1: labels})
    X = random.normal(size=(5, 3))
    X[:, 1] = random.integers(0, 3, 5)
    factor = 0.3 * random.normal(size=(2, 5))
    kernel = SquaredExponential(float(np.abs(matrix).max()))
    model = gpcert.Posterior(kernel, features(X), random.normal(size=5), factor, features=features)
    reference = ArbPosterior(model)
    ball = Ball(X[0], [0.3, 0.0, 0.1], norm=random.choice([1, 2, np.inf]))
    for quantity, value in (("mean", reference.mean), ("variance", reference.variance)):
        found = gpcert.prediction_range(model, ball, quantity=quantity, tol=1e-2)
        for x in [X[0], *ball.sample(5, seed)]:
            assert value(x) >= found.minimum.lower
            assert value(x) <= found.maximum.upper
