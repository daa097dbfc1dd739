"""The record of `pixel_budget`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.explain.record import Explanation, plain
from gpcert.plots.pixels import plot_gaps

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["PixelBudget"]


@dataclass(frozen=True, eq=False, repr=False)
class PixelBudget(Explanation):
    """`lower <= smallest gap <= upper` per beta (B,), attained at `points` (B, d).

    `least_beta` is the smallest number of pixels, in the order of `ranking`, for which an image of
    another decision is known (`adversarial`), None if there is none; up to `safe_beta` it is proved
    that there is none (-1: of no beta asked for).
    """

    kind: ClassVar[str] = "pixel_budget"

    x: np.ndarray
    decision: Any
    method: str
    ranking: tuple[int, ...]
    betas: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray
    least_beta: int | None
    safe_beta: int
    adversarial: np.ndarray | None
    region: dict[str, Any]
    seconds: float

    def to_frame(self) -> pd.DataFrame:
        """One row per beta."""
        import pandas as pd

        columns = {"beta": self.betas, "gap_lower": self.lower, "gap_upper": self.upper}
        return pd.DataFrame(columns)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The gap against the number of pixels; returns the Axes."""
        return plot_gaps(ax, [(self.method, self.betas, self.lower, self.upper)])

    def __repr__(self) -> str:
        least = "none flips" if self.least_beta is None else f"{self.least_beta} pixels flip"
        return f"PixelBudget({self.method}, {len(self.betas)} betas, {least} {self.decision})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "x": plain(self.x),
            "decision": self.decision,
            "method": self.method,
            "ranking": list(self.ranking),
            "betas": list(self.betas),
            "lower": plain(self.lower),
            "upper": plain(self.upper),
            "points": plain(self.points),
            "least_beta": self.least_beta,
            "safe_beta": self.safe_beta,
            "adversarial": None if self.adversarial is None else plain(self.adversarial),
            "region": self.region,
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PixelBudget:
        """Inverse of `to_dict`."""
        fields = {name: value for name, value in record.items() if name != "kind"}
        for name in ("x", "lower", "upper", "points"):
            fields[name] = np.array(fields[name], dtype=np.float64)
        if fields["adversarial"] is not None:
            fields["adversarial"] = np.array(fields["adversarial"], dtype=np.float64)
        for name in ("ranking", "betas"):
            fields[name] = tuple(fields[name])
        return cls(**fields)
