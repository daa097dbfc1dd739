"""What a model predicts in the plane: a probability or mean as contours, or classes as colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.committee import Committee, Model, is_several
from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.plots.style import CLASS_COLOURS, CLASS_PALETTE, PROBABILITY_COLOURS
from gpcert.posterior import Posterior

GRID, CLASS_GRID = 120, 60
"""Points a side of the grid that contours are drawn from; the probabilities of several classes are
integrals, milliseconds each."""

SHADES = 5
"""Steps of a class's colour, from a tie to the largest lead."""

PALEST = 0.35
"""How much of its colour a class keeps where it barely leads."""

MarkerColours = tuple[str, str]
"""Face and edge of the markers of a class."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A model of two features and how it is drawn.

    `labels` are those of the classes that have a colour of their own in the plane: none where one
    number, of a regression or of two classes, is shown by a colour bar.
    """

    model: Model
    labels: tuple[Any, ...] = ()

    def draw(self, ax: Axes, points: np.ndarray, threshold: float | None) -> None:
        """Fill the rectangle around the points (n, 2)."""
        low, high = points.min(0), points.max(0)
        room = 0.06 * np.maximum(high - low, 1e-9)  # a margin around what is drawn; never empty
        side = CLASS_GRID if self.labels else GRID
        axes = np.linspace(low - room, high + room, side).T
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        values = _scores(self.model, grid).reshape(side, side, -1)
        if self.labels:
            _draw_classes(ax, axes, values)
        elif isinstance(self.model, Posterior):
            _draw_number(ax, axes, values[:, :, 0], self.model, threshold)

    def marker_colours(self, labels: Sequence[Any]) -> Mapping[Any, MarkerColours]:
        """Colours of points with these labels: those of the areas where the model knows them."""
        if not self.labels:
            return {
                label: (CLASS_COLOURS[k % 2], CLASS_COLOURS[(k + 1) % 2])
                for k, label in enumerate(labels)
            }
        known = {label: _class_colour(k) for k, label in enumerate(self.labels)}
        return {label: (known.get(label, CLASS_COLOURS[0]), CLASS_COLOURS[1]) for label in labels}

    def area_handles(self, named: Sequence[Any]) -> tuple[list[Any], list[str]]:
        """Patches and names for a legend, of the classes that labelled points do not name yet."""
        from matplotlib.patches import Patch

        shown = [k for k, label in enumerate(self.labels) if label not in named]
        handles = [Patch(color=_class_colour(k)) for k in shown]
        return handles, [f"class {self.labels[k]}" for k in shown]


def surface_of(model: Model, threshold: float | None) -> Surface:
    """How the model is drawn, or an `InputError` where it cannot be."""
    several = is_several(model)
    if model.dim != 2:
        raise InputError(
            f"model: expected two features to draw in the plane, got {model.dim} features"
        )
    if several and threshold is not None:
        raise InputError(
            "threshold: expected two classes or a regression; of several classes the most probable "
            "one is drawn, drop threshold="
        )
    if several:
        return Surface(model, model.labels)
    if not isinstance(model, Committee) and model.outputs != 1:
        raise InputError(
            f"model: expected a classifier or a regression with one output, got {model.outputs} "
            "outputs"
        )
    return Surface(model)


def _scores(model: Model, X: np.ndarray) -> np.ndarray:
    """(n, k): the one number that is shown, or one a class, the largest of which decides."""
    return model.scores(X) if isinstance(model, Committee) else model.prediction(X)


def _draw_number(
    ax: Axes, axes: np.ndarray, values: np.ndarray, posterior: Posterior, threshold: float | None
) -> None:
    classifies = posterior.likelihood.classifies
    binary = classifies and posterior.likelihood.has_variance
    levels = np.linspace(0.0, 1.0, 11) if binary else 10
    filled = ax.contourf(*axes, values, levels=levels, cmap=PROBABILITY_COLOURS, alpha=0.55)
    label = f"probability of class {posterior.labels[1]}" if binary else "mean"
    label = "decision function" if classifies and not binary else label
    figure: Any = ax.figure
    figure.colorbar(filled, ax=ax, label=label, fraction=0.046, pad=0.02)
    level = (0.5 if binary else 0.0) if threshold is None and classifies else threshold
    if level is not None and values.min() < level < values.max():
        ax.contour(*axes, values, levels=[level], colors="black", linewidths=1.5)


def _draw_classes(ax: Axes, axes: np.ndarray, scores: np.ndarray) -> None:
    """Every class where it leads, the deeper the further it is ahead of the next one.

    Areas are level sets of the lead `score_c - max_{k != c} score_k`, which are as smooth as the
    scores; those of the arg-max on a grid would have steps.
    """
    from matplotlib.colors import to_rgb

    for c in range(scores.shape[2]):
        lead = scores[:, :, c] - np.delete(scores, c, axis=2).max(2)
        if lead.max() <= 0:
            continue
        # probabilities lead by at most 1, votes by more
        levels = np.linspace(0.0, max(1.0, float(lead.max())), SHADES + 1)
        strength = np.linspace(PALEST, 1.0, SHADES)[:, None]
        colours = 1.0 - strength * (1.0 - np.asarray(to_rgb(_class_colour(c))))
        ax.contourf(*axes, lead, levels=levels, colors=list(map(tuple, colours)), alpha=0.75)
        if lead.min() < 0:
            ax.contour(*axes, lead, levels=[0.0], colors="black", linewidths=1.2)


def _class_colour(index: int) -> str:
    return CLASS_PALETTE[index % len(CLASS_PALETTE)]
