"""The answer about fairness: whether a model treats alike who differs in protected features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.certificates.record import COST, RecordTable, Searched
from gpcert.certificates.text import (
    Interval,
    Status,
    TextTable,
    above,
    below,
    cost_text,
    interval_text,
    region_text,
    short,
)
from gpcert.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class Fairness(Searched, kind="fairness", told="status margin protected reason"):
    """Whether predictions are alike for all x of a region and all others whose protected features
    have any of the given values and whose other features are within `radii` of x, in units of them
    measured by `norm` (none: the same).

    `margin` bounds the least margin: with `delta`, delta less the largest difference; with a
    `threshold` by how far all predictions lie on one side of it, negative where one lies below and
    another above; with neither, of several classes, by how much the one that is decided for all
    leads. ROBUST: treated alike, proved. NOT_ROBUST: not, by the two points of `pair` (2, d), whose
    proved predictions (of several classes: the leads of their `decisions`) are `values` (all empty
    otherwise). `protected` are the features' values.
    """

    status: Status
    margin: Interval
    pair: np.ndarray
    values: tuple[Interval, ...]
    protected: Mapping[str, Any]
    delta: float | None
    threshold: float | None
    radii: np.ndarray
    norm: float
    output: Any
    region: dict[str, Any]
    meaning: str = ""
    decisions: tuple[Any, ...] = ()

    @property
    def claim(self) -> str:
        """What is asked, as a sentence."""
        who = f"for all values of {', '.join(map(repr, self.protected))}"
        if np.any(self.radii):
            who = f"{who} and similar individuals"
        if self.delta is not None:
            return f"{self.meaning} differs by at most {self.delta:g} {who}"
        if self.threshold is None:
            return f"{self.meaning} is the same {who}"
        return f"{self.meaning} stays on one side of {self.threshold:g} {who}"

    @property
    def summary(self) -> str:
        """What is proved, refuted or neither, as a sentence."""
        if self.status is Status.ROBUST:
            return f"proved: {self.claim}, for everyone in the region"
        if self.status is Status.NOT_ROBUST:
            return f"refuted: {self.claim}"
        return f"not decided: whether {self.claim}; {self.reason.value}"

    def shown(self) -> TextTable:
        rows = {self.status.name: self.summary, "margin": f"least one {interval_text(self.margin)}"}
        if len(self.values):
            told = (f"between {below(v.lower)} and {above(v.upper)}" for v in self.values)
            points = " and ".join(short(x, "x") for x in self.pair)
            if self.decisions:
                told = (f"class {label}" for label in self.decisions)
            rows["counter-example"] = f"{' and '.join(told)}, at {points}"
        if np.any(self.radii):
            rows["similar"] = f"{short(self.radii, 'radii')}, l_{self.norm:g}"
        rows["region"] = region_text(self.region)
        rows["cost"] = cost_text(self)
        return TextTable("", (), list(rows.items()))

    def check(self) -> None:
        super().check()
        refuted = len(self.pair) == 2
        if not self.norm >= 1:
            raise InputError(f"norm: expected a number >= 1, got {self.norm!r}")
        if self.delta is not None and self.threshold is not None:
            raise InputError("delta, threshold: expected one of them at most")
        if len(self.decisions) not in {0, len(self.pair)}:
            raise InputError("decisions: expected those of the two points of pair, or none")
        if len(self.values) != len(self.pair) or len(self.pair) not in {0, 2}:
            raise InputError("values: expected those of the two points of pair, or none")
        if (self.status is Status.NOT_ROBUST) != refuted:
            raise InputError("status: expected NOT_ROBUST with a pair, and with nothing else")
        if self.status is Status.ROBUST and self.margin.lower < 0:
            raise InputError("status: expected a margin that is proved of what is ROBUST")

    def inputs(self) -> list[np.ndarray]:
        return [self.pair] if self.pair.size else []

    def __bool__(self) -> bool:
        raise InputError(
            "a verdict is not a truth value (one that refutes would pass as true): compare "
            'status, as in status == "ROBUST"'
        )


@dataclass(frozen=True, eq=False, repr=False)
class FairnessTable(
    RecordTable[Fairness], kind="fairnesses", columns=f"status margin {COST}", counted="verdicts"
):
    """Verdicts on fairness, one row for each region."""

    @property
    def summary(self) -> str:
        statuses = [row.status for row in self]
        return ", ".join(f"{statuses.count(s)} {s.name}" for s in Status if s in statuses)
