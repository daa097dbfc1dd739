"""The table of docs/models.md, made from the adapters.

    .venv/bin/python docs/make_models_table.py [file]

writes what `gpcert.adapters.supported()` says of gpcert's own adapters between the two marks of
docs/models.md (or of the file given).
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpcert.adapters.registry import built_in, support_of

FILE = Path(__file__).parent / "models.md"
START, END = "<!-- table: start -->\n", "<!-- table: end -->\n"


def with_table(text: str) -> str:
    """The page with the table of today between its marks."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    table = support_of(built_in()).markdown()
    return f"{before}{START}\n{table}\n{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
