"""Alternatives of the scripts by name, and experiments on a table of one's own."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.study.datasets import table_file
from gpcert.study.experiments import experiment_named, names, reproduce, variant_names
from gpcert.study.experiments.base import SOURCES
from gpcert.study.experiments.results import OWN


@pytest.fixture
def own_table(tmp_path):
    """Two classes that the first column tells apart, a column that never varies."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2)) * [1.0, 50.0]
    labels = np.where(X[:, 0] + 0.3 * rng.standard_normal(80) > 0, "good", "bad")
    lines = [f"{a},7,{label},{b}" for (a, b), label in zip(X, labels, strict=True)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["size,fixed,quality,weight", *lines]) + "\n")
    return path


@pytest.mark.parametrize("name", variant_names())
def test_a_variant_differs_in_what_its_title_says(name):
    variant = experiment_named(name)
    base = next(each for each in names() if name.startswith(f"{each}-") and name != each)
    changes = experiment_named(base).variants[name.removeprefix(f"{base}-")]
    before, after = (vars(experiment_named(each).settings_of("full")) for each in (base, name))
    assert {key for key in after if after[key] != before[key]} == set(changes)
    assert all(key.replace("_", " ") in variant.title for key in changes)


def test_a_name_that_is_neither_is_refused_with_all_that_are():
    with pytest.raises(InputError, match=r"safety.*robustness-one-start.*robustness-none"):
        experiment_named("robustness-none")


def test_a_table_is_split_and_standardised(own_table):
    data = table_file(own_table, "quality")
    assert data.X_train.shape == (60, 2)
    assert data.classes == ("bad", "good")
    np.testing.assert_allclose(data.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(data.X_train.std(axis=0), 1.0)


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("a,b\n1,x\n2,y\n", "c", "columns"),
        ("a,b\none,x\n2,y\n", "b", "numbers in the column 'a'"),
        ("a,b\n1,x\n2,x\n", "b", "two classes"),
        ("a,b\n1,x\n2\n", "b", "as many values"),
        ("a,a\n1,x\n2,y\n", "a", "different names"),
        ("a,b\n1,x\n1,y\n", "b", "vary"),
        ("a,b\nnan,x\n1,y\n2,x\n3,y\n", "b", "finite"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, text, target, expected):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=expected):
        table_file(path, target)


def test_an_own_table_leaves_the_same_report(own_table, tmp_path):
    result = reproduce("full-image", on=own_table, target="quality", output=tmp_path)
    assert (result.scale, set(result.environment.data)) == (OWN, {OWN})
    assert str(tmp_path) not in result.command
    assert "--target quality" in result.command
    assert (tmp_path / "full-image" / "accuracy.png").is_file()
    curve = result.table("curves").records()
    assert curve[0]["proved"] > 0.8
    assert all(row["proved"] <= row["not refuted"] for row in curve)


@pytest.mark.parametrize("name", ["robustness", "safety", "interpretability-global", "full-image"])
def test_four_experiments_run_on_an_own_table(name):
    pieces = experiment_named(name).work(OWN)
    assert {each for piece in pieces for each in piece.data} == {OWN}
    assert not SOURCES[OWN].image


def test_what_own_tables_need_is_said(own_table, tmp_path):
    with pytest.raises(InputError, match=r"convergence: cannot be run.*'safety'"):
        reproduce("convergence", on=own_table, target="quality", output=tmp_path)
    with pytest.raises(InputError, match="target"):
        reproduce("safety", on=own_table, output=tmp_path)
    with pytest.raises(InputError, match="CSV file"):
        reproduce("safety", target="quality", output=tmp_path)
    with pytest.raises(InputError, match=r"none\.csv"):
        reproduce("safety", on=tmp_path / "none.csv", target="quality", output=tmp_path)
