"""The decision of a model with two features, with certified regions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.certificates import Certificate, Status
from gpcert.errors import InputError
from gpcert.likelihoods import ResponseLikelihood
from gpcert.model.committee import Committee, Model, is_model_collection
from gpcert.model.posterior import Posterior
from gpcert.plots.axes import CLASS_PALETTE, LOOKS, PROBABILITY_COLOURS, axes_or_new, titled
from gpcert.utils.optional_imports import Axes


def plot_decision_regions(
    ax: Axes | None,
    model: Any,
    certificates: Iterable[Certificate] = (),
    *,
    X: Any = None,
    y: Any = None,
    threshold: float | None = None,
) -> Axes:
    """The prediction of a model with two features, and certified regions.

    Two classes or a regression are drawn as contours of the probability or the mean; several
    classes as areas of one colour each, darker where the class has a larger lead. Regions are green
    with a solid line if proved robust; red and dashed if refuted, with a line from the centre to
    the counter-example; grey and dotted if undecided. `X`, `y` are points to draw, marked by label;
    `threshold` is the level that decides (two classes: 1/2). The contours and areas are plain
    floating point on a grid: only the regions are proved.
    """
    ax, posterior = axes_or_new(ax), as_posterior(model)
    areas = areas_of(posterior, threshold)
    certificates = list(certificates)
    outlines = [outline(certificate.region) for certificate in certificates]
    points = posterior.places if X is None else posterior.check_inputs(X)
    _draw_surface(ax, posterior, areas, np.concatenate([points, *outlines]), threshold)
    class_labels = [] if X is None or y is None else np.unique(y).tolist()
    if X is not None and y is None:
        ax.scatter(*points.T, s=10, color="#444444", linewidths=0, label="points")
    elif X is not None:
        _draw_points(ax, points, np.asarray(y), class_labels, areas)
    for certificate, corners in zip(certificates, outlines, strict=True):
        _draw_region(ax, certificate, corners)
    other_areas = {label: colour for label, colour in areas.items() if label not in class_labels}
    _add_legend(ax, {certificate.status for certificate in certificates}, other_areas)
    return titled(ax, *(posterior.feature_names or ("x0", "x1")), legend=False)


def _draw_points(
    ax: Axes, X: np.ndarray, y: np.ndarray, labels: Sequence[Any], areas: Mapping[Any, str]
) -> None:
    """Draw each label in the colour of its area, or alternately in white and black."""
    for k, label in enumerate(labels):
        face, edge = CLASS_COLOURS if k % 2 == 0 else CLASS_COLOURS[::-1]
        if areas:
            face, edge = areas.get(label, CLASS_COLOURS[0]), CLASS_COLOURS[1]
        rows, marker = X[y == label], CLASS_MARKERS[k % len(CLASS_MARKERS)]
        look: Any = {"color": face, "edgecolors": edge, "linewidths": 0.6, "s": 18}
        # above the regions
        ax.scatter(*rows.T, marker=marker, **look, zorder=3, label=f"class {label}")


def _draw_region(ax: Axes, certificate: Certificate, corners: np.ndarray) -> None:
    look = LOOKS[certificate.status]
    closed = np.concatenate([corners, corners[:1]])
    ax.fill(*corners.T, color=look.colour, alpha=0.25, linewidth=0)
    ax.plot(*closed.T, color=look.colour, linestyle=look.line, linewidth=1.8)
    if certificate.status is not Status.NOT_ROBUST or certificate.counterexample is None:
        return
    center = certificate.region.get("center", corners.mean(0))
    ends = np.stack([np.asarray(center), certificate.counterexample])
    ax.plot(*ends.T, color=look.colour, linewidth=1.2)
    ax.plot(
        *ends[1], color=look.colour, marker="X", markersize=8, markeredgecolor="white", zorder=4
    )


def _add_legend(ax: Axes, statuses: set[Status], areas: Mapping[Any, str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, labels = ax.get_legend_handles_labels()
    handles = [*(Patch(color=colour) for colour in areas.values()), *handles]
    labels = [*(f"class {label}" for label in areas), *labels]
    for status, look in LOOKS.items():
        if status in statuses:
            handles.append(Line2D([], [], color=look.colour, linestyle=look.line, linewidth=1.8))
            labels.append(look.label)
    if Status.NOT_ROBUST in statuses:
        colour = LOOKS[Status.NOT_ROBUST].colour
        handles.append(Line2D([], [], color=colour, marker="X", linewidth=1.2))
        labels.append("counter-example")
    if handles:
        ax.legend(handles, labels, loc="best", fontsize="small", framealpha=0.9)


CLASS_COLOURS = ("#FFFFFF", "#222222")
"""Two classes: white and black markers on the colours of the probability."""

CLASS_MARKERS = "o^sDvP*<>h"
"""Markers repeat the information of the colours; X is reserved for counter-examples."""

CORNERS = 128
"""Points of the outline of a round ball; a multiple of 8, so that corners are met exactly."""


def outline(region: Mapping[str, Any]) -> np.ndarray:
    """Closed polygon (k, 2) around a box or a p-norm ball of the plane.

    The outline of a ball inside a domain is the ball's own, clipped coordinate by coordinate:
    clipping towards the centre shortens `|x_j - c_j|`, so clipped points stay in the ball.

    >>> outline({"kind": "box", "lower": [0, 0], "upper": [1, 2]}).tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 2.0], [0.0, 2.0]]
    """
    if region.get("kind") == "box":
        low, high = _pair("lower", region["lower"]), _pair("upper", region["upper"])
        return np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    if region.get("kind") != "ball":
        raise InputError(f"region: expected a described Box or Ball, got {region!r}")
    center, norm = _pair("center", region["center"]), float(region["norm"])
    if norm == math.inf:
        around = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    else:
        angles = np.linspace(0.0, 2.0 * np.pi, CORNERS, endpoint=False)
        around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        around /= np.linalg.norm(around, ord=norm, axis=1, keepdims=True)
    if region.get("features") is not None:
        around = around * np.isin(np.arange(2), region["features"])
    corners = center + np.asarray(region["radius"], float) * around
    if region.get("domain") is None:
        return corners
    low, high = (np.asarray(end, dtype=float) for end in region["domain"])
    return np.clip(corners, low, high)


def _pair(name: str, values: Any) -> np.ndarray:
    point = np.asarray(values, dtype=float)
    if point.shape != (2,):
        raise InputError(f"{name}: expected two features to draw in the plane, got {point.shape}")
    return point


GRID, CLASS_GRID = 120, 60
"""Grid points per axis for contours; a probability of several classes is an integral, which takes
milliseconds."""

SHADES = 5
"""Number of shades of a class's colour, from a tie to the largest lead."""

