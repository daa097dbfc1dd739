"""Records with a number per feature: their common base, and LIME's attributions (not proved)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.options import read_seed, verb
from gpcert.certificates import Record
from gpcert.certificates.text import MAX_ROWS, TextTable
from gpcert.errors import InputError
from gpcert.explain.arguments import (
    feature_labels,
    output_index,
    output_labels,
    predictions,
    read_labelled_points,
)
from gpcert.numerics.arrays import whole_number
from gpcert.plots.explanations import plot_effects, plot_heat_map
from gpcert.utils.optional_imports import Axes, DataFrame, optional


class PerFeature(Record):
    """Numbers per point, output and feature, (points, outputs, features), with plots."""

    ends: ClassVar[tuple[str, ...]] = ("lower", "upper")
    """Names of the fields that hold the numbers: two bounds, or one array."""

    X: np.ndarray
    outputs: tuple[Any, ...]
    feature_names: tuple[str, ...]
    labels: tuple[Any, ...]

    @abstractmethod
    def _label(self, k: int) -> str:
        """A description of the numbers of output k."""

    def _places(self) -> Sequence[int]:
        """The features' indices in the model: all features unless the record has `features`."""
        return getattr(self, "features", range(len(self.feature_names)))

    def _bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lower bounds, upper bounds, midpoints."""
        low, high = (getattr(self, self.ends[k]) for k in (0, -1))
        with np.errstate(invalid="ignore"):
            return low, high, 0.5 * low + 0.5 * high

    def _output(self, output: Any) -> int:
        classes = getattr(self, "quantity", "probability") == "probability"
        return output_index(self.outputs, output, classes)

    def ranking(self, *, point: int = 0, output: Any = None) -> np.ndarray:
        """Features (indices in the model), by decreasing absolute value."""
        size = np.abs(self._bounds()[2][point, self._output(output)])
        return np.asarray(self._places())[np.argsort(-size, kind="stable")]

    def largest(
        self, most: int, *, point: int = 0, output: Any = None
    ) -> list[tuple[str, float, float]]:
        """Names and bounds of the features with the largest absolute values."""
        k, places = self._output(output), list(self._places())
        low, high, _ = self._bounds()
        order = map(places.index, self.ranking(point=point, output=output)[:most])
        rows = [(self.feature_names[j], low[point, k, j], high[point, k, j]) for j in order]
        return [(name, float(below), float(above)) for name, below, above in rows]

    def to_frame(self) -> DataFrame:
        """One row per point, output and feature."""
        pandas = optional("pandas", "to_frame")
        P, C, F = self._bounds()[2].shape
        return pandas.DataFrame(
            {
                "point": np.repeat(np.array(self.labels, dtype=object), C * F),
                "output": np.tile(np.repeat(np.array(self.outputs, dtype=object), F), P),
                "feature": np.tile(np.array(self.feature_names, dtype=object), P * C),
                **{name: getattr(self, name).ravel() for name in self.ends},
            }
        )

    def plot(
        self, ax: Axes | None = None, *, point: int = 0, output: Any = None, most: int = 20
    ) -> Axes:
        """Bars of the `most` largest, with proved intervals if there are any; returns the Axes."""
        k = self._output(output)
        low, high, _ = self._bounds()
        rows, label = (low[point, k], high[point, k]), self._label(k)
        return plot_effects(ax, self.feature_names, *rows, label=label, most=most)

    def heat_map(
        self, shape: tuple[int, int], ax: Axes | None = None, *, point: int = 0, output: Any = None
    ) -> Axes:
        """The numbers as an image: red pixels raise the output, blue ones lower it."""
        k = self._output(output)
        values = np.zeros(self.X.shape[1])
        values[list(self._places())] = self._bounds()[2][point, k]
        return plot_heat_map(ax, values, shape, label=self._label(k), image=self.X[point])

    def inputs(self) -> list[np.ndarray]:
        return [self.X]

    def check(self) -> None:
        super().check()
        shape = (len(self.X), len(self.outputs), len(self.feature_names))
        shapes = [getattr(self, name).shape for name in self.ends]
        if self.X.ndim != 2 or set(shapes) != {shape}:
            raise InputError(f"{', '.join(self.ends)}: expected shape {shape}, got {shapes[0]}")
        if len(self.labels) != len(self.X):
            raise InputError(f"labels: expected {len(self.X)}, got {len(self.labels)}")


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(PerFeature, kind="attribution"):
    """`values` (points, outputs, features) of the method `method`. Nothing is proved.

    `labels` name the points; an average has the label "mean".
    """

    ends: ClassVar[tuple[str, ...]] = ("values",)

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

    def to_frame(self) -> DataFrame:
        return super().to_frame().rename(columns={"values": self.method})

    def _label(self, k: int) -> str:
        return f"{self.method}, output {self.outputs[k]}"

    def shown(self) -> TextTable:
        """The largest values at the first point on the last output."""
        output = self.outputs[-1]
        rows = [(name, f"{value:.4g}") for name, value, _ in self.largest(MAX_ROWS, output=output)]
        notes = [f"at point {self.labels[0]}, output {output}; nothing is proved"]
        return TextTable(repr(self), ("feature", self.method), rows, notes)

    def __repr__(self) -> str:
        P, C, F = self.values.shape
        return f"Attribution({self.method}, {P} points, {C} outputs, {F} features)"


@verb
def lime(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    n_samples: int = 5000,
    random_state: int | None = 0,
) -> Attribution:
    """LIME's weights (Ribeiro, Singh and Guestrin 2016) at one point or several.

    A ridge regression of the predictions at random points around x, in which near points have more
    weight. The standard deviations of the random points are those of `background` (n, d), by
    default the model's points. Features are not discretised: a weight is the slope per standard
    deviation of its feature; for a categorical feature it is the effect of having x's category.
    Nothing is proved, and the weights depend on the seed.

    Needs the package `lime` 0.2.0.1 (of 2021; it still runs with Python 3.11 and NumPy 2.4):
    `pip install 'gpcert[explain]'`.
    """
    tabular = optional("lime.lime_tabular", "LIME")
    posterior = as_posterior(model)
    points, rows = read_labelled_points(posterior, X)
    seed = read_seed(random_state)
    whole_number("n_samples", n_samples, 2)
    data = (
        posterior.places if background is None else posterior.check_inputs(background, "background")
    )
    labels = output_labels(posterior)
    regression = predictions(posterior, points[:1]).shape[1] == 1
    names = feature_labels(posterior.feature_names, posterior.dim)
    values = np.zeros((len(points), len(labels), posterior.dim))
    for k in range(len(labels)):
        explainer = tabular.LimeTabularExplainer(
            data,
            mode="regression",
            feature_names=list(names),
            discretize_continuous=False,
            categorical_features=list(posterior.levels),
            random_state=seed,
        )
        for i, x in enumerate(points):
            explanation = explainer.explain_instance(
                x,
                lambda Z, k=k: predictions(posterior, Z)[:, k],
                num_features=posterior.dim,
                num_samples=n_samples,
            )
            for feature, weight in explanation.as_map()[1]:
                values[i, k, feature] = weight
        if not regression and len(labels) == 2:  # of two classes, the values differ in sign only
            values[:, 1] = -values[:, 0]
            break
    return Attribution("LIME weight", points, values, labels, names, rows)
