"""What an experiment is: settings, pieces of work, and what is made of their rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpcert.errors import InputError
from gpcert.experiments.results import (
    SCALES,
    Cell,
    ExperimentResult,
    Finding,
    ResultFigure,
    ResultTable,
    check_name,
)
from gpcert.experiments.sources import Sources
from gpcert.extras import Figure

Row = Mapping[str, Cell]
Rows = dict[str, list[Row]]
"""Rows by the name of the table that they are for; what a piece computes."""

Tables = Mapping[str, ResultTable]
"""The finished tables by name: all that findings and figures are made from."""


@dataclass(frozen=True)
class Piece:
    """A unit of work whose rows are saved when it is finished: one model, one set of points.

    `arguments` are plain JSON values, `data` the names of the data sets that it reads (see
    `Sources`), `cost` its expected share of the time, for the progress bar.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    cost: float = 1.0

    def __post_init__(self) -> None:
        check_name("piece", self.name)


def one_per_case(settings: Any) -> list[Piece]:
    """A piece for each of `settings.cases`, named after its data set."""
    return [Piece(case.data, {"case": k}, (case.data,)) for k, case in enumerate(settings.cases)]


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment: a module `gpcert.experiments.NAME` holds it as `EXPERIMENT`.

    Parameters
    ----------
    name, title : as in `gpcert reproduce NAME`, and a line about it.
    settings : a frozen dataclass of plain values for each of the scales "smallest" (tests), "quick"
        (no download, a minute) and "full" (the paper's).
    compute : `(settings, arguments of a piece, sources) -> rows by table`; a function of a module,
        as it may run in another process. Numbers depend on nothing but its arguments.
    captions : the tables in their order; a setting is named in braces.
    figures : the figures, and what draws them from the tables.
    pieces : `settings -> pieces`; what is computed, taken apart.
    summary : `tables of the computed rows -> rows by table`, those that follow from these; a table
        of the same name is replaced.
    findings : `tables -> findings`; the claims of the paper beside our numbers.
    notes : what a reader should know about the settings and where they differ from the paper's.
    random_state : the seed that the settings hold, written beside the numbers.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    compute: Callable[[Any, Mapping[str, Any], Sources], Rows]
    captions: Mapping[str, str]
    figures: Mapping[ResultFigure, Callable[[Tables], Figure]]
    pieces: Callable[[Any], Sequence[Piece]] = one_per_case
    summary: Callable[[Tables], Rows] = lambda tables: {}
    findings: Callable[[Tables], Sequence[Finding]] = lambda tables: ()
    notes: tuple[str, ...] = ()
    random_state: int = 0

    def __post_init__(self) -> None:
        check_name("experiment", self.name)
        if set(self.settings) != set(SCALES):
            raise InputError(
                f"{self.name}: expected settings for {list(SCALES)}, got {list(self.settings)}"
            )

    def settings_of(self, scale: str) -> Any:
        """The settings of one scale."""
        if scale not in self.settings:
            raise InputError(f"scale: expected one of {list(SCALES)}, got {scale!r}")
        return self.settings[scale]

    def work(self, scale: str) -> list[Piece]:
        """The pieces of one scale, whose names differ."""
        found = list(self.pieces(self.settings_of(scale)))
        names = [piece.name for piece in found]
        if len(set(names)) != len(names):
            raise InputError(f"{self.name}: expected pieces with different names, got {names}")
        return found

    def tables(self, scale: str, rows: Rows) -> tuple[ResultTable, ...]:
        """All tables, from the rows of all pieces."""
        words = vars(self.settings_of(scale))
        titles = {name: text.format(**words) for name, text in self.captions.items()}

        def made(rows: Rows) -> dict[str, ResultTable]:
            return {name: ResultTable.of(name, titles[name], own) for name, own in rows.items()}

        found = made(rows)
        found |= made(self.summary(found))
        return tuple(found[name] for name in titles)

    def judged(self, result: ExperimentResult) -> ExperimentResult:
        """The result with findings, figures and notes made anew from its tables."""
        by_name = {table.name: table for table in result.tables}
        return dataclasses.replace(
            result,
            findings=tuple(self.findings(by_name)),
            figures=tuple(self.figures),
            notes=self.notes,
        )
