"""What an experiment leaves behind: tables, figures, findings, and where the numbers come from;
how sure a number over some points is, and whether it settles a claim.

A folder holds `result.json` (all of it), `NAME.csv` for every table, and `NAME.svg` and `NAME.png`
for every figure, drawn from the tables that the figure names; so figures and reports rebuild
without computing anything again.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from gpcert.certificates import Record
from gpcert.certificates.record import cells_of
from gpcert.certificates.schema import ADDED, Cell, cell
from gpcert.errors import InputError
from gpcert.utils.optional_imports import DataFrame, optional

SCALES = ("smallest", "quick", "full")
OWN = "own"
"""The scale of a run on a user's own table, which some experiments have."""
NOT_JUDGED = "not judged"
AGREEMENTS = ("yes", "no", "unclear", NOT_JUDGED)
FILE = "result.json"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
"""Names become names of files and parts of links."""


@dataclass(frozen=True)
class ResultTable:
    """Numbers and texts in rows; None where there is no value, NaN is refused.

    >>> table = ResultTable("radii", "Proved radii", ("data", "radius"), (("digits", 0.25),))
    >>> table.column("radius")
    (0.25,)
    >>> print(table.to_csv(), end="")
    data,radius
    digits,0.25
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        check_name("table", self.name)
        columns = tuple(map(str, self.columns))
        if not columns or len(set(columns)) != len(columns):
            raise InputError(f"{self.name}: expected different columns, got {list(columns)}")
        rows = tuple(tuple(map(cell, row)) for row in self.rows)
        lengths = {len(row) for row in rows} - {len(columns)}
        if lengths:
            raise InputError(
                f"{self.name}: expected {len(columns)} cells in every row, got {sorted(lengths)}"
            )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rows", rows)

    @classmethod
    def of(cls, name: str, caption: str, records: Iterable[Mapping[str, Any]]) -> Self:
        """The table of records with the same keys, which become the columns.

        >>> ResultTable.of("t", "", [{"a": 1, "b": 2}, {"a": 3, "b": None}]).rows
        ((1, 2), (3, None))
        """
        rows = list(records)
        if not rows:
            raise InputError(
                f"{name}: expected records, got none; give columns and no rows instead"
            )
        columns = tuple(rows[0])
        for record in rows:
            if set(record) != set(columns):
                raise InputError(f"{name}: expected {list(columns)}, got {list(record)}")
        return cls(name, caption, columns, tuple(tuple(row[c] for c in columns) for row in rows))

    def column(self, name: str) -> tuple[Any, ...]:
        """The cells below a heading; what they are is known to whoever made the table."""
        if name not in self.columns:
            raise InputError(f"{self.name}: expected one of {list(self.columns)}, got {name!r}")
        k = self.columns.index(name)
        return tuple(row[k] for row in self.rows)

    def numbers(self, name: str) -> np.ndarray:
        """(rows,) a column of numbers as an array; None is NaN."""
        return np.array(self.column(name), dtype=np.float64)

    def distinct(self, name: str) -> list[Any]:
        """The different cells of a column, in their order.

        >>> ResultTable("t", "", ("a",), ((2,), (1,), (2,))).distinct("a")
        [2, 1]
        """
        return list(dict.fromkeys(self.column(name)))

    def records(self) -> list[dict[str, Any]]:
        """One mapping per row, by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def where(self, **values: Cell) -> Self:
        """The rows in which columns have these values.

        >>> table = ResultTable("t", "", ("a", "b"), ((1, 2), (3, 4)))
        >>> table.where(a=3).rows
        ((3, 4),)
        """
        keep = zip(self.rows, *map(self.column, values), strict=True)
        wanted = list(values.values())
        return replace(self, rows=tuple(row for row, *cells in keep if cells == wanted))

    def groups(self, *names: str) -> dict[Any, Self]:
        """The rows that agree in these columns, by what they have there, in their order.

        >>> table = ResultTable("t", "", ("a", "b"), ((1, 2), (3, 4), (1, 5)))
        >>> {key: group.column("b") for key, group in table.groups("a").items()}
        {1: (2, 5), 3: (4,)}
        """
        groups: dict[Any, list[Any]] = {}
        for row, *key in zip(self.rows, *map(self.column, names), strict=True):
            groups.setdefault(tuple(key) if len(key) > 1 else key[0], []).append(row)
        return {key: replace(self, rows=tuple(rows)) for key, rows in groups.items()}

    def to_csv(self) -> str:
        """Comma separated, a heading first; floats exact, infinities by name, None empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        words = {True: "true", False: "false"}
        writer.writerows(
            tuple(words[value] if isinstance(value, bool) else value for value in row)
            for row in self.rows
        )
        return text.getvalue()

    def to_frame(self) -> DataFrame:
        """One row per row."""
        pandas = optional("pandas", "to_frame")
        return pandas.DataFrame(list(self.rows), columns=list(self.columns))


@dataclass(frozen=True)
class ResultFigure:
    """A picture in the files NAME.svg and NAME.png, and the tables that it was drawn from."""

    name: str
    caption: str
    tables: tuple[str, ...]

    def __post_init__(self) -> None:
        check_name("figure", self.name)
        object.__setattr__(self, "tables", tuple(self.tables))


@dataclass(frozen=True)
class Finding:
    """A claim of the paper beside our numbers.

    `paper` and `ours` say the numbers in words; `agrees` is "yes" or "no" only where the interval
    of ours settles it, "unclear" otherwise, and "not judged" of a run that is too small to say
    anything; `comment` says how it was judged. `beyond`: the paper does not claim it. `why` is the
    reason of a disagreement, or that none is known.
    """

    claim: str
    paper: str
    ours: str
    agrees: str
    comment: str = ""
    beyond: bool = field(default=False, metadata=ADDED)
    why: str = field(default="", metadata=ADDED)

    def __post_init__(self) -> None:
        if self.agrees not in AGREEMENTS:
            raise InputError(f"agrees: expected one of {list(AGREEMENTS)}, got {self.agrees!r}")


@dataclass(frozen=True)
class Environment:
    """Versions, machine, data (SHA-256 by name), seed and day: what a number depends on."""

    gpcert: str
    python: str
    numpy: str
    scipy: str
    sklearn: str
    machine: str
    cpu: str
    cores: int
    data: dict[str, str]
    random_state: int
    date: str


@dataclass(frozen=True)
class ExperimentResult(Record, kind="experiment"):
    """All of one run; `write` and `read` take the experiment's own folder.

    `settings` are plain JSON values; `seconds` is the time of all pieces together.
    """

    experiment: str
    title: str
    scale: str
    command: str
    settings: Mapping[str, Any]
    environment: Environment
    seconds: float
    tables: tuple[ResultTable, ...] = ()
    figures: tuple[ResultFigure, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("experiment", self.experiment)
        scales = [*SCALES, OWN]
        if self.scale not in scales:
            raise InputError(f"scale: expected one of {scales}, got {self.scale!r}")
        for part in ("tables", "figures", "findings", "notes"):
            object.__setattr__(self, part, tuple(getattr(self, part)))
        for part in (self.tables, self.figures):
            names = [each.name for each in part]
            if len(set(names)) != len(names):
                raise InputError(f"{self.experiment}: expected every name once, got {names}")
        known = {table.name for table in self.tables}
        for figure in self.figures:
            if not set(figure.tables) <= known:
                raise InputError(
                    f"figure {figure.name}: expected tables among {sorted(known)}, "
                    f"got {list(figure.tables)}"
                )

    def table(self, name: str) -> ResultTable:
        """One of the tables."""
        for table in self.tables:
            if table.name == name:
                return table
        raise InputError(f"expected one of {[t.name for t in self.tables]}, got {name!r}")

    def write(self, folder: str | Path) -> None:
        """Write `result.json` and a CSV file per table; a kill leaves whole files only."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for table in self.tables:
            write_whole(place / f"{table.name}.csv", table.to_csv())
        write_whole(place / FILE, self.to_json())

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read what `write` wrote."""
        return cls.load(Path(folder) / FILE)

    def __repr__(self) -> str:
        counts = f"{len(self.tables)} tables, {len(self.figures)} figures"
        return f"ExperimentResult({self.experiment}, {self.scale}, {counts}, {self.seconds:.3g} s)"

    def __str__(self) -> str:
        lines = [f"  {each.agrees:>10}: {each.claim}: {each.ours}" for each in self.findings]
        return "\n".join([repr(self), *lines])


def read_all(folder: str | Path) -> dict[Path, ExperimentResult]:
    """Every result in a folder or in the folders just below it, by its own folder, in order."""
    place = Path(folder)
    paths = sorted({*place.glob(FILE), *place.glob(f"*/{FILE}")})
    if not paths:
        raise InputError(
            f"{place}: expected {FILE} in this folder or in one below it, got none; "
            "`gpcert reproduce NAME --output DIR` writes them"
        )
    return {path.parent: ExperimentResult.read(path.parent) for path in paths}


def fields(record: Any, names: str) -> dict[str, Any]:
    """Fields of a record as cells of a row, both ends of an interval."""
    return {name.replace("_", " "): value for name, value in cells_of(record, names).items()}


def write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever reads it sees the old or the new text, never a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def check_name(what: str, name: str) -> None:
    """An `InputError` unless the name can be the name of a file and a part of a link."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(
            f"{what}: expected a name of lower-case letters, digits, - and _, got {name!r}"
        )


