"""Columns are matched with the model's features; a column of labels is kept."""

import json

import numpy as np
import pytest

import gpcert
from gpcert.cli.files import read_points
from gpcert.cli.reading import radius_of
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.regions import LinearMap
from gpcert.testing.effort import variants

NAMES = ("age", "bmi")


@pytest.fixture
def named(tmp_path):
    """A model that knows its features: class "b" where age > 0."""
    model = gpcert.Posterior(
        SquaredExponential(1.0),
        [[-1.0, 0.0], [1.0, 0.0]],
        [-1.0, 1.0],
        likelihood=Probit(),
        classes=("a", "b"),
        feature_names=NAMES,
    )
    model.save(tmp_path / "named.npz")
    return tmp_path / "named.npz"


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("age,bmi\n1,2\n3,4\n", (0, 1)),
        ("bmi,age\n2,1\n4,3\n", (0, 1)),
        ("1,2\n3,4\n", (0, 1)),
        ("id,age,bmi\n7,1,2\n8,3,4\n", (7, 8)),
        ("bmi,age,ID\n2,1,07\n4,3,08\n", ("07", "08")),
        (",age,bmi\nann,1,2\nbob,3,4\n", ("ann", "bob")),
        ("Unnamed: 0,bmi,age\n0,2,1\n1,4,3\n", (0, 1)),
        ("bmi,index,age\n2,5,1\n4,x,3\n", ("5", "x")),
        ("patient,bmi,age\nann,2,1\nbob,4,3\n", ("ann", "bob")),
        (" bmi , age \n2,1\n4,3\n", (0, 1)),
        ("bmi;age\n2;1\n4;3\n", (0, 1)),
        ("age\tbmi\n1\t2\n3\t4\n", (0, 1)),
        ("1;2\n3;4\n", (0, 1)),
        ("\n\tbmi\tage\nann\t2\t1\nbob\t4\t3\n", ("ann", "bob")),
        ("1,\t2\n3,\t4\n", (0, 1)),
        ('id;"bmi";age\r\n"ann, a.";2;1\r\nbob;4;3\r\n', ("ann, a.", "bob")),
        ("id,bmi,age\nann;a,2,1\nbob;b,4,3\n", ("ann;a", "bob;b")),
    ],
)
def test_columns_are_put_into_the_models_order(csv, text, labels):
    points = read_points(csv(text), None, 2, NAMES)
    assert points.X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert points.labels == labels


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,weight\n1,2\n", ["missing: 'bmi'", "unknown: 'weight'"]),
        ("age\n1\n", ["missing: 'bmi'"]),
        ("bmi,age,weight\n1,2,3\n", ["unknown: 'weight'"]),
        ("id,x,age,bmi\n0,0,1,2\n", ["unknown: 'id', 'x'"]),
        ("age,bmi,age\n1,2,3\n", ["duplicate: 'age'"]),
        ("id,age\n1,2\n", ["missing: 'bmi'"]),
        ("Age,BMI\n1,2\n", ["missing: 'age', 'bmi'"]),
        ("1,2,3\n", ["expected 2 features"]),
    ],
)
def test_other_columns_are_named(csv, text, words):
    with pytest.raises(InputError) as caught:
        read_points(csv(text), None, 2, NAMES)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("x,y\n1,2\n", (0,)),
        ("index,y\n1,2\n", (0,)),  # as many columns as features: all are features
        ("x,y,index\n1,2,9\n", (9,)),
        (",x,y\nq,1,2\n", ("q",)),
    ],
)
def test_models_without_names_take_columns_in_order(csv, text, labels):
    points = read_points(csv(text), None, 2, None)
    assert points.X.tolist() == [[1.0, 2.0]]
    assert points.labels == labels


@pytest.mark.parametrize("text", ["patient,x,y\n1,1,2\n", "id,x,index,y\n1,1,2,3\n", "x\n1\n"])
def test_models_without_names_need_a_known_name_for_labels(csv, text):
    with pytest.raises(InputError, match="expected 2 features"):
        read_points(csv(text), None, 2, None)


def test_features_that_are_numbers_may_be_named(csv):
    points = read_points(csv("1,0\n5,6\n"), None, 2, ("0", "1"))
    assert points.X.tolist() == [[6.0, 5.0]]


