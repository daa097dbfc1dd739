"""Models and points from files: a safe `.npz` of `Posterior.save`, or a `.joblib` that must be
trusted; a CSV file, whose header is matched with the model's features and whose ids are kept."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import gpcert
from gpcert.cli.terminal import console
from gpcert.errors import InputError
from gpcert.extras import install_hint

if TYPE_CHECKING:
    import numpy as np

    from gpcert.certificates.record import RecordTable
    from gpcert.committee import Model

T = TypeVar("T", bound="RecordTable[Any]")

LABEL_NAMES = {"", "id", "index", "unnamed: 0"}
"""Names, in small letters, of a column that names the rows; pandas writes "" for its index."""

_NEARLY_A_NUMBER = re.compile(r"[+-]?[.,]?[0-9]")
"""How a mistyped number begins: the point it stands for must not be dropped as a header."""

Row = tuple[int, list[str]]
"""A line's number and its cells."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points (n, d), finite or not, in the model's order of features, and a label for each."""

    X: np.ndarray
    labels: tuple[Any, ...]

    def named(self, table: T) -> T:
        """The table of results with the labels of the points; its own are the rows' numbers, those
        that were finished where it was interrupted."""
        return replace(table, labels=tuple(self.labels[row] for row in table.labels))


def read_points(
    path: Path, header: bool | None, dim: int, features: Sequence[str] | None = None
) -> Points:
    """One row per point, one column per feature, every cell a number; "-" is standard input.

    `header` says whether the first row holds names; None finds out: a header is a row in which no
    cell is a number, or begins as one does. Names are matched with `features`, if the model knows
    them: columns may come in any order, and none may be missing. One more column is taken as the
    rows' labels if it is named id, index, "" or "Unnamed: 0", or if it is the first and the
    features are all there. Without a header, or without names in the model, columns are in the
    model's order, and a column of labels is known by those names only.
    """
    where = "standard input" if str(path) == "-" else str(path)
    import numpy as np

    rows = _rows(path, where)
    if header is None:
        header = _is_header(where, rows[0], features)
    names = [cell.strip() for cell in rows[0][1]] if header else None
    rows = rows[1:] if header else rows
    if not rows:
        raise InputError(f"{where}: expected at least one point below the header")
    width = len(rows[0][1]) if names is None else len(names)
    for line, cells in rows:
        if len(cells) != width:
            raise InputError(
                f"{where}, line {line}: expected {width} columns as in the first line, "
                f"got {len(cells)}"
            )
    order, label = _columns(where, names, width, dim, features)
    X = np.empty((len(rows), dim))
    for index, (line, cells) in enumerate(rows):
        X[index] = [_cell(where, line, column, cells[column]) for column in order]
    if label is None:
        return Points(X, tuple(range(len(rows))))
    return Points(X, _labels([cells[label].strip() for _, cells in rows]))


def _rows(path: Path, where: str) -> list[Row]:
    """Lines that are not blank, with their numbers."""
    if where != "standard input" and not path.is_file():
        raise InputError(f"POINTS: expected a CSV file, or - for standard input, got {where!r}")
    content = sys.stdin.buffer.read() if where == "standard input" else path.read_bytes()
    try:
        # utf-8-sig: spreadsheets write a byte order mark
        stream = io.StringIO(content.decode("utf-8-sig"), newline="")
        reader = csv.reader(stream, skipinitialspace=True, strict=True)
        rows = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{where}: expected a CSV file in UTF-8 ({error})") from error
    if not rows:
        raise InputError(f"{where}: expected at least one point, got an empty file")
    return rows


def _is_header(where: str, row: Row, features: Sequence[str] | None) -> bool:
    line, cells = row[0], [cell.strip() for cell in row[1]]
    if features is not None and set(features) <= set(cells):
        return True
    if not any(_number(cell) is not None for cell in cells):
        for cell in cells:
            if _NEARLY_A_NUMBER.match(cell):
                raise InputError(
                    f"{where}, line {line}: expected numbers, or names of columns, got {cell!r}; "
                    "columns are parted by commas; say --header if it is a name"
                )
        return True
    if len(cells) > 1 and cells == [str(k) for k in range(len(cells))]:
        raise InputError(
            f"{where}: the first line counts 0, 1, ... as the column names of a data frame do, but "
            "could be a point; say --header or --no-header"
        )
    return False


def _columns(
    where: str, names: list[str] | None, width: int, dim: int, features: Sequence[str] | None
) -> tuple[list[int], int | None]:
    """Which columns are the features, in the model's order, and which one holds labels."""
    if names is None or features is None:
        if width == dim:
            return list(range(dim)), None
        named = [k for k, name in enumerate(names or []) if name.lower() in LABEL_NAMES]
        if width == dim + 1 and len(named) == 1:
            return [k for k in range(width) if k != named[0]], named[0]
        raise InputError(
            f"{where}: expected {dim} features, one per column, got {width} columns; one more is "
            "taken as the rows' labels if the header calls it id or index"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    missing = [name for name in features if name not in names]
    others = [k for k, name in enumerate(names) if name not in features]
    label = None
    if len(others) == 1 and (others[0] == 0 or names[others[0]].lower() in LABEL_NAMES):
        label = others.pop()
    if twice or missing or others:
        problems = {"missing": missing, "unknown": [names[k] for k in others], "there twice": twice}
        words = "; ".join(f"{key}: {', '.join(map(repr, v))}" for key, v in problems.items() if v)
        raise InputError(
            f"{where}: expected columns named as the model's features, {', '.join(features)}, in "
            f"any order, and at most one of labels; {words}"
        )
    return [names.index(name) for name in features], label


def _labels(cells: list[str]) -> tuple[Any, ...]:
    """Labels as whole numbers where all are, else as text."""
    whole = all(cell.isascii() and cell.isdigit() and str(int(cell)) == cell for cell in cells)
    return tuple(int(cell) for cell in cells) if whole else tuple(cells)


def _cell(where: str, line: int, column: int, cell: str) -> float:
    found = _number(cell)
    if found is None:
        raise InputError(
            f"{where}, line {line}, column {column + 1}: expected a number, got {cell!r}; "
            "columns are parted by commas, and a first line with names holds no numbers"
        )
    return found


def _number(cell: str) -> float | None:
    if not cell.isascii() or "_" in cell:  # Python reads 1_000 and digits of any script
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def load_model(path: Path) -> Model:
    """The model in a file; says on stderr when opening the file runs code from it."""
    if not path.is_file():
        raise InputError(f"MODEL: expected a file, but {str(path)!r} is none")
    if path.suffix == ".npz":
        return gpcert.load_model(path)
    if path.suffix in {".joblib", ".pkl", ".pickle"}:
        return gpcert.as_posterior(_load_trusted(path))
    raise InputError(
        f"MODEL: expected a .npz file of Posterior.save or a .joblib file, got {str(path)!r}"
    )


def _load_trusted(path: Path) -> object:
    import joblib

    console(stderr=True).print(
        f"warning: {path} is a joblib file, and joblib files are code: opening it runs what is in "
        "it. Open only files that you trust; gpcert.as_posterior(model).save('model.npz') writes "
        "a file without code.",
        style="yellow",
        markup=False,
        soft_wrap=True,
    )
    try:
        return joblib.load(path)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise InputError(
            f"{path}: the model in it needs {package}, which is not installed; "
            f"{install_hint(package)}"
        ) from error
    except Exception as error:  # unpickling runs code of any library, so anything may be raised
        raise InputError(
            f"{path}: expected a model of joblib.dump; {type(error).__name__}: {error}"
        ) from error
