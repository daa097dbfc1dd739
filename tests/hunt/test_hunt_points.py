"""The command's CSV of points: every cell is read as the number it is, or an error names its line.

A header is a row in which no cell is a number.
"""

import contextlib
import os

import numpy as np
import pytest

from gpcert.cli.points import read_points
from gpcert.errors import InputError

NUMBERS = ("0", "-1.5", "1e-3", "+2.", ".5", "1E5", " 3 ", "-0")
WORDS = ("a", "O", "1.5,O", "", "1,5", "--1", "1e", "0x10", "1_0", "é", '"', "1 2", "=1+1")


def drawn(rng):
    """Rows of cells, mostly numbers, now and then with a header or a bad cell."""
    columns, count = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    rows = [[str(rng.choice(NUMBERS)) for _ in range(columns)] for _ in range(count)]
    if rng.random() < 0.3:
        rows.insert(0, [f"x{j}" for j in range(columns)])
    for _ in range(int(rng.integers(0, 3))):
        row = rows[int(rng.integers(len(rows)))]
        kind = rng.random()
        if kind < 0.6:
            row[int(rng.integers(len(row)))] = str(rng.choice(WORDS))
        elif kind < 0.8:
            row.append("7")
        elif len(row) > 1:
            row.pop()
    return rows


def number(cell):
    """The number that a cell holds in plain decimal notation, if it does."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if np.isfinite(value) and "_" not in cell else None


def expected(rows):
    """The points that a reader may return; None where it must refuse."""
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if rows and all(number(cell) is None for cell in rows[0]):
        named, rows = rows[0], rows[1:]
        if len(set(map(len, rows)) | {len(named)}) != 1:
            return None
    if not rows or len(set(map(len, rows))) != 1:
        return None
    values = [[number(cell) for cell in row] for row in rows]
    return None if any(v is None for row in values for v in row) else np.array(values)


def wrong(seed, folder):
    """What is wrong with how a drawn file is read, if anything."""
    rng = np.random.default_rng([11, seed])
    rows = drawn(rng)
    path = folder / "points.csv"
    text = "\n".join(",".join(_quoted(cell) for cell in row) for row in rows) + "\n"
    mark = b"\xef\xbb\xbf" if rng.random() < 0.2 else b""
    path.write_bytes(mark + text.encode("latin-1" if rng.random() < 0.05 else "utf-8"))
    try:
        found = read_points(path)
    except InputError as error:
        bad = expected(rows)
        counted = [str(k) for k in range(len(rows[0]))]
        if bad is None or [cell.strip() for cell in rows[0]] == counted or "UTF-8" in str(error):
            return None
        return f"seed {seed}: refused {text!r}: {error}"
    except Exception as error:  # what must not happen is what is looked for
        return f"seed {seed}: {type(error).__name__}: {error} for {text!r}"
    points = np.asarray(getattr(found, "values", found), dtype=float)
    right = expected(rows)
    if right is None or points.shape != right.shape or not np.array_equal(points, right):
        return f"seed {seed}: {text!r} was read as {points.tolist()}"
    return None


def _quoted(cell):
    return '"' + cell.replace('"', '""') + '"' if any(c in cell for c in ',"') else cell


def test_points_are_read_as_they_are_or_refused(tmp_path):
    found = [text for seed in range(300) if (text := wrong(seed, tmp_path))]
    assert not found, "\n".join(found[:10])


@pytest.mark.slow
def test_many_points_are_read_as_they_are_or_refused(tmp_path):
    length = int(os.environ.get("GPCERT_HUNT_FILES", "10000"))
    found = [text for seed in range(length) if (text := wrong(seed, tmp_path))]
    assert not found, "\n".join(found[:10])


ODD = (b"", b"\n\n", b"\x00\x01", b"1,2\n\xff\xfe", b'"1', b"1;2\n3;4\n", b"1,2\r3,4", b"," * 100)


@pytest.mark.parametrize("data", ODD)
def test_odd_bytes_are_refused_or_read(data, tmp_path):
    path = tmp_path / "points.csv"
    path.write_bytes(data)
    with contextlib.suppress(InputError):
        read_points(path)
