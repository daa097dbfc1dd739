"""The same as markdown: figures and data are links to the files of the results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from gpcert.study.experiments.results import FILE, ExperimentResult, ResultFigure, ResultTable
from gpcert.study.report import wording

MARKDOWN_ROWS = 30
"""Rows of a table in the text; all are in its CSV file."""


def markdown_page(results: Mapping[Path, ExperimentResult], title: str, place: Path) -> str:
    """The text of a file in the folder `place`, from which links are taken."""
    parts = [f"# {title}", ""]
    if any(result.findings for result in results.values()):
        parts += ["## The paper's claims beside our numbers", ""]
        parts += [f"{wording.agreement_counts(results.values())}.", ""]
    for folder, result in results.items():
        parts += _claims(result, folder, place)
    for folder, result in results.items():
        parts += _experiment(result, folder, place)
    return "\n".join(parts).rstrip() + "\n"


def _claims(result: ExperimentResult, folder: Path, place: Path) -> list[str]:
    """The claims that one experiment judges, below its figures."""
    if not result.findings:
        return []
    rows = [
        [*row[:3], f"{wording.MARKS[row[3]]} {row[3]}", *row[4:]] for row in wording.claims(result)
    ]
    figures = [line for figure in result.figures for line in _figure(result, figure, folder, place)]
    counts = wording.agreement_counts([result])
    heads: list[str] = list(wording.CLAIM_HEADS)
    return [f"### {escaped(result.title)}", "", f"{counts}.", "", *figures, *_rows(heads, rows), ""]


def _experiment(result: ExperimentResult, folder: Path, place: Path) -> list[str]:
    lines = [
        f"## {escaped(result.title)}",
        "",
        f"Scale {result.scale}, {wording.time_taken(result.seconds)} of computing; made by "
        f"`{result.command}`.",
        "",
        *(f"- {escaped(note)}" for note in result.notes),
        "",
    ]
    for figure in () if result.findings else result.figures:  # else it stands beside the claims
        lines += _figure(result, figure, folder, place)
    for table in result.tables:
        lines += _table(table, folder, place)
    data = "; ".join(f"{name} `{digest[:12]}`" for name, digest in result.environment.data.items())
    lines += [
        escaped(wording.where_computed(result)) + (f"; data {data}" if data else "") + ".",
        "",
    ]
    return lines


def _figure(result: ExperimentResult, figure: ResultFigure, folder: Path, place: Path) -> list[str]:
    picture = _link(wording.figure_file(result, figure, folder), place)
    data = ", ".join(dict.fromkeys(_data(name, folder, place) for name in figure.tables))
    caption = escaped(figure.caption)
    return [
        f"![{caption}]({picture})",
        "",
        f"*{caption}* Made by `{result.command}`" + (f"; data: {data}." if data else "."),
        "",
    ]


def _table(table: ResultTable, folder: Path, place: Path) -> list[str]:
    rows = [list(map(wording.told_cell, table.columns, row)) for row in table.rows[:MARKDOWN_ROWS]]
    link = _data(table.name, folder, place)
    if len(table.rows) > MARKDOWN_ROWS:
        link = f"the first {MARKDOWN_ROWS} of {len(table.rows)} rows, all in {link}"
    caption = escaped(table.caption or table.name)
    return [f"**{caption}** ({link})", "", *_rows(list(table.columns), rows), ""]


def _data(table: str, folder: Path, place: Path) -> str:
    """The table's CSV file, or the file with all tables where that is not kept."""
    single = folder / f"{table}.csv"
    path = single if single.is_file() else folder / FILE
    return f"[{path.name}]({_link(path, place)})"


def _rows(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines]


def escaped(text: str) -> str:
    """Text that markdown leaves as it is, also within a table."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def _link(path: Path, place: Path) -> str:
    return quote(Path(os.path.relpath(path, place)).as_posix())