DRAWS = 2000
LEVEL = 0.95


class Estimate(NamedTuple):
    """A number and the ends of its 95 % interval.

    >>> str(Estimate(0.123456, 0.1, 0.2))
    '0.123 [0.1, 0.2]'
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def cells(self, name: str) -> dict[str, Any]:
        """Three cells of a row: the number under its name, `low` and `high`."""
        return {name: self.value, "low": self.low, "high": self.high}


def bootstrap(
    values: Any, statistic: Callable[..., Any] = np.median, random_state: int = 0
) -> Estimate:
    """A statistic of the rows of `values`, with its interval by resampling rows.

    Percentiles of 2000 draws with replacement (Efron & Tibshirani 1993, ch. 13). `statistic` takes
    the resampled array and `axis=`, the axis of the rows, as NumPy's functions do. Rows that belong
    to the same point, such as the deltas of two models, stay together.

    >>> median = bootstrap(np.arange(101.0))
    >>> median.value, bool(35 < median.low < 50 < median.high < 65)
    (50.0, True)
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim == 0 or len(rows) == 0:
        raise InputError("values: expected one or more rows, got none")
    draws = np.random.default_rng(random_state).integers(len(rows), size=(DRAWS, len(rows)))
    statistics = np.asarray(statistic(rows[draws], axis=1), dtype=np.float64)
    low, high = np.quantile(statistics, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return Estimate(float(statistic(rows[None], axis=1)[0]), float(low), float(high))


def median_cells(values: Any, name: str, end: str = "") -> dict[str, Any]:
    """The cells of a median and its ends (`end` before their names), empty where there are no
    values."""
    cells = bootstrap(values) if len(values) else (None, None, None)
    return dict(zip((name, f"{end}low", f"{end}high"), cells, strict=True))


def share(successes: Any) -> Estimate:
    """The share of True, with Wilson's interval: of no success in n it still says how many there
    may be, where resampling would say none.

    >>> half = share([True] * 5 + [False] * 5)
    >>> half.value, round(half.low, 2), round(half.high, 2)
    (0.5, 0.24, 0.76)
    """
    from scipy.stats import binomtest

    flags = np.asarray(successes, dtype=bool)
    if len(flags) == 0:
        raise InputError("successes: expected one or more, got none")
    ends = binomtest(int(flags.sum()), len(flags)).proportion_ci(LEVEL, method="wilson")
    return Estimate(float(flags.mean()), float(ends.low), float(ends.high))


def exceeds(estimate: Estimate, level: float) -> str:
    """ "yes" if the whole interval lies above the level, "no" if it lies below, else "unclear".

    >>> exceeds(Estimate(2.0, 1.5, 3.0), 1.0), exceeds(Estimate(2.0, 0.5, 3.0), 1.0)
    ('yes', 'unclear')
    """
    return answer(estimate.low > level, estimate.high < level)


def answer(yes: Any, no: Any) -> str:
    """The answer where either is settled, "unclear" between."""
    return "yes" if yes else "no" if no else "unclear"


def opposite(answer: str) -> str:
    """The answer to the opposite claim; what is unclear stays so."""
    return {"yes": "no", "no": "yes"}.get(answer, answer)
