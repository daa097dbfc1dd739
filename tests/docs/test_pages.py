"""What is generated for the site: no name, command, statement or formula is left out."""

import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import gpcert

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    """The modules that docs/conf.py imports."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    yield
    for name in [path.stem for path in (DOCS / "_ext").glob("*.py")]:
        sys.modules.pop(name, None)


def load(name):
    return importlib.import_module(name)


def test_every_public_name_has_a_place_in_the_reference(tmp_path):
    pages = load("api_pages")
    pages.write(tmp_path)
    text = "".join(page.read_text(encoding="utf-8") for page in tmp_path.glob("*.rst"))
    for name in set(gpcert.__all__) - {"__version__"}:
        assert re.search(rf":: gpcert\.{name}$", text, re.MULTILINE), name
    shown = {id(getattr(gpcert, name)) for name in gpcert.__all__}
    for name, module in inspect.getmembers(gpcert, inspect.ismodule):
        for each in getattr(module, "__all__", ()):
            here = re.search(rf":: gpcert\.{name}\.{each}$", text, re.MULTILINE)
            assert here or id(getattr(module, each)) in shown, f"{name}.{each}"


@pytest.mark.parametrize("name", [path.stem for path in (DOCS / "_ext").glob("*.py")])
def test_examples_of_the_extensions_run(name):
    if name == "mathml":
        pytest.importorskip("latex2mathml")
    assert doctest.testmod(load(name)).failed == 0


def test_every_command_is_shown_with_its_options():
    text = load("command_pages").text()
    for command in ("certify", "radius", "range", "boxes", "explain", "verify", "reproduce"):
        assert f"\n## gpcert {command}\n" in text
    assert "| `--radius` |" in text
    assert "| `--budget`" in text or "| `--seconds`" in text


def test_chapters_hold_every_statement(tmp_path):
    pages = load("source_pages").Pages(ROOT, tmp_path / "docs" / "generated")
    pages.docs = tmp_path / "docs"
    pages._write_chapters(DOCS / "mathematics.md")
    chapters = sorted((tmp_path / "docs" / "generated" / "mathematics").glob("[0-9]*.md"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in chapters)
    statement = re.compile(r"^#+ (\d+\.\d+) ", re.MULTILINE)
    whole = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    assert statement.findall(text) == statement.findall(whole)
    assert text.count("∎") == whole.count("∎")
    assert "(statement-4-3)=\n## 4.3 " in text


def test_links_lead_to_pages():
    pages = load("source_pages").Pages(ROOT, DOCS / "generated")
    pages.write()
    content = [
        "See [it](mathematics.md#5-quadratic-models), `Statement 5.1`, statements 5.1 and 5.2."
    ]
    pages.read(None, "options", content)
    link, statements = content[0].split(", ", 1)
    assert link.removesuffix(".md)") == "See [it](/generated/mathematics/05-quadratic-models"
    assert statements == (
        "`Statement 5.1`, statements [5.1](#statement-5-1) and [5.2](#statement-5-2)."
    )


def test_every_formula_becomes_mathml():
    pytest.importorskip("latex2mathml")
    mathml = load("mathml")
    seen = 0
    for page in DOCS.glob("*.md"):
        for formula in FORMULA.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
            assert mathml.mathml(formula[0] or formula[1], "inline").startswith("<math")
            seen += 1
    assert seen > 3000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`a * b` is |a| times weights_", r"``a * b`` is \|a\| times weights\_"),
        ("see Statement 4.3", "see Statement :ref:`4.3 <statement-4-3>`"),
        ("`Box`es", "``Box``\\ es"),
    ],
)
def test_docstrings_become_restructured_text(text, expected):
    assert load("docstrings").converted([text]) == ["", expected, ""]


def test_parameters_become_definitions():
    lines = ["Parameters", "----------", "x, y : the point", "    goes on.", "z : another"]
    assert [line for line in load("docstrings").converted(lines) if line] == [
        ".. rubric:: Parameters",
        "**x, y**",
        "    the point",
        "    goes on.",
        "**z**",
        "    another",
    ]
