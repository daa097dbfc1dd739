"""The record of a smallest reason, and of the certificates behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Certificate, Interval, Status
from gpcert.explain.record import Explanation, plain, shown
from gpcert.plots.reasons import plot_kept_pixels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Reason", "Step"]


@dataclass(frozen=True)
class Step:
    """One certificate: these features free, all others as at x."""

    free: tuple[int, ...]
    status: Status
    margin: Interval
    decision: Any
    rule: str
    boxes: int
    seconds: float

    @staticmethod
    def of(free: Sequence[int], certificate: Certificate) -> Step:
        """What is kept of a certificate."""
        return Step(
            tuple(sorted(free)),
            certificate.status,
            certificate.margin,
            certificate.decision,
            certificate.rule,
            certificate.boxes,
            certificate.seconds,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "free": list(self.free),
            "status": self.status.name,
            "margin": [self.margin.lower, self.margin.upper],
            "decision": self.decision,
            "rule": self.rule,
            "boxes": self.boxes,
            "seconds": self.seconds,
        }

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Step:
        """Inverse of `to_dict`."""
        fields = dict(record)
        fields["free"] = tuple(fields["free"])
        fields["status"] = Status[fields["status"]]
        fields["margin"] = Interval(*fields["margin"])
        return Step(**fields)


@dataclass(frozen=True, eq=False, repr=False)
class Reason(Explanation):
    """A sufficient or contrastive reason; see `gpcert.explain.sufficient` and `contrastive`.

    `features` is the set; `undecided` are those of it that might be superfluous (their step ended
    without a verdict); `movable` all features that the region lets move; `counterexample` the
    flipped point of a contrastive reason; `steps` every certificate asked for.
    """

    kind: ClassVar[str] = "reason"

    reason: str
    x: np.ndarray
    decision: Any
    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    undecided: tuple[int, ...]
    movable: tuple[int, ...]
    counterexample: np.ndarray | None
    steps: tuple[Step, ...]
    region: dict[str, Any]
    rule: str
    seconds: float

    @property
    def minimal(self) -> bool:
        """Whether it is proved that no feature of the set can be left out."""
        return self.found and not self.undecided

    @property
    def found(self) -> bool:
        """Whether there is a reason: a region that holds one decision has no contrastive one."""
        return self.reason == "sufficient" or self.counterexample is not None

    def to_frame(self) -> pd.DataFrame:
        """One row per step."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "free": len(step.free),
                    "status": step.status.name,
                    "margin_lower": step.margin.lower,
                    "margin_upper": step.margin.upper,
                    "boxes": step.boxes,
                    "seconds": step.seconds,
                }
                for step in self.steps
            ]
        )

    def plot(self, ax: Axes | None = None, *, shape: tuple[int, int]) -> Axes:
        """The image with the pixels of the reason marked; returns the Axes."""
        title = f"{len(self.features)} pixels {'prove' if self.reason == 'sufficient' else 'flip'}"
        shown_image = self.x if self.counterexample is None else self.counterexample
        decision = "" if self.decision is None else f" {self.decision}"
        return plot_kept_pixels(
            ax, shown_image, self.features, shape, title=title + decision, weak=self.undecided
        )

    def __repr__(self) -> str:
        tail = "" if not self.undecided else f", {len(self.undecided)} undecided"
        return f"Reason({self.reason}, {len(self.features)} of {len(self.movable)} features{tail})"

    def __str__(self) -> str:
        if not self.found:
            proved = self.steps[-1].status is Status.ROBUST
            return "no contrastive reason: " + (
                "the region holds one decision (proved)" if proved else "not decided in the budget"
            )
        what = "kept as they are, prove" if self.reason == "sufficient" else "changed alone, flip"
        lines = [f"{shown(self.feature_names)}: {what} the decision {self.decision}"]
        if self.undecided:
            lines.append(f"{len(self.undecided)} of them may be superfluous (undecided)")
        lines.append(f"{len(self.steps)} certificates, {self.seconds:.2f} s")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "reason": self.reason,
            "x": plain(self.x),
            "decision": self.decision,
            "features": list(self.features),
            "feature_names": list(self.feature_names),
            "undecided": list(self.undecided),
            "movable": list(self.movable),
            "counterexample": None if self.counterexample is None else plain(self.counterexample),
            "steps": [step.to_dict() for step in self.steps],
            "region": self.region,
            "rule": self.rule,
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Reason:
        """Inverse of `to_dict`."""
        fields = {name: value for name, value in record.items() if name != "kind"}
        fields["x"] = np.array(fields["x"], dtype=np.float64)
        if fields["counterexample"] is not None:
            fields["counterexample"] = np.array(fields["counterexample"], dtype=np.float64)
        for name in ("features", "feature_names", "undecided", "movable"):
            fields[name] = tuple(fields[name])
        fields["steps"] = tuple(Step.from_dict(step) for step in fields["steps"])
        return cls(**fields)
