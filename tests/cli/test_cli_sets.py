"""`gpcert level-set`: the verb from the command line."""

import numpy as np
import pytest

import gpcert
from gpcert.kernels import SquaredExponential


@pytest.fixture
def bump(tmp_path):
    path = tmp_path / "bump.npz"
    gpcert.Posterior(
        SquaredExponential(1.0), [[0.0, 0.0]], [1.0], [[0.5]], feature_names=["a", "b"]
    ).save(path)
    return path


def test_one_level(run, bump, tmp_path):
    out, table = tmp_path / "set.npz", tmp_path / "cells.csv"
    level = np.exp(-0.5)
    result = run("level-set", bump, "--region", "-2,2", "--threshold", level, "--quantity", "mean",
                 "--output", out, "--tol", "0.005")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "inside      volume in [3." in result.output
    found = gpcert.load(out)
    assert found.volume.lower <= np.pi <= found.volume.upper
    pytest.importorskip("pandas")
    again = run("level-set", bump, "--region", "a=-2:2,b=-2:2", "--condition", f"mean>={level}",
                "--condition", "std<=2", "--csv", table, "--boxes", "20")  # fmt: skip
    assert again.exit_code == 2, again.output
    assert table.read_text().startswith("low a,high a,low b,high b,state")


def test_a_feature_held_fixed_and_a_picture(run, bump, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "set.png"
    result = run("level-set", bump, "--region", "a=-2:2", "--fixed", "b=0.5", "--threshold", "0.5",
                 "--side", "<=", "--plot", picture)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--region", "-2,2"), "only a classifier"),
        (("--region", "a=0:1", "--threshold", "0.5"), "--region: expected finite ends"),
        (("--region", "0,1", "--condition", "mean=0.5"), "--condition: expected quantity>=level"),
        (("--region", "0,1", "--condition", "mean>=x"), "--condition: expected a number"),
        (("--region", "0,1", "--condition", "mean>=1", "--threshold", "1"), "--threshold: belongs"),
        (("--region", "0,1", "--threshold", "1", "--output", "x.json"), "ends in .npz"),
        (("--region", "0,1", "--threshold", "1", "--fixed", "3"), "--fixed: expected name=value"),
    ],
)
def test_bad_input_is_an_error_in_words(run, bump, words, message):
    result = run("level-set", bump, *words)
    assert result.exit_code == 3, result.output
    assert message in " ".join(result.stderr.split())
