"""`gpcert monotone`, `lipschitz`, `difference` and `fair` say what the verbs say."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import gpcert

pd = pytest.importorskip("pandas")

POINTS = "0.2,0.1\n-1.5,0.3\n"


def test_monotone(run, npz, csv, posterior, tmp_path):
    out = tmp_path / "out.json"
    options = ("--radius", 0.1, "--rises", 0, "--falls", "1", "--output", out)
    found = run("monotone", npz, csv(POINTS), *options)
    assert found.exit_code == 1, found.output
    table = gpcert.load(out)
    assert table.labels == ("0: 0", "0: 1", "1: 0", "1: 1")
    direct = gpcert.certify_monotone(posterior, gpcert.Ball([0.2, 0.1], 0.1), {0: "+", 1: "-"})
    assert [row.status for row in table][:2] == [row.status for row in direct]
    assert "questions" in found.stdout
    bends = ("--convex", 0, "--concave", 1, "--output", out)
    bent = run("monotone", npz, csv(POINTS), "--radius", 0.1, *bends)
    assert bent.exit_code in {0, 1}, bent.output
    assert [row.direction for row in gpcert.load(out)] == ["convex", "concave"] * 2
    asked = ("--rises", 0, "--quantity", "std", "--output", out)
    assert run("monotone", npz, csv(POINTS), "--radius", 0.1, *asked).exit_code in {0, 1}
    assert "standard deviation" in gpcert.load(out)[0].meaning
    assert run("monotone", npz, csv(POINTS), "--radius", 0.1).exit_code == 3
    assert run("monotone", npz, csv(POINTS), "--radius", 0.1, "--rises", "0,0").exit_code == 3


def test_lipschitz(run, npz, csv, posterior, tmp_path):
    out, picture = tmp_path / "out.json", tmp_path / "out.svg"
    options = ("--radius", 0.1, "--distance", "inf", "--output", out)
    found = run("lipschitz", npz, csv(POINTS), *options)
    assert found.exit_code == 0, found.output
    direct = gpcert.lipschitz(posterior, gpcert.Ball([0.2, 0.1], 0.1), norm="inf")
    assert gpcert.load(out)[0].upper == direct.upper
    pytest.importorskip("matplotlib")
    assert run("lipschitz", npz, csv(POINTS), "--radius", 0.1, "--plot", picture).exit_code == 0
    assert picture.exists()


def test_difference(run, npz, csv, posterior, tmp_path):
    out = tmp_path / "out.json"
    options = ("--radius", 0.1, "--change", "0=-1:1", "--tol", 0.01, "--output", out)
    found = run("difference", npz, csv(POINTS), *options)
    assert found.exit_code == 0, found.output
    around = gpcert.Ball([0.2, 0.1], 0.1, features=[1])
    direct = gpcert.difference_range(posterior, around, {0: (-1.0, 1.0)}, tol=0.01)
    assert gpcert.load(out)[0].minimum == direct.minimum
    step = run("difference", npz, csv(POINTS), "--radius", "1=0.1", "--change", "0=0.5")
    assert step.exit_code == 0, step.output
    assert run("difference", npz, csv(POINTS), "--radius", 0.1, "--change", "0").exit_code == 3


def test_fair(run, npz, csv, tmp_path):
    out = tmp_path / "out.json"
    options = ("--protected", "1=0:0.5", "--output", out)
    found = run("fair", npz, csv(POINTS), "--radius", 0.1, *options)
    assert found.exit_code == 0, found.output
    assert [row.status for row in gpcert.load(out)] == ["ROBUST", "ROBUST"]
    wide = ("--delta", 0.01, "--similar", "0=0.1")
    found = run("fair", npz, csv(POINTS), "--radius", 0.1, *options, *wide)
    assert found.exit_code == 1, found.output
    assert "2 NOT_ROBUST" in found.stdout
    assert run("fair", npz, csv(POINTS), "--radius", 0.1, "--protected", "1").exit_code == 3


def test_fair_categories(run, csv, tmp_path):
    joblib = pytest.importorskip("joblib")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40.0, 9.0, 60), "sex": rng.choice(["f", "m"], 60)})
    columns = [("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["sex"])]
    model = make_pipeline(ColumnTransformer(columns), SVC()).fit(frame, frame["age"] > 40.0)
    joblib.dump(model, tmp_path / "model.joblib")
    people = csv(frame.head(3).to_csv(index=False))
    found = run("fair", tmp_path / "model.joblib", people, "--radius", 0.1, "--protected", "sex")
    assert found.exit_code in {0, 1}, found.output
    assert "3 questions" in found.stdout
    options = ("--radius", 0.1, "--change", "sex=f:m")
    assert run("difference", tmp_path / "model.joblib", people, *options).exit_code == 0
