"""The record of `effects`: intervals per point, output and feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Interval, Record
from gpcert.certificates.shown import MOST_ROWS, Shown
from gpcert.certificates.text import interval_text
from gpcert.errors import InputError
from gpcert.explain.names import output_index
from gpcert.extras import optional
from gpcert.plots.effects import plot_effects, plot_heat_map
from gpcert.rounding import TINY, gamma
from gpcert.search import StopReason

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Effects"]


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Record):
    """`lower <= Delta <= upper`, (points, outputs, features) each; see `gpcert.explain.effects`.

    `outputs` are the labels of all classes (of two classes either has minus the other's effects),
    or numbers of targets; None is the one latent function of two classes. `labels` name the points:
    the index of a data frame, or 0, 1, ... `averaged` counts the points of which this is the mean,
    0 if it is none. `method` is the family of bounds, `model` the posterior's fingerprint.
    """

    kind: ClassVar[str] = "effects"

    X: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    outputs: tuple[Any, ...]
    quantity: str
    radius: np.ndarray
    reason: StopReason
    boxes: int
    seconds: float
    labels: tuple[Any, ...]
    method: str = "taylor"
    model: str = ""
    averaged: int = 0

    @property
    def values(self) -> np.ndarray:
        """The middles of the intervals; NaN where nothing is known."""
        with np.errstate(invalid="ignore"):
            return 0.5 * self.lower + 0.5 * self.upper

    @property
    def converged(self) -> bool:
        """Whether every interval is as narrow as was asked for."""
        return self.reason is StopReason.CONVERGED

    def interval(self, feature: int | str, *, point: int = 0, output: Any = None) -> Interval:
        """The effect of one feature, by name or index in the model."""
        known = self.feature_names if isinstance(feature, str) else self.features
        if feature not in known:
            raise InputError(f"feature: expected one of {list(known)[:9]}, got {feature!r}")
        place = (point, self._output(output), list(known).index(feature))
        return Interval(float(self.lower[place]), float(self.upper[place]))

    def of(self, output: Any) -> Effects:
        """The effects on one output."""
        k = self._output(output)
        lower, upper = self.lower[:, [k]], self.upper[:, [k]]
        return replace(self, lower=lower, upper=upper, outputs=(self.outputs[k],))

    def mean(self) -> Effects:
        """The average over the points: the interval that follows from theirs, rounded outward."""
        n = len(self.lower)
        slack = [
            gamma(n + 4) * np.abs(side).sum(axis=0, keepdims=True) / n + TINY
            for side in (self.lower, self.upper)
        ]
        return replace(
            self,
            X=self.X.mean(axis=0, keepdims=True),
            lower=self.lower.mean(axis=0, keepdims=True) - slack[0],
            upper=self.upper.mean(axis=0, keepdims=True) + slack[1],
            labels=("mean",),
            averaged=n,
        )

    def ranking(self, *, point: int = 0, output: Any = None) -> np.ndarray:
        """Features (indices in the model), the largest effect first."""
        size = np.abs(self.values[point, self._output(output)])
        return np.asarray(self.features)[np.argsort(-size, kind="stable")]

    def to_frame(self) -> pd.DataFrame:
        """One row per point, output and feature."""
        pandas = optional("pandas", "to_frame")
        P, C, F = self.lower.shape
        return pandas.DataFrame(
            {
                "point": np.repeat(np.array(self.labels, dtype=object), C * F),
                "output": np.tile(np.repeat(np.array(self.outputs, dtype=object), F), P),
                "feature": np.tile(np.array(self.feature_names, dtype=object), P * C),
                "lower": self.lower.ravel(),
                "upper": self.upper.ravel(),
            }
        )

    def plot(
        self, ax: Axes | None = None, *, point: int = 0, output: Any = None, most: int = 20
    ) -> Axes:
        """Bars with the proved intervals, the `most` largest effects; returns the Axes."""
        k = self._output(output)
        bounds = (self.lower[point, k], self.upper[point, k])
        return plot_effects(ax, self.feature_names, *bounds, label=self._label(k), most=most)

    def heat_map(
        self, shape: tuple[int, int], ax: Axes | None = None, *, point: int = 0, output: Any = None
    ) -> Axes:
        """The effects of an image's pixels: red raises the output, blue lowers it."""
        k = self._output(output)
        values = np.zeros(self.X.shape[1])
        values[list(self.features)] = self.values[point, k]
        return plot_heat_map(ax, values, shape, label=self._label(k), image=self.X[point])

    def to_shap(self, *, output: Any = None) -> Any:
        """A `shap.Explanation` of the middles with lower and upper bounds (extra `explain`)."""
        from gpcert.explain.shap_format import shap_explanation

        return shap_explanation(self, self._output(output))

    def _output(self, output: Any) -> int:
        return output_index(self.outputs, output, self.quantity == "probability")

    def inputs(self) -> list[np.ndarray]:
        """X."""
        return [self.X]

    def check(self) -> None:
        """Bounds of the points, outputs and features, the lower ones not above the upper ones."""
        super().check()
        shape = (len(self.X), len(self.outputs), len(self.features))
        if self.X.ndim != 2 or not self.lower.shape == self.upper.shape == shape:
            raise InputError(f"lower, upper: expected shape {shape}, got {self.lower.shape}")
        if {len(self.feature_names), len(self.radius)} != {shape[2]} or (
            len(self.labels) != shape[0] or not set(self.features) <= set(range(self.X.shape[1]))
        ):
            raise InputError("expected names and radii of the features, and labels of the points")
        if not np.all(self.lower <= self.upper):
            raise InputError("effects: expected lower <= upper")

    def _label(self, k: int) -> str:
        if self.quantity == "probability":
            return f"effect on the probability of {self.outputs[k]}"
        several = f" of output {self.outputs[k]}" if len(self.outputs) > 1 else ""
        return f"effect on the {self.quantity}{several}"

    def __repr__(self) -> str:
        P, C, F = self.lower.shape
        width = float(np.max(self.upper - self.lower, initial=0.0))
        mean = f", mean of {self.averaged}" if self.averaged else ""
        return f"Effects({P} points, {C} outputs, {F} features, width <= {width:.3g}{mean})"

    def shown(self) -> Shown:
        """The largest effects at the first point on the last output, rounded outwards."""
        output = self.outputs[-1]
        rows = [
            (
                self.feature_names[self.features.index(int(j))],
                interval_text(self.interval(int(j), output=output)),
            )
            for j in self.ranking(output=output)[:MOST_ROWS]
        ]
        label = self._label(len(self.outputs) - 1)
        notes = [] if self.averaged else [f"at point {self.labels[0]}"]
        if len(self.features) > MOST_ROWS:
            notes.append(f"the largest of {len(self.features)}: to_frame() has all")
        return Shown(repr(self), ("feature", label), rows, notes)
