"""What a seeded mutant is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mutant"]


@dataclass(frozen=True)
class Mutant:
    """Replace `old` (found exactly once in `file`, under src/gpcert) by `new`; run `tests`."""

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]
