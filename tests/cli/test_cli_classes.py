"""The commands with models of several classes: labels in tables and files, one class alone."""

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

import gpcert
from gpcert.cli.files import load_model
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier
from gpcert.testing.effort import variants

LABELS = ("blue", "green", "red")
CENTERS = [[0.0, 0.0], [3.0, 0.0], [1.5, 2.5]]
NEAR_BLUE, BETWEEN = "0.0,0.0\n", "1.5,0.7\n"


def blobs():
    X, y = make_blobs(45, 2, centers=CENTERS, cluster_std=0.5, random_state=0)
    return X, np.asarray(LABELS)[y]


def fit_softmax():
    model = GPClassifier(SquaredExponential(1.5, 4.0), likelihood="softmax", max_epochs=0)
    return model.fit(*blobs())


def fit_sklearn(scheme):
    model = GaussianProcessClassifier(4.0 * RBF(1.5), multi_class=scheme, optimizer=None)
    return model.fit(*blobs())


MODELS = {
    "softmax.npz": fit_softmax,
    "softmax.joblib": fit_softmax,
    "rest.joblib": lambda: fit_sklearn("one_vs_rest"),
    "pairs.joblib": lambda: fit_sklearn("one_vs_one"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    for name, fit in MODELS.items():
        if name.endswith(".npz"):
            gpcert.as_posterior(fit()).save(path / name)
        else:
            joblib.dump(fit(), path / name)
    return path


def probabilities(model, X):
    return model.prediction(X) if isinstance(model, gpcert.Posterior) else model.probabilities(X)


@variants("name", sorted(MODELS), quick=2)
def test_certify(run, folder, csv, tmp_path, name):
    output = tmp_path / "results.json"
    points = csv(NEAR_BLUE + BETWEEN)
    result = run("certify", folder / name, points, "--radius", 0.5, "--output", output)
    assert result.exit_code == 1
    assert "1 ROBUST, 1 NOT_ROBUST" in result.stdout
    assert "blue" in result.stdout
    proved, refuted = gpcert.CertificateTable.load(output)
    assert proved.decision == "blue"
    assert refuted.decision in LABELS
    decided = MODELS[name]().predict(np.stack([[1.5, 0.7], refuted.counterexample]))
    assert decided[0] == refuted.decision
    assert decided[1] != refuted.decision


@variants("name", ["rest.joblib", "softmax.npz"])
def test_range_of_all_classes(run, folder, csv, tmp_path, name):
    output = tmp_path / "ranges.json"
    points = csv(BETWEEN)
    arguments = ["--radius", 0.2, "--tol", 0.1, "--output", output]
    result = run("range", folder / name, points, *arguments)
    assert result.exit_code == 0
    assert "3 ranges: 3 within" in result.stdout
    found = gpcert.load(output)
    assert tuple(item.output for item in found) == LABELS
    values = probabilities(load_model(folder / name), gpcert.Ball([1.5, 0.7], 0.2).sample(200, 0))
    for c, item in enumerate(found):
        assert item.quantity == "probability"
        assert item.output in result.stdout
        assert item.minimum.lower <= values[:, c].min()
        assert item.maximum.upper >= values[:, c].max()


@variants("name", ["softmax.joblib", "rest.joblib"])
def test_range_of_one_class(run, folder, csv, tmp_path, name):
    output = tmp_path / "ranges.json"
    arguments = ["--radius", 0.2, "--tol", 0.1, "--output", output, "--class", "green"]
    result = run("range", folder / name, csv(BETWEEN + NEAR_BLUE), *arguments)
    assert result.exit_code == 0
    assert "2 ranges" in result.stdout
    assert [item.output for item in gpcert.load(output)] == ["green", "green"]


def test_range_of_a_class_by_number_and_of_another_quantity(run, csv, tmp_path):
    X, y = blobs()
    model = GPClassifier(SquaredExponential(1.5, 4.0), likelihood="softmax", max_epochs=0)
    path, output = tmp_path / "model.npz", tmp_path / "ranges.json"
    gpcert.as_posterior(model.fit(X, np.searchsorted(LABELS, y) + 3)).save(path)
    arguments = ["--radius", 0.1, "--quantity", "mean", "--class", 5, "--output", output]
    result = run("range", path, csv(NEAR_BLUE), *arguments)
    assert result.exit_code == 0
    (found,) = gpcert.load(output)
    assert (found.output, found.quantity) == (5, "mean")


def test_range_of_a_class_that_is_none(run, folder, csv, npz):
    points = csv(NEAR_BLUE)
    result = run("range", folder / "softmax.npz", points, "--radius", 0.1, "--class", "mauve")
    assert result.exit_code == 3
    assert "--class: expected one of blue, green, red; got 'mauve'" in result.stderr
    assert run("range", npz, points, "--radius", 0.1, "--class", "c").exit_code == 3
    both = run("range", npz, points, "--radius", 0.1, "--class", "b")
    assert both.exit_code == 0  # either of two classes has a label
    arguments = ["--radius", 0.1, "--quantity", "mean", "--class", "b"]
    result = run("range", npz, points, *arguments)
    assert result.exit_code == 3
    assert "--class: expected none" in result.stderr


def test_votes_have_no_probabilities(run, folder, csv):
    result = run("range", folder / "pairs.joblib", csv(NEAR_BLUE), "--radius", 0.1)
    assert result.exit_code == 3
    assert "one-vs-one" in result.stderr


@variants("name", ["pairs.joblib", "rest.joblib", "softmax.npz"])
def test_radius(run, folder, csv, tmp_path, name):
    output = tmp_path / "radii.json"
    arguments = ["--rtol", 0.2, "--seconds", 60, "--output", output]
    result = run("radius", folder / name, csv(NEAR_BLUE), *arguments)
    assert result.exit_code == 0
    assert "blue" in result.stdout
    (found,) = gpcert.load(output)
    assert found.decision == "blue"
    assert found.counterexample is not None
    assert 0.5 < found.lower <= found.upper < 1.5
    other = MODELS[name]().predict(found.counterexample[None])[0]
    assert other != "blue"


@pytest.mark.parametrize("options", [["--threshold", "0.7"], ["--delta", "0.1"]])
@pytest.mark.parametrize("name", ["softmax.npz", "rest.joblib"])
def test_options_of_other_models_are_bad_input(run, folder, csv, name, options):
    result = run("certify", folder / name, csv(NEAR_BLUE), "--radius", 0.1, *options)
    assert result.exit_code == 3
    assert options[0].removeprefix("--") in result.stderr
