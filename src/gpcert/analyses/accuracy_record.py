"""Certified accuracy: what is known of each test point, and the curves that follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Record
from gpcert.certificates.schema import ADDED, number
from gpcert.certificates.table import RecordTable
from gpcert.errors import InputError
from gpcert.extras import optional
from gpcert.plots.accuracy import plot_accuracy
from gpcert.search import StopReason

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["CertifiedAccuracy", "TestPoint"]


@dataclass(frozen=True, eq=False, repr=False)
class TestPoint(Record):
    """One test point: whether its decision is `right`, and if so between which radii it breaks.

    Proved robust up to `lower`; a counter-example lies at distance `upper` (infinite if none is
    known). Points that are wrong have 0 for both. `scale` is the unit of the radii, if any.
    """

    __test__: ClassVar[bool] = False

    kind: ClassVar[str] = "accuracy_point"
    told: ClassVar[tuple[str, ...]] = ("label", "decision", "right", "lower", "upper", "norm")

    label: Any
    decision: Any
    right: bool
    lower: float
    upper: float
    norm: float
    reason: StopReason
    boxes: int
    seconds: float
    method: str = "taylor"
    model: str = ""
    scale: np.ndarray | None = field(default=None, metadata=ADDED)

    def check(self) -> None:
        """The radius lies in `[lower, upper]`."""
        super().check()
        if not 0 <= self.lower <= self.upper:
            raise InputError("expected 0 <= lower <= upper")


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedAccuracy(RecordTable[TestPoint]):
    """Test points, and `radii` at which their shares are reported."""

    kind: ClassVar[str] = "certified_accuracy"
    row_kind: ClassVar[type[Record]] = TestPoint

    radii: tuple[float, ...] = ()

    @property
    def accuracy(self) -> float:
        """Share of the points that are right, whatever their robustness."""
        return float(np.mean([row.right for row in self])) if len(self) else 0.0

    def certified(self, radii: Any = None) -> np.ndarray:
        """Shares of the points that are right and proved robust at the radii.

        A point whose proved radius is 0 is not proved at all, not even for the radius 0.
        """
        r = self._radii(radii)
        found = np.array([(row.right, row.lower) for row in self]).reshape(-1, 2)
        proved = (found[:, :1] > 0) & (found[:, 1:] > 0) & (found[:, 1:] >= r)
        return proved.mean(axis=0) if len(self) else 0.0 * r

    def attacked(self, radii: Any = None) -> np.ndarray:
        """Shares of the points that are right and for which no counter-example is known within the
        radii: the truth lies between `certified` and this."""
        r = self._radii(radii)
        found = np.array([(row.right, row.upper) for row in self]).reshape(-1, 2)
        return ((found[:, :1] > 0) & (found[:, 1:] > r)).mean(axis=0) if len(self) else 0.0 * r

    def curve(self, radii: Any = None) -> pd.DataFrame:
        """Radius, certified share, attacked share."""
        pandas = optional("pandas", "curve")
        return pandas.DataFrame(
            {
                "radius": self._radii(radii),
                "certified": self.certified(radii),
                "attacked": self.attacked(radii),
            }
        )

    @staticmethod
    def cells(row: TestPoint) -> dict[str, Any]:
        """Label, decision, bounds of the radius, cost."""
        return {
            "label": row.label,
            "decision": row.decision,
            "right": row.right,
            "lower": row.lower,
            "upper": row.upper,
            "norm": row.norm,
            "boxes": row.boxes,
            "seconds": row.seconds,
            "reason": row.reason.name,
        }

    def plot(self, ax: Axes | None = None, *, label: str = "") -> Axes:
        """Both curves over the radius, the band between them shaded; returns the Axes."""
        if not len(self):
            raise InputError("plot: expected at least one point, got an empty table")
        finite = [row.upper for row in self if row.right and np.isfinite(row.upper)]
        steps = {0.0, *self.radii, *finite, *(row.lower for row in self if row.right)}
        end = max(self.radii) if self.radii else max(steps)
        # a share changes just after a proved radius, and at a counter-example
        fine = np.unique([r for step in steps for r in (step, np.nextafter(step, np.inf))])
        fine = fine[fine <= end]
        return plot_accuracy(ax, fine, self.certified(fine), self.attacked(fine), label=label)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {**super().to_dict(), "radii": [float(radius) for radius in self.radii]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Any:
        """Inverse of `to_dict`."""
        if not isinstance(record, dict) or not isinstance(record.get("radii"), list):
            raise InputError("radii: expected a list of numbers")
        radii = tuple(map(number, record["radii"]))
        rest = super().from_dict({k: v for k, v in record.items() if k != "radii"})
        return cls(rest.rows, rest.complete, rest.labels, radii)

    def _radii(self, radii: Any) -> np.ndarray:
        chosen = self.radii if radii is None else radii
        return np.atleast_1d(np.asarray(chosen, dtype=np.float64))

    def __repr__(self) -> str:
        shares = [
            f"{r:g}: {low:.3f} to {high:.3f}"
            for r, low, high in zip(
                self.radii[:6], self.certified()[:6], self.attacked()[:6], strict=True
            )
        ]
        return (
            f"CertifiedAccuracy({len(self)} points, {self.accuracy:.3f} right; "
            f"robust at {'; '.join(shares)})"
        )
