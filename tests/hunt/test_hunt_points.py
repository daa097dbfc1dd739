"""The command's CSV of points: every cell is read as the number it is, or an error names its line.

A header is a row in which no cell is a number.
"""

import os

import numpy as np
import pytest
from typer.testing import CliRunner

import gpcert
from gpcert.cli.app import app
from gpcert.kernels import Constant
from gpcert.testing.effort import examples

NUMBERS = ("0", "-1.5", "1e-3", "+2.", ".5", "1E5", " 3 ", "-0")
WORDS = ("a", "O", "1.5,O", "", "1,5", "--1", "1e", "0x10", "1_0", "é", '"', "1 2", "=1+1", "nan")
ODD = (b"", b"\n\n", b"\x00\x01", b"1,2\n\xff\xfe", b'"1', b"1,5;2,5\n3,5;4,5\n", b"," * 100)
BAD_INPUT = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A place with a model of one, two and three features."""
    place = tmp_path_factory.mktemp("points")
    for d in (1, 2, 3):
        gpcert.Posterior(Constant(1.0), np.zeros((1, d)), [1.0]).save(place / f"{d}.npz")
    return place


def drawn(rng):
    """The number of features, and rows of cells: mostly numbers, some headers and bad cells."""
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
    return columns, rows


def number(cell):
    """The number that a cell holds in plain decimal notation, if it does."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if np.isfinite(value) and "_" not in cell else None


def filled(rows):
    """The rows that are not blank."""
    return [row for row in rows if any(cell.strip() for cell in row)]


def expected(columns, rows):
    """The points that the rows say; None where they must be refused."""
    rows = filled(rows)
    if any(len(row) != columns for row in rows):
        return None
    if rows and all(number(cell) is None and cell != "nan" for cell in rows[0]):
        rows = rows[1:]
    values = [[number(cell) for cell in row] for row in rows]
    if not rows or any(v is None for row in values for v in row):
        return None
    return values


def certified(folder, columns, data):
    """The exit code, what was printed, and the points that were certified."""
    points, output = folder / "points.csv", folder / "output.json"
    points.write_bytes(data)
    output.unlink(missing_ok=True)
    asked = ["certify", folder / f"{columns}.npz", points, "--radius", 0, "--threshold", 0]
    done = CliRunner().invoke(app, [*map(str, asked), "--output", str(output)])
    found = None
    if output.exists():
        table = gpcert.CertificateTable.load(output)
        found = [row.region["center"] for row in table.certificates]
    return done.exit_code, done.output, found


def wrong(seed, folder):
    """What is wrong with how a drawn file is read, if anything."""
    rng = np.random.default_rng([11, seed])
    columns, rows = drawn(rng)
    between = str(rng.choice([",", ";", "\t"]))
    text = "\n".join(between.join(_quoted(cell) for cell in row) for row in rows) + "\n"
    mark = b"\xef\xbb\xbf" if rng.random() < 0.2 else b""
    code, printed, found = certified(folder, columns, mark + text.encode())
    right = expected(columns, rows)
    if code not in {0, 1, 2, BAD_INPUT}:
        return f"seed {seed}: exit code {code} for {text!r}: {printed[-300:]}"
    if code == BAD_INPUT:
        # a first row of words that begin like numbers, or of 0, 1, ..., may be refused as unclear
        unclear = any(c in "0123456789" for row in filled(rows)[:1] for cell in row for c in cell)
        return None if right is None or unclear else f"seed {seed}: refused {text!r}: {printed}"
    return None if found == right else f"seed {seed}: {text!r} was read as {found}"


def _quoted(cell):
    return '"' + cell.replace('"', '""') + '"' if any(c in cell for c in ',;\t"') else cell


def test_points_are_read_as_they_are_or_refused(folder):
    found = [text for seed in range(examples(60, quick=20)) if (text := wrong(seed, folder))]
    assert not found, "\n".join(found[:10])


@pytest.mark.slow
def test_many_points_are_read_as_they_are_or_refused(folder):
    length = int(os.environ.get("GPCERT_HUNT_FILES", "10000")) // 5
    found = [text for seed in range(length) if (text := wrong(seed, folder))]
    assert not found, "\n".join(found[:10])


@pytest.mark.parametrize("data", ODD)
def test_odd_bytes_are_refused(data, folder):
    code, printed, _ = certified(folder, 2, data)
    assert code == BAD_INPUT, printed
