"""Bad input ends with exit code 3 and one message on stderr, never with a traceback."""

import os

import joblib
import numpy as np
import pytest

import gpcert
from gpcert.errors import GPCertError, SoundnessError
from gpcert.testing.effort import examples

GOOD = "1.0,0.0\n"


def check(result, *words):
    assert result.exit_code == 3
    for word in words:
        assert word in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("x,y\n", ["at least one point"]),
        ("1.0,0.0\n1.0\n", ["line 2", "2 columns"]),
        ("1.0,0.0\n1.0,spam\n", ["line 2", "column 2", "spam"]),
        ("1,0;0,0\n2,0;0,0\n", ["line 1", "'1,0'", "decimal point"]),
        ("x;y\n1,0;0,0\n", ["line 2", "'1,0'", "decimal point"]),
        ("x\ty\n1.0\t0.0\n2.0\n", ["line 3", "2 columns"]),
        ("1.5,O\n1.0,0.0\n", ["line 1", "column 2", "'O'"]),
        ("O,1.5\n1.0,0.0\n", ["line 1", "column 1", "'O'"]),
        ("1.5O,O\n1.0,0.0\n", ["line 1", "1.5O", "--header"]),
        ("x,y\n1.0,0.0\n1_0,0.0\n", ["line 3", "1_0"]),
        ("1.0,\u0661\n", ["line 1", "column 2"]),
        ('1.0,"0.0\n', ["CSV"]),
        ("1.0,nan\n", ["NaN"]),
        ("1.0,0.0,3.0\n", ["expected 2 features"]),
        ("x\n1.0\n", ["expected 2 features"]),
    ],
)
def test_malformed_points(run, npz, csv, text, words):
    check(run("certify", npz, csv(text), "--radius", 0.1), *words)


def test_points_that_are_not_text(run, npz, tmp_path):
    path = tmp_path / "points.csv"
    path.write_bytes(b"\xff\xfe1\x00")
    check(run("certify", npz, path, "--radius", 0.1), "UTF-8")


def test_missing_files(run, npz, csv, tmp_path):
    check(run("certify", tmp_path / "no.npz", csv(GOOD), "--radius", 0.1), "no.npz")
    check(run("certify", npz, tmp_path / "no.csv", "--radius", 0.1), "no.csv")
    check(run("certify", tmp_path / "model.txt", csv(GOOD), "--radius", 0.1), "model.txt")


def test_damaged_models_end_with_3_or_load(run, npz, csv, tmp_path):
    points, content = csv(GOOD), npz.read_bytes()
    rng, path = np.random.default_rng(1), tmp_path / "damaged.npz"
    for _ in range(examples(40, quick=15)):
        data = bytearray(content)
        for place in rng.integers(len(data), size=4):
            data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(data))
        result = run("certify", path, points, "--radius", 0.1, "--seconds", 1)
        if result.exit_code > 2:
            check(result, "damaged.npz")


def test_models_that_are_none(run, csv, tmp_path):
    points = csv(GOOD)
    path = tmp_path / "model.onnx"
    path.write_text("")
    check(run("certify", path, points, "--radius", 0.1), ".npz")
    for name, content in (("a.npz", b"text"), ("b.npz", b"PK\x03\x04broken")):
        (tmp_path / name).write_bytes(content)
        check(run("certify", tmp_path / name, points, "--radius", 0.1), "Posterior.save")
    np.savez(tmp_path / "c.npz", header=np.array("{}"))
    check(run("certify", tmp_path / "c.npz", points, "--radius", 0.1), "format")
    (tmp_path / "d.joblib").write_bytes(b"not a pickle")
    check(run("certify", tmp_path / "d.joblib", points, "--radius", 0.1), "joblib.dump")
    joblib.dump({"a": 1}, tmp_path / "e.joblib")
    check(run("certify", tmp_path / "e.joblib", points, "--radius", 0.1), "dict")


