"""Models, points and a runner for the tests of the command line."""

import joblib
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

import gpcert
from gpcert.cli.app import app
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit


@pytest.fixture
def run():
    """Run `gpcert` with these arguments; the result has exit_code, stdout and stderr."""

    def invoke(*arguments, **options):
        return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)

    return invoke


@pytest.fixture
def posterior():
    """Two features; class "b" to the right of x_0 = 0, class "a" to the left."""
    return gpcert.Posterior(
        SquaredExponential(1.0),
        points=[[-1.0, 0.0], [1.0, 0.0]],
        weights=[-1.0, 1.0],
        factor=0.5 * np.eye(2),
        likelihood=Probit(),
        classes=("a", "b"),
    )


@pytest.fixture
def npz(posterior, tmp_path):
    path = tmp_path / "model.npz"
    posterior.save(path)
    return path


@pytest.fixture
def trusted(tmp_path):
    """A fitted scikit-learn classifier in a joblib file."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.5, 0.3], [1.4, -0.2]])
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, [0, 1, 0, 1])
    path = tmp_path / "model.joblib"
    joblib.dump(model, path)
    return path


@pytest.fixture
def csv(tmp_path):
    """Write a CSV file and return its path."""

    def write(text):
        path = tmp_path / "points.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write
