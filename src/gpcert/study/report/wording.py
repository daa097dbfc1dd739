"""What every format shares: numbers, times and counts in words, and which picture file is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from gpcert.errors import InputError
from gpcert.study.experiments.base import SOURCES, labelled
from gpcert.study.experiments.results import (
    NOT_JUDGED,
    Cell,
    ExperimentResult,
    Finding,
    ResultFigure,
)

MARKS = {"yes": "✓", "no": "✗", "unclear": "?", NOT_JUDGED: "–"}
"""Agreement is told by a mark and a word; the colour only repeats it."""


def shown(value: Cell) -> str:
    """A cell to read: four digits, yes or no, nothing for None.

    >>> [shown(v) for v in (0.123456, 7, True, None, float("inf"), "text", 1234567.0)]
    ['0.1235', '7', 'yes', '', 'inf', 'text', '1.235e+06']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def told_cell(column: str, value: Cell) -> str:
    """A cell to read, data sets by their names.

    >>> told_cell("data", "mnist38"), told_cell("points", 3)
    ('MNIST38', '3')
    """
    known = column == "data" and isinstance(value, str) and value in SOURCES
    return labelled(str(value)) if known else shown(value)


def time_taken(seconds: float) -> str:
    """A duration to read.

    >>> time_taken(0.31), time_taken(75.0), time_taken(7300.0)
    ('0.3 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


CLAIM_HEADS = ("claim", "paper", "ours", "agrees", "why it does not", "how it was judged")
BEYOND = "beyond the paper"


def claims(result: ExperimentResult) -> list[tuple[str, ...]]:
    """The paper's claims beside our numbers, one row each, below `CLAIM_HEADS`; what is beyond the
    paper comes last."""
    ordered = sorted(result.findings, key=lambda each: each.beyond)
    return [
        (each.claim, _paper(each), each.ours, each.agrees, each.why, each.comment)
        for each in ordered
    ]


def _paper(finding: Finding) -> str:
    """What the paper says; of what it does not claim, that it does not."""
    if not finding.beyond or finding.paper in ("", "-"):
        return BEYOND if finding.beyond else finding.paper
    return f"{finding.paper} ({BEYOND})"


def agreement_counts(results: Iterable[ExperimentResult]) -> str:
    """How many claims of the paper agree, over all results, and how many beyond it hold."""
    findings = [finding for result in results for finding in result.findings]
    of_paper, beyond = (
        Counter(each.agrees for each in findings if each.beyond is wanted)
        for wanted in (False, True)
    )
    verdicts = {"yes": "agree", "no": "do not agree", "unclear": "are unclear"}
    verdicts |= {NOT_JUDGED: "are not judged"} if of_paper[NOT_JUDGED] else {}
    parts = ", ".join(f"{of_paper[key]} {said}" for key, said in verdicts.items())
    told = f"Claims of the paper: {parts}" if of_paper else ""
    if beyond:
        more = ", ".join(f"{count} {key}" for key, count in sorted(beyond.items(), reverse=True))
        told += f"{'; b' if told else 'B'}eyond the paper: {more}"
    return told


def where_computed(result: ExperimentResult) -> str:
    """Versions and machine in one line."""
    env = result.environment
    return (
        f"gpcert {env.gpcert}, Python {env.python}, NumPy {env.numpy}, SciPy {env.scipy}, "
        f"scikit-learn {env.sklearn}; {env.machine}, {env.cpu}, {env.cores} cores; "
        f"seed {env.random_state}; {env.date}"
    )


LARGEST_SVG = 120_000
"""Bytes; a drawing of more lines than that is shown as pixels."""

TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


def figure_file(result: ExperimentResult, figure: ResultFigure, folder: Path) -> Path:
    """NAME.svg, or NAME.png where the drawing is larger than that."""
    every = [folder / f"{figure.name}{ending}" for ending in TYPES]
    paths = [path for path in every if path.is_file()]
    if not paths:
        raise InputError(
            f"{folder}: expected {figure.name}.svg or {figure.name}.png, got neither; draw it "
            f"again: gpcert reproduce {result.experiment} --redraw"
        )
    return paths[-1] if paths[0].stat().st_size > LARGEST_SVG else paths[0]
