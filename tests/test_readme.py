"""README.md runs, from top to bottom, as a reader would run it, and prints what it says; so do the
pages that say more."""

import re
import shlex
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpcert.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
LARGE = {"botorch", "torch"}
"""Libraries that a plain install is without: their blocks run where they are there."""


def timeless(text):
    """Text without the seconds that something took, which differ from run to run."""
    return re.sub(r"[\d.e-]+ s,", "... s,", text).strip()


def runs(code):
    """Whether the libraries that the code imports are there."""
    wanted = set(re.findall(r"^(?:from|import) (\w+)", code, flags=re.MULTILINE))
    return all(find_spec(name) is not None for name in wanted & LARGE)


def commands(block):
    """The lines of a block for a shell that call gpcert."""
    return [line for line in block.splitlines() if line.startswith("gpcert ")]


def test_its_python_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, checked = {"__name__": "readme"}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a training that stops early says so
        for (kind, block), (after, expected) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
            if kind != "python" or not runs(block):
                continue
            capsys.readouterr()
            exec(block, names)
            printed = capsys.readouterr().out
            if after == "text":
                assert timeless(printed) == timeless(expected)
                checked += 1
    assert checked == 3
    assert names["cert"].robust
    assert 0 < names["rad"].lower <= names["rad"].upper
    assert names["rng"].minimum.lower <= names["rng"].minimum.upper
    assert len(names["model"].classes_) == 3  # of the last block
    # what the command line is said to start from
    names["gpcert"].as_posterior(names["pipe"]).save("model.npz")
    names["data"][:20].to_csv("points.csv")
    lines = [line for kind, block in BLOCKS if kind == "bash" for line in commands(block)]
    assert len(lines) == 2
    codes = [CliRunner().invoke(app, shlex.split(line)[1:]).exit_code for line in lines]
    assert codes == [1, 0]  # some refuted; all radii found
    assert names["gpcert"].load("verdicts.json").summary == names["table"].summary


def test_the_first_lines_are_five():
    first = next(block for kind, block in BLOCKS if kind == "python")
    assert len([line for line in first.splitlines() if line.strip()]) == 5


def test_both_commands_of_a_clone_are_there():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    shown = re.findall(r"^make ([a-z-]+)", README, flags=re.MULTILINE)
    assert shown == ["demo", "test"]
    assert set(shown) <= set(targets)


@pytest.mark.parametrize("page", ["README.md", "docs/options.md", "docs/figures.md"])
def test_its_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), target
