"""The decision of a model in the plane, with the regions that were certified."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.certificates import Certificate, Status
from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.plots.axes import titled
from gpcert.plots.style import CLASS_MARKERS, LOOKS
from gpcert.plots.surface import Surface, surface_of


def plot_decision_regions(
    ax: Axes,
    model: Any,
    certificates: Iterable[Certificate] = (),
    *,
    X: Any = None,
    y: Any = None,
    threshold: float | None = None,
) -> Axes:
    """A two-feature model's prediction, and certified regions upon it.

    Two classes or a regression are drawn as contours of the probability or the mean, several
    classes as areas of one colour each, the deeper the further the class leads. Regions are green
    with a solid line where proved robust, red and dashed where refuted, with a line from the centre
    to the counter-example, grey and dotted where undecided. `X`, `y` are points to show, marked by
    label; `threshold` is the level that decides (of two classes: 1/2). The contours and areas are
    plain floating point on a grid: only the regions are proved.
    """
    posterior = as_posterior(model)
    surface = surface_of(posterior, threshold)
    certificates = list(certificates)
    outlines = [outline(certificate.region) for certificate in certificates]
    points = posterior.places if X is None else posterior.check_inputs(X)
    surface.draw(ax, np.concatenate([points, *outlines]), threshold)
    if X is not None:
        _draw_points(ax, points, y, surface)
    for certificate, corners in zip(certificates, outlines, strict=True):
        _draw_region(ax, certificate, corners)
    named = [] if X is None or y is None else np.unique(y).tolist()
    areas = surface.area_handles(named)
    _add_legend(ax, {certificate.status for certificate in certificates}, areas)
    return titled(ax, "feature 1", "feature 2", legend=False)


def _draw_points(ax: Axes, X: np.ndarray, y: Any, surface: Surface) -> None:
    if y is None:
        ax.scatter(*X.T, s=10, color="#444444", linewidths=0, label="points")
        return
    labels = np.unique(y).tolist()
    for k, (label, (face, edge)) in enumerate(surface.marker_colours(labels).items()):
        rows, marker = X[np.asarray(y) == label], CLASS_MARKERS[k % len(CLASS_MARKERS)]
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


def _add_legend(ax: Axes, statuses: set[Status], areas: tuple[list[Any], list[str]]) -> None:
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    handles, labels = areas[0] + handles, areas[1] + labels
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
    elif region.get("kind") == "ball":
        center, radius = _pair("center", region["center"]), np.asarray(region["radius"], float)
        if float(region["norm"]) != math.inf:
            return _clipped(center + radius * _directions(region), region)
        low, high = _clipped(center + radius * np.outer([-1.0, 1.0], _movable(region)), region)
    else:
        raise InputError(f"region: expected a described Box or Ball, got {region!r}")
    return np.array([low, [high[0], low[1]], high, [low[0], high[1]]])


def _directions(region: Mapping[str, Any]) -> np.ndarray:
    """Points of norm 1, off the features that may not move."""
    angles = np.linspace(0.0, 2.0 * np.pi, CORNERS, endpoint=False)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    size = np.linalg.norm(around, ord=float(region["norm"]), axis=1, keepdims=True)
    return around / size * _movable(region)


def _movable(region: Mapping[str, Any]) -> np.ndarray:
    features = region.get("features")
    return np.ones(2) if features is None else np.isin(np.arange(2), features).astype(float)


def _clipped(points: np.ndarray, region: Mapping[str, Any]) -> np.ndarray:
    if region.get("domain") is None:
        return points
    low, high = (np.asarray(end, dtype=float) for end in region["domain"])
    return np.clip(points, low, high)


def _pair(name: str, values: Any) -> np.ndarray:
    point = np.asarray(values, dtype=float)
    if point.shape != (2,):
        raise InputError(f"{name}: expected two features to draw in the plane, got {point.shape}")
    return point
