"""`write_report`; the HTML page: everything in one file, which loads nothing, all text escaped."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from gpcert.errors import InputError
from gpcert.study.experiments.base import names as known_names
from gpcert.study.experiments.results import (
    Cell,
    ExperimentResult,
    ResultFigure,
    ResultTable,
    read_all,
    write_whole,
)
from gpcert.study.report import wording
from gpcert.study.report.markdown import markdown_page
from gpcert.utils.archive import to_json

FORMATS = {"html": "report.html", "markdown": "report.md"}
"""The formats, and the name of the file in the results' folder."""

REPORT_ROWS = 40
"""Rows of a table that a page shows; all are in its CSV file."""

LARGEST_CSV = 10_000
"""Bytes of a table that a page holds whole; larger ones stay in the results' folder."""

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
    html = format == "html"
    page = html_page(results, title) if html else markdown_page(results, title, path.parent)
    write_whole(path, page)
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
    return dict(sorted(results.items(), key=lambda each: rank.get(each[1].experiment, len(rank))))


POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
"""The browser itself refuses whatever would need a network."""


def html_page(results: Mapping[Path, ExperimentResult], title: str) -> str:
    """The page of results in their folders, in the order given."""
    contents = "".join(
        f'<li><a href="#{result.experiment}">{escape(result.title)}</a></li>'
        for result in results.values()
    )
    sections = "".join(experiment_html(result, folder) for folder, result in results.items())
    taken = wording.time_taken(sum(result.seconds for result in results.values()))
    compared = (
        f"<h2 id='claims'>The paper's claims beside our numbers</h2>"
        f"<p>{wording.agreement_counts(results.values())}.</p>"
        + "".join(claims_html(result, folder) for folder, result in results.items())
        if any(result.findings for result in results.values())
        else ""
    )
    paths = [files("gpcert.study.report") / name for name in ("page.css", "page.js")]
    css, script = (path.read_text(encoding="utf-8") for path in paths)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{css}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>{len(results)} experiments, {taken} of computing. Every figure names the command
that made it and links the numbers it shows; tables sort by a click on a heading, and exact
values appear under the pointer.</p>
<nav aria-label="contents"><ol>{contents}</ol></nav>
</header>
<main>
{compared}
{sections}</main>
<script>
{script}</script>
</body>
</html>
"""


def claims_html(result: ExperimentResult, folder: Path) -> str:
    """The claims that one experiment judges, folded, with its figures beside them; on a narrow
    screen each row becomes a card."""
    if not result.findings:
        return ""
    kinds = ["text" if name == "agrees" else "prose" for name in wording.CLAIM_HEADS]
    cells = [
        [
            f'<td data-head="{name}" data-value="{escape(text)}">{_told_claim(name, text)}</td>'
            for name, text in zip(wording.CLAIM_HEADS, row, strict=True)
        ]
        for row in wording.claims(result)
    ]
    figures = "".join(figure_html(result, figure, folder) for figure in result.figures)
    name = result.experiment
    return f"""<details class="fold" id="claims-{name}">
<summary>{escape(result.title)}: {wording.agreement_counts([result])}
(<a href="#{name}">settings and tables</a>)</summary>
<div class="beside"><div>{figures}</div>
<section class="table" id="claims-table-{name}"><div class="tools"></div>
{_table("claims", wording.CLAIM_HEADS, kinds, cells)}</section></div>
</details>
"""


def _told_claim(name: str, text: str) -> str:
    if name != "agrees":
        return escape(text)
    return f'<span class="badge {text.replace(" ", "-")}">{wording.MARKS[text]} {text}</span>'


def _table(
    look: str, heads: Sequence[str], kinds: Sequence[str], cells: Sequence[Sequence[str]]
) -> str:
    """A table for the page's script: its headings say of what kind their columns are."""
    pairs = zip(heads, kinds, strict=True)
    head = "".join(f'<th scope="col" data-kind="{k}">{escape(name)}</th>' for name, k in pairs)
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    return f'<table class="{look}"><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>'


