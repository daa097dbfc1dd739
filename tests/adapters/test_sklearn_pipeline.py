"""Scalers are folded in: the posterior takes the user's units, as the pipeline does."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import KernelPCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR

import gpcert
from gpcert.adapters import as_posterior
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.model.posterior import Posterior

RNG = np.random.default_rng(10)
UNITS, ORIGIN = np.array([1.0, 250.0, 1e-3]), np.array([0.0, 900.0, 0.02])
RAW = RNG.normal(size=(40, 3))
X = ORIGIN + UNITS * RAW
y = np.sin(RAW.sum(1)) + 0.1 * RNG.normal(size=40)
TEST = ORIGIN + UNITS * RNG.normal(size=(50, 3)) * 1.5

SCALERS = {
    "standard": [StandardScaler()],
    "standard without mean": [StandardScaler(with_mean=False)],
    "standard without std": [StandardScaler(with_std=False)],
    "standard without anything": [StandardScaler(with_mean=False, with_std=False)],
    "min max": [MinMaxScaler()],
    "min max range": [MinMaxScaler(feature_range=(-3, 2))],
    "max abs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "both": [MinMaxScaler(), StandardScaler()],
    "both, other order": [StandardScaler(), "passthrough", MinMaxScaler(feature_range=(1, 2))],
    "nothing": ["passthrough", None],
}


def regressor(kernel=None, **options):
    kernel = 2.0 * RBF(1.2) + WhiteKernel(0.01) if kernel is None else kernel
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-3, **options)


def pipeline(steps, model):
    return Pipeline([(f"s{i}", step) for i, step in enumerate([*steps, model])])


def assert_regression_agrees(model, points=TEST):
    mean, variance = as_posterior(model).predict(points)
    expected, deviation = model.predict(points, return_std=True)
    np.testing.assert_allclose(mean[:, 0], expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(variance[:, 0], deviation**2, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", SCALERS)
def test_regression(name):
    ard = 2.0 * RBF([1.2, 0.8, 3.0])
    assert_regression_agrees(pipeline(SCALERS[name], regressor(normalize_y=True)).fit(X, y))
    assert_regression_agrees(pipeline(SCALERS[name], regressor(ard)).fit(X, y))


@pytest.mark.parametrize("name", SCALERS)
def test_classification(name, tmp_path):
    model = pipeline(SCALERS[name], GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None))
    posterior = as_posterior(model.fit(X, y > 0))
    probability = posterior.prediction(TEST)[:, 0]
    np.testing.assert_allclose(probability, model.predict_proba(TEST)[:, 1], rtol=0, atol=1e-9)
    posterior.save(tmp_path / "posterior.npz")
    again = Posterior.load(tmp_path / "posterior.npz")
    np.testing.assert_array_equal(probability, again.prediction(TEST)[:, 0])


def test_points_are_in_the_users_units():
    model = make_pipeline(MinMaxScaler(), StandardScaler(), regressor()).fit(X, y)
    np.testing.assert_allclose(as_posterior(model).points, X, rtol=1e-12)


def test_constant_feature():
    constant = X.copy()
    constant[:, 1] = 5.0
    assert_regression_agrees(make_pipeline(StandardScaler(), regressor()).fit(constant, y))
    assert_regression_agrees(make_pipeline(MinMaxScaler(), regressor()).fit(constant, y))


def test_data_frames_do_not_warn():
    pd = pytest.importorskip("pandas")
    model = make_pipeline(StandardScaler(), regressor())
    model.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert as_posterior(model).dim == 3


def test_nested_pipelines_and_searches():
    inner = make_pipeline(StandardScaler(), regressor())
    assert_regression_agrees(make_pipeline(MinMaxScaler(), inner).fit(X, y))
    search = GridSearchCV(inner, {"gaussianprocessregressor__alpha": [1e-3, 1e-1]}, cv=2).fit(X, y)
    mean, _ = as_posterior(search).predict(TEST)
    np.testing.assert_allclose(mean[:, 0], search.predict(TEST), rtol=1e-8, atol=1e-8)


def test_unfitted_search_is_refused():
    search = GridSearchCV(regressor(), {"alpha": [1e-3, 1e-1]}, cv=2)
    with pytest.raises(InputError, match="GridSearchCV: expected a fitted model"):
        as_posterior(search)
    search.refit = False
    with pytest.raises(InputError, match="refit=True"):
        as_posterior(search.fit(X, y))


@pytest.mark.parametrize("step", [PolynomialFeatures(2), FunctionTransformer(np.tanh)])
def test_other_transformers_are_refused_by_name(step):
    model = make_pipeline(StandardScaler(), step, regressor()).fit(X, y)
    with pytest.raises(UnsupportedModelError, match=rf"{type(step).__name__} is not supported"):
        as_posterior(model)


def test_unfitted_pipeline_is_refused():
    with pytest.raises(InputError, match="expected a fitted StandardScaler"):
        as_posterior(make_pipeline(StandardScaler(), regressor()))


def test_tampered_scaler_is_refused():
    model = make_pipeline(StandardScaler(), regressor()).fit(X, y)
    model[0].scale_[1] = -1.0
    with pytest.raises(InputError, match="positive"):
        as_posterior(model)
    model[0].scale_[1] = np.nan
    with pytest.raises(InputError, match="finite"):
        as_posterior(model)


def test_huge_shift_is_refused_with_the_distance():
    # the folded points cannot hold the digits: at 1e12 one unit in the last place is 1e-4
    model = make_pipeline(StandardScaler(), regressor()).fit(RAW + 1e12, y)
    with pytest.raises(UnsupportedModelError, match=r"relative difference of mean .*scaled inputs"):
        as_posterior(model)


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m)])
def test_other_estimators_are_refused(wrap):
    with pytest.raises(UnsupportedModelError, match=r"got sklearn.*LinearRegression"):
        as_posterior(wrap(LinearRegression()).fit(X, y))


class OtherPipeline(Pipeline):
    """As imblearn's: the steps may mean something else."""


