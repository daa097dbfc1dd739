"""Estimators: `fit` refuses every wrong parameter in words; data as scikit-learn refuses it."""

import numpy as np
import pytest

from gpcert.models import GPClassifier, GPRegressor
from tests.misuse.wrong_values import misused

X = np.linspace(-1.0, 1.0, 10)[:, None]
y = np.sin(3.0 * X[:, 0])
LABELS = np.where(y > 0, "above", "below")
SPARSE = {"inference": "ep", "sparse": "fic", "n_inducing": 3}


@pytest.mark.parametrize(
    ("kind", "target", "options"),
    [(GPRegressor, y, {}), (GPClassifier, LABELS, {}), (GPClassifier, LABELS, SPARSE)],
)
@pytest.mark.filterwarnings("ignore")
def test_wrong_parameters(kind, target, options):
    good = {**kind(**options).get_params(), "max_epochs": 1}
    names = [name for name in good if name not in ("n_restarts", "max_epochs")]
    if options:  # the others are read by the same lines
        names = ["sparse", "n_inducing", "inducing", "random_state"]
    assert misused(lambda **given: kind(**given).fit(X, target), good, only=names) == []


@pytest.mark.parametrize("name", ["n_restarts", "max_epochs"])
def test_counts(name):
    few = {"max_epochs": 0, "kernel": None}

    def make(value):
        # a count that is right may be large: only the reading is asked about
        return GPRegressor(**{**few, name: value})._counts() and None

    assert misused(make, {"value": 1}) == []
