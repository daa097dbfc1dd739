"""`write_report`: read results, write the page."""

from __future__ import annotations

from pathlib import Path

from gpcert.errors import InputError
from gpcert.experiments.base import names as known_names
from gpcert.experiments.results import ExperimentResult, read_all, write_whole
from gpcert.report.markdown import markdown_page
from gpcert.report.page import html_page

FORMATS = {"html": "report.html", "markdown": "report.md"}
"""The formats, and the name of the file in the results' folder."""

TITLE = "Adversarial robustness guarantees for Gaussian processes: the experiments"


def write_report(
    folder: str | Path,
    *,
    format: str = "html",
    output: str | Path | None = None,
    title: str = TITLE,
) -> Path:
    """Write the results in a folder (and in those just below it) as one page; returns its path.

    Parameters
    ----------
    folder : where `gpcert reproduce NAME --output DIR` wrote.
    format : "html": one file that needs no other and no network, in light and dark, for screens,
        phones and paper. "markdown": links to the figures and CSV files of the results.
    output : the file to write; by default `report.html` or `report.md` in the folder.
    title : the heading.

    Nothing is computed: tables, findings and pictures are those of the results.
    """
    if format not in FORMATS:
        raise InputError(f"format: expected one of {list(FORMATS)}, got {format!r}")
    results = _in_order(read_all(folder))
    path = Path(folder) / FORMATS[format] if output is None else Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = (
        html_page(results, title)
        if format == "html"
        else markdown_page(results, title, path.parent)
    )
    write_whole(path, text)
    return path


def _in_order(results: dict[Path, ExperimentResult]) -> dict[Path, ExperimentResult]:
    """One result per experiment, as names are the page's addresses; in the paper's order."""
    names = [result.experiment for result in results.values()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"expected one result per experiment, got several of {twice}; report on one folder of "
            "`gpcert reproduce --output` at a time"
        )
    rank = {name: place for place, name in enumerate(known_names())}
    found = sorted(results.items(), key=lambda item: rank.get(item[1].experiment, len(rank)))
    return dict(found)
