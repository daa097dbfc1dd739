"""`gpcert boxes`: the verb's numbers, from and to files."""

from dataclasses import replace

import numpy as np
import pytest

import gpcert

LOW = np.array([[0.0, 0.0], [0.5, 0.5], [0.2, -0.4]])
HIGH = LOW + 0.2


@pytest.fixture
def corners(tmp_path):
    np.save(tmp_path / "lower.npy", LOW)
    np.save(tmp_path / "upper.npy", HIGH)
    np.savez(tmp_path / "both.npz", lower=LOW, upper=HIGH)
    for name, values in (("lower", LOW), ("upper", HIGH)):
        np.savetxt(tmp_path / f"{name}.csv", values, delimiter=",")
    return tmp_path


@pytest.mark.parametrize(
    "files", [("lower.npy", "upper.npy"), ("both.npz",), ("lower.csv", "upper.csv")]
)
def test_the_numbers_of_the_verb(run, npz, posterior, corners, files):
    out = corners / "bounds.npz"
    paths = [corners / name for name in files]
    options = ["--quantity", "mean,std", "--affine", "--output", out]
    result = run("boxes", npz, *paths, *options)
    assert result.exit_code == 0, result.output
    assert "3 of 3 boxes" in result.output
    here = gpcert.bound_boxes(posterior, LOW, HIGH, quantity=("mean", "std"), affine=True)
    found = gpcert.load(out)
    for name in ("mean", "std"):
        np.testing.assert_array_equal(found[name], here[name])
        np.testing.assert_array_equal(found.affine[name], here.affine[name])


def test_folders_are_written_and_gone_on_with(run, npz, posterior, corners):
    ask = ("boxes", npz, corners / "both.npz", "--with", npz, "--quantity", "mean,variance")
    folders = ("--out", corners / "stream", "--imdp", corners / "imdp")
    assert run(*ask, *folders).exit_code == 0
    mean = np.load(corners / "stream" / "mean.npy")
    assert mean.shape == (3, 2, 2)
    np.testing.assert_array_equal(mean[:, 0], mean[:, 1])
    np.testing.assert_array_equal(np.load(corners / "imdp" / "mean.npy"), mean)
    assert run(*ask, *folders).exit_code == 0  # all of it is there
    refused = run(*ask, "--tol", "0.1", *folders)
    assert refused.exit_code == 3
    assert "is not of a call" in refused.stderr


def test_corners_by_name_are_those_of_all_models(run, npz, posterior, corners):
    named, turned = corners / "named.npz", corners / "turned.npz"
    replace(posterior, feature_names=("u", "v")).save(named)
    replace(posterior, feature_names=("v", "u")).save(turned)
    for name, values in (("lower", LOW), ("upper", HIGH)):
        lines = [",".join(map(repr, row)) for row in values[:, ::-1].tolist()]
        (corners / f"{name}.csv").write_text("\n".join(["v,u", *lines]))
    files, out = (corners / "lower.csv", corners / "upper.csv"), corners / "bounds.npz"
    refused = run("boxes", named, *files, "--with", turned)
    assert refused.exit_code == 3
    assert "in the same order" in refused.stderr
    # the columns have names for a model without them too, where another one has some
    assert run("boxes", npz, *files, "--with", named, "--output", out).exit_code == 0
    here = gpcert.bound_boxes(posterior, LOW, HIGH)["mean"]
    np.testing.assert_array_equal(gpcert.load(out)["mean"], np.concatenate([here, here], axis=1))


def test_what_is_not_reached_is_told(run, npz, corners):
    result = run("boxes", npz, corners / "both.npz", "--seconds", "1e-9")
    assert result.exit_code == 2
    assert "0 of 3 boxes" in result.output
    wide = run("boxes", npz, corners / "both.npz", "--tol", "1e-9", "--boxes", "4")
    assert wide.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lower.npy",), "UPPER: expected a file"),
        (("both.npz", "upper.npy"), "UPPER: expected none"),
        (("missing.npy", "upper.npy"), "expected a file of NumPy"),
        (("one.npz",), "expected the arrays lower and upper"),
        (("both.npz", "--output", "bounds.json"), "ends in .npz"),
        (("both.npz", "--jobs", "0"), "--jobs"),
        (("both.npz", "--quantity", "median"), "quantity"),
        (("both.npz", "--quantity", "probability", "--affine"), "affine"),
    ],
)
def test_bad_input_is_named(run, npz, corners, arguments, message):
    np.savez(corners / "one.npz", lower=LOW)
    paths = [corners / a if a.endswith((".npy", ".npz")) else a for a in arguments]
    result = run("boxes", npz, *paths)
    assert result.exit_code == 3
    assert message in " ".join(result.stderr.split())


def test_a_relative_tolerance(run, npz, corners):
    arguments = ("boxes", npz, corners / "both.npz", "--output", corners / "near.npz")
    near = run(*arguments, "--quantity", "std", "--rtol", "0.01")
    assert near.exit_code == 0, near.output
    found = gpcert.load(corners / "near.npz")
    assert (found.tol, found.rtol, found.converged) == (None, 0.01, True)