def test_labels_are_in_tables_json_and_csv(run, named, csv, tmp_path):
    pd = pytest.importorskip("pandas")
    output, frame = tmp_path / "results.json", tmp_path / "frame.csv"
    points = csv("patient,bmi,age\nann,0.0,1.0\n[bob],0.1,-1.0\n")
    files = ["--output", output, "--csv", frame]
    for verb, kind in (
        ("certify", gpcert.CertificateTable),
        ("range", gpcert.RangeTable),
        ("radius", gpcert.RadiusTable),
    ):
        radius = [] if verb == "radius" else ["--radius", 0.3]
        accuracy = {"certify": [], "range": ["--tol", 0.2], "radius": ["--rtol", 0.2]}[verb]
        result = run(verb, named, points, *radius, *files, *accuracy)
        assert result.exit_code == 0
        assert "[bob]" in result.stdout
        loaded = gpcert.load(output)
        assert type(loaded) is kind
        assert set(loaded.labels) == {"ann", "[bob]"}
        assert loaded[0].region.get("center", [1.0, 0.0]) == [1.0, 0.0]
        assert pd.read_csv(frame)["point"].tolist() == list(loaded.labels)


def test_features_by_name(run, named, csv, tmp_path):
    output = tmp_path / "results.json"
    points = csv("bmi,age\n0.3,0.4\n")
    found = run("certify", named, points, "--radius", 0.5, "--features", "bmi", "--output", output)
    assert found.exit_code == 0
    (certificate,) = gpcert.load(output)
    assert certificate.region["features"] == [1]
    assert run("certify", named, points, "--radius", 0.5, "--features", "age").exit_code == 1
    assert run("certify", named, points, "--radius", 0.5, "--features", "0").exit_code == 1
    wrong = run("certify", named, points, "--radius", 0.5, "--features", "weight")
    assert wrong.exit_code == 3
    assert "age, bmi" in wrong.stderr


def test_domain_by_name(run, named, csv, tmp_path):
    output = tmp_path / "results.json"
    points = csv("bmi,age\n0.3,0.4\n")
    arguments = [named, points, "--radius", 0.5, "--output", output, "--domain"]
    assert run("certify", *arguments, "age=0.1:inf").exit_code == 0
    (certificate,) = gpcert.load(output)
    assert certificate.region["domain"] == [[0.1, "-inf"], ["inf", "inf"]]
    for wrong in ("age=1", "weight=0:1", "age=a:b", "0,1,2", "age=0.5:1", "age=0:1,0=0:2"):
        assert run("certify", *arguments, wrong).exit_code == 3


def test_radius_by_name(named):
    model = gpcert.load(named)
    assert radius_of("bmi=0.5", model) == {1: 0.5}
    assert radius_of("0.5,1", model) == [0.5, 1.0]
    assert radius_of("2", model) == 2.0
    for wrong in ("", "a", "weight=1", "bmi=", "=1", "bmi=x", "bmi=1,2", "bmi=1,bmi=0"):
        with pytest.raises(InputError, match="--radius"):
            radius_of(wrong, model)


def test_radii_of_each_point_from_a_file(run, named, csv, tmp_path):
    output, radii = tmp_path / "results.json", tmp_path / "radii.csv"
    points = csv("id,age,bmi\nAnn,1.0,0.0\nBob,-1.0,0.2\n")
    arguments = [named, points, "--radius", radii, "--output", output]
    radii.write_text("id,bmi,age\nAnn,0.1,0.2\nBob,0.0,0.3\n")
    for command in ("certify", "range", "attack"):
        result = run(command, *arguments)
        assert result.exit_code in {0, 1, 2}, result.stderr
        found = gpcert.load(output)
        assert {tuple(row.region["radius"]) for row in found} == {(0.2, 0.1), (0.3, 0.0)}
        assert "radii of radii.csv" in result.stdout
    assert run("explain", *arguments).exit_code == 0
    assert gpcert.load(output).radius.tolist() == [[0.2, 0.1], [0.3, 0.0]]
    assert run("explain", *arguments, "--what", "sufficient").exit_code == 0
    assert [row.region["radius"] for row in gpcert.load(output)] == [[0.2, 0.1], [0.3, 0.0]]
    for text, message in {
        "id,bmi,age\nBob,0.1,0.2\nAnn,0.0,0.3\n": "expected the ids of POINTS",
        "id,bmi,age\nAnn,0.1,0.2\n": "a row for each of 2 points, got 1",
        "bmi,weight\n0.1,0.2\n0.1,0.2\n": "missing: 'age'",
        "bmi,age\n0.1,-0.2\n0.1,0.2\n": "radius: expected numbers >= 0",
        "bmi,age\n0.1,nan\n0.1,0.2\n": "radius: expected",
    }.items():
        radii.write_text(text)
        wrong = run("certify", *arguments)
        assert wrong.exit_code == 3
        assert message in wrong.stderr
    radii.write_text("0.1,0.2\n0.0,0.3\n")  # by position, as points are
    assert run("certify", *arguments).exit_code in {0, 1, 2}
    assert run("certify", named, points, "--radius", "nowhere.csv").exit_code == 3


