"""gpcert's own estimators go straight into every question, alone, in pipelines and searches."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpcert
from gpcert.adapters import as_posterior
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.models import GPClassifier, GPRegressor

X, Y = make_moons(40, noise=0.2, random_state=0)


@pytest.mark.parametrize("likelihood", ["probit", "logistic"])
@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_classifiers(likelihood, inference):
    model = GPClassifier(
        SquaredExponential(1.0, 4.0), likelihood=likelihood, inference=inference, max_epochs=0
    ).fit(X, Y)
    found = gpcert.prediction_range(model, gpcert.Ball(X[0], 0.1), tol=0.01)
    inside = X[0] + np.random.default_rng(0).uniform(-0.1, 0.1, (200, 2))
    predicted = model.predict_proba(inside)[:, 1]
    assert found.converged
    assert found.minimum.lower <= predicted.min()
    assert predicted.max() <= found.maximum.upper
    clear = X[np.abs(model.decision_function(X)).argmax()]
    assert gpcert.certify(model, clear, radius=0.01).status is gpcert.Status.ROBUST


@pytest.mark.parametrize("sparse", ["fic", "dtc", "var"])
def test_sparse_classifiers(sparse):
    model = GPClassifier(
        Matern(1.0, 2.5, 4.0),
        inference="ep",
        sparse=sparse,
        n_inducing=10,
        max_epochs=0,
        random_state=0,
    ).fit(X, Y)
    found = gpcert.prediction_range(model, gpcert.Ball(X[0], 0.1), tol=0.02)
    predicted = model.predict_proba(X[:1])[0, 1]
    assert found.minimum.lower <= predicted <= found.maximum.upper
    assert found.converged


def test_regressors_in_pipelines_and_searches():
    y = np.sin(X[:, 0])
    pipeline = make_pipeline(StandardScaler(), GPRegressor(max_epochs=5))
    search = GridSearchCV(pipeline, {"gpregressor__noise": [0.01, 0.1]}, cv=2).fit(X, y)
    found = gpcert.prediction_range(search, gpcert.Ball(X[0], 0.05), tol=0.01)
    predicted = search.predict(X[:1])[0]
    assert found.minimum.lower <= predicted <= found.maximum.upper


def test_an_unfitted_model_is_refused():
    with pytest.raises(InputError, match="call fit"):
        as_posterior(GPRegressor())


def test_latent_functions_of_several_classes_have_ranges():
    A, b = make_classification(
        30, 4, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    model = GPClassifier(likelihood="softmax", max_epochs=0).fit(A, b)
    box = gpcert.Ball(A[0], 0.1)
    for c in range(3):
        found = gpcert.prediction_range(model.posterior_, box, quantity="mean", output=c, tol=0.05)
        value = model.decision_function(A[:1])[0, c]
        assert found.minimum.lower <= value <= found.maximum.upper
