"""A safety curve: what is known at each radius, as a table that draws itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Interval, Record, Status
from gpcert.certificates.schema import ADDED
from gpcert.certificates.table import RecordTable
from gpcert.errors import InputError
from gpcert.plots.safety import plot_safety
from gpcert.search import StopReason

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SafetyCurve", "SafetyStep"]


@dataclass(frozen=True, eq=False, repr=False)
class SafetyStep(Record):
    """One radius of a safety curve around x.

    `minimum` and `maximum` bound the least and the greatest `quantity` in the ball, as in a
    `PredictionRange`; the attained ends are attained at `argmin` and `argmax`. `status` is the
    verdict on the decision at x. `attack` is the value that the attack `attacked_by` reached, plain
    floating point, at `attack_point`. The decision at x holds while the value lies between
    `lower_level` and `upper_level` (None: no such end, and none at all for several classes).
    `scale` is the unit of the radius, one number per feature, if it has one.
    """

    kind: ClassVar[str] = "safety_step"
    told: ClassVar[tuple[str, ...]] = ("radius", "minimum", "maximum", "attack", "status")

    radius: float
    minimum: Interval
    maximum: Interval
    argmin: np.ndarray | None
    argmax: np.ndarray | None
    status: Status
    attack: float
    attack_point: np.ndarray | None
    attacked_by: str
    value: float
    lower_level: Any
    upper_level: Any
    decision: Any
    quantity: str
    reason: StopReason
    boxes: int
    seconds: float
    region: dict[str, Any]
    method: str = "taylor"
    model: str = ""
    scale: np.ndarray | None = field(default=None, metadata=ADDED)

    def check(self) -> None:
        """The smallest value is not above the largest."""
        super().check()
        if not self.minimum.lower <= self.maximum.upper:
            raise InputError("minimum and maximum: expected minimum.lower <= maximum.upper")


@dataclass(frozen=True, eq=False, repr=False)
class SafetyCurve(RecordTable[SafetyStep]):
    """Steps of growing radius around one point."""

    kind: ClassVar[str] = "safety_curve"
    row_kind: ClassVar[type[Record]] = SafetyStep

    @property
    def radii(self) -> np.ndarray:
        """The radii, growing."""
        return np.array([step.radius for step in self])

    @property
    def safe_up_to(self) -> float | None:
        """The largest of the radii at which the decision is proved, if there is one."""
        return max((step.radius for step in self if step.status is Status.ROBUST), default=None)

    @property
    def first_unsafe(self) -> float | None:
        """The smallest of the radii at which a counter-example is known, if there is one."""
        return min((step.radius for step in self if step.status is Status.NOT_ROBUST), default=None)

    @staticmethod
    def cells(row: SafetyStep) -> dict[str, Any]:
        """Radius, bounds, the attack's value, verdict, cost."""
        return {
            "radius": row.radius,
            "minimum_lower": row.minimum.lower,
            "minimum_upper": row.minimum.upper,
            "maximum_lower": row.maximum.lower,
            "maximum_upper": row.maximum.upper,
            "attack": row.attack,
            "status": row.status.name,
            "boxes": row.boxes,
            "seconds": row.seconds,
            "reason": row.reason.name,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """The paper's picture: bounds solid, attained values dashed, the attack, the threshold, and
        the first radius that is not safe; returns the Axes."""
        return plot_safety(
            ax,
            self.to_frame(),
            levels=[
                level for level in (self[0].lower_level, self[0].upper_level) if level is not None
            ],
            label=self[0].quantity,
            attack=self[0].attacked_by,
            first_unsafe=self.first_unsafe,
        )

    def __repr__(self) -> str:
        return (
            f"SafetyCurve({len(self)} radii, safe up to {self.safe_up_to}, "
            f"first unsafe {self.first_unsafe})"
        )
