"""Consoles of any encoding: results are saved first, and shown as well as can be."""

import codecs
import io
import os
import subprocess
import sys

import pytest

import gpcert
import gpcert.cli.terminal as streams
from gpcert.cli.app import main
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.testing.effort import crossed

LABELS = ("café ≥ 1", "\u65e5\u672c…")


@pytest.fixture
def files(tmp_path, csv):
    """A model with labels that few consoles can show, points, and a place for results."""
    model = gpcert.Posterior(
        SquaredExponential(1.0), [[-1.0], [1.0]], [-1.0, 1.0], likelihood=Probit(), classes=LABELS
    )
    model.save(tmp_path / "model.npz")
    return tmp_path / "model.npz", csv("id,x\n\u03b1\u2260,-1.0\n"), tmp_path / "results.json"


TWICE = """
import os, runpy, sys
model, points, output = sys.argv[1:]
certify = ["gpcert", "certify", model, points, "--radius", "0.3", "--output", output]
radius = ["gpcert", "radius", model, points, "--rtol", "0.2", "--output", output + ".2"]
try:
    sys.argv = certify
    runpy.run_module("gpcert", run_name="__main__")
except SystemExit as ended:
    assert not ended.code, ended.code
reader, writer = os.pipe()
os.close(reader)
os.dup2(writer, 1)  # what reads standard output goes away
sys.argv = radius
runpy.run_module("gpcert", run_name="__main__")
"""


def check_answer(shown, output):
    """The console could show what it was told, and the file has it whole."""
    assert "1 ROBUST" in shown
    assert "café" in shown
    assert ">= 1" in shown
    table = gpcert.load(output)
    assert table.labels == ("\u03b1\u2260",)
    assert table[0].decision == LABELS[0]


def test_two_commands_in_a_process(files):
    """Both of the next, with one start of an interpreter."""
    command = [sys.executable, "-c", TWICE, *map(str, files)]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.stderr == b""
    assert done.returncode in {0, 141}
    *_, output = files
    check_answer(done.stdout.decode("cp1252"), output)
    assert len(gpcert.load(f"{output}.2")) == 1


@pytest.mark.slow
def test_in_its_own_process(files):
    encoding = "cp1252"
    model, points, output = files
    command = [sys.executable, "-m", "gpcert", "certify", model, points, "--radius", "0.3"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    done = subprocess.run(
        [*map(str, command), "--output", str(output)],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    check_answer(done.stdout.decode(encoding), output)


@crossed(
    {
        "encoding": ["cp1252", "ascii", "cp437", "latin-1", "utf-8"],
        "verb": ["certify", "range", "radius", "--help", "wrong"],
    }
)
def test_every_command_on_every_console(files, monkeypatch, encoding, verb):
    model, points, output = files
    consoles = {name: io.TextIOWrapper(io.BytesIO(), encoding) for name in ("stdout", "stderr")}
    options = ["--radius", "0.1"] if verb in {"certify", "range"} else []
    known = [verb, str(model), str(points), *options, "--output", str(output), "--seconds", "5"]
    monkeypatch.setattr(sys, "argv", ["gpcert", *(known if verb != "--help" else [verb])])
    for name, console in consoles.items():
        monkeypatch.setattr(sys, name, console)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == (3 if verb == "wrong" else 0)
    shown = {name: console.buffer.getvalue().decode(encoding) for name, console in consoles.items()}
    assert "Traceback" not in shown["stderr"]
    if options:
        assert output.is_file()


def test_what_cannot_be_encoded_is_spelled():
    streams.prepare_streams()
    assert "a ≥ b … é ✓".encode("ascii", streams.HANDLER) == b"a >= b ... e ?"
    assert "\udcff".encode("utf-8", streams.HANDLER) == b"?"
    with pytest.raises(UnicodeDecodeError):
        codecs.decode(b"\xff", "ascii", streams.HANDLER)


def test_results_are_saved_before_anything_is_shown(run, files, monkeypatch):
    model, points, output = files

    def fail(*arguments, **options):
        raise UnicodeEncodeError("ascii", "é", 0, 1, "no such console")

    monkeypatch.setattr("gpcert.cli.results.Files.show", fail)
    for verb in ("certify", "range", "radius"):
        radius = ["--rtol", 0.2] if verb == "radius" else ["--radius", 0.1]
        assert run(verb, model, points, *radius, "--output", output).exit_code == 4
        assert set(gpcert.load(output).labels) == {"\u03b1\u2260"}
        output.unlink()


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_verdict(files):
    model, points, output = files
    command = f"{sys.executable} -m gpcert radius {model} {points} --output {output} | true; "
    done = subprocess.run(
        ["bash", "-c", command + 'exit "${PIPESTATUS[0]}"'], capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in {0, 141}
    assert len(gpcert.load(output)) == 1
