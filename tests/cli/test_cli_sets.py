"""`gpcert level-set`, `invariant` and `uniform-beta`: the verbs from the command line."""

import numpy as np
import pytest

import gpcert
from gpcert.kernels import Linear, SquaredExponential


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


def test_invariant_sets(run, tmp_path):
    model, out = tmp_path / "m.npz", tmp_path / "s.npz"
    halves = gpcert.Posterior(Linear([1.0]), points=[[1.0]], weights=[0.5])
    halves.save(model)
    ask = ("invariant", model, "--region=-1:1", "--disturbance", "0.4", "--beta", "0")
    result = run(*ask, "--cells", "100", "--output", out, "--checkpoint", tmp_path / "c.ckpt")
    assert result.exit_code == 0, result.output
    here = gpcert.invariant_set(halves, [(-1, 1)], disturbance=0.4, beta=0, cells=100)
    assert gpcert.load(out).share == here.share > 0.999
    turned = gpcert.Posterior(Linear([1.0, 1.0]), [[1.0, 0.0], [0.0, 1.0]], [0.5, 1.0])
    turned.save(model)
    result = run(*ask, "--inputs=-0.1;0;0.1", "--cells", "50")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--region", "0,1"), "expected low:high of every state"),
        (("--region", "0:1", "--disturbance", "x"), "expected numbers"),
        (("--region", "0:1", "--inputs", "1,2;3"), "as many numbers for every candidate"),
        (("--region", "0:1,0:1"), "expected a box of 1 states"),
    ],
)
def test_invariant_sets_that_are_refused(run, tmp_path, more, words):
    model = tmp_path / "m.npz"
    gpcert.Posterior(Linear([1.0]), points=[[1.0]], weights=[0.5]).save(model)
    result = run("invariant", model, *more)
    assert result.exit_code == 3
    assert words in " ".join(result.output.split())


def test_uniform_beta(run, tmp_path):
    model, out, y = tmp_path / "m.npz", tmp_path / "b.json", tmp_path / "y.csv"
    fitted = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [0.5], training_noise=0.01)
    fitted.save(model)
    y.write_text("target\n0.505\n", encoding="utf-8")
    ask = ("uniform-beta", model, "--norm-bound", "2", "--noise-bound", "0.1")
    result = run(*ask, "--delta", "0.05", "--labels", y, "--output", out)
    assert result.exit_code == 0, result.output
    known = {"norm_bound": 2.0, "noise_bound": 0.1}
    here = gpcert.uniform_beta(fitted, **known, delta=0.05, y=[0.505])
    assert gpcert.load(out).beta == here.beta
    assert "5.25" in result.output
    y.write_text("0.5,x\n", encoding="utf-8")
    assert run(*ask, "--labels", y).exit_code == 3
