"""`gpcert range`, `radius`, `demo`, `--version` and `--help`."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import gpcert
from gpcert.cli.terminal import above, below


def test_range(run, npz, csv, posterior, tmp_path):
    output = tmp_path / "ranges.json"
    points = csv("x,y\n1.0,0.0\n0.0,0.3\n")
    result = run("range", npz, points, "--radius", 0.2, "--output", output)
    assert result.exit_code == 0
    # both classes of two have a row at each point
    assert "4 ranges: 4 within" in result.stdout
    other, first, _, second = gpcert.load(output)
    assert (other.output, first.output) == posterior.labels
    values = posterior.prediction(gpcert.Ball([1.0, 0.0], 0.2).sample(200, 0))[:, 0]
    assert first.minimum.lower <= values.min()
    assert first.maximum.upper >= values.max()
    assert second.quantity == "probability"


@pytest.mark.parametrize("quantity", ["mean", "variance", "std", "band"])
def test_range_of_other_quantities(run, npz, csv, quantity):
    result = run("range", npz, csv("1.0,0.0\n"), "--radius", 0.2, "--quantity", quantity)
    assert result.exit_code == 0
    assert quantity in result.stdout


def test_range_of_a_wider_band(run, npz, csv, tmp_path):
    output = tmp_path / "bands.json"
    arguments = ["--radius", 0.2, "--quantity", "band", "--beta", 3, "--output", output]
    assert run("range", npz, csv("1.0,0.0\n"), *arguments).exit_code == 0
    assert gpcert.load(output)[0].beta == 3.0
    mean = ["--radius", 0.2, "--quantity", "mean", "--beta", 3]
    assert run("range", npz, csv("1.0,0.0\n"), *mean).exit_code == 3


def test_range_that_is_not_reached_is_2(run, npz, csv):
    points = csv("1.0,0.0\n")
    result = run("range", npz, points, "--radius", 2, "--tol", 0, "--seconds", 0.05)
    assert result.exit_code == 2


def test_range_of_an_unknown_quantity_is_bad_input(run, npz, csv):
    points = csv("1.0,0.0\n")
    assert run("range", npz, points, "--radius", 1, "--quantity", "colour").exit_code == 3


def test_radius(run, npz, csv, tmp_path):
    output = tmp_path / "radii.json"
    result = run("radius", npz, csv("1.0,0.0\n"), "--features", "0", "--output", output)
    assert result.exit_code == 0
    (found,) = gpcert.load(output)
    assert found.lower <= 1.0 <= found.upper  # the boundary is at x_0 = 0
    assert found.lower >= 0.98


def test_radius_without_counterexample(run, npz, csv, tmp_path):
    result = run("radius", npz, csv("1.0,0.0\n"), "--domain", "-0.5,1", "--features", "1")
    assert result.exit_code == 0
    assert "none found" in result.stdout


@pytest.mark.parametrize(("command", "verb"), [("range", "ranges_over"), ("radius", "radius_at")])
def test_interrupt_keeps_what_is_done(run, npz, csv, tmp_path, monkeypatch, command, verb):
    module = importlib.import_module("gpcert.api.many")
    original = getattr(module, verb)

    def interrupted(*arguments, **options):
        found = original(*arguments, **options)
        reason = {"reason": gpcert.StopReason.INTERRUPTED, "converged": False}
        if isinstance(found, tuple):
            return tuple(replace(item, **reason) for item in found)
        return replace(found, reason=reason["reason"])

    monkeypatch.setattr(module, verb, interrupted)
    monkeypatch.setattr(module, "ranges_batched", lambda model, work: {})  # searches of their own
    radius = ["--radius", 0.1, "--norm", 2] if command == "range" else []
    result = run(command, npz, csv("1.0,0.0\n-1.0,0.0\n"), *radius)
    assert result.exit_code == 2
    # one point: a row for each of two classes, or one radius
    assert ("2 ranges:" if command == "range" else "1 radii:") in result.stdout


def test_demo_quick_draws_and_writes(run, tmp_path):
    folder = tmp_path / "made" / "here"
    result = run("demo", "--quick", "--seconds", 0.2, "--output-dir", folder)
    assert result.exit_code == 0
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert str(folder / "demo.png") in result.stdout
    for name in ("synthetic2d.json", "digits.json"):
        table = gpcert.CertificateTable.load(folder / name)
        assert table.complete
        assert table.count(gpcert.Status.ROBUST) > 0
    assert len(gpcert.load(folder / "ranges.json")) == 20
    assert all(r.lower <= r.upper for r in gpcert.load(folder / "radii.json"))
    assert json.loads((folder / "radii.json").read_text())["gpcert"] == gpcert.__version__
    assert "proved range" in result.stdout


def test_demo_into_a_file_is_bad_input(run, tmp_path):
    (tmp_path / "file").write_text("")
    assert run("demo", "--quick", "--output-dir", tmp_path / "file").exit_code == 3


@pytest.mark.slow
def test_version_in_its_own_process():
    command = [sys.executable, "-m", "gpcert", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"gpcert {gpcert.__version__}"


@pytest.mark.slow
def test_usage_error_in_its_own_process():
    command = [sys.executable, "-m", "gpcert", "certify"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "MODEL" in done.stderr


@pytest.mark.parametrize("command", [[], ["demo"], ["certify"], ["range"], ["radius"]])
def test_help_has_examples(run, command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Examples" in result.stdout
    assert " ".join(["gpcert", *command]) in result.stdout


@pytest.mark.parametrize("value", [0.123456, 0.99999999, 1e-300, -2.5, 123456.7, 0.0, np.inf])
def test_printed_bounds_stay_bounds(value):
    assert float(below(value)) <= value <= float(above(value))
