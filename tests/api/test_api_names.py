"""Names of features: what a model was fitted with is what it is asked with."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import gpcert
from gpcert.errors import InputError
from gpcert.models import GPClassifier, GPRegressor

rng = np.random.default_rng(3)
pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame(
    {"age": rng.uniform(20, 80, 30), "bmi": rng.uniform(18, 35, 30), "dose": rng.uniform(size=30)}
)
NAMES = ("age", "bmi", "dose")
y = np.sin(FRAME["age"] / 20) + FRAME["bmi"] / 30
LABELS = np.where(y > np.median(y), "ill", "well")
GPR = GaussianProcessRegressor(RBF([30.0, 9.0, 1.0]), alpha=1e-3, optimizer=None)
BUDGET = gpcert.Budget(seconds=5, boxes=50)


@pytest.fixture(scope="module")
def model():
    return make_pipeline(StandardScaler(), clone(GPR)).fit(FRAME, y)


MODELS = [
    GPR,
    make_pipeline(MinMaxScaler(), GPR),
    make_pipeline(StandardScaler().set_output(transform="pandas"), GPR),
    make_pipeline("passthrough", GPR),
    GridSearchCV(GPR, {"alpha": [1e-3]}, cv=2),
    GPRegressor(max_epochs=0),
    make_pipeline(StandardScaler(), GPRegressor(max_epochs=0)),
]
CLASSIFIERS = [GaussianProcessClassifier(RBF(20.0), optimizer=None), GPClassifier(max_epochs=0)]


@pytest.mark.parametrize("estimator", [*MODELS, *CLASSIFIERS], ids=str)
def test_adapters_take_the_names(estimator):
    target = LABELS if estimator in CLASSIFIERS else y
    assert gpcert.as_posterior(clone(estimator).fit(FRAME, target)).feature_names == NAMES
    plain = clone(estimator).fit(FRAME.to_numpy(), target)
    assert gpcert.as_posterior(plain).feature_names is None


def test_committees_have_names():
    three = np.where(FRAME["dose"] > 0.8, "high", LABELS)
    model = GaussianProcessClassifier(RBF(20.0), optimizer=None).fit(FRAME, three)
    assert gpcert.as_posterior(model).feature_names == NAMES
    expected = gpcert.as_posterior(model).scores(FRAME)
    np.testing.assert_array_equal(
        gpcert.as_posterior(model).scores(FRAME[["bmi", "dose", "age"]]), expected
    )


def test_columns_in_another_order_are_the_same_points(model):
    posterior = gpcert.as_posterior(model)
    turned = FRAME[["dose", "age", "bmi"]]
    np.testing.assert_array_equal(posterior.check_inputs(turned), FRAME.to_numpy())
    tables = [
        gpcert.certify_many(model, rows[:3], 0.01, delta=0.2, budget=BUDGET)
        for rows in (FRAME, turned)
    ]
    for first, second in zip(*tables, strict=True):
        assert first.region == second.region
        assert first.margin == second.margin


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAME[["age", "bmi"]], "missing: 'dose'"),
        (FRAME.assign(id=1.0), "unknown: 'id'"),
        (FRAME.rename(columns={"bmi": "BMI"}), "missing: 'bmi'; unknown: 'BMI'"),
        (FRAME[["age", "bmi", "dose", "age"]], "duplicate: 'age'"),
        (FRAME.rename(columns={"bmi": 3}), "all text"),
    ],
)
def test_other_columns_are_refused_by_name(model, frame, words):
    with pytest.raises(InputError, match=words):
        gpcert.certify_many(model, frame, 0.1, delta=1.0)
    with pytest.raises(InputError, match=words):
        gpcert.certify(model, frame.iloc[0], 0.1, delta=1.0)


def test_without_names_on_one_side_columns_count_by_position(model):
    posterior = gpcert.as_posterior(model)
    values = FRAME.to_numpy()
    np.testing.assert_array_equal(posterior.check_inputs(values), values)
    numbered = pd.DataFrame(values)
    np.testing.assert_array_equal(posterior.check_inputs(numbered), values)
    nameless = gpcert.as_posterior(clone(GPR).fit(values, y))
    other = FRAME.rename(columns=str.upper)
    np.testing.assert_array_equal(nameless.check_inputs(other), values)
    assert nameless.check_inputs(other.astype(bool)).max() == 1.0


def test_a_point_is_a_row_or_a_mapping(model):
    row = FRAME.iloc[4]
    options = {"delta": 0.2, "budget": BUDGET}
    expected = gpcert.certify(model, row.to_numpy(), 0.01, **options)
    for x in (row, row[["dose", "age", "bmi"]], dict(row), row.astype(object)):
        assert gpcert.certify(model, x, 0.01, **options).margin == expected.margin
    assert gpcert.certified_radius(model, row, delta=0.2, max_radius=0.1, budget=0.5).upper > 0
    with pytest.raises(InputError, match="certify_many"):
        gpcert.certify(model, FRAME.iloc[[4]], 0.01, **options)
    nameless = clone(GPR).fit(FRAME.to_numpy(), y)
    with pytest.raises(InputError, match="fitted without names"):
        gpcert.certify(nameless, dict(row), 0.01, **options)
    with pytest.raises(InputError, match="names of features as keys"):  # in which order?
        gpcert.certify(model, {2: row["dose"], 0: row["age"], 1: row["bmi"]}, 0.01, **options)


def test_features_by_name(model):
    x = FRAME.iloc[0]
    records = [
        gpcert.certify(model, x, 0.5, features=features, delta=0.2, budget=BUDGET).region
        for features in (["bmi", "dose"], [2, 1], [False, True, True], pd.Index(["bmi", "dose"]))
    ]
    assert all(record == records[0] for record in records)
    one = gpcert.certify(model, x, 0.5, features="bmi", delta=0.2, budget=BUDGET).region
    assert one["features"] == [1]
    with pytest.raises(InputError, match=r"features: expected names out of .*'bmi'.*got 'BMI'"):
        gpcert.certify(model, x, 0.5, features=["BMI"], delta=0.2)
    with pytest.raises(InputError, match="fitted without names"):
        gpcert.certify(clone(GPR).fit(FRAME.to_numpy(), y), x, 0.5, features=["bmi"], delta=0.2)


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_radii_by_name(model, norm):
    x = FRAME.iloc[0]
    options = {"norm": norm, "delta": 0.2, "budget": BUDGET}
    found = [
        gpcert.certify(model, x, radius, **options)
        for radius in (
            {"bmi": 0.02, "dose": 0.1},
            [0.0, 0.02, 0.1],
            pd.Series({"dose": 0.1, "bmi": 0.02}),
            {1: 0.02, 2: 0.1},
        )
    ]
    assert all(each.margin == found[0].margin for each in found)
    assert found[0].region["radius"] == [0.0, 0.02, 0.1]
    ball = gpcert.Ball(x.to_numpy(), [0.0, 0.02, 0.1], norm)
    assert ball.free.tolist() == [1, 2]
    drawn = gpcert.as_posterior(model).predict(ball.sample(200, 0))[0]
    here = gpcert.as_posterior(model).predict([x.to_numpy()])[0]
    # the margin is delta less the largest deviation
    assert 0.2 - np.abs(drawn - here).max() >= found[0].margin.lower - 1e-12
    with pytest.raises(InputError, match="radius: expected names out of"):
        gpcert.certify(model, x, {"BMI": 0.1}, **options)
    # the last of two would be taken without a word
    with pytest.raises(InputError, match="every feature once"):
        gpcert.certify(model, x, {"bmi": 0.1, 1: 0.0}, **options)
    with pytest.raises(InputError, match="radius: expected every name once"):
        gpcert.certify(model, x, pd.Series([0.1, 0.0], index=["bmi", "bmi"]), **options)


def test_radii_per_feature_close_the_bounds(model):
    # the certified range over an ellipsoid is attained inside it
    posterior = gpcert.as_posterior(model)
    ball = gpcert.Ball(FRAME.iloc[0], [5.0, 0.5, 0.1], norm=2)
    found = gpcert.prediction_range(posterior, ball, tol=1e-3)
    assert found.converged
    drawn = posterior.predict(ball.sample(2000, 0))[0]
    assert found.minimum.lower <= drawn.min()
    assert drawn.max() <= found.maximum.upper
    assert ball.contains(found.argmin)
    assert ball.contains(found.argmax)
    assert found.minimum.upper <= drawn.min() + 0.05
    assert found.maximum.lower >= drawn.max() - 0.05


def test_domains_by_name(model):
    x = FRAME.iloc[0]
    domain = {"age": (18, 100), "dose": (0.0, 1.0)}
    found = gpcert.certify(model, x, 0.5, domain=domain, delta=0.2, budget=BUDGET).region
    assert found["domain"] == [[18.0, "-inf", 0.0], [100.0, "inf", 1.0]]
    twice = {"age": (0, 1), 0: (18, 100)}
    for wrong in ({"age": 5}, {"age": (3, 2)}, {"Age": (0, 1)}, {"age": (0, np.nan)}, twice):
        with pytest.raises(InputError, match="domain"):
            gpcert.certify(model, x, 0.5, domain=wrong, delta=0.2)


def test_boxes_of_several_models_have_the_same_columns(model):
    # corners from a data frame were put into the first model's order, for all models
    first = clone(GPR).fit(FRAME, y)
    second = GaussianProcessRegressor(RBF([1.0, 9.0, 30.0]), alpha=1e-3, optimizer=None)
    turned = FRAME[["dose", "bmi", "age"]]
    with pytest.raises(InputError, match="same names of features in the same order"):
        gpcert.bound_boxes([first, second.fit(turned, y)], FRAME, FRAME)
    # one without names takes the columns as those with names have them, wherever it stands
    nameless = clone(GPR).fit(FRAME.to_numpy(), y)
    for models in ([nameless, first], [first, nameless]):
        found = gpcert.bound_boxes(models, turned[:3], turned[:3])["mean"]
        np.testing.assert_allclose(found[..., 0], first.predict(FRAME[:3])[:, None] + [0, 0])


def test_missing_values_are_refused(model):
    frame = FRAME.astype("Float64")
    np.testing.assert_array_equal(gpcert.as_posterior(model).check_inputs(frame), FRAME.to_numpy())
    frame.loc[0, "bmi"] = pd.NA
    with pytest.raises(InputError, match="X: expected"):
        gpcert.certify_many(model, frame, 0.1, delta=1.0)


class Interchange:
    """Any other data frame: the interchange protocol, and an array."""

    def __init__(self, frame):
        self.frame = frame

    def __dataframe__(self):
        return self

    def column_names(self):
        return iter(self.frame.columns)

    def __array__(self, dtype=None, copy=None):
        return self.frame.to_numpy(dtype)


def test_other_data_frames_have_names_too(model):
    turned = Interchange(FRAME[["dose", "age", "bmi"]])
    np.testing.assert_array_equal(gpcert.as_posterior(model).check_inputs(turned), FRAME.to_numpy())
    with pytest.raises(InputError, match="unknown: 'id'"):
        gpcert.as_posterior(model).check_inputs(Interchange(FRAME.assign(id=1)))


def test_tensors_are_points():
    torch = pytest.importorskip("torch")
    posterior = gpcert.as_posterior(clone(GPR).fit(FRAME.to_numpy(), y))
    values = torch.tensor(FRAME.to_numpy(), requires_grad=True)
    np.testing.assert_array_equal(posterior.check_inputs(values), FRAME.to_numpy())
    assert posterior.check_inputs(values.to(torch.bfloat16)).shape == (30, 3)
    assert gpcert.certify(posterior, values[0], 1e-3, delta=1.0).status.name == "ROBUST"
    with pytest.raises(InputError):
        posterior.check_inputs(values.to_sparse())
