"""Linear steps before a model: PCA and its like, in the user's units; wrappers by the contract."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.ensemble import StackingRegressor, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC, SVR, OneClassSVM

import gpcert
from gpcert.adapters import as_posterior, sklearn_wrappers
from gpcert.model.committee import load_model
from gpcert.testing.adapter_contract import AdapterContract
from gpcert.testing.effort import examples

RNG = np.random.default_rng(7)
UNITS = np.array([1.0, 30.0, 0.1, 2.0, 5.0])
X = RNG.normal(size=(60, 5)) @ RNG.normal(size=(5, 5)) * UNITS + 3.0 * UNITS
y = np.sin((X / UNITS - 3.0).sum(1))
THREE = np.digitize(y, [-0.4, 0.4])

COLUMNS = ColumnTransformer(
    [("mixed", make_pipeline(StandardScaler(), PCA(2)), [0, 1, 3]), ("kept", "passthrough", [2])]
)

STEPS = {
    "pca": [StandardScaler(), PCA(3)],
    "pca of all": [PCA()],
    "whitened": [PCA(3, whiten=True)],
    "incremental": [MinMaxScaler(), IncrementalPCA(3, whiten=True), StandardScaler()],
    "svd": [StandardScaler(), TruncatedSVD(3)],
    "ica": [StandardScaler(), FastICA(3, random_state=0)],
    "factors": [StandardScaler(), FactorAnalysis(2)],
    "gaussian projection": [StandardScaler(), GaussianRandomProjection(3, random_state=0)],
    "sparse projection": [StandardScaler(), SparseRandomProjection(4, random_state=0)],
    "agglomeration": [StandardScaler(), FeatureAgglomeration(3)],
    "columns": [COLUMNS],
    "columns twice": [
        ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [1, 4])])
    ],
    "union": [
        StandardScaler(),
        FeatureUnion([("p", PCA(2)), ("k", SelectKBest(f_regression, k=2))]),
    ],
    "twice": [StandardScaler(), PCA(4), StandardScaler(), PCA(2)],
}


def machine(steps, model, labels=y):
    return lambda: make_pipeline(*steps, model).fit(X, labels)


GP = GaussianProcessRegressor(2.0 * RBF(3.0) + WhiteKernel(0.01), optimizer=None, alpha=1e-2)


@pytest.mark.parametrize("name", STEPS)
def test_predictions_and_ranges(name):
    model = make_pipeline(*STEPS[name], GP).fit(X, y)
    posterior = as_posterior(model)
    assert posterior.dim == 5
    test = X[:20] + 0.1 * UNITS * RNG.normal(size=(20, 5))
    mean, deviation = model.predict(test, return_std=True)
    np.testing.assert_allclose(posterior.mean(test)[:, 0], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(posterior.predict(test)[1][:, 0], deviation**2, rtol=1e-7)
    region = gpcert.Ball(X[3], 0.1 * UNITS)
    found = gpcert.prediction_range(
        model, region, budget=gpcert.Budget(boxes=examples(40, quick=8))
    )
    values = model.predict(region.sample(examples(10_000, quick=2000), 0))
    assert found.minimum.lower - 1e-9 <= values.min()
    assert values.max() <= found.maximum.upper + 1e-9


class TestWrappers(AdapterContract):
    adapter = sklearn_wrappers
    models: ClassVar = {
        "gp behind pca": machine(STEPS["pca"], GP),
        "matern behind whitened pca": machine(
            STEPS["whitened"], GaussianProcessRegressor(Matern(1.0, nu=1.5), optimizer=None)
        ),
        "classifier behind pca": machine(
            STEPS["pca"], GaussianProcessClassifier(4.0 * RBF(2.0), optimizer=None), y > 0
        ),
        "one-vs-rest behind pca": machine(
            STEPS["pca"], GaussianProcessClassifier(4.0 * RBF(2.0), optimizer=None), THREE
        ),
        "votes behind columns": machine(STEPS["columns"], SVC(), THREE),
        "ridge behind a union": machine(STEPS["union"], KernelRidge(kernel="rbf", alpha=0.1)),
        "polynomial behind pca": machine(STEPS["pca"], SVR(kernel="poly", degree=2)),
        "outliers behind pca": machine(STEPS["pca"], OneClassSVM()),
        "grid": lambda: GridSearchCV(SVR(), {"C": [1, 2]}, cv=2).fit(X / UNITS, y),
        "random": lambda: RandomizedSearchCV(SVR(), {"C": [1, 2]}, n_iter=2, cv=2).fit(
            X / UNITS, y
        ),
        "halving": lambda: HalvingGridSearchCV(SVR(), {"C": [1, 2]}, cv=2).fit(X / UNITS, y),
        "random halving": lambda: HalvingRandomSearchCV(
            make_pipeline(StandardScaler(), PCA(2), SVR()), {"svr__C": [1, 2]}, n_candidates=2, cv=2
        ).fit(X, y),
        "target": lambda: TransformedTargetRegressor(
            make_pipeline(*STEPS["pca"], SVR()), transformer=StandardScaler()
        ).fit(X, 100.0 * y),
    }
    refused: ClassVar = {
        "calibrated": (
            lambda: CalibratedClassifierCV(SVC(), cv=2).fit(X, y > 0),
            "CalibratedClassifierCV is not supported.*certify one of the models inside",
        ),
        "votes of models": (
            lambda: VotingClassifier([("a", SVC()), ("b", SVC(C=2))]).fit(X, y > 0),
            "VotingClassifier is not supported.*certify the parts",
        ),
        "stack": (
            lambda: StackingRegressor([("a", SVR())]).fit(X, y),
            "StackingRegressor is not supported.*certify the parts",
        ),
        "rest": (
            lambda: OneVsRestClassifier(SVC()).fit(X, THREE),
            "OneVsRestClassifier is not supported.*SVC themselves",
        ),
        "threshold": (
            lambda: FixedThresholdClassifier(SVC(), threshold=0.1).fit(X, y > 0),
            "FixedThresholdClassifier is not supported.*threshold=",
        ),
        "targets": (
            lambda: MultiOutputRegressor(SVR()).fit(X, np.stack([y, y], axis=1)),
            "MultiOutputRegressor is not supported.*one by one",
        ),
    }
    not_ready: ClassVar = {
        "unfitted": (lambda: make_pipeline(PCA(2), SVR()), "expected a fitted PCA"),
    }


def test_components_of_neighbours_and_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = make_pipeline(
        StandardScaler(), NeighborhoodComponentsAnalysis(2, random_state=0), SVC()
    ).fit(frame, THREE)
    posterior = as_posterior(model)
    assert posterior.feature_names == tuple("abcde")
    cert = gpcert.certify(model, frame.iloc[0], radius={"c": 1e-6})
    assert cert.decision == model.predict(frame.iloc[:1])[0]


def test_files_of_committees_behind_features(tmp_path):
    model = make_pipeline(StandardScaler(), PCA(3), SVC()).fit(X, THREE)
    committee = as_posterior(model)
    committee.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.fingerprint == committee.fingerprint
    np.testing.assert_array_equal(again.scores(X), committee.scores(X))


def test_digits_behind_pca_against_attacks():
    """Whole images behind 10 components: what is proved comes close to what is attacked."""
    images, labels = load_digits(return_X_y=True)
    two = np.isin(labels, [3, 8])
    images, labels = images[two] / 16.0, labels[two]
    gp = GaussianProcessClassifier(ConstantKernel(10.0) * RBF(10.0), optimizer=None)
    model = make_pipeline(StandardScaler(), PCA(10, random_state=0), gp)
    model.fit(images[:120], labels[:120])
    for x in images[[200, 201, 203]][: examples(3, quick=1)]:
        found = gpcert.certified_radius(model, x, domain=(0.0, 1.0), budget=30)
        assert 0.9 * found.upper <= found.lower <= found.upper
        inside = gpcert.Ball(x, found.lower, domain=(0.0, 1.0)).sample(2000, 0)
        assert len(set(model.predict(inside))) == 1
