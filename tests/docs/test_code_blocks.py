"""Every block of code in docs runs, page by page from top to bottom, and prints what the page says.

What a page takes for granted stands before a block as a comment, `<!-- setup ... -->`, in Python.
"""

import re
import shlex
import textwrap
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer.main

from gpcert.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/howto/*.md"))]
BLOCK = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->|^(?P<indent> *)```(?P<kind>\w+)\n(?P<code>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
LIBRARIES = (
    *("torch", "botorch", "gpytorch", "gpflow", "GPy", "gpjax", "tinygp", "distributed", "joblib"),
    *("shap", "lime", "skimage", "matplotlib", "pandas", "flint", "hypothesis"),
)
"""What a page may import and an installation may lack."""


@dataclass
class Block:
    """A block of a page: its kind, its text, the line where it begins."""

    kind: str
    text: str
    line: int


def blocks(text):
    """The blocks of a page, and its hidden settings."""
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        if match["setup"]:
            yield Block("setup", match["setup"], line)
        else:
            yield Block(match["kind"], textwrap.dedent(match["code"]), line)


def timeless(text):
    """Text without the seconds that something took, which differ from run to run."""
    return re.sub(r"[\d.e-]+ s\b", "... s", text).strip()


def named(page):
    return str(page.relative_to(ROOT))


def need_libraries(text):
    """Skip a page whose blocks import a library that is not here."""
    for name in re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE):
        if name in LIBRARIES:
            pytest.importorskip(name)
        if name == "dask":
            pytest.importorskip("distributed")
    for word, name in (
        (".plot(", "matplotlib"),
        (".to_frame(", "pandas"),
        ("to_shap", "shap"),
        ("gpcert.explorer", "panel"),
    ):
        if word in text:
            pytest.importorskip(name)


WITH_CODE = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_CODE, ids=named)
def test_python_runs_and_prints_what_the_page_says(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = list(blocks(page.read_text(encoding="utf-8")))
    need_libraries("\n".join(b.text for b in here if b.kind in {"python", "setup"}))
    names = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a training that stops early says so
        for block, after in zip(here, [*here[1:], None], strict=True):
            if block.kind not in {"python", "setup"}:
                continue
            capsys.readouterr()
            code = "\n" * (block.line - 1) + block.text
            exec(compile(code, named(page), "exec", dont_inherit=True), names)
            if block.kind == "python" and after is not None and after.kind == "text":
                assert timeless(capsys.readouterr().out) == timeless(after.text)
    if find_spec("matplotlib"):
        import matplotlib.pyplot as plt

        plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_are_understood(page):
    """The command knows every option that the page shows; nothing is computed."""
    commands = typer.main.get_command(app).commands
    for block in blocks(page.read_text(encoding="utf-8")):
        for line in block.text.splitlines() if block.kind == "bash" else ():
            words = shlex.split(line, comments=True)
            if words[:1] == ["gpcert"]:
                command = commands[words[1]]
                command.make_context(words[1], words[2:])
