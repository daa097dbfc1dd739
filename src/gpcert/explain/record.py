"""What all answers of `gpcert.explain` share: they save and load as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from gpcert.certificates.io import load_record, write_record

__all__ = ["Explanation", "named", "plain", "shown"]

E = TypeVar("E", bound="Explanation")

MOST_SHOWN = 8
"""Features that a text names before it only counts them."""


class Explanation:
    """A frozen record; subclasses say their `kind` and build themselves from `to_dict`."""

    kind: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls: type[E], record: dict[str, Any]) -> E:
        """Inverse of `to_dict`."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        write_record(path, {"kind": self.kind, **self.to_dict()})

    @classmethod
    def load(cls: type[E], path: str | Path) -> E:
        """Read what `save` wrote."""
        return load_record(path, cls.kind, cls.from_dict)


def named(names: tuple[str, ...] | None, dim: int) -> tuple[str, ...]:
    """The model's names of its features, or x0, x1, ...

    >>> named(None, 2), named(("age", "bmi"), 2)
    (('x0', 'x1'), ('age', 'bmi'))
    """
    return tuple(f"x{j}" for j in range(dim)) if names is None else tuple(map(str, names))


def shown(names: tuple[str, ...]) -> str:
    """A few names, and how many more there are.

    >>> shown(("a", "b")), shown(())
    ('a, b', 'none')
    """
    if not names:
        return "none"
    if len(names) <= MOST_SHOWN:
        return ", ".join(names)
    return ", ".join(names[:MOST_SHOWN]) + f", ... ({len(names)} in all)"


def plain(values: np.ndarray) -> list[Any]:
    """Nested lists of floats."""
    return np.asarray(values, dtype=np.float64).tolist()
