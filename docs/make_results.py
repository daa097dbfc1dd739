"""The results of full runs in docs/results: tables, figures and report, small enough to keep.

    python docs/make_results.py DIR

DIR is the output folder of `gpcert reproduce`; what it does not have yet stays as it is. Findings
and figures are made anew from the tables; `python docs/make_results.py docs/results` does only
that. Results of another version or of other settings stay as they are: today's rules are not
theirs, and docs/results/README.md names them.
"""

import json
import shutil
import sys
from pathlib import Path

from PIL import Image

from gpcert.study.experiments import is_current, redraw
from gpcert.study.experiments.results import FILE, read_all
from gpcert.study.report import write_report

PLACE = Path(__file__).parent / "results"
LARGEST_CSV = 40_000
"""Bytes; longer tables are in `result.json` only."""
COLOURS = 128


def keep(folder: Path) -> None:
    """One experiment's result in its own folder of docs/results."""
    place = PLACE / folder.name
    place.mkdir(parents=True, exist_ok=True)
    if folder.resolve() != place.resolve():
        shutil.copyfile(folder / FILE, place / FILE)
    redraw(folder.name, PLACE)
    path = place / FILE
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
