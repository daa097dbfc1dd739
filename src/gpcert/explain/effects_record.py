"""The record of `effects`: intervals per point, output and feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Interval
from gpcert.errors import InputError
from gpcert.explain.record import Explanation, plain
from gpcert.plots.effects import plot_effects, plot_heat_map
from gpcert.rounding import TINY, gamma
from gpcert.search import StopReason

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Effects"]


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Explanation):
    """`lower <= Delta <= upper`, (points, outputs, features) each; see `gpcert.explain.effects`.

    `outputs` are labels; `binary` says that the one output is the probability of the second of two
    classes. `averaged` counts the points of which this is the mean, 0 if it is none.
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
    binary: bool = False
    averaged: int = 0

    @property
    def values(self) -> np.ndarray:
        """The middles of the intervals."""
        return 0.5 * (self.lower + self.upper)

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
        """The effects on one output. The first of two classes has minus those on the second."""
        index = [k for k, label in enumerate(self.outputs) if label == output]
        if index:
            k = index[0]
            return replace(
                self,
                lower=self.lower[:, [k]],
                upper=self.upper[:, [k]],
                outputs=(self.outputs[k],),
            )
        if self.binary:
            return replace(self, lower=-self.upper, upper=-self.lower, outputs=(output,))
        raise InputError(f"output: expected one of {list(self.outputs)}, got {output!r}")

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
            averaged=n,
        )

    def ranking(self, *, point: int = 0, output: Any = None) -> np.ndarray:
        """Features (indices in the model), the largest effect first."""
        size = np.abs(self.values[point, self._output(output)])
        return np.asarray(self.features)[np.argsort(-size, kind="stable")]

    def to_frame(self) -> pd.DataFrame:
        """One row per point, output and feature."""
        import pandas as pd

        P, C, F = self.lower.shape
        return pd.DataFrame(
            {
                "point": np.repeat(np.arange(P), C * F),
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
        if output is None:
            if len(self.outputs) > 1:
                raise InputError(f"output: expected one of {list(self.outputs)}, got none")
            return 0
        found = [k for k, label in enumerate(self.outputs) if label == output]
        if not found:
            hint = f"; use effects.of({output!r})" if self.binary else ""
            raise InputError(f"output: expected one of {list(self.outputs)}, got {output!r}{hint}")
        return found[0]

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

    def __str__(self) -> str:
        rows = [repr(self)]
        for j in self.ranking(output=self.outputs[0])[:10]:
            found = self.interval(int(j), output=self.outputs[0])
            name = self.feature_names[self.features.index(int(j))]
            rows.append(f"  {name:>20}  [{found.lower:+.5f}, {found.upper:+.5f}]")
        return "\n".join(rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "X": plain(self.X),
            "lower": plain(self.lower),
            "upper": plain(self.upper),
            "features": list(self.features),
            "feature_names": list(self.feature_names),
            "outputs": list(self.outputs),
            "quantity": self.quantity,
            "radius": plain(self.radius),
            "reason": self.reason.name,
            "boxes": self.boxes,
            "seconds": self.seconds,
            "binary": self.binary,
            "averaged": self.averaged,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Effects:
        """Inverse of `to_dict`."""
        fields = {name: value for name, value in record.items() if name != "kind"}
        for name in ("X", "lower", "upper", "radius"):
            fields[name] = np.array(fields[name], dtype=np.float64)
        for name in ("features", "feature_names", "outputs"):
            fields[name] = tuple(fields[name])
        fields["reason"] = StopReason[fields["reason"]]
        found = cls(**fields)
        if found.lower.shape != found.upper.shape or not np.all(found.lower <= found.upper):
            raise InputError("effects: expected lower <= upper")
        return found
