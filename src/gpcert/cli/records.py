"""Lists of ranges and of radii as one JSON file each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpcert.certificates import PredictionRange, Radius
from gpcert.certificates.io import read_record, write_record

__all__ = ["save_ranges", "load_ranges", "save_radii", "load_radii"]


def save_ranges(path: Path, ranges: Sequence[PredictionRange]) -> None:
    """Write prediction ranges."""
    write_record(path, {"kind": "prediction_ranges", "ranges": [r.to_dict() for r in ranges]})


def load_ranges(path: Path) -> list[PredictionRange]:
    """Read what `save_ranges` wrote."""
    rows = read_record(path, "prediction_ranges")["ranges"]
    return [PredictionRange.from_dict(row) for row in rows]


def save_radii(path: Path, radii: Sequence[Radius]) -> None:
    """Write certified radii."""
    write_record(path, {"kind": "radii", "radii": [r.to_dict() for r in radii]})


def load_radii(path: Path) -> list[Radius]:
    """Read what `save_radii` wrote."""
    return [Radius.from_dict(row) for row in read_record(path, "radii")["radii"]]
