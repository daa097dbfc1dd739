"""The commands of the analyses: files, pictures, exit codes, errors."""

from dataclasses import replace

import numpy as np
import pytest

import gpcert
from gpcert.kernels import SquaredExponential

POINTS = "x,y\n1.0,0.0\n-0.2,0.1\n-1.0,0.3\n"


@pytest.fixture
def regressor(tmp_path):
    path = tmp_path / "regressor.npz"
    gpcert.Posterior(
        SquaredExponential(1.0), [[-1.0, 0.0], [1.0, 0.0]], [-1.0, 1.0], factor=0.5 * np.eye(2)
    ).save(path)
    return path


def test_attack(run, npz, csv, tmp_path):
    out, picture = tmp_path / "attacks.json", tmp_path / "attacks.png"
    result = run(
        "attack", npz, csv(POINTS), "--radius", 0.4, "--iterations", 5, "--output", out,
        "--plot", picture, "--csv", tmp_path / "attacks.csv",
    )  # fmt: skip
    assert result.exit_code == 1, result.output
    table = gpcert.load(out)
    assert table.confirmed.tolist() == [False, True, False]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "1 confirmed" in result.stdout
    few = run("attack", npz, csv(POINTS), "--radius", 0.01, "--method", "gpfgs")
    assert few.exit_code == 2


