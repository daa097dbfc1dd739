"""Running an experiment: resuming, parts that must not be used, figures from saved tables."""

import contextlib
import dataclasses
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpcert.errors import InputError
from gpcert.study.experiments import (
    ExperimentResult,
    experiment_named,
    names,
    redraw,
    reproduce,
    run,
)
from gpcert.study.experiments.base import SOURCES, Piece, Sources
from gpcert.utils import processes


def test_a_run_writes_tables_figures_findings_and_where_they_come_from(toy, tmp_path):
    result = reproduce("toy", output=tmp_path)
    assert result.table("squares").column("square") == (0, 1, 4, 9)
    assert result.environment.data == {"digits38": Sources().digest("digits38")}
    assert result.command == "gpcert reproduce toy --quick"
    assert result.findings[0].ours == "14"
    files = {path.name for path in (tmp_path / "toy").iterdir()}
    assert files == {"result.json", "squares.csv", "curve.svg", "curve.png", "parts"}
    assert ExperimentResult.read(tmp_path / "toy").tables == result.tables


def interrupt():
    raise KeyboardInterrupt


def interrupt_a_search():
    with contextlib.suppress(KeyboardInterrupt):  # it returns the bounds it has
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job may have none
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("happens", [interrupt, interrupt_a_search])
def test_an_interrupted_run_goes_on_where_it_was(toy, ctrl_c, tmp_path, happens):
    toy.FAILS[2] = happens
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", output=tmp_path)
    assert toy.COMPUTED == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    toy.FAILS.clear()
    toy.COMPUTED.clear()
    result = reproduce("toy", output=tmp_path)
    assert toy.COMPUTED == [2, 3]
    assert result.table("squares").column("k") == (0, 1, 2, 3)  # in the pieces' order


KILLED = """
import os, signal, sys, time
from tests.study.experiments import toy_experiment as toy
from gpcert.study.experiments import base, reproduce
base.NAMES += ("toy",)
sys.modules["gpcert.study.experiments.toy"] = toy
toy.FAILS[1] = lambda: time.sleep(1.0)  # a terminal is written to some times a second
toy.FAILS[2] = lambda: os.kill(os.getpid(), signal.SIGKILL)
reproduce("toy", output=sys.argv[1])
"""


def test_a_run_goes_on_from_what_was_there_at_any_time(toy, tmp_path):
    # what a killed run leaves: nothing can be written after the copy
    toy.FAILS[2] = lambda: shutil.copytree(tmp_path / "run", tmp_path / "killed")
    reproduce("toy", output=tmp_path / "run")
    toy.FAILS.clear()
    toy.COMPUTED.clear()
    result = reproduce("toy", output=tmp_path / "killed")
    assert toy.COMPUTED == [2, 3]
    assert result.table("squares").column("k") == (0, 1, 2, 3)


def test_a_terminal_shows_the_time_left(toy, tmp_path, monkeypatch):
    ours, theirs = pty.openpty()
    toy.FAILS[1] = lambda: time.sleep(1.0)  # a terminal is written to some times a second
    monkeypatch.setenv("COLUMNS", "120")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        reproduce("toy", output=tmp_path)
        terminal.flush()
        shown = os.read(ours, 2**16).decode()
    os.close(ours)
    assert "toy" in shown
    assert "of 4 pieces" in shown
    assert "left" in shown


