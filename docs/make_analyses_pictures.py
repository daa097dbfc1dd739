"""The pictures of docs/analyses.md.

    .venv/bin/python docs/make_analyses_pictures.py [NAME ...]

writes docs/pictures/analyses/NAME.png, all of them by default. Needs matplotlib, no screen; LIME's
curves need the extra `gpcert[explain]` and are left out without it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from curve_pictures import PICTURES as CURVES
from explanation_pictures import PICTURES as EXPLANATIONS

FOLDER = Path(__file__).parent / "pictures" / "analyses"
DPI = 110
PICTURES = {**CURVES, **EXPLANATIONS}


def main(names: list[str]) -> None:
    """Draw the pictures of these names."""
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        sys.exit(f"expected names among {', '.join(PICTURES)}, got {', '.join(unknown)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or PICTURES:
        PICTURES[name]().savefig(FOLDER / f"{name}.png", dpi=DPI)


if __name__ == "__main__":
    main(sys.argv[1:])