@pytest.mark.filterwarnings("default::gpcert.errors.RegionWarning")
def test_radii_in_parts_of_each_value(run, named, csv, tmp_path):
    output = tmp_path / "results.json"
    points = csv("age,bmi\n1.0,0.0\n-1.0,0.5\n")
    arguments = ["certify", named, points, "--output", output, "--relative"]
    result = run(*arguments, 0.25)
    assert result.exit_code == 0, result.stderr
    assert [row.region["radius"] for row in gpcert.load(output)] == [[0.25, 0.0], [0.25, 0.125]]
    warned = result.stderr.replace("\n", " ")
    assert "warning: relative: 1 of 4 values are 0 and stay fixed" in warned
    assert "radius 0.25 of each value" in result.stdout
    assert run(*arguments, "bmi=0.5", "--features", "bmi").exit_code == 0
    assert gpcert.load(output)[1].region["radius"] == [0.0, 0.25]
    for wrong in ("a", "5%", "bmi=0.5,bmi=1", "weight=0.1", "-0.1"):
        assert run(*arguments, wrong).exit_code == 3
    fixed = run(*arguments, "bmi=0.5", "--features", "age")
    assert fixed.exit_code == 3
    assert "features= leaves it out" in fixed.stderr


def test_what_a_threshold_is_compared_with(run, csv, tmp_path):
    """The second output's mean + 2 std stays below the limit."""
    model = gpcert.Posterior(
        SquaredExponential(1.0), [[-1.0, 0.0], [1.0, 0.0]], [[1.0, -1.0], [0.5, 0.5]], np.eye(2)
    )
    path, output = tmp_path / "two.npz", tmp_path / "results.json"
    model.save(path)
    points = csv("1.0,0.0\n-1.0,0.2\n")
    asked = ["--target", 1, "--quantity", "ucb", "--beta", 2, "--threshold", 3, "--output", output]
    result = run("certify", path, points, "--radius", 0.1, *asked)
    assert result.exit_code == 0, result.stderr
    direct = gpcert.certify_many(
        model, [[1.0, 0.0], [-1.0, 0.2]], 0.1, output=1, quantity="ucb", beta=2, threshold=3.0
    )
    found = gpcert.load(output)
    assert [row.rule for row in found] == [row.rule for row in direct]
    assert found[0].rule == "mean + 2 std of target 1 below 3.0"
    assert run("radius", path, points, "--rtol", 0.2, *asked).exit_code == 0
    assert gpcert.load(output)[0].rule == found[0].rule
    assert run("attack", path, points, "--radius", 0.1, *asked).exit_code == 2
    explained = ["--what", "sufficient", "--radius", 0.1, *asked]
    assert run("explain", path, points, *explained).exit_code == 0
    assert gpcert.load(output)[0].rule == found[0].rule
    ranged = ["--radius", 0.1, "--target", 1, "--quantity", "lcb", "--beta", 2, "--output", output]
    assert run("range", path, points, *ranged).exit_code == 0
    assert gpcert.load(output)[0].quantity == "lcb"
    bounds = tmp_path / "bounds.npz"
    boxes = ["boxes", path, points, points, "--quantity", "lcb,ucb", "--output", bounds]
    assert run(*boxes).exit_code == 0
    assert set(gpcert.load(bounds).ranges) == {"lcb", "ucb"}


