"""What the explorer asks: values of a model on a plane of two features, and one certified question.

Nothing here needs a page; values on the grid are plain floating point, verdicts and ranges are
those of `certify` and `prediction_range`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.analyses import safety_curve
from gpcert.api import certified_radius, certify, level_set, prediction_range
from gpcert.certificates import Certificate, PredictionRange
from gpcert.errors import InputError
from gpcert.explain import effects
from gpcert.likelihoods import ResponseLikelihood
from gpcert.model.committee import Committee, Model, is_model_collection
from gpcert.regions import Box
from gpcert.utils.optional_imports import Axes

GRID = 70
"""Grid points per axis of a map."""

MARGIN = 0.08
"""Part of the data's extent that a map shows beyond it."""


@dataclass(frozen=True)
class Map:
    """A number that a model predicts: its name, the arguments of `prediction_range` that bound it,
    and its values at points in plain floating point."""

    name: str
    arguments: dict[str, Any]
    values: Callable[[np.ndarray], np.ndarray]


def maps_of(model: Model) -> list[Map]:
    """What can be shown of a model, the most important first."""
    if isinstance(model, Committee):
        return [
            Map(f"score of class {label}", {"output": label}, _column(model.scores, c))
            for c, label in enumerate(model.labels)
        ]
    if is_model_collection(model) or model.likelihood.classifies:
        if not is_model_collection(model) and not model.likelihood.has_variance:
            return [Map("decision function", {"quantity": "mean"}, _column(model.prediction, 0))]
        labels = list(model.labels)
        chosen = enumerate(labels) if is_model_collection(model) else [(0, labels[1])]
        return [
            Map(f"probability of class {label}", {"output": label}, _column(model.prediction, c))
            for c, label in chosen
        ]
    maps = []
    for c in range(model.outputs):
        output = {"output": c} if model.outputs > 1 else {}
        of = f" of output {c}" if output else ""
        if isinstance(model.likelihood, ResponseLikelihood):
            values = _column(model.prediction, c)
            maps.append(Map(f"mean response{of}", {"quantity": "response", **output}, values))
            continue
        maps.append(Map(f"mean{of}", {"quantity": "mean", **output}, _column(model.mean, c)))
        if model.likelihood.has_variance:
            std = _column(lambda X: np.sqrt(model.predict(X)[1]), c)
            maps.append(Map(f"standard deviation{of}", {"quantity": "std", **output}, std))
    return maps


def _column(values: Callable[[np.ndarray], np.ndarray], c: int) -> Callable[..., np.ndarray]:
    return lambda X: np.asarray(values(X)).reshape(len(X), -1)[:, c]


