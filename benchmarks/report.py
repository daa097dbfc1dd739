"""Results on disk: one JSON file with all sections, and the same as readable tables."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environment import environment

Row = dict[str, Any]
RESULTS = Path(__file__).parent / "results"


def command_line(text: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    return parser


@dataclass
class Section:
    """One table of measurements; `notes` say how they were taken."""

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, **row: Any) -> None:
        """Add a row, and print it so that a long run can be watched."""
        self.rows.append(row)
        print("  " + ", ".join(f"{name} {shown(value)}" for name, value in row.items()), flush=True)


def shown(value: Any) -> str:
    """Short text of a table's entry."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{shown(v)} {k}" for k, v in value.items())
    return str(value)


def merge(folder: Path, section: Section, kind: str, document: str = "engine") -> None:
    """Replace the section in the document's JSON file and write its tables anew."""
    path = folder / f"{document}.json"
    folder.mkdir(parents=True, exist_ok=True)
    everything = json.loads(path.read_text()) if path.exists() else {}
    everything[kind] = {
        "title": section.title,
        "environment": environment(),
        "notes": section.notes,
        "rows": section.rows,
    }
    path.write_text(json.dumps(everything, indent=2) + "\n")
    (folder / f"{document}.md").write_text(_text(everything, document))


def _text(everything: dict[str, Any], document: str) -> str:
    lines = [f"# Figures: {document}", ""]
    lines += [f"Written by `benchmarks/{document}.py`; the numbers are in `{document}.json`.", ""]
    for kind, section in everything.items():
        lines += [f"## {section['title']} (`{kind}`)", ""]
        lines += _table(section["rows"])
        lines += [""] + [f"- {note}" for note in section["notes"]]
        where = ", ".join(
            f"{name} {shown(value)}"
            for name, value in section["environment"].items()
            if value not in (None, "absent")
        )
        lines += [f"- Measured with: {where}.", ""]
    return "\n".join(lines)


def _table(rows: list[Row]) -> list[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = ["| " + " | ".join(column.replace("_", " ") for column in columns) + " |"]
    rule = ["|" + " --- |" * len(columns)]
    body = ["| " + " | ".join(shown(row.get(c)) for c in columns) + " |" for row in rows]
    return head + rule + body
