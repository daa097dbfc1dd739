"""The decision of a model in the plane, with the regions that were certified."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.certificates import Certificate, Status
from gpcert.errors import InputError
from gpcert.plots.outline import outline
from gpcert.plots.style import CLASS_COLOURS, LOOKS, PROBABILITY_COLOURS
from gpcert.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_decision_regions"]

GRID = 120
"""Points a side of the grid that contours are drawn from."""


def plot_decision_regions(
    ax: Axes,
    model: Any,
    certificates: Iterable[Certificate] = (),
    *,
    X: Any = None,
    y: Any = None,
    threshold: float | None = None,
) -> Axes:
    """Contours of a two-feature model's prediction, and certified regions upon them.

    Regions are green with a solid line where proved robust, red and dashed where refuted, with a
    line from the centre to the counter-example, grey and dotted where undecided. `X`, `y` are
    points to show, marked by label; `threshold` is the level that decides (a classifier: 1/2).
    The contours are plain floating point on a grid: only the regions are proved.
    """
    posterior = as_posterior(model)
    if posterior.dim != 2 or posterior.outputs != 1:
        raise InputError(
            "model: expected two features and one output to draw in the plane, "
            f"got {posterior.dim} and {posterior.outputs}"
        )
    certificates = list(certificates)
    outlines = [outline(certificate.region) for certificate in certificates]
    points = posterior.points if X is None else posterior.check_inputs(X)
    _draw_prediction(ax, posterior, np.concatenate([points, *outlines]), threshold)
    if X is not None:
        _draw_points(ax, points, y)
    for certificate, corners in zip(certificates, outlines, strict=True):
        _draw_region(ax, certificate, corners)
    _add_legend(ax, {certificate.status for certificate in certificates})
    ax.set_xlabel("feature 1")
    ax.set_ylabel("feature 2")
    return ax


def _draw_prediction(
    ax: Axes, posterior: Posterior, points: np.ndarray, threshold: float | None
) -> None:
    low, high = points.min(0), points.max(0)
    room = 0.06 * np.maximum(high - low, 1e-9)  # a margin around what is drawn; never empty
    axes = np.linspace(low - room, high + room, GRID).T
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    values = posterior.prediction(grid)[:, 0].reshape(GRID, GRID)
    binary = posterior.likelihood.classifies
    levels = np.linspace(0.0, 1.0, 11) if binary else 10
    filled = ax.contourf(*axes, values, levels=levels, cmap=PROBABILITY_COLOURS, alpha=0.55)
    label = f"probability of class {(posterior.classes or (0, 1))[1]}" if binary else "mean"
    figure: Any = ax.figure
    figure.colorbar(filled, ax=ax, label=label, fraction=0.046, pad=0.02)
    level = 0.5 if threshold is None and binary else threshold
    if level is not None and values.min() < level < values.max():
        ax.contour(*axes, values, levels=[level], colors="black", linewidths=1.5)


def _draw_points(ax: Axes, X: np.ndarray, y: Any) -> None:
    if y is None:
        ax.scatter(*X.T, s=10, color="#444444", linewidths=0, label="points")
        return
    labels = np.unique(y)
    for k, label in enumerate(labels):
        rows = X[np.asarray(y) == label]
        ax.scatter(
            *rows.T,
            s=18,
            marker="o^sD"[k % 4],
            color=CLASS_COLOURS[k % 2],
            edgecolors=CLASS_COLOURS[(k + 1) % 2],
            linewidths=0.6,
            zorder=3,  # above the regions
            label=f"class {label}",
        )


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


def _add_legend(ax: Axes, statuses: set[Status]) -> None:
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
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
