"""The results of full runs in docs/results: tables, figures and report, small enough to keep.

    python docs/make_results.py DIR

DIR is the output folder of `gpcert reproduce`; what it does not have yet stays as it is. Numbers
are rounded to five digits. Findings and figures are made anew from the tables;
`python docs/make_results.py docs/results` does only that. Results of another version or of other
settings stay as they are: today's rules are not theirs, and docs/results/README.md names them.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

from PIL import Image

from gpcert.study.experiments import is_current, redraw
from gpcert.study.experiments.results import FILE, read_all
from gpcert.study.report import write_report

PLACE = Path(__file__).parent / "results"
LARGEST_CSV = 40_000
"""Bytes; longer tables are in `result.json` only."""
COLOURS = 128


DIGITS = 5
"""Significant digits that are kept of numbers."""


def _rounded(value: Any) -> Any:
    """The value with all numbers in it rounded."""
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return value


def keep(folder: Path) -> None:
    """One experiment's result in its own folder of docs/results."""
    place = PLACE / folder.name
    place.mkdir(parents=True, exist_ok=True)
    path = place / FILE
    path.write_text(json.dumps(_rounded(json.loads((folder / FILE).read_text()))))
    redraw(folder.name, PLACE)
    path.write_text(json.dumps(json.loads(path.read_text()), separators=(",", ":")) + "\n")
    for path in place.iterdir():
        if path.suffix == ".svg" or (path.suffix == ".csv" and path.stat().st_size > LARGEST_CSV):
            path.unlink()
        elif path.suffix == ".png":
            Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    for folder, result in read_all(sys.argv[1]).items():
        if is_current(result):
            keep(folder)
        else:
            sys.stderr.write(f"{folder.name}: other settings or another version; left as it is\n")
    write_report(PLACE, format="markdown")
