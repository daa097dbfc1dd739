"""The record of a smallest reason, and of the certificates behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.certificates import Interval, Status
from gpcert.certificates.record import COST, RecordTable, Searched, cells_of
from gpcert.certificates.text import Shown, region_text
from gpcert.errors import InputError
from gpcert.explain.arguments import shown
from gpcert.extras import Axes, DataFrame, optional
from gpcert.plots.explanations import plot_kept_features, plot_kept_pixels
from gpcert.search import StopReason


@dataclass(frozen=True)
class Step:
    """One certificate: these features free, all others as at x."""

    free: tuple[int, ...]
    status: Status
    margin: Interval
    decision: Any
    rule: str
    reason: StopReason
    boxes: int
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Reason(Searched, kind="reason"):
    """A sufficient or contrastive reason; see `gpcert.explain.sufficient` and `contrastive`.

    `what` is "sufficient" or "contrastive", `features` the set; `undecided` are those of it that
    might be superfluous (their step ended without a verdict, or Ctrl-C came first); `movable` all
    features that the region lets move; `counterexample` the flipped point of a contrastive reason;
    `steps` every certificate asked for. `reason` is DECIDED, or why the first step without a
    verdict ended, `unit` what the steps' margins are measured in.
    """

    what: str
    x: np.ndarray | None
    decision: Any
    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    undecided: tuple[int, ...]
    movable: tuple[int, ...]
    counterexample: np.ndarray | None
    steps: tuple[Step, ...]
    rule: str
    region: dict[str, Any]
    unit: str = ""

    @property
    def minimal(self) -> bool:
        """Whether it is proved that no feature of the set can be left out."""
        return self.found and not self.undecided

    @property
    def found(self) -> bool:
        """Whether there is a reason: a region that holds one decision has no contrastive one."""
        return self.what == "sufficient" or self.counterexample is not None

    def to_frame(self) -> DataFrame:
        """One row per step."""
        pandas = optional("pandas", "to_frame")
        rows = [
            {"free": len(step.free), **cells_of(step, "status margin boxes seconds")}
            for step in self.steps
        ]
        return pandas.DataFrame(rows)

    def plot(self, ax: Axes | None = None, *, shape: tuple[int, int] | None = None) -> Axes:
        """The image of this shape with the pixels of the reason marked; without a shape the
        features that the region lets move, and which of them are the reason. Returns the Axes."""
        if shape is None:
            return ReasonTable((self,), labels=("",)).plot(ax)
        title = f"{len(self.features)} pixels {'prove' if self.what == 'sufficient' else 'flip'}"
        assert self.x is not None
        shown_image = self.x if self.counterexample is None else self.counterexample
        decision = "" if self.decision is None else f" {self.decision}"
        open_ = f"\n(dotted: {len(self.undecided)} perhaps superfluous)" if self.undecided else ""
        return plot_kept_pixels(
            ax,
            shown_image,
            self.features,
            shape,
            title=title + decision + open_,
            weak=self.undecided,
        )

    def __repr__(self) -> str:
        tail = "" if not self.undecided else f", {len(self.undecided)} undecided"
        return f"Reason({self.what}, {len(self.features)} of {len(self.movable)} features{tail})"

    def shown(self) -> Shown:
        rows = [(f"{self.what} reason", self._words())]
        if self.undecided:
            text = f"{len(self.undecided)} of them may be superfluous (undecided)"
            rows.append(("minimal", text))
        elif self.found:
            rows.append(("minimal", "proved: none of them can be left out"))
        rows += [
            ("rule", self.rule),
            ("region", region_text(self.region)),
            ("cost", f"{len(self.steps)} certificates, {self.boxes} boxes, {self.seconds:.3g} s"),
        ]
        return Shown("", (), rows)

    def _words(self) -> str:
        if not self.found:
            proved = self.steps[-1].status is Status.ROBUST
            return "none: " + (
                "the region holds one decision (proved)" if proved else "not decided in the budget"
            )
        what = "kept as they are, prove" if self.what == "sufficient" else "changed alone, flip"
        return f"{shown(self.feature_names)}: {what} the decision {self.decision}"

    def check(self) -> None:
        super().check()
        if self.what not in {"sufficient", "contrastive"} or self.x is None:
            raise InputError(f"what: expected sufficient or contrastive, and x, got {self.what!r}")
        inside = set(self.features) <= set(self.movable) <= set(range(len(self.x)))
        if not inside or len(self.feature_names) != len(self.features) or not self.steps:
            raise InputError("features: expected movable features with names, and some steps")


@dataclass(frozen=True, eq=False, repr=False)
class ReasonTable(RecordTable[Reason], kind="reasons"):
    """Reasons of several points."""

    def cells(self, row: Reason) -> dict[str, Any]:
        return {
            **cells_of(row, "what decision found"),
            "features": " ".join(row.feature_names),
            "count": len(row.features),
            "undecided": len(row.undecided),
            "steps": len(row.steps),
            **cells_of(row, COST),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """One row a point, one column a feature: which are in its reason; returns the Axes."""
        names: dict[int, str] = {}
        for row in self:
            names |= {j: f"x{j}" for j in row.movable if j not in names}
            names |= dict(zip(row.features, row.feature_names, strict=True))
        places = sorted(names)
        marks = [
            [(j in row.movable) + (j in row.features) + (j in row.undecided) for j in places]
            for row in self
        ]
        kinds = {row.what for row in self}
        title = f"{kinds.pop()} reason" if len(kinds) == 1 else "reasons"
        return plot_kept_features(
            ax, np.array(marks), self.labels, [names[j] for j in places], title=title
        )