@pytest.mark.slow  # the two tests above, in a process of its own
def test_a_killed_run_goes_on_where_it_was_and_a_terminal_shows_the_time_left(toy, tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    wide = {**os.environ, "COLUMNS": "120"}
    root = Path(__file__).parents[3]  # where the module `tests` is found
    killed = subprocess.run(command, check=False, stderr=theirs, env=wide, cwd=root)
    os.close(theirs)
    shown = os.read(ours, 2**16).decode()
    os.close(ours)
    assert killed.returncode == -signal.SIGKILL
    assert "toy" in shown
    assert "of 4 pieces" in shown
    assert "left" in shown
    result = reproduce("toy", output=tmp_path)
    assert toy.COMPUTED == [2, 3]
    assert result.table("squares").column("k") == (0, 1, 2, 3)


def test_parts_of_other_settings_data_or_code_are_not_used(toy, tmp_path, monkeypatch):
    reproduce("toy", output=tmp_path)
    toy.COMPUTED.clear()
    reproduce("toy", output=tmp_path)
    assert toy.COMPUTED == []
    reproduce("toy", scale="smallest", output=tmp_path)
    assert toy.COMPUTED == [0, 1]
    reproduce("toy", output=tmp_path)  # both scales share the folder
    assert toy.COMPUTED == [0, 1]
    monkeypatch.setattr(Sources, "digest", lambda self, name: "other data")
    reproduce("toy", output=tmp_path)
    assert toy.COMPUTED == [0, 1, 0, 1, 2, 3]
    toy.COMPUTED.clear()
    monkeypatch.setattr(run, "code_digest", lambda: "other code")
    reproduce("toy", output=tmp_path)
    assert toy.COMPUTED == [0, 1, 2, 3]
    toy.COMPUTED.clear()
    monkeypatch.setattr(run, "package_version", lambda: "9.9")
    reproduce("toy", output=tmp_path)
    assert toy.COMPUTED == [0, 1, 2, 3]


def test_a_part_that_is_damaged_or_of_another_key_is_computed_again(toy, tmp_path):
    reproduce("toy", output=tmp_path)
    files = sorted((tmp_path / "toy" / "parts").iterdir())
    whole = files[0].read_text()
    for damaged in ("", whole[:-5], "[]", '{"format": 1}', whole.replace("part-1", "part-0")):
        files[0].write_text(damaged)
        toy.COMPUTED.clear()
        reproduce("toy", output=tmp_path)
        assert toy.COMPUTED == [0]
    record = json.loads(whole)
    files[0].write_text(json.dumps({**record, "key": "0" * 64}))
    toy.COMPUTED.clear()
    reproduce("toy", output=tmp_path)
    assert toy.COMPUTED == [0]


def test_the_key_depends_on_all_that_the_rows_depend_on():
    settings = experiment_named("safety").settings_of("smallest")
    piece = Piece("a", {"k": 1}, ("d",))
    keys = {
        run.piece_key("safety", settings, piece, {"d": "1"}),
        run.piece_key("sparse", settings, piece, {"d": "1"}),
        run.piece_key("safety", dataclasses.replace(settings, tol=0.5), piece, {"d": "1"}),
        run.piece_key("safety", settings, Piece("a", {"k": 2}, ("d",)), {"d": "1"}),
        run.piece_key("safety", settings, Piece("b", {"k": 1}, ("d",)), {"d": "1"}),
        run.piece_key("safety", settings, piece, {"d": "2"}),
    }
    assert len(keys) == 6
    other = run.piece_key("safety", settings, piece, {"d": "1", "unused": "3"})
    assert other in keys


def test_figures_and_findings_come_from_saved_tables_without_computing(toy, tmp_path):
    with pytest.raises(InputError, match="run the experiment first"):
        redraw("toy", tmp_path)
    first = reproduce("toy", output=tmp_path)
    picture = (tmp_path / "toy" / "curve.svg").read_bytes()
    for name in ("curve.svg", "curve.png"):
        (tmp_path / "toy" / name).unlink()
    toy.COMPUTED.clear()
    again = redraw("toy", tmp_path)
    assert toy.COMPUTED == []
    assert again.findings == first.findings
    assert (tmp_path / "toy" / "curve.svg").read_bytes() == picture


def test_a_quick_run_asks_for_no_file_and_no_download():
    offline = {name for name, source in SOURCES.items() if source.offline}
    for name in names():
        for scale in ("smallest", "quick"):
            used = {each for piece in experiment_named(name).work(scale) for each in piece.data}
            assert used <= offline, name


def test_wrong_names_and_scales_are_refused(toy, tmp_path):
    with pytest.raises(InputError, match="safety"):
        reproduce("nothing", output=tmp_path)
    with pytest.raises(InputError, match="quick"):
        reproduce("toy", scale="huge", output=tmp_path)
    with pytest.raises(InputError, match="synthetic2d"):
        Sources().load("nothing")


def test_the_bar_shows_pieces_and_time_left(toy, tmp_path, capsys):
    reproduce("toy", output=tmp_path, progress=True)
    assert "4 of 4 pieces" in capsys.readouterr().err
    reproduce("toy", scale="smallest", output=tmp_path)
    assert capsys.readouterr() == ("", "")


def test_pieces_may_run_in_a_thread_of_another_process():
    # as workers of a Dask cluster do; signals can be set in main threads only
    elsewhere = os.getpid() + 1
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(processes._piece, elsewhere, 3, max, processes.Common((2,)), (-2,))
        assert found.result() == (3, 2)
