"""The same question asked another way must have the same answer: saved and loaded, on torch."""

from __future__ import annotations

import importlib.util
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.hunt.hunt_cases import Case
from tests.hunt.hunt_checks import Checker

CALM = 60.0
"""Seconds, which no case needs: what is answered within its own may depend on the machine's other
work (several points share their first boxes only where these are done in a part of the time)."""


def again(case: Case, answer: Any, counts: Counter[str]) -> list[str]:
    """Findings of the other ways, each taken for some of the cases."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        if case.seed % 9 == 0:
            counts["saved and loaded"] += 1
            found += _loaded(case, answer, Path(folder))
        if case.seed % 23 == 0 and importlib.util.find_spec("torch"):
            counts["torch"] += 1
            found += _torch(case, answer)
    return found


def records(answer: Any) -> list[Any]:
    """The records of an answer."""
    if hasattr(answer, "certificates"):
        return list(answer.certificates)
    return list(answer) if isinstance(answer, tuple) else [answer]


def plain(record: Any) -> dict[str, Any]:
    """A record without its time."""
    return {key: value for key, value in record.to_dict().items() if key != "seconds"}


def _loaded(case: Case, answer: Any, folder: Path) -> Iterator[str]:
    from gpcert.model.committee import load_model

    for record in records(answer):
        record.save(folder / "record.json")
        other = type(record).load(folder / "record.json")
        if record.to_dict() != other.to_dict():
            yield f"a loaded record differs: {record.to_dict()} {other.to_dict()}"
    if any(type(m.likelihood).__name__ == "Discretised" for m in case.model.members):
        return  # a function is code, and is not saved
    case.model.save(folder / "model.npz")
    calm = {"budget": replace(case.search["budget"], seconds=CALM)}
    answers = case.ask(**calm), case.ask(load_model(folder / "model.npz"), **calm)
    first, second = ([plain(r) for r in records(a)] for a in answers)
    if any(r["reason"] in {"TIME", "MEMORY"} for r in first + second):
        return
    if first != second:
        yield f"a loaded model answers differently: {first} {second}"


def _torch(case: Case, answer: Any) -> Iterator[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other = case.ask(backend="torch")
    for warning in caught:
        yield f"torch: warning: {str(warning.message)[:90]} ({Path(warning.filename).name})"
    for text in Checker(case).findings(other):
        yield f"torch: {text}"
    for one, two in zip(records(answer), records(other), strict=True):
        if not _meet(one, two):
            yield f"torch and NumPy contradict each other: {plain(one)} {plain(two)}"


def _meet(one: Any, two: Any) -> bool:
    """Whether both records can be true."""
    if hasattr(one, "status"):
        names = {one.status.name, two.status.name}
        return names != {"ROBUST", "NOT_ROBUST"} and _overlap(one.margin, two.margin)
    if hasattr(one, "minimum"):
        return _overlap(one.minimum, two.minimum) and _overlap(one.maximum, two.maximum)
    return max(one.lower, two.lower) <= np.nextafter(min(one.upper, two.upper), np.inf)


def _overlap(one: Any, two: Any) -> bool:
    return one.lower <= two.upper and two.lower <= one.upper
