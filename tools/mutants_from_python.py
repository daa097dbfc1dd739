"""For branches begun while mutants were Python: bring what they changed into mutants.toml.

    python tools/mutants_from_python.py REF [BASE]

REF is the branch; BASE where it left main (the merge base with main). Mutants that REF added,
changed or removed since BASE are written into the table; nothing else of it changes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "mutants.toml"
HEAD = """\
# The seeded mutants: one wrong line each, and the tests that must notice (tools/mutants.py).
#
# ["file under src/gpcert".name]
# old: text found exactly once in the file; new: what it becomes; why: what is wrong with that
# tests: arguments of pytest; slow = true where only the tests of `make test-slow` notice
"""
DUMP = """
import json, dataclasses, mutant_list
print(json.dumps([dataclasses.asdict(m) for m in mutant_list.MUTANTS]))
"""


def python_mutants(ref: str) -> dict[str, dict]:
    """The mutants of a commit by name, where they are still Python."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", ref, "tools"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        tools = Path(folder) / "tools"
        out = subprocess.run(
            [sys.executable, "-c", DUMP], cwd=tools, capture_output=True, text=True, check=True
        ).stdout
    return {m["name"]: m for m in json.loads(out)}


def table_mutants() -> dict[str, dict]:
    """The mutants of the table by name."""
    if not TABLE.exists():
        return {}
    with TABLE.open("rb") as stream:
        files = tomllib.load(stream)
    return {n: {"name": n, "file": f, **m} for f, ms in files.items() for n, m in ms.items()}


def trimmed(m: dict) -> dict:
    """Without the indentation and the end of line that both texts share, if still unique."""
    path = ROOT / "src" / "gpcert" / m["file"]
    source = path.read_text(encoding="utf-8") if path.exists() else ""
    old, new = m["old"], m["new"]
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    if "\n" not in old + new:
        blank = min(len(t) - len(t.lstrip()) for t in (old, new))
        old, new = old[blank:], new[blank:]
    unique = source.count(old) == 1 and old != new
    return {**m, "old": old, "new": new} if unique else m


def quoted(text: str) -> str:
    """A literal string of TOML."""
    assert "'" not in text
    return f"'''\n{text}'''" if "\n" in text else f"'{text}'"


def entry(m: dict) -> str:
    """One mutant in TOML."""
    lines = [f'["{m["file"]}".{m["name"]}]']
    lines += [f"old = {quoted(m['old'])}", f"new = {quoted(m['new'])}"]
    lines += [f"why = {json.dumps(m['why'], ensure_ascii=False)}"]
    lines += [f"tests = {json.dumps(m['tests'])}"]
    lines += ["slow = true"] if m.get("slow") else []
    return "\n".join(lines) + "\n"


def main() -> None:
    """Apply what REF changed since BASE."""
    ref = sys.argv[1]
    base = python_mutants(sys.argv[2]) if len(sys.argv) > 2 else {}
    mine, table = python_mutants(ref), table_mutants()
    for name in base.keys() - mine.keys():
        table.pop(name, None)
    for name, m in mine.items():
        if m != base.get(name):
            table[name] = trimmed(m)
    ordered = sorted(table.values(), key=lambda m: m["file"])
    TABLE.write_text("\n".join([HEAD, *map(entry, ordered)]), encoding="utf-8")
    assert table_mutants() == {n: table[n] for n in table_mutants()}
    assert len(table_mutants()) == len(table)


if __name__ == "__main__":
    main()