@pytest.mark.parametrize(
    "options",
    [
        ["--radius", "-1"],
        ["--radius", "nan"],
        ["--radius", "wide"],
        [],
        ["--radius", "1", "--norm", "0.5"],
        ["--radius", "1", "--norm", "max"],
        ["--radius", "1", "--features", "0,two"],
        ["--radius", "1", "--features", "7"],
        ["--radius", "1", "--domain", "0"],
        ["--radius", "1", "--domain", "2,3"],
        ["--radius", "1", "--threshold", "1.5"],
        ["--radius", "1", "--delta", "0.1"],
        ["--radius", "1", "--seconds", "0"],
        ["--radius", "1", "--seconds", "nan"],
        ["--radius", "1", "--jobs", "0"],
        ["--radius", "1", "--features", ""],
        ["--radius", "1", "--backend", "abacus"],
        ["--radius", "1", "--colour", "red"],
        ["--radius", "1", "--output", "no/such/folder/out.json"],
    ],
)
def test_bad_options(run, npz, csv, options):
    check(run("certify", npz, csv(GOOD), *options))


def test_results_are_shown_where_they_cannot_be_written(run, npz, csv, tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr("gpcert.cli.results.Files.save", full)
    result = run("certify", npz, csv(GOOD), "--radius", 0.1, "--output", tmp_path / "x.json")
    assert result.exit_code == 3
    assert "1 ROBUST" in result.stdout
    assert "written" not in result.stdout
    assert "no space left" in result.stderr


def test_places_that_may_not_be_written_are_found_first(run, npz, csv, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    result = run("certify", npz, csv(GOOD), "--radius", 0.1, "--output", tmp_path / "x.json")
    check(result, "a writable path")


def test_output_must_not_be_a_folder(run, npz, csv, tmp_path):
    check(run("certify", npz, csv(GOOD), "--radius", 0.1, "--output", tmp_path), "folder")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--nonsense"], ["range"], ["radius", "x.npz"]]
)
def test_usage_errors(run, arguments):
    check(run(*arguments))


def test_soundness_errors_are_no_verdict(run, npz, csv, monkeypatch):
    def fail(*arguments, **options):
        raise SoundnessError("bounds crossed")

    monkeypatch.setattr(gpcert, "certify_many", fail)
    result = run("certify", npz, csv(GOOD), "--radius", 0.1)
    assert result.exit_code == 4
    assert "bounds crossed" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("kind", [MemoryError, RecursionError])
def test_exhaustion_is_one_line_and_no_verdict(run, npz, csv, monkeypatch, kind):
    def fail(*arguments, **options):
        raise kind

    monkeypatch.setattr(gpcert, "certify_many", fail)
    result = run("certify", npz, csv(GOOD), "--radius", 0.1)
    assert result.exit_code == 4
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    "kind", [GPCertError, SoundnessError, MemoryError, RecursionError, KeyError]
)
@pytest.mark.parametrize("verb", ["range", "radius"])
def test_no_failure_ends_as_a_verdict(run, npz, csv, monkeypatch, kind, verb):
    def fail(*arguments, **options):
        raise kind("no bound")

    name = {"range": "prediction_range_many", "radius": "certified_radius_many"}[verb]
    monkeypatch.setattr(gpcert, name, fail)
    radius = ["--radius", 0.1] if verb == "range" else []
    assert run(verb, npz, csv(GOOD), *radius).exit_code == 4


def test_a_defect_is_not_taken_for_refuted(run, npz, csv, monkeypatch):
    def fail(*arguments, **options):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(gpcert, "certify_many", fail)
    result = run("certify", npz, csv(GOOD), "--radius", 0.1)
    assert result.exit_code == 4
    assert "report" in result.stderr


def test_interrupt_is_130(run, npz, csv, monkeypatch):
    def fail(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(gpcert, "certify_many", fail)
    assert run("certify", npz, csv(GOOD), "--radius", 0.1).exit_code == 130


@pytest.mark.parametrize("options", [["--tol", "-1"], ["--tol", "nan"], ["--norm", "0"]])
def test_bad_options_of_range_and_radius(run, npz, csv, options):
    check(run("range", npz, csv(GOOD), "--radius", 0.1, *options))
    relative = [option.replace("--tol", "--rtol") for option in options]
    check(run("radius", npz, csv(GOOD), *relative))
