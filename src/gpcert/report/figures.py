"""The picture files of a result: which one a page shows."""

from __future__ import annotations

import base64
from pathlib import Path

from gpcert.errors import InputError
from gpcert.experiments.results import ExperimentResult, ResultFigure

LARGEST_SVG = 400_000
"""Bytes; a drawing of more lines than that is shown as pixels."""

TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


def figure_file(result: ExperimentResult, figure: ResultFigure, folder: Path) -> Path:
    """NAME.svg, or NAME.png where the drawing is larger than that."""
    found = [folder / f"{figure.name}{ending}" for ending in TYPES]
    svg, png = (path if path.is_file() else None for path in found)
    if svg is None and png is None:
        raise InputError(
            f"{folder}: expected {figure.name}.svg or {figure.name}.png, got neither; draw it "
            f"again: gpcert reproduce {result.experiment} --redraw"
        )
    if svg is None or (png is not None and svg.stat().st_size > LARGEST_SVG):
        assert png is not None
        return png
    return svg


def picture_address(path: Path) -> str:
    """The file's content as an address, so that the page needs no other file.

    A picture by address cannot run scripts, and its names cannot clash with another picture's.
    """
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return f"data:{TYPES[path.suffix]};base64,{content}"