def experiment_html(result: ExperimentResult, folder: Path) -> str:
    """One experiment: what was asked, its figures, tables and settings."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
    every = [] if result.findings else result.figures  # those of claims stand beside them
    figures = "".join(figure_html(result, figure, folder) for figure in every)
    tables = "".join(table_html(result, table) for table in result.tables)
    data = "".join(
        f"<li>{escape(wording.told_cell('data', name))}: <code>{escape(digest)}</code></li>"
        for name, digest in result.environment.data.items()
    )
    settings = escape(to_json(dict(result.settings), indent=1))
    return f"""<section class="experiment" id="{result.experiment}">
<h2>{escape(result.title)}</h2>
<p class="facts"><span class="badge">{result.scale}</span>
{wording.time_taken(result.seconds)} of computing; made by <code>{escape(result.command)}</code></p>
{f"<ul>{notes}</ul>" if notes else ""}
{figures}
{tables}
<details><summary>Settings, versions and data</summary>
<p>{escape(wording.where_computed(result))}</p>
{f"<p>SHA-256 of the data:</p><ul>{data}</ul>" if data else ""}
<pre>{settings}</pre></details>
</section>
"""


def figure_html(result: ExperimentResult, figure: ResultFigure, folder: Path) -> str:
    """A picture with its caption, the command that made it and its data."""
    path = wording.figure_file(result, figure, folder)
    # a picture by address cannot run scripts, and its names cannot clash with another picture's
    address = f"data:{wording.TYPES[path.suffix]};base64,{_encoded(path.read_bytes())}"
    caption = escape(figure.caption)
    links = ", ".join(_download(result, result.table(name)) for name in figure.tables)
    return f"""<figure id="{result.experiment}-{figure.name}">
<div class="scroll" tabindex="0"><img src="{address}" alt="{caption}"></div>
<figcaption>{caption} <span class="source">Made by <code>{escape(result.command)}</code>{
        f"; data: {links}" if links else ""
    }</span></figcaption>
</figure>
"""


def table_html(result: ExperimentResult, table: ResultTable) -> str:
    """A table that can be sorted, filtered and drawn by the page's script."""
    kinds = [_kind(table.column(name)) for name in table.columns]
    cells = [list(map(_cell, table.columns, row, kinds)) for row in table.rows[:REPORT_ROWS]]
    hidden = len(table.rows) - REPORT_ROWS
    more = f"The first {REPORT_ROWS} of {len(table.rows)} rows; all: " if hidden > 0 else "Data: "
    return f"""<details class="table" id="{result.experiment}-table-{table.name}"{
        " open" if len(table.rows) <= 12 else ""
    }>
<summary>{escape(table.caption or table.name)} <span class="count">{len(table.rows)} rows</span>
</summary>
<div class="tools"></div>
<div class="scroll" tabindex="0">{_table("data", table.columns, kinds, cells)}</div>
<p class="source">{more}{_download(result, table)}</p>
</details>
"""


def _kind(values: Sequence[Cell]) -> str:
    known = [value for value in values if value is not None]
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in known]
    return "number" if known and all(numbers) else "text"


def _cell(column: str, value: Cell, kind: str) -> str:
    """The exact value travels beside the rounded one, for sorting, drawing and hovering."""
    text = wording.told_cell(column, value)
    exact = "" if value is None else escape(str(value) if kind == "number" else text)
    hover = f' title="{exact}"' if isinstance(value, float) and text != exact else ""
    return f'<td class="{kind}" data-value="{exact}"{hover}>{escape(text)}</td>'


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _download(result: ExperimentResult, table: ResultTable) -> str:
    """A link that holds the table; of a large one the name of its file."""
    text = table.to_csv().encode("utf-8")
    if len(text) > LARGEST_CSV:
        return f"<code>{result.experiment}/{table.name}.csv</code> in the folder of the results"
    content = _encoded(text)
    return (
        f'<a download="{result.experiment}-{table.name}.csv" '
        f'href="data:text/csv;charset=utf-8;base64,{content}">{table.name}.csv</a>'
    )
