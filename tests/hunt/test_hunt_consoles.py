"""The command on consoles and locales of every kind: the same answer, and the results are saved."""

import json
import os
import subprocess
import sys

import pytest

from tests.hunt.hunt_files import posterior

ENVIRONMENTS = {
    "Windows redirect": {"PYTHONIOENCODING": "cp1252"},
    "ASCII": {"PYTHONIOENCODING": "ascii"},
    "strict ASCII and the C locale": {"PYTHONIOENCODING": "ascii:strict", "LC_ALL": "C"},
    "C locale without UTF-8 mode": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "no home": {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"},
    "narrow": {"COLUMNS": "20"},
    "dumb terminal": {"TERM": "dumb", "NO_COLOR": "1"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("consoles")
    posterior().save(folder / "model.npz")
    (folder / "points.csv").write_text("0.0,0.5\n1.0,-1.0\n", encoding="utf-8")
    return folder


def command(folder, changes, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG"))}
    return subprocess.run(
        [sys.executable, "-m", "gpcert", *arguments],
        cwd=folder,
        env=environment | changes,
        capture_output=True,
        timeout=120,
        check=False,
    )


def check(folder, name, verb, *options):
    output = folder / f"{verb}.json"
    output.unlink(missing_ok=True)
    asked = (verb, "model.npz", "points.csv", *options, "--output", output.name)
    done = command(folder, ENVIRONMENTS[name], *asked)
    assert done.returncode in {0, 1, 2}, done.stderr.decode(errors="replace")[-1500:]
    assert b"Traceback" not in done.stderr
    assert json.loads(output.read_text(encoding="utf-8"))
    assert done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Windows redirect", "C locale without UTF-8 mode"])
def test_certify_prints_and_saves_on(name, files):
    check(files, name, "certify", "--radius", "0.1", "--seconds", "5")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("certify", ("--radius", "0.1", "--seconds", "5")),
        ("range", ("--radius", "0.1", "--seconds", "5")),
        ("radius", ("--seconds", "2")),
    ],
)
def test_every_command_prints_and_saves_on(name, verb, options, files):
    check(files, name, verb, *options)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
def test_errors_are_printed_on(name, files):
    (files / "bad.csv").write_text("1.5,é\n", encoding="utf-8")
    done = command(files, ENVIRONMENTS[name], "certify", "model.npz", "bad.csv", "--radius", "0.1")
    assert done.returncode == 3, done.stderr.decode(errors="replace")[-1500:]
    assert b"Traceback" not in done.stderr
    help_ = command(files, ENVIRONMENTS[name], "--help")
    assert help_.returncode == 0, help_.stderr.decode(errors="replace")[-1500:]
