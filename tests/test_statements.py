"""docs/mathematics.md and docstrings agree: every statement and every file that is cited exists."""

import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
MATHEMATICS = ROOT / "docs" / "mathematics.md"
PYTHON = sorted(
    path
    for folder in ("src", "tests", "tools", "benchmarks")
    for path in ROOT.glob(f"{folder}/**/*.py")
)
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

NUMBER = r"\d+\.\d+"
CITED = re.compile(rf"\b[Ss]tatements?\s+({NUMBER}(?:(?:,|\s+and|\s+to)\s+{NUMBER})*)")
HEADING = re.compile(rf"^### ({NUMBER}) \S.*$", re.MULTILINE)
OTHER_FILE = re.compile(
    r"[\w./-]*\w\.(?:md|tex)\b|\b(?:docs|tests|tools|benchmarks)/[\w./-]*\w\.py\b"
)
WRITTEN = re.compile(r"(RESULTS|R)\.md|generated/.*")
"""Files that commands, tests and `make docs` write."""
CODE_FILE = re.compile(r"`([\w/]+\.py)`")


def cited(text):
    """Numbers of the statements that a text refers to.

    >>> sorted(cited("see Statement 4.3, and statements 2.1, 2.2 and 3.4"))
    ['2.1', '2.2', '3.4', '4.3']
    """
    return {number for found in CITED.findall(text) for number in re.findall(NUMBER, found)}


def parts():
    """Number and text of every statement, in order."""
    pieces = HEADING.split(MATHEMATICS.read_text(encoding="utf-8"))
    return list(zip(pieces[1::2], pieces[2::2], strict=True))


def test_statements_are_numbered_in_order():
    numbers = [tuple(map(int, number.split("."))) for number, _ in parts()]
    for before, here in pairwise(numbers):
        # sections keep their numbers while others are being written
        assert here == (before[0], before[1] + 1) or (here[0] > before[0] and here[1] == 1)
    assert numbers[0] == (1, 1)


def test_statements_have_a_proof_and_a_place_in_the_code():
    for number, text in parts():
        missing = [part for part in ("*Statement.*", "*Proof.*", "∎", "*Code*") if part not in text]
        assert not missing, f"{number}: expected {missing}"
        assert CODE_FILE.search(text), f"{number}: expected the file that uses it"


def test_cited_statements_exist():
    known = {number for number, _ in parts()}
    missing = {
        str(path.relative_to(ROOT)): sorted(wrong)
        for path in [*PYTHON, *TEXTS]
        if path != Path(__file__) and (wrong := cited(path.read_text(encoding="utf-8")) - known)
    }
    assert not missing, f"no such statement in docs/mathematics.md: {missing}"


def test_files_named_beside_statements_exist():
    """A module that moves takes its name in the documents along."""
    missing = set()
    for name in ("mathematics.md", "soundness.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for file in CODE_FILE.findall(text):
            if not ((ROOT / "src" / "gpcert" / file).exists() or (ROOT / file).exists()):
                missing.add((name, file))
    assert not missing


def test_files_that_are_cited_are_in_the_repository():
    missing = set()
    for path in [*PYTHON, *TEXTS]:
        for name in OTHER_FILE.findall(path.read_text(encoding="utf-8")):
            places = [ROOT, ROOT / "docs", ROOT / "benchmarks", path.parent]
            if not WRITTEN.fullmatch(name) and not any((place / name).exists() for place in places):
                missing.add((str(path.relative_to(ROOT)), name))
    assert not missing
