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
    from gpcert.inputs.tabular import Levels
    from gpcert.model.committee import Model

T = TypeVar("T", bound="RecordTable[Any]")

LABEL_NAMES = {"", "id", "index", "unnamed: 0"}
"""Names, in small letters, of a column that names the rows; pandas writes "" for its index."""

DELIMITERS = ",;\t"
"""Delimiters of the columns of a CSV file."""

FORMAT_HINT = "columns are separated by commas, semicolons or tabs, numbers have a decimal point"

_NEARLY_A_NUMBER = re.compile(r"[+-]?[.,]?[0-9]")
"""The beginning of a mistyped number: a row with one is not a header."""

Row = tuple[int, list[str]]
"""A line's number and its cells."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points (n, d), finite or not, in the model's order of features, and a label for each."""

    X: np.ndarray
    labels: tuple[Any, ...]

    def labelled(self, table: T) -> T:
        """The table of results with the labels of the points. The labels of `table` are row
        numbers, after an interrupt those of the finished rows."""
        return replace(table, labels=tuple(self.labels[row] for row in table.labels))


def read_points(
    path: Path,
    header: bool | None,
    dim: int,
    features: Sequence[str] | None = None,
    levels: Levels | None = None,
) -> Points:
    """One row per point, one column per feature, every cell a number, or a category of a feature
    that has `levels`; "-" is standard input. Columns are separated by commas, semicolons or tabs.

    `header` says whether the first row holds names; by default (None) it is a header if no cell is
    a number or begins like one. Names are matched with `features`, if the model has any: columns
    may have any order, and none may be missing. One additional column holds row labels if its name
    is id, index, "" or "Unnamed: 0", or if it is the first one and no feature is missing. Without a
    header, or without names in the model, columns are in the model's order, and a column of labels
    is recognised by these names only.
    """
    source = "standard input" if str(path) == "-" else str(path)
    import numpy as np

    rows = _rows(source, _text("POINTS", path, source), "point")
    if header is None:
        header = _is_header(source, rows[0], features)
    names = [cell.strip() for cell in rows[0][1]] if header else None
    rows = rows[1:] if header else rows
    if not rows:
        raise InputError(f"{source}: expected at least one point below the header")
    width = len(rows[0][1]) if names is None else len(names)
    for line, cells in rows:
        if len(cells) != width:
            raise InputError(
                f"{source}, line {line}: expected {width} columns as in the first line, "
                f"got {len(cells)}"
            )
    order, label = _columns(source, names, width, dim, features)
    X, known = np.empty((len(rows), dim)), levels or {}
    for index, (line, cells) in enumerate(rows):
        for j, column in enumerate(order):
            X[index, j] = _cell(source, line, column, cells[column], known.get(j, ()))
    if label is None:
        return Points(X, tuple(range(len(rows))))
    return Points(X, _labels([cells[label].strip() for _, cells in rows]))


def read_labels(path: Path, points: Points, known: Sequence[str]) -> list[str]:
    """A label for each point, as text: one per line (one additional line is a header); or two
    columns, one of them with the name id or index, matched with the labels of the points. `known`
    labels may contain commas."""
    source, count = str(path), len(points.X)
    text = _text("--labels", path, source)
    lines = [line.strip().strip('"') for line in text.split("\n") if line.strip()]
    rows = [[cell.strip() for cell in cells] for _, cells in _rows(source, text, "label")]
    single = all(len(cells) == 1 for cells in rows)
    if single or set(lines[-count:]) <= set(known):
        labels = [cells[0] for cells in rows] if single else lines
        labels = labels[len(labels) == count + 1 :]
        if len(labels) != count:
            raise InputError(f"{source}: expected {count} labels, one per point, got {len(labels)}")
        return labels
    ids = [k for k, name in enumerate(rows[0]) if name.lower() in LABEL_NAMES]
    if len(ids) != 1 or any(len(cells) != 2 for cells in rows):
        raise InputError(
            f"{source}: expected one label per line, or two columns with a header that names one "
            f"of them id or index, got the columns {', '.join(rows[0])}"
        )
    pairs = [(cells[ids[0]], cells[1 - ids[0]]) for cells in rows[1:]]
    expected, by_id = [str(label) for label in points.labels], dict(pairs)
    missing = [label for label in expected if label not in by_id]
    if missing or len(pairs) != count or len(by_id) != count:
        raise InputError(
            f"{source}: expected each of the ids of the {count} points once (their column id, or "
            f"0, 1, ...), got {len(pairs)} ids"
            + (f"; missing: {', '.join(missing[:5])}" if missing else "")
        )
    return [by_id[label] for label in expected]


def _text(name: str, path: Path, source: str) -> str:
    if source != "standard input" and not path.is_file():
        raise InputError(f"{name}: expected a CSV file, or - for standard input, got {source!r}")
    content = sys.stdin.buffer.read() if source == "standard input" else path.read_bytes()
    try:
        return content.decode("utf-8-sig")  # with the byte order mark of spreadsheets
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: expected a CSV file in UTF-8 ({error})") from error


