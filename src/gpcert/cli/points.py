"""Points from a CSV file, with or without a header row."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from gpcert.errors import InputError

__all__ = ["read_points"]


def read_points(path: Path, header: bool | None = None) -> np.ndarray:
    """The points (n, d): one row a point, one column a feature, every cell a number.

    `header` says whether the first row holds names; None finds out: names are not all numbers.
    """
    rows = _rows(path)
    first = rows[0][1]
    if header is None:
        header = _is_header(path, first)
    if header:
        rows = rows[1:]
    if not rows:
        raise InputError(f"{path}: expected at least one point below the header")
    points = np.empty((len(rows), len(first)))
    for index, (line, cells) in enumerate(rows):
        if len(cells) != len(first):
            raise InputError(
                f"{path}, line {line}: expected {len(first)} columns as in the first line, "
                f"got {len(cells)}"
            )
        for column, cell in enumerate(cells):
            number = _number(cell)
            if number is None:
                raise InputError(
                    f"{path}, line {line}, column {column + 1}: expected a number, got {cell!r}; "
                    "columns are parted by commas, and every column is a feature of the model"
                )
            points[index, column] = number
    return points


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Lines that are not blank, with their numbers."""
    if not path.is_file():
        raise InputError(f"POINTS: expected a CSV file, but {str(path)!r} is none")
    try:
        # utf-8-sig: spreadsheets write a byte order mark
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, skipinitialspace=True)
            rows = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: expected a CSV file in UTF-8 ({error})") from error
    if not rows:
        raise InputError(f"{path}: expected at least one point, got an empty file")
    return rows


def _is_header(path: Path, cells: list[str]) -> bool:
    if any(_number(cell) is None for cell in cells):
        return True
    if len(cells) > 1 and [cell.strip() for cell in cells] == [str(k) for k in range(len(cells))]:
        raise InputError(
            f"{path}: the first line counts 0, 1, ... as the column names of a data frame do, but "
            "could be a point; say --header or --no-header"
        )
    return False


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