def test_safety(run, npz, csv, tmp_path):
    out, picture = tmp_path / "curve.json", tmp_path / "curve.svg"
    result = run(
        "safety", npz, csv(POINTS), "--radii", "0:1.2:4", "--point", 2, "--tol", 0.1,
        "--output", out, "--plot", picture,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    curve = gpcert.load(out)
    assert curve.radii.tolist() == pytest.approx([0.0, 0.4, 0.8, 1.2])
    assert (curve.safe_up_to, curve.first_unsafe) == pytest.approx((0.8, 1.2))
    assert b"<svg" in picture.read_bytes()


def test_robustness(run, npz, csv, tmp_path):
    out = tmp_path / "deltas.json"
    result = run("robustness", npz, csv(POINTS), "--radii", "0.1,0.2", "--output", out)
    assert result.exit_code == 0, result.output
    assert len(gpcert.load(out)) == 6
    again = tmp_path / "other.npz"
    again.write_bytes(npz.read_bytes())
    result = run(
        "robustness", npz, csv(POINTS), "--radii", 0.1, "--compare", again, "--output", out,
        "--plot", tmp_path / "boxes.png",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert {row.group for row in gpcert.load(out)} == {"model", "other"}


def test_models_that_are_compared_have_names_and_columns_of_their_own(
    run, npz, posterior, csv, tmp_path
):
    def refused(other, message):
        result = run("robustness", npz, csv("1.0,0.0\n"), "--radius", 0.1, "--compare", other)
        assert result.exit_code == 3
        assert message in result.stderr

    folder = tmp_path / "ep"
    folder.mkdir()
    (folder / npz.name).write_bytes(npz.read_bytes())
    refused(folder / npz.name, "files of different names")  # one took the place of the other
    turned = tmp_path / "turned.npz"
    for names in (None, ("u", "v")):  # points in the order of the one are not those of the other
        replace(posterior, feature_names=names).save(npz)
        replace(posterior, feature_names=("v", "u")).save(turned)
        refused(turned, "in the same order")


def test_accuracy(run, npz, csv, tmp_path):
    labels, out = tmp_path / "labels.csv", tmp_path / "accuracy.json"
    labels.write_text("label\nb\nb\na\n")
    arguments = ("--radii", "0.1,0.5", "--labels", labels, "--rtol", 0.1, "--output", out)
    result = run("accuracy", npz, csv(POINTS), *arguments, "--plot", tmp_path / "accuracy.png")
    assert result.exit_code == 0, result.output
    found = gpcert.load(out)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.certified().tolist() == found.attacked().tolist() == pytest.approx([2 / 3, 2 / 3])
    assert "66.67 % right; right and robust at radius 0.1: 66.66 % to 66.67 %" in result.output
    labels.write_text("b\nq\na\n")
    assert run("accuracy", npz, csv(POINTS), *arguments).exit_code == 3
    labels.write_text("b\n")
    assert run("accuracy", npz, csv(POINTS), *arguments).exit_code == 3


def test_labels_are_matched_with_the_ids_of_the_points(run, npz, csv, tmp_path):
    labels, out = tmp_path / "labels.csv", tmp_path / "accuracy.json"
    arguments = ("--radii", "0.1", "--labels", labels, "--rtol", 0.1, "--output", out)
    points = "id,x,y\nu,1.0,0.0\nv,-1.0,0.0\nw,0.9,0.1\n"
    for text in ("id,label\nu,b\nv,a\nw,b\n", "class;ID\nb;w\nb;u\na;v\n", ",y\nv,a\nw,b\nu,b\n"):
        labels.write_text(text)
        result = run("accuracy", npz, csv(points), *arguments)
        assert result.exit_code == 0, result.output
        assert [(row.label, row.right) for row in gpcert.load(out)] == [
            ("b", True),
            ("a", True),
            ("b", True),
        ]
    refused = {
        "id,label\nu,b\nv,a\nx,b\n": "missing: w",
        "id,label\nu,b\nv,a\nv,b\nw,b\n": "got 4 ids",
        "id,label\nu,b\nu,a\nw,b\n": "missing: v",
        "u,b\nv,a\nw,b\n": "a header that names one of them id",
        "id,index,label\nu,u,b\nv,v,a\nw,w,b\n": "a header that names one of them id",
        "": "at least one label",
    }
    for text, words in refused.items():
        labels.write_text(text)
        result = run("accuracy", npz, csv(points), *arguments)
        assert result.exit_code == 3
        assert words in result.stderr
    labels.unlink()
    assert run("accuracy", npz, csv(points), *arguments).exit_code == 3


def test_labels_may_hold_commas(run, posterior, csv, tmp_path):
    labels, out = tmp_path / "labels.txt", tmp_path / "accuracy.json"
    replace(posterior, classes=("Aix, F", "Bonn, D")).save(tmp_path / "towns.npz")
    for text in ("Bonn, D\nAix, F\n", '"Bonn, D"\n"Aix, F"\n', "town\nBonn, D\nAix, F\n"):
        labels.write_text(text)
        points = csv("1.0,0.0\n-1.0,0.0\n")
        arguments = ("--radii", "0.1", "--labels", labels, "--output", out)
        result = run("accuracy", tmp_path / "towns.npz", points, *arguments)
        assert result.exit_code == 0, result.output
        assert gpcert.load(out).accuracy == 1.0


def test_titles_say_the_unit_of_the_radius(run, posterior, csv, tmp_path):
    replace(posterior, spread=[2.0, 0.5]).save(tmp_path / "model.npz")
    for command, *more in (
        ("certify", "--radius", 0.1),
        ("radius",),
        ("safety", "--radii", "0,0.1"),
    ):
        asked = (command, tmp_path / "model.npz", csv(POINTS), *more)
        assert "standard deviations" in run(*asked, "--scale", "std").output
        assert "units of scale" in run(*asked, "--scale", "1,2").output
        assert "standard deviations" not in run(*asked).output


def test_worst_case(run, regressor, npz, csv, tmp_path):
    out = tmp_path / "worst.json"
    result = run(
        "worst-case", regressor, csv(POINTS), "--radius", 0.2, "--beta", 3, "--tol", 0.1,
        "--output", out, "--plot", tmp_path / "worst.png",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert all(row.band.lower < row.minimum.lower for row in gpcert.load(out))
    refused = run("worst-case", npz, csv(POINTS), "--radius", 0.2)
    assert refused.exit_code == 3
    assert "regression" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("safety", "--radii", "a,b"),
        ("safety", "--radii", "0:1:1"),
        ("safety", "--radii", "0.1", "--plot", "picture.bmp"),
        ("safety", "--radii", "0.1", "--plot", "nowhere/picture.png"),
        ("safety", "--radii", "0.1", "--point", "9"),
        ("safety", "--radii", "0.1", "--variance-bound", "solver"),
        ("robustness", "--radii", "0.1", "--radius", "0.1"),
        ("robustness",),
        ("attack", "--radius", "0.1", "--method", "magic"),
        ("attack", "--radius", "0.1", "--iterations", "0"),
    ],
)
def test_bad_options_end_with_three(run, npz, csv, arguments):
    command, *rest = arguments
    assert run(command, npz, csv(POINTS), *rest).exit_code == 3