def _rows(source: str, text: str, what: str) -> list[Row]:
    """Non-blank lines with their numbers, split by one of `DELIMITERS`: the one for which most rows
    have as many columns as the first one, and the last row has the most numbers."""
    candidates: list[tuple[tuple[bool, float], list[Row]]] = []
    first, reasons = text.lstrip("\r\n").partition("\n")[0], []
    for delimiter in [delimiter for delimiter in DELIMITERS if delimiter in first] or DELIMITERS[
        :1
    ]:
        stream = io.StringIO(text, newline="")
        reader = csv.reader(stream, delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            rows = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
        except csv.Error as error:
            reasons.append(str(error))
            continue
        if not rows:
            raise InputError(f"{source}: expected at least one {what}, got an empty file")
        width, last = len(rows[0][1]), rows[-1][1]
        alike = sum(len(cells) == width for _, cells in rows) > 0.5 * len(rows)
        # decimal commas count here; they raise an error later
        plain = [_number(cell.strip().replace(",", ".")) for cell in last]
        numbers = sum(value is not None for value in plain) / len(last)
        candidates.append(((alike and width > 1, numbers), rows))
    if not candidates:
        raise InputError(f"{source}: expected a CSV file in UTF-8 ({reasons[0]})")
    return max(candidates, key=lambda each: each[0])[1]


def _is_header(source: str, row: Row, features: Sequence[str] | None) -> bool:
    line, cells = row[0], [cell.strip() for cell in row[1]]
    if features is not None and set(features) <= set(cells):
        return True
    if not any(_number(cell) is not None for cell in cells):
        for cell in cells:
            if _NEARLY_A_NUMBER.match(cell):
                raise InputError(
                    f"{source}, line {line}: expected numbers, or names of columns, got {cell!r}; "
                    f"{FORMAT_HINT}; say --header if it is a name"
                )
        return True
    if len(cells) > 1 and cells == [str(k) for k in range(len(cells))]:
        raise InputError(
            f"{source}: the first line counts 0, 1, ... as the column names of a data frame do, "
            "but could be a point; say --header or --no-header"
        )
    return False


def _columns(
    source: str, names: list[str] | None, width: int, dim: int, features: Sequence[str] | None
) -> tuple[list[int], int | None]:
    """Indices of the feature columns, in the model's order, and of the column of labels, if any."""
    if names is None or features is None:
        if width == dim:
            return list(range(dim)), None
        label_columns = [k for k, name in enumerate(names or []) if name.lower() in LABEL_NAMES]
        if width == dim + 1 and len(label_columns) == 1:
            return [k for k in range(width) if k != label_columns[0]], label_columns[0]
        raise InputError(
            f"{source}: expected {dim} features, one per column, got {width} columns; an "
            "additional column with row labels must have the name id or index"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    missing = [name for name in features if name not in names]
    others = [k for k, name in enumerate(names) if name not in features]
    label = None
    if len(others) == 1 and (others[0] == 0 or names[others[0]].lower() in LABEL_NAMES):
        label = others.pop()
    if twice or missing or others:
        problems = {"missing": missing, "unknown": [names[k] for k in others], "duplicate": twice}
        text = "; ".join(f"{key}: {', '.join(map(repr, v))}" for key, v in problems.items() if v)
        raise InputError(
            f"{source}: expected columns named as the model's features, {', '.join(features)}, in "
            f"any order, and at most one of labels; {text}"
        )
    return [names.index(name) for name in features], label


def _labels(cells: list[str]) -> tuple[Any, ...]:
    """Labels as integers if all of them are, else as text."""
    whole = all(cell.isascii() and cell.isdigit() and str(int(cell)) == cell for cell in cells)
    return tuple(int(cell) for cell in cells) if whole else tuple(cells)


def _cell(source: str, line: int, column: int, cell: str, labels: tuple[Any, ...]) -> float:
    text = isinstance(labels and labels[0], str)
    if text and cell.strip() in labels:
        return float(labels.index(cell.strip()))
    value = None if text else _number(cell)
    if value is None:
        from gpcert.inputs.tabular import listed

        expected = f"one of {listed(labels)}" if text else "a number"
        raise InputError(
            f"{source}, line {line}, column {column + 1}: expected {expected}, got {cell!r}; "
            f"{FORMAT_HINT}, and a first line with names holds no numbers"
        )
    return value


def _number(cell: str) -> float | None:
    if not cell.isascii() or "_" in cell:  # `float` accepts 1_000 and digits of any script
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def load_model(path: Path) -> Model:
    """The model in a file; warns on stderr if loading the file can run code."""
    if not path.is_file():
        raise InputError(f"MODEL: expected a file, but {str(path)!r} is not one")
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
        f"warning: {path} is a joblib file, and joblib files are code: opening it runs the code in "
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