def test_points_from_standard_input_and_results_to_standard_output(run, named):
    arguments = ["certify", named, "-", "--radius", 0.3]
    for option, read in (("--output", json.loads), ("--csv", str.splitlines)):
        result = run(*arguments, option, "-", input="id,bmi,age\n5,0.0,1.0\n")
        assert result.exit_code == 0
        assert read(result.stdout)
        assert "1 ROBUST" in result.stderr
        assert "1 ROBUST" not in result.stdout
    both = run(*arguments, "--output", "-", "--csv", "-", input="1,1\n")
    assert both.exit_code == 3
    assert run(*arguments, input="").exit_code == 3


def test_results_on_standard_output_load_again(run, named, tmp_path):
    result = run("radius", named, "-", "--output", "-", "--rtol", 0.2, input="1.0,0.0\n")
    (tmp_path / "radii.json").write_text(result.stdout)
    (found,) = gpcert.load(tmp_path / "radii.json")
    assert found.lower <= 1.0 <= found.upper


@variants("verb", ["range", "radius"])
def test_jobs_answer_alike_in_order(run, named, csv, tmp_path, verb):
    pd = pytest.importorskip("pandas")
    points = csv("id,age,bmi\na,1.0,0.0\nb,-1.0,0.0\nc,0.8,0.1\n")
    options = ["--rtol", 0.2] if verb == "radius" else ["--tol", 0.2, "--radius", 0.2]
    frames = []
    for jobs in (1, 2):
        output = tmp_path / f"{jobs}.csv"
        result = run(verb, named, points, *options, "--jobs", jobs, "--csv", output)
        assert result.exit_code == 0
        frames.append(pd.read_csv(output).drop(columns="seconds"))
    assert frames[0].equals(frames[1])
    each = 2 if verb == "range" else 1  # a range for both classes
    assert frames[0]["point"].tolist() == [label for label in "abc" for _ in range(each)]


def test_options_of_the_python_verbs(run, named, csv, tmp_path):
    output = tmp_path / "results.json"
    points, files = csv("1.0,0.0\n"), ["--output", output]
    run("radius", named, points, "--max-radius", 0.25, "--seed", 3, *files)
    (found,) = gpcert.load(output)
    assert (found.lower, found.upper) == (0.25, np.inf)
    run("range", named, points, "--radius", 0.5, "--tol", 0, "--boxes", 1, *files)
    assert gpcert.load(output)[0].reason is gpcert.StopReason.BOXES
    run("range", named, points, "--radius", 0.5, "--sides", "minimum", *files)
    (found,) = gpcert.load(output)
    assert found.maximum.upper == np.inf
    assert found.minimum.width <= 0.01
    assert run("range", named, points, "--radius", 0.5, "--memory", 0).exit_code == 3
    for weights in ("a=5,b=1", "5,1"):
        run("certify", named, points, "--radius", 0.1, "--class-weight", weights, *files)
        assert gpcert.load(output)[0].decision == "a"  # 0.63 is not enough for b
    for wrong in ("a=5", "a=5,c=1", "1,2,3", "a=x,b=1", "a=1,2"):
        result = run("certify", named, points, "--radius", 0.1, "--class-weight", wrong)
        assert result.exit_code == 3


def test_categories_are_read_as_text(run, csv, tmp_path):
    model = gpcert.Posterior(
        SquaredExponential(1.0),
        [[0.0], [4.0]],
        [-1.0, 1.0],
        likelihood=Probit(),
        classes=(False, True),
        features=LinearMap([[1.0, 0.0, 0.0, 4.0]], levels={1: ("blue", "red")}),
        feature_names=("age", "colour"),
    )
    model.save(tmp_path / "model.npz")
    points = csv("colour;age\nblue;0.1\nred;0.2\n")
    asked = ("certify", tmp_path / "model.npz", points, "--radius")
    result = run(*asked, "age=0.1", "--csv", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    header, *rows = (tmp_path / "out.csv").read_text().splitlines()
    place = header.split(",").index("decision")
    assert [row.split(",")[place] for row in rows] == ["False", "True"]
    assert "False" in result.output  # a label, though it is one of no truth
    refused = run(*asked, "0.1")
    assert refused.exit_code == 3
    assert "column 'colour', which holds categories (blue, red)" in refused.stderr
    refused = run(*asked[:2], csv("age,colour\n0.1,pink\n"), "--radius", "age=0.1")
    assert refused.exit_code == 3
    assert "line 2, column 2: expected one of blue, red, got 'pink'" in refused.stderr