def limits_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of each feature in a map: those of the points with a margin, never equal.

    >>> [end.tolist() for end in limits_of(np.array([[0.0, 5.0], [1.0, 5.0]]))]
    [[-0.08, 4.0], [1.08, 6.0]]
    """
    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.where(high > low, MARGIN * (high - low), 1.0)
    return low - margin, high + margin


def plane_values(
    shown: Map,
    x: np.ndarray,
    axes: tuple[int, int],
    limits: tuple[np.ndarray, np.ndarray],
    side: int = GRID,
) -> np.ndarray:
    """(side, side) values where the two features of `axes` (the columns' first) run between their
    limits and all others are those of x."""
    across, up = (np.linspace(limits[0][j], limits[1][j], side) for j in axes)
    points = np.tile(x, (side * side, 1))
    points[:, axes[0]], points[:, axes[1]] = np.tile(across, side), np.repeat(up, side)
    return shown.values(points).reshape(side, side)


@dataclass(frozen=True, eq=False)
class Question:
    """A ball or a box around x, as arguments of `certify`.

    With `box`, its ends, radius, norm and features have no effect. `threshold` is that of
    `certify`, None where the model classifies.
    """

    x: np.ndarray
    radius: float = 0.1
    norm: float = np.inf
    features: tuple[int, ...] | None = None
    box: tuple[np.ndarray, np.ndarray] | None = None
    threshold: float | None = None
    seconds: float = 10.0

    def moved(self, **changes: Any) -> Question:
        """The question with other fields."""
        return replace(self, **changes)

    @property
    def region_arguments(self) -> dict[str, Any]:
        """The arguments that say where."""
        if self.box is not None:
            return {"region": Box(*self.box)}
        features = None if self.features is None else list(self.features)
        return {"radius": self.radius, "norm": self.norm, "features": features}

    @property
    def python(self) -> str:
        """The line of Python that gives the same verdict."""
        parts = [f"[{', '.join(map(repr, self.x.tolist()))}]"]
        if self.box is not None:
            low, high = (end.tolist() for end in self.box)
            parts.append(f"region=gpcert.Box({low}, {high})")
        else:
            parts.append(f"radius={self.radius!r}")
            parts += [] if self.norm == np.inf else [f"norm={self.norm:g}"]
            parts += [] if self.features is None else [f"features={list(self.features)}"]
        parts += [] if self.threshold is None else [f"threshold={self.threshold!r}"]
        return f"gpcert.certify(model, {', '.join(parts)}, budget={self.seconds:g})"

    def certificate(self, model: Model) -> Certificate:
        """The verdict; with the boxes of the search where a proof covers the model."""
        threshold = {} if self.threshold is None else {"threshold": self.threshold}
        arguments: dict[str, Any] = {**self.region_arguments, **threshold, "budget": self.seconds}
        try:
            return certify(model, self.x, proof=True, progress=False, **arguments)
        except InputError:  # a proof does not cover it; another error comes again
            return certify(model, self.x, progress=False, **arguments)

    def range(self, model: Model, shown: Map) -> PredictionRange:
        """The proved range of what is shown."""
        arguments: dict[str, Any] = {**self.region_arguments, **shown.arguments}
        if self.box is None:
            arguments = {"x": self.x, **arguments}
        return prediction_range(model, progress=False, budget=self.seconds, **arguments)

    def options(self) -> dict[str, Any]:
        """The arguments of other verbs about balls around x."""
        threshold = {} if self.threshold is None else {"threshold": self.threshold}
        features = None if self.features is None else list(self.features)
        where = {"norm": self.norm, "features": features, "budget": self.seconds}
        return {**where, "progress": False, **threshold}


@dataclass(frozen=True, eq=False)
class Asked:
    """A question about a model, what of it is shown, the shape of an image or None, and the map's
    two features with the ends of all features."""

    question: Question
    model: Model
    shown: Map
    shape: tuple[int, int] | None = None
    axes: tuple[int, int] = (0, 1)
    limits: tuple[np.ndarray, np.ndarray] | None = None

    def draw_certificate(self, ax: Axes) -> None:
        """The margin, and what the counter-example moves."""
        self.question.certificate(self.model).plot(ax, shape=self.shape)

    def draw_safety(self, ax: Axes) -> None:
        """Bounds for radii up to twice that of the question."""
        radii = np.linspace(0.0, 2.0 * self.question.radius, 9)[1:].tolist()
        options = self.question.options()
        if is_model_collection(self.model):
            options["output"] = self.shown.arguments.get("output")
        safety_curve(self.model, self.question.x, radii, **options).plot(ax)

    def draw_radius(self, ax: Axes) -> None:
        """The proved radius, and that of a counter-example."""
        certified_radius(self.model, self.question.x, **self.question.options()).plot(ax)

    def draw_effects(self, ax: Axes) -> None:
        """The effects of all features on what is shown."""
        options = {"radius": self.question.radius, "budget": self.question.seconds}
        about = dict(self.shown.arguments)
        output = about.pop("output", None)
        found = effects(self.model, self.question.x, progress=False, **options, **about)
        found.plot(ax, output=output if len(found.outputs) > 1 else None)

    def draw_level_set(self, ax: Axes) -> None:
        """Where on the map the decision is proved, the other features as in x."""
        low, high = self.question.x.copy(), self.question.x.copy()
        ends = limits_of(self.model.places) if self.limits is None else self.limits
        pair = list(self.axes)
        low[pair], high[pair] = ends[0][pair], ends[1][pair]
        options: dict[str, Any] = {"budget": self.question.seconds, "progress": False}
        level_set(self.model, Box(low, high), self.question.threshold, **options).plot(ax)


PICTURES: dict[str, Callable[[Asked, Axes], None]] = {
    "Picture": Asked.draw_certificate,
    "Safety curve": Asked.draw_safety,
    "Certified radius": Asked.draw_radius,
    "Effects": Asked.draw_effects,
    "Level set": Asked.draw_level_set,
}
"""What is drawn when asked for, by title."""


def search_boxes(certificate: Certificate, axes: tuple[int, int]) -> np.ndarray:
    """(n, 4) left, right, bottom, top of the search's boxes in the plane; none where the search
    did not keep them."""
    proof = certificate.proof
    if proof is None or proof.leaves is None:
        return np.empty((0, 4))
    low, high = (np.tile(certificate_x(certificate), (len(proof.leaves.low), 1)) for _ in range(2))
    low[:, proof.region.free], high[:, proof.region.free] = proof.leaves.low, proof.leaves.high
    first, second = axes
    ends = np.stack([low[:, first], high[:, first], low[:, second], high[:, second]], axis=1)
    return np.unique(ends, axis=0)


def certificate_x(certificate: Certificate) -> np.ndarray:
    """The point that a certificate is about."""
    if certificate.x is None:
        raise InputError("certificate: expected one that holds x, got one without")
    return certificate.x
