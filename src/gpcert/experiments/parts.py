"""Finished pieces of an experiment on disk, so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gpcert
from gpcert.certificates.io import package_version
from gpcert.errors import InputError
from gpcert.experiments.base import Piece, Rows
from gpcert.experiments.results import write_whole
from gpcert.json_text import from_json, to_json

FORMAT = "gpcert-part-1"
LEFT_OUT = ("cli", "plots", "report", "testing")
"""Rooms of the package on which no number of an experiment depends."""


@cache
def code_digest() -> str:
    """SHA-256 of the package's source: a part computed by other code is not used again.

    >>> len(code_digest())
    64
    """
    root = Path(gpcert.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if place.parts[0] not in LEFT_OUT:
            found.update(f"{place.as_posix()} ".encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def piece_key(experiment: str, settings: Any, piece: Piece, data: Mapping[str, str]) -> str:
    """What the rows of a piece depend on: settings, arguments, data, version and code."""
    content = {
        "experiment": experiment,
        "settings": asdict(settings),
        "piece": piece.name,
        "arguments": dict(piece.arguments),
        "data": {name: data[name] for name in piece.data},
        "gpcert": package_version(),
        "code": code_digest(),
    }
    return hashlib.sha256(to_json(content).encode()).hexdigest()


@dataclass(frozen=True)
class Part:
    """The rows of one finished piece, and the CPU seconds that it took."""

    rows: Rows
    seconds: float


@dataclass(frozen=True)
class Parts:
    """The folder of finished pieces. A file's name has the piece's key in it, so that rows of other
    settings, data or code are never taken for these, and quick and full runs share a folder."""

    folder: Path

    def path(self, name: str, key: str) -> Path:
        """The file of a piece."""
        return self.folder / f"{name}.{key[:16]}.json"

    def read(self, name: str, key: str) -> Part | None:
        """The finished piece; None if there is none, or a file that is not wholly what it should
        be: then it is computed again."""
        path = self.path(name, key)
        if not path.is_file():
            return None
        try:
            found = from_json(path.read_text(encoding="utf-8"))
            if (found["format"], found["key"]) != (FORMAT, key):
                return None
            return Part(dict(found["rows"]), float(found["seconds"]))
        except (InputError, UnicodeDecodeError, KeyError, TypeError, ValueError):
            return None

    def write(self, name: str, key: str, part: Part) -> None:
        """Save a piece; a kill leaves the whole file or none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"format": FORMAT, "key": key, "seconds": part.seconds, "rows": part.rows}
        write_whole(self.path(name, key), to_json(content))
