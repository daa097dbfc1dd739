"""How long studies are: short where people wait for them, long in `make test-slow`.

`examples` is for property tests, `variants` and `crossed` are for long tests of many parameters.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from gpcert.numerics.arrays import Backend, backend_from_name

if TYPE_CHECKING:
    import pytest

THOROUGH = os.environ.get("GPCERT_THOROUGH", "") not in {"", "0"}


def examples(count: int, quick: int | None = None) -> int:
    """Examples of a property test: `count` in a thorough run; in every other `quick`, or else a
    fifth of them, four at least."""
    if THOROUGH:
        return count
    return min(count, max(4, count // 5)) if quick is None else quick


def variants(
    names: str | Sequence[str], values: Iterable[Any], quick: int = 1, **options: Any
) -> pytest.MarkDecorator:
    """`pytest.mark.parametrize(names, values)` for a long test: only the first `quick` values run
    in `make test`, all of them in `make test-slow`.

    Put first what differs most: every kind of answer should keep a quick variant.

    >>> mark = variants("side, m", [("low", 2), ("high", 3)])
    >>> [len(case.marks) for case in mark.args[1]]
    [0, 1]
    >>> variants("side", []).args[1]  # pytest skips the test
    []
    """
    axis = names if isinstance(names, str) else ",".join(names)
    return crossed({axis: values}, quick, **options)


def crossed(
    axes: Mapping[str, Iterable[Any]], quick: int | None = None, **options: Any
) -> pytest.MarkDecorator:
    """All combinations of the values of several axes, as a stack of `parametrize` gives them;
    `make test` runs a diagonal, in which every value of every axis comes at least once, or its
    first `quick` combinations.

    >>> mark = crossed({"side": ["low", "high"], "m, d": [(2, 1), (3, 1), (4, 2)]})
    >>> [case.values for case in mark.args[1] if not case.marks]
    [('low', 2, 1), ('low', 4, 2), ('high', 3, 1)]
    """
    import pytest

    names = ",".join(axes).replace(" ", "").split(",")
    values = [
        [tuple(value) if "," in axis else (value,) for value in row] for axis, row in axes.items()
    ]
    longest = max(len(row) for row in values)
    steps = range(longest if quick is None else quick)
    diagonal = {tuple(k % len(row) for row in values) for k in steps if all(values)}
    cases = []
    for places in product(*(range(len(row)) for row in values)):
        chosen = [part for row, k in zip(values, places, strict=True) for part in row[k]]
        marks = [] if places in diagonal else [pytest.mark.slow]
        cases.append(pytest.param(*chosen, marks=marks))
    return pytest.mark.parametrize(names, cases, **options)


def backend_or_skip(name: str) -> Backend:
    """The backend called `name`; skips the test where torch is missing."""
    if name == "torch":
        import pytest

        pytest.importorskip("torch")
    return backend_from_name(name)
