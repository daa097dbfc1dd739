"""`gpcert explain`: effects, reasons, pixel budgets, on a model file and a CSV of points."""

import pytest

import gpcert
from gpcert import explain


def test_effects(run, npz, csv, tmp_path):
    pd = pytest.importorskip("pandas")
    points = csv("x,y\n1.0,0.0\n0.5,0.3\n")
    paths = [tmp_path / name for name in ("effects.json", "effects.csv", "effects.png")]
    result = run(
        "explain", npz, points, "--radius", 0.2,
        "--output", paths[0], "--csv", paths[1], "--plot", paths[2],
    )  # fmt: skip
    assert result.exit_code == 0, result.stdout
    found = explain.Effects.load(paths[0])
    assert found.lower.shape == (2, 2, 2)
    assert found.lower[1, 1, 0] > 0  # class "b" lies to the right
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
    found = gpcert.load(output)
    assert isinstance(found, explain.ReasonTable)
    assert found[1].features == (0,)
    assert found.labels == (0, 1)
    assert "2 points: 2 decided" in result.stdout


def test_a_point_without_a_reason_leaves_those_of_the_others(run, npz, csv, tmp_path):
    output = tmp_path / "reason.json"
    points = csv("1.0,0.0\n0.0,0.0\n")  # the second is a tie of the two classes
    result = run(
        "explain", npz, points, "--what", "sufficient", "--radius", 0.2, "--output", output
    )
    assert result.exit_code == 2, result.stdout
    assert [reason.found for reason in gpcert.load(output)] == [True, False]
    assert "2 points: 1 decided, 1 not" in result.stdout
    assert "no reason" in result.stdout


def test_a_tie_leaves_the_pixel_budgets_of_the_others(run, npz, csv, tmp_path):
    output, table = tmp_path / "pixels.json", tmp_path / "pixels.csv"
    points = csv("0.0,0.0\n1.0,0.0\n")  # the first is a tie of the two classes
    result = run(
        "explain", npz, points, "--what", "pixels", "--radius", 1.5, "--ranking", "gradient",
        "--output", output, "--csv", table, "--plot", tmp_path / "pixels.svg",
    )  # fmt: skip
    assert result.exit_code == 2, result.stdout
    assert [bool(found.betas) for found in gpcert.load(output)] == [False, True]
    assert len(table.read_text().splitlines()) == 3
    assert "2 points: 1 decided, 1 not" in result.stdout
    assert "not known" in result.stdout


def test_weights_of_classes_decide(run, npz, csv, tmp_path):
    """What `class_weight` decides at x is what is explained."""
    output = tmp_path / "reason.json"
    for weights, decision in (("a=1,b=1", "b"), ("a=9,b=1", "a")):
        result = run(
            "explain", npz, csv("0.5,0.0\n"), "--what", "sufficient", "--radius", 0.2,
            "--class-weight", weights, "--output", output,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert gpcert.load(output)[0].decision == decision


def test_labels_of_rows_and_standard_output(run, npz, csv):
    result = run(
        "explain", npz, csv("id,x,y\nAnn,1,0\nBob,0.5,0.3\n"), "--radius", 0.2, "--csv", "-"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[1].startswith("Ann,a,x0,")
    assert "Point Bob, b" in result.stderr


def test_pixels_with_a_picture(run, npz, csv, tmp_path):
    picture = tmp_path / "pixels.svg"
    result = run(
        "explain", npz, csv("1.0,0.0\n"), "--what", "pixels", "--radius", 1.5,
        "--ranking", "gradient", "--plot", picture,
    )  # fmt: skip
    assert result.exit_code == 0, result.stdout
    assert "pixels that flip" in result.stdout
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--class", "c"], "--class"),
        (["--shape", "a"], "--shape"),
        (["--what", "sufficient", "--plot", "x.png"], "--shape"),
        (["--what", "lime", "--method", "paper"], "--method"),
        (["--norm", "2"], "--norm"),
        (["--threshold", "0.3"], "--threshold"),
        (["--what", "lime", "--variance-bound", "analytic"], "--variance-bound"),
        (["--variance-bound", "analytic"], "variance_bound"),
        (["--betas", "1,2"], "--betas"),
        (["--what", "pixels", "--betas", "a"], "--betas"),
        (["--order", "0"], "--order"),
        (["--what", "sufficient", "--order", "9"], "--order"),
        (["--what", "sufficient", "--quantity", "mean"], "quantity: says which value"),
        (["--what", "pixels", "--quantity", "mean"], "--quantity: no effect on --what pixels"),
        (["--background", "x.csv"], "--background"),
        (["--plot", "nowhere/x.png"], "folder"),
    ],
)
def test_bad_options_are_bad_input(run, npz, csv, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    result = run("explain", npz, csv("1.0,0.0\n"), "--radius", 0.2, *options)
    assert result.exit_code == 3
    assert message in result.stderr