PALEST = 0.35
"""Strength of a class's colour at the smallest lead."""


def areas_of(model: Model, threshold: float | None) -> dict[Any, str]:
    """The colours of the areas of several classes; empty for a regression or two classes, which
    have a colour bar. An `InputError` if the model cannot be drawn."""
    multiclass = is_model_collection(model)
    if model.dim != 2:
        raise InputError(
            f"model: expected two features to draw in the plane, got {model.dim} features"
        )
    if multiclass and threshold is not None:
        raise InputError(
            "threshold: expected two classes or a regression; with several classes the most "
            "probable one is drawn; drop threshold="
        )
    if not multiclass and not isinstance(model, Committee) and model.outputs != 1:
        raise InputError(
            f"model: expected a classifier or a regression with one output, got {model.outputs} "
            "outputs"
        )
    return dict(zip(model.labels, cycle(CLASS_PALETTE), strict=False)) if multiclass else {}


def _draw_surface(
    ax: Axes,
    model: Model,
    areas: Mapping[Any, str],
    points: np.ndarray,
    threshold: float | None,
) -> None:
    """Fill the rectangle around the points (n, 2)."""
    low, high = points.min(0), points.max(0)
    margin = 0.06 * np.maximum(high - low, 1e-9)  # a margin around what is drawn; never empty
    side = CLASS_GRID if areas else GRID
    axes = np.linspace(low - margin, high + margin, side).T
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    scores = model.scores(grid) if isinstance(model, Committee) else model.prediction(grid)
    values = scores.reshape(side, side, -1)
    if areas:
        _draw_classes(ax, axes, values, list(areas.values()))
    elif isinstance(model, Posterior):
        _draw_number(ax, axes, values[:, :, 0], model, threshold)


def _draw_number(
    ax: Axes, axes: np.ndarray, values: np.ndarray, posterior: Posterior, threshold: float | None
) -> None:
    classifies = posterior.likelihood.classifies
    binary = classifies and posterior.likelihood.has_variance
    levels = np.linspace(0.0, 1.0, 11) if binary else 10
    filled = ax.contourf(*axes, values, levels=levels, cmap=PROBABILITY_COLOURS, alpha=0.55)
    responds = isinstance(posterior.likelihood, ResponseLikelihood)
    label = f"probability of class {posterior.labels[1]}" if binary else "mean"
    label = "mean response" if responds else label
    label = "decision function" if classifies and not binary else label
    figure: Any = ax.figure
    figure.colorbar(filled, ax=ax, label=label, fraction=0.046, pad=0.02)
    level = (0.5 if binary else 0.0) if threshold is None and classifies else threshold
    if level is not None and values.min() < level < values.max():
        ax.contour(*axes, values, levels=[level], colors="black", linewidths=1.5)


def _draw_classes(ax: Axes, axes: np.ndarray, scores: np.ndarray, areas: Sequence[str]) -> None:
    """Draw every class where it leads, darker for a larger lead.

    Areas are level sets of the lead `score_c - max_{k != c} score_k`, which are as smooth as the
    scores; those of the arg-max on a grid would have steps.
    """
    from matplotlib.colors import to_rgb

    for c, area in enumerate(areas):
        lead = scores[:, :, c] - np.delete(scores, c, axis=2).max(2)
        if lead.max() <= 0:
            continue
        # probabilities lead by at most 1, votes by more
        levels = np.linspace(0.0, max(1.0, float(lead.max())), SHADES + 1)
        strength = np.linspace(PALEST, 1.0, SHADES)[:, None]
        colours = 1.0 - strength * (1.0 - np.asarray(to_rgb(area)))
        ax.contourf(*axes, lead, levels=levels, colors=list(map(tuple, colours)), alpha=0.75)
        if lead.min() < 0:
            ax.contour(*axes, lead, levels=[0.0], colors="black", linewidths=1.2)
