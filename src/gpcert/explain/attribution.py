"""Numbers per feature without a proof (LIME's, the gradient's), drawn like effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.explain.record import Explanation, plain
from gpcert.plots.effects import plot_effects, plot_heat_map

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Attribution"]


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Explanation):
    """`values` (points, outputs, features), from the method that it names. Nothing is proved."""

    kind: ClassVar[str] = "attribution"

    method: str
    X: np.ndarray
    values: np.ndarray
    outputs: tuple[Any, ...]
    feature_names: tuple[str, ...]

    def mean(self) -> Attribution:
        """The average over the points."""
        X, values = self.X.mean(0, keepdims=True), self.values.mean(0, keepdims=True)
        return Attribution(self.method, X, values, self.outputs, self.feature_names)

    def ranking(self, *, point: int = 0, output: Any = None) -> np.ndarray:
        """Features, the largest in size first."""
        size = np.abs(self.values[point, self._output(output)])
        return np.argsort(-size, kind="stable")

    def to_frame(self) -> pd.DataFrame:
        """One row per point, output and feature."""
        import pandas as pd

        P, C, F = self.values.shape
        return pd.DataFrame(
            {
                "point": np.repeat(np.arange(P), C * F),
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
        """By default the last: the second of two classes."""
        if output is None:
            if len(self.outputs) > 2:
                raise InputError(f"output: expected one of {list(self.outputs)}, got none")
            return len(self.outputs) - 1
        found = [k for k, label in enumerate(self.outputs) if label == output]
        if not found:
            raise InputError(f"output: expected one of {list(self.outputs)}, got {output!r}")
        return found[0]

    def __repr__(self) -> str:
        P, C, F = self.values.shape
        return f"Attribution({self.method}, {P} points, {C} outputs, {F} features)"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "method": self.method,
            "X": plain(self.X),
            "values": plain(self.values),
            "outputs": list(self.outputs),
            "feature_names": list(self.feature_names),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Attribution:
        """Inverse of `to_dict`."""
        return cls(
            record["method"],
            np.array(record["X"], dtype=np.float64),
            np.array(record["values"], dtype=np.float64),
            tuple(record["outputs"]),
            tuple(record["feature_names"]),
        )
