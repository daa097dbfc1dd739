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
from gpcert.utils.optional_imports import install_hint

if TYPE_CHECKING:
    import numpy as np

    from gpcert.certificates.record import RecordTable
    from gpcert.inputs.categories import Levels
    from gpcert.model.committee import Model

T = TypeVar("T", bound="RecordTable[Any]")

LABEL_NAMES = {"", "id", "index", "unnamed: 0"}
"""Names, in small letters, of a column that names the rows; pandas writes "" for its index."""

DELIMITERS = ",;\t"
"""What may part the columns of a CSV file."""

PARTED = "columns are parted by commas, semicolons or tabs, numbers have a decimal point"

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
    path: Path,
    header: bool | None,
    dim: int,
    features: Sequence[str] | None = None,
    levels: Levels | None = None,
) -> Points:
    """One row per point, one column per feature, every cell a number, or a category of a feature
    that has `levels`; "-" is standard input. Columns are parted by commas, semicolons or tabs.

    `header` says whether the first row holds names; None finds out: a header is a row in which no
    cell is a number, or begins as one does. Names are matched with `features`, if the model knows
    them: columns may come in any order, and none may be missing. One more column is taken as the
    rows' labels if it is named id, index, "" or "Unnamed: 0", or if it is the first and the
    features are all there. Without a header, or without names in the model, columns are in the
    model's order, and a column of labels is known by those names only.
    """
    where = "standard input" if str(path) == "-" else str(path)
    import numpy as np

    rows = _rows(where, _text("POINTS", path, where), "point")
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
    X, known = np.empty((len(rows), dim)), levels or {}
    for index, (line, cells) in enumerate(rows):
        for j, column in enumerate(order):
            X[index, j] = _cell(where, line, column, cells[column], known.get(j, ()))
    if label is None:
        return Points(X, tuple(range(len(rows))))
    return Points(X, _labels([cells[label].strip() for _, cells in rows]))


def read_labels(path: Path, points: Points, known: Sequence[str]) -> list[str]:
    """A label for each point, as text: one a line, where one line more is a header; or two columns
    of which the header calls one id or index, matched with the labels of the points. Labels that
    are `known` may hold commas."""
    where, count = str(path), len(points.X)
    text = _text("--labels", path, where)
    lines = [line.strip().strip('"') for line in text.split("\n") if line.strip()]
    rows = [[cell.strip() for cell in cells] for _, cells in _rows(where, text, "label")]
    single = all(len(cells) == 1 for cells in rows)
    if single or set(lines[-count:]) <= set(known):
        found = [cells[0] for cells in rows] if single else lines
        found = found[len(found) == count + 1 :]
        if len(found) != count:
            raise InputError(f"{where}: expected {count} labels, one per point, got {len(found)}")
        return found
    ids = [k for k, name in enumerate(rows[0]) if name.lower() in LABEL_NAMES]
    if len(ids) != 1 or any(len(cells) != 2 for cells in rows):
        raise InputError(
            f"{where}: expected one label a line, or two columns with a header that calls one of "
            f"them id or index, got the columns {', '.join(rows[0])}"
        )
    pairs = [(cells[ids[0]], cells[1 - ids[0]]) for cells in rows[1:]]
    wanted, by_id = [str(label) for label in points.labels], dict(pairs)
    missing = [label for label in wanted if label not in by_id]
    if missing or len(pairs) != count or len(by_id) != count:
        raise InputError(
            f"{where}: expected each of the ids of the {count} points once (their column id, or 0, "
            f"1, ...), got {len(pairs)} ids"
            + (f"; missing: {', '.join(missing[:5])}" if missing else "")
        )
    return [by_id[label] for label in wanted]


def _text(name: str, path: Path, where: str) -> str:
    if where != "standard input" and not path.is_file():
        raise InputError(f"{name}: expected a CSV file, or - for standard input, got {where!r}")
    content = sys.stdin.buffer.read() if where == "standard input" else path.read_bytes()
    try:
        return content.decode("utf-8-sig")  # spreadsheets write a byte order mark
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: expected a CSV file in UTF-8 ({error})") from error


def _rows(where: str, text: str, what: str) -> list[Row]:
    """Lines that are not blank, with their numbers, parted by the one of `DELIMITERS` that gives
    most rows as many columns as the first one has, and most numbers in the last row."""
    found: list[tuple[tuple[bool, float], list[Row]]] = []
    first, reasons = text.lstrip("\r\n").partition("\n")[0], []
    for mark in [mark for mark in DELIMITERS if mark in first] or DELIMITERS[:1]:
        stream = io.StringIO(text, newline="")
        reader = csv.reader(stream, delimiter=mark, skipinitialspace=True, strict=True)
        try:
            rows = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
        except csv.Error as error:
            reasons.append(str(error))
            continue
        if not rows:
            raise InputError(f"{where}: expected at least one {what}, got an empty file")
        width, last = len(rows[0][1]), rows[-1][1]
        alike = sum(len(cells) == width for _, cells in rows) > 0.5 * len(rows)
        # with decimal commas too, which are an error that names them
        plain = [_number(cell.strip().replace(",", ".")) for cell in last]
        numbers = sum(value is not None for value in plain) / len(last)
        found.append(((alike and width > 1, numbers), rows))
    if not found:
        raise InputError(f"{where}: expected a CSV file in UTF-8 ({reasons[0]})")
    return max(found, key=lambda each: each[0])[1]


def _is_header(where: str, row: Row, features: Sequence[str] | None) -> bool:
    line, cells = row[0], [cell.strip() for cell in row[1]]
    if features is not None and set(features) <= set(cells):
        return True
    if not any(_number(cell) is not None for cell in cells):
        for cell in cells:
            if _NEARLY_A_NUMBER.match(cell):
                raise InputError(
                    f"{where}, line {line}: expected numbers, or names of columns, got {cell!r}; "
                    f"{PARTED}; say --header if it is a name"
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
        problems = {"missing": missing, "unknown": [names[k] for k in others], "duplicate": twice}
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


def _cell(where: str, line: int, column: int, cell: str, labels: tuple[Any, ...]) -> float:
    text = isinstance(labels and labels[0], str)
    if text and cell.strip() in labels:
        return float(labels.index(cell.strip()))
    found = None if text else _number(cell)
    if found is None:
        from gpcert.inputs.categories import listed

        wanted = f"one of {listed(labels)}" if text else "a number"
        raise InputError(
            f"{where}, line {line}, column {column + 1}: expected {wanted}, got {cell!r}; "
            f"{PARTED}, and a first line with names holds no numbers"
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
