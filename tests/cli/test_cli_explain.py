"""`gpcert explain`: effects, reasons, pixel budgets, on a model file and a CSV of points."""

import pandas as pd
import pytest

from gpcert import explain


def test_effects(run, npz, csv, tmp_path):
    points = csv("x,y\n1.0,0.0\n0.5,0.3\n")
    paths = [tmp_path / name for name in ("effects.json", "effects.csv", "effects.png")]
    result = run(
        "explain", npz, points, "--radius", 0.2,
        "--output", paths[0], "--csv", paths[1], "--picture", paths[2],
    )  # fmt: skip
    assert result.exit_code == 0, result.stdout
    found = explain.Effects.load(paths[0])
    assert found.lower.shape == (2, 1, 2)
    assert found.lower[1, 0, 0] > 0  # class "b" lies to the right
    assert list(pd.read_csv(paths[1]).columns) == ["point", "output", "feature", "lower", "upper"]
    assert paths[2].stat().st_size > 1000


def test_mean_of_effects(run, npz, csv, tmp_path):
    output = tmp_path / "mean.json"
    points = csv("1.0,0.0\n0.5,0.3\n")
    assert run("explain", npz, points, "--radius", 0.2, "--mean", "--output", output).exit_code == 0
    assert explain.Effects.load(output).averaged == 2


@pytest.mark.parametrize("what", ["sufficient", "contrastive"])
def test_reasons_of_several_points(run, npz, csv, tmp_path, what):
    output = tmp_path / "reason.json"
    points = csv("1.0,0.0\n0.5,0.3\n")
    result = run("explain", npz, points, "--what", what, "--radius", 1.5, "--output", output)
    assert result.exit_code == 0, result.stdout
    assert explain.Reason.load(tmp_path / "reason-1.json").features == (0,)
    assert "point 1" in result.stdout


def test_pixels_with_a_picture(run, npz, csv, tmp_path):
    picture = tmp_path / "pixels.svg"
    result = run(
        "explain", npz, csv("1.0,0.0\n"), "--what", "pixels", "--radius", 1.5,
        "--ranking", "gradient", "--picture", picture,
    )  # fmt: skip
    assert result.exit_code == 0, result.stdout
    assert "pixels flip" in result.stdout
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--class", "c"], "--class"),
        (["--shape", "a"], "--shape"),
        (["--what", "sufficient", "--picture", "x.png"], "--shape"),
        (["--what", "pixels", "--features", "0"], "--features"),
    ],
)
def test_bad_options_are_bad_input(run, npz, csv, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    result = run("explain", npz, csv("1.0,0.0\n"), "--radius", 0.2, *options)
    assert result.exit_code == 3
    assert message in result.stderr
