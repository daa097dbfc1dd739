"""What a run on shadow arrays saw of the counts of roundings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from gpcert.testing.rounding.arrays import Shadow
from gpcert.testing.rounding.rules import plain
from gpcert.testing.rounding.sources import Count

TOLERANCE = 1e-5
"""Of a count: what terms that are tiny beside the others add to it."""


@dataclass
class Need:
    """What was seen at one count: how often it was used, and how large it had to be."""

    runs: int = 0
    of_allowances: int = 0
    """Runs on what is an allowance for the most part, whose own accuracy is of second order."""
    given: float = math.inf
    """The least count of a run."""
    weighted: float = 0.0
    """The largest error over `U |x|`: what the count had to be for these numbers."""
    counted: float = 0.0
    """The largest number of roundings, whatever the sizes of terms."""
    observed: float = 0.0
    """The largest share of the count that the errors of a run took."""
    share: float = 0.0
    """The largest share that was needed by counting; of a `gamma`, of its allowance."""

    def add(self, given: float, weighted: float, counted: float) -> None:
        """One more run."""
        self.runs += 1
        self.given = min(self.given, given)
        self.weighted, self.counted = max(self.weighted, weighted), max(self.counted, counted)
        self.observed = max(self.observed, weighted / max(given, 1.0))
        self.share = max(self.share, counted / max(given, 1.0))

    def join(self, other: Need) -> None:
        """With what another run saw."""
        self.runs += other.runs
        self.of_allowances += other.of_allowances
        self.given = min(self.given, other.given)
        for name in ("weighted", "counted", "observed", "share"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))

    @property
    def verdict(self) -> str:
        """In a word; `needed` counts are those whose half would be too small."""
        if self.runs == self.of_allowances and self.runs:
            return "second order"
        if self.share > 0.5:
            return "needed"
        return "generous" if self.share > 0.0 else "nothing seen"


@dataclass
class Ledger:
    """All that was seen; `faults` says in words where a count was too small."""

    halved: Count | None = None
    """A count that is taken for half of what stands there."""
    needs: dict[Count, Need] = field(default_factory=dict)
    faults: dict[Count | str, str] = field(default_factory=dict)

    def met(self, count: Count, x: Any, given: float, frame: FrameType) -> None:
        """A step over `given` roundings of x."""
        need = self.needs.setdefault(count, Need())
        if not isinstance(x, Shadow) or not x.size:
            need.add(given, 0.0, 0.0)
            return
        size = np.abs(plain(x))
        if np.any(x.allowance) and np.all((x.allowance > 0.25 * size) | ~(size > 0)):
            need.runs, need.of_allowances = need.runs + 1, need.of_allowances + 1
            return
        weighted, counted = (float(np.max(x.roundings(which))) for which in (False, True))
        need.add(given, weighted, counted)
        if weighted > given * (1.0 + TOLERANCE) and count not in self.faults:
            known, callers = ", ".join(_accuracies(frame.f_locals)), " < ".join(_callers(frame))
            text = f"needs {weighted:.3g}, has {given:g}; roundings: {known}; called by {callers}"
            self.faults[count] = text

    def used(self, count: Count, given: float) -> None:
        """An allowance of so many roundings is made."""
        need = self.needs.setdefault(count, Need())
        need.runs, need.given = need.runs + 1, min(need.given, given)

    def taken(self, count: Count, share: float) -> None:
        """Of an allowance, so much was needed."""
        need = self.needs.setdefault(count, Need())
        need.share = max(need.share, share)

    def stated(self, where: str, value: Shadow, error: Any) -> None:
        """A value, and what is stated for its error."""
        off, allowed = value.bounds[0] * 2.0**-53, np.asarray(plain(error))
        while off.ndim > allowed.ndim:
            off = np.sqrt(np.sum(off * off, axis=-1))
        with np.errstate(all="ignore"):
            share = float(np.max(np.where(off > 2.0**-900, off / allowed, 0.0), initial=0.0))
        for site in getattr(error, "sites", ()):
            if site.call == "gamma":
                self.taken(site, share)
        if not share <= 1.0 + TOLERANCE:
            self.faults.setdefault(where, f"is off by {share:.3g} times what it states")


def _accuracies(names: dict[str, Any]) -> Iterator[str]:
    """The largest count of roundings of each array among local names and fields of records."""
    for name, value in names.items():
        parts = {"": value}
        if dataclasses.is_dataclass(value):
            parts = {f".{key}": each for key, each in vars(value).items()}
        elif isinstance(value, list | tuple):
            parts = {f"[{i}]": each for i, each in enumerate(value)}
        for part, each in parts.items():
            if isinstance(each, Shadow) and each.size and np.any(each.roundings()):
                yield f"{name}{part} {np.max(each.roundings(False)):.3g}"


def _callers(frame: FrameType | None, most: int = 4) -> Iterator[str]:
    """The functions of the library that a frame was called by."""
    while frame is not None and most:
        if frame.f_globals.get("__name__", "").startswith("gpcert."):
            code = frame.f_code
            yield f"{Path(code.co_filename).stem}.{code.co_qualname}:{frame.f_lineno}"
            most -= 1
        frame = frame.f_back
