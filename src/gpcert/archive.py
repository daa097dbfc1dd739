"""Files of numbers and text: `.npz` archives with a JSON header, never code."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.errors import InputError

__all__ = ["plain_label", "read_arrays", "write_arrays"]

_UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile)
"""What reading a file that was not written here may raise; a TypeError for a bare `.npy`."""


def write_arrays(path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write the header, which names its "format", and the arrays."""
    with Path(path).open("wb") as stream:
        np.savez_compressed(stream, header=np.array(json.dumps(header)), **dict(arrays))


def read_arrays(path: str | Path, *formats: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `write_arrays` wrote with one of the formats; never executes code from the file."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            arrays = {name: file[name] for name in file.files if name != "header"}
    except _UNREADABLE as error:
        raise InputError(f"{path}: expected a file of Posterior.save ({error})") from error
    found = header.get("format") if isinstance(header, dict) else None
    if found not in formats:
        expected = " or ".join(map(repr, formats))
        raise InputError(f"{path}: expected format {expected}, got {found!r}")
    return header, arrays


def plain_label(label: Any) -> Any:
    """A label that JSON can hold."""
    return label.item() if isinstance(label, np.generic) else label
