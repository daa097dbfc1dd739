"""Numbers per feature without a proof (LIME's, the gradient's), drawn like effects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.certificates import Record
from gpcert.certificates.shown import MOST_ROWS, Shown
from gpcert.errors import InputError
from gpcert.explain.names import output_index
from gpcert.extras import Axes, DataFrame, optional
from gpcert.plots.effects import plot_effects, plot_heat_map


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Record, kind="attribution"):
    """`values` (points, outputs, features), from the method that it names. Nothing is proved.

    `labels` name the points; they are "mean" of an average.
    """

    method: str
    X: np.ndarray
    values: np.ndarray
    outputs: tuple[Any, ...]
    feature_names: tuple[str, ...]
    labels: tuple[Any, ...]

    def mean(self) -> Attribution:
        """The average over the points."""
        X, values = self.X.mean(0, keepdims=True), self.values.mean(0, keepdims=True)
        return replace(self, X=X, values=values, labels=("mean",))

    def ranking(self, *, point: int = 0, output: Any = None) -> np.ndarray:
        """Features, the largest in size first."""
        size = np.abs(self.values[point, self._output(output)])
        return np.argsort(-size, kind="stable")

    def to_frame(self) -> DataFrame:
        """One row per point, output and feature."""
        pandas = optional("pandas", "to_frame")
        P, C, F = self.values.shape
        return pandas.DataFrame(
            {
                "point": np.repeat(np.array(self.labels, dtype=object), C * F),
                "output": np.tile(np.repeat(np.array(self.outputs, dtype=object), F), P),
                "feature": np.tile(np.array(self.feature_names, dtype=object), P * C),
                self.method: self.values.ravel(),
            }
        )

    def plot(
        self, ax: Axes | None = None, *, point: int = 0, output: Any = None, most: int = 20
    ) -> Axes:
        """Bars as in `Effects.plot`, without intervals: nothing is proved."""
        k = self._output(output)
        values = self.values[point, k]
        label = f"{self.method}, output {self.outputs[k]}"
        return plot_effects(ax, self.feature_names, values, values, label=label, most=most)

    def heat_map(
        self, shape: tuple[int, int], ax: Axes | None = None, *, point: int = 0, output: Any = None
    ) -> Axes:
        """As `Effects.heat_map`."""
        k = self._output(output)
        label = f"{self.method}, output {self.outputs[k]}"
        return plot_heat_map(ax, self.values[point, k], shape, label=label, image=self.X[point])

    def _output(self, output: Any) -> int:
        return output_index(self.outputs, output, classes=True)

    def inputs(self) -> list[np.ndarray]:
        return [self.X]

    def check(self) -> None:
        super().check()
        shape = (len(self.X), len(self.outputs), len(self.feature_names))
        if self.X.ndim != 2 or self.values.shape != shape or len(self.labels) != len(self.X):
            raise InputError(f"values: expected shape {shape}, got {self.values.shape}")

    def shown(self) -> Shown:
        """The largest values at the first point on the last output."""
        output = self.outputs[-1]
        order = self.ranking(output=output)[:MOST_ROWS]
        values = self.values[0, -1]
        rows = [(self.feature_names[j], f"{values[j]:.4g}") for j in order]
        notes = [f"at point {self.labels[0]}, output {output}; nothing is proved"]
        return Shown(repr(self), ("feature", self.method), rows, notes)

    def __repr__(self) -> str:
        P, C, F = self.values.shape
        return f"Attribution({self.method}, {P} points, {C} outputs, {F} features)"
