"""Names of features and of outputs in explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpcert.api.ranges import same_label
from gpcert.errors import InputError

MOST_SHOWN = 8
"""Features that a text names before it only counts them."""


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


def output_index(outputs: Sequence[Any], output: Any, classes: bool) -> int:
    """Which of the outputs a label means. None is the only one, or the second of two classes.

    >>> output_index(("no", "yes"), None, True), output_index(("no", "yes"), "no", True)
    (1, 0)
    """
    if output is None and (len(outputs) == 1 or (classes and len(outputs) == 2)):
        return len(outputs) - 1
    for index, label in enumerate(outputs):
        if output is not None and same_label(label, output):
            return index
    got = "none" if output is None else repr(output)
    raise InputError(f"output: expected one of {list(outputs)}, got {got}")