def test_subclass_of_pipeline_is_refused():
    model = OtherPipeline([("scale", StandardScaler()), ("gp", regressor())]).fit(X, y)
    with pytest.raises(UnsupportedModelError, match="OtherPipeline"):
        as_posterior(model)


DROPPED = ColumnTransformer([("scale", StandardScaler(), [2, 0])])
REORDERED = ColumnTransformer(
    [("last", RobustScaler(), [2]), ("gone", "drop", [])], remainder="passthrough"
)
NESTED = ColumnTransformer(
    [
        ("two", make_pipeline(MinMaxScaler(), StandardScaler()), slice(0, 2)),
        ("same", "passthrough", [2]),
    ]
)

MAPS = {
    "columns dropped": [DROPPED],
    "columns in another order": [REORDERED],
    "columns behind a pipeline": [NESTED, StandardScaler()],
    "best": [StandardScaler(), SelectKBest(f_regression, k=2)],
    "variance": [VarianceThreshold(1e-5), StandardScaler()],
    "no function": [FunctionTransformer(), StandardScaler()],
    "nothing missing": [SimpleImputer(), StandardScaler()],
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_of_features_are_folded(name):
    model = pipeline(MAPS[name], regressor()).fit(X, y)
    assert_regression_agrees(model)
    assert as_posterior(model).dim == 3
    machine = pipeline(MAPS[name], SVR(C=2.0)).fit(X, y)
    region = gpcert.Ball(X[3], 0.05 * UNITS)
    found = gpcert.prediction_range(machine, region, budget=gpcert.Budget(boxes=20))
    inside = X[3] + 0.05 * UNITS * RNG.uniform(-1, 1, size=(500, 3))
    values = machine.predict(inside)
    assert found.minimum.lower - 1e-12 <= values.min()
    assert values.max() <= found.maximum.upper + 1e-12


@pytest.mark.parametrize("kind", [RBF, sk.Matern])
def test_a_reordered_radial_kernel_stays_one(kind):
    model = make_pipeline(REORDERED, regressor(2.0 * kind([1.0, 2.0, 3.0]))).fit(X, y)
    assert_regression_agrees(model)
    assert type(as_posterior(model).kernel) is {RBF: SquaredExponential, sk.Matern: Matern}[kind]


def test_votes_behind_columns_are_those_of_predict():
    labels = np.digitize(RAW[:, 0], [-0.5, 0.5])
    model = make_pipeline(DROPPED, SVC()).fit(X, labels)
    for x in X[:5]:
        cert = gpcert.certify(model, x, 0.01 * UNITS, budget=gpcert.Budget(boxes=20))
        inside = x + 0.01 * UNITS * RNG.uniform(-1, 1, size=(200, 3))
        if cert.status.name == "ROBUST":
            assert set(model.predict(inside)) == {cert.decision}


def test_names_of_columns_are_the_users():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    columns = ColumnTransformer([("scale", StandardScaler(), ["c", "a"])])
    model = make_pipeline(columns, SVR()).fit(frame, y)
    posterior = as_posterior(model)
    assert posterior.feature_names == ("a", "b", "c")
    found = gpcert.prediction_range(model, gpcert.Ball(X[0], [0.0, 5.0, 0.0]))
    assert found.maximum.upper - found.minimum.lower < 1e-9  # b does not matter


def test_encoded_columns_are_kept_fixed():
    colour = np.eye(3)[RNG.integers(0, 3, size=40)]
    data = np.concatenate([X, colour], axis=1)
    columns = ColumnTransformer([("scale", StandardScaler(), [0, 1, 2])], remainder="passthrough")
    model = make_pipeline(columns, SVC()).fit(data, y > 0)
    cert = gpcert.certify(model, data[0], 1e-4, features=[0, 2])
    assert cert.decision == model.predict(data[:1])[0]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (OneHotEncoder(), "keep them fixed by features="),
        (
            FunctionTransformer(np.tanh),
            "FunctionTransformer is not supported.*to the data",
        ),
        (KernelPCA(2), "KernelPCA is not supported.*no exact image"),
        (Nystroem(n_components=5), "Nystroem is not supported.*fit that kernel itself"),
        (PolynomialFeatures(2), "PolynomialFeatures is not supported.*polynomial kernel"),
        (SimpleImputer(add_indicator=True, missing_values=0.0), "apply it to the data first"),
        (FeatureAgglomeration(2, pooling_func=np.max), "pooling_func=np.mean"),
        (
            ColumnTransformer([("a", StandardScaler(), [0])], transformer_weights={"a": 2.0}),
            "transformer_weights",
        ),
    ],
)
def test_other_steps_are_refused_with_advice(step, words):
    model = make_pipeline(step, SVR()).fit(np.abs(X), y)
    with pytest.raises(UnsupportedModelError, match=words):
        as_posterior(model)


def test_calibration_is_refused_by_name():
    model = CalibratedClassifierCV(SVC(), cv=2).fit(X, y > 0)
    with pytest.raises(UnsupportedModelError, match=r"CalibratedClassifierCV.*certify one of"):
        as_posterior(model)


def test_machines_in_searches_and_with_scaled_targets():
    search = GridSearchCV(make_pipeline(StandardScaler(), SVR()), {"svr__C": [1, 2]}, cv=2)
    target = TransformedTargetRegressor(search, transformer=StandardScaler()).fit(X, 100 * y)
    mean = as_posterior(target).mean(TEST)
    np.testing.assert_allclose(mean[:, 0], target.predict(TEST), rtol=1e-9)
