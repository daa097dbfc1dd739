"""Level sets: areas in two features, profiles along one; invariant sets, and ranges over boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.certificates import BoxBounds, InvariantSet, LevelSet
from gpcert.errors import InputError
from gpcert.numerics.arrays import finite_array
from gpcert.plots.axes import ACCENT, CLASS_PALETTE, DARK, LIGHT, axes_or_new, legend_above
from gpcert.regions import Region
from gpcert.utils.optional_imports import Axes, optional

PIXELS = 400
"""Points along each axis of an area."""

INSIDE, OUTSIDE, UNDECIDED = "#44AA99", "#F2F2F2", "#777777"


def plot_level_set(
    ax: Axes | None,
    level: LevelSet,
    *,
    features: Sequence[Any] | None = None,
    at: Any = None,
    box: Region | None = None,
    edges: bool = False,
) -> Axes:
    """What is proved of a level set, point by point of a picture.

    Of two `features` (numbers or names; by default the first ones that move) a section: what is
    proved at each point, the other features at the values of the point `at` (d,), by default the
    middle of the region. Of one feature the share of the set among the points of each value, from
    which to which it is proved to be. `box` is a region drawn over it, `edges` draws the cells of
    a set of two features.
    """
    ax = axes_or_new(ax)
    names, free = level.feature_names, level.free.tolist()
    said = [f"feature {j}" if level.names is None else names[j] for j in range(len(names))]
    chosen = [_number(names, each, free) for each in (free[:2] if features is None else features)]
    if not chosen or len(chosen) > 2 or len(set(chosen)) < len(chosen):
        raise InputError(f"features: expected one or two different ones, got {features!r}")
    if len(chosen) == 1:
        return _profile(ax, level, chosen[0], said[chosen[0]])
    low, high = level.bounds
    point = level.center if at is None else finite_array("at", at, ndim=1)
    if point.shape != low.shape:
        raise InputError(f"at: expected a point of {len(low)} features, got {len(point)}")
    axes = [np.linspace(low[j], high[j], PIXELS) for j in chosen]
    grid = np.tile(point, (PIXELS * PIXELS, 1))
    grid[:, chosen] = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    colours = _colours(level)  # in the order of the labels, the undecided last
    image = level.places(grid) % len(colours)
    colormap = optional("matplotlib.colors", "plot").ListedColormap(list(colours.values()))
    ax.imshow(
        image.reshape(PIXELS, PIXELS),
        origin="lower",
        extent=(low[chosen[0]], high[chosen[0]], low[chosen[1]], high[chosen[1]]),
        cmap=colormap,
        vmin=-0.5,
        vmax=len(colours) - 0.5,
        interpolation="nearest",
        aspect="auto",
    )
    if edges and len(free) == 2:
        _draw_cells(ax, level, [free.index(j) for j in chosen])
    patches = optional("matplotlib.patches", "plot")
    if box is not None:
        corner, far = box.lower[chosen], box.upper[chosen]
        kind: Any = {"fill": False, "edgecolor": ACCENT, "linewidth": 2.0}
        ax.add_patch(patches.Rectangle(corner, *(far - corner), **kind))
    handles = [
        patches.Patch(facecolor=colour, edgecolor=DARK, linewidth=0.4, label=_said(level, label))
        for label, colour in colours.items()
    ]
    legend_above(ax, handles=handles, columns=min(4, len(handles)))
    ax.set(xlabel=said[chosen[0]], ylabel=said[chosen[1]])
    return ax


def _profile(ax: Axes, level: LevelSet, feature: int, name: str) -> Axes:
    """Between which shares the set is proved to be, value by value of one feature."""
    at, lower, upper = level.profile(feature)
    ax.fill_between(at, lower, upper, step="mid", color=UNDECIDED, label="undecided")
    ax.fill_between(at, 0.0, lower, step="mid", color=INSIDE, label="proved inside")
    ax.set(
        ylim=(0.0, 1.02), xlim=(at[0], at[-1]), xlabel=name, ylabel="share of the set at each value"
    )
    legend_above(ax, columns=2)
    return ax


def plot_invariant_set(
    ax: Axes | None, record: InvariantSet, *, features: Sequence[int] = (0, 1), at: Any = None
) -> Axes:
    """The cells of an invariant set in two states, coloured by their input if there is one choice
    of a single number; of more states those that hold the point `at` (n,) in the others, by default
    the middle."""
    ax = axes_or_new(ax)
    ends = np.stack([record.lower, record.upper], axis=1)
    rows, (first, second) = _section(ends, record.bounds, features, at)
    corners = _corners(ends[rows][:, :, [first, second]])
    look: Any = {"edgecolors": "#FFFFFF60", "linewidths": 0.2}
    if record.inputs.shape[1] == 1 and len(record.inputs) > 1:
        look |= {"array": record.inputs[record.choice[rows], 0], "cmap": "viridis"}
    else:
        look["facecolors"] = INSIDE
    drawn = optional("matplotlib.collections", "plot").PolyCollection(corners, **look)
    ax.add_collection(drawn)
    if "array" in look:
        ax.figure.colorbar(drawn, ax=ax, label="input")
    low, high = record.bounds
    ax.set(xlim=(low[first], high[first]), ylim=(low[second], high[second]))
    ax.set(xlabel=f"state {first}", ylabel=f"state {second}", facecolor=OUTSIDE)
    return ax


def plot_boxes(
    ax: Axes | None,
    bounds: BoxBounds,
    *,
    quantity: str | None = None,
    output: int = 0,
    end: str = "upper",
    features: Sequence[int] = (0, 1),
    at: Any = None,
) -> Axes:
    """One end of the ranges of a quantity over boxes in two features, in colours: the "lower" or
    "upper" one, or the "width" between them. Of boxes in one feature both ends, in more features
    those boxes that hold the point `at` (d,) in the others, by default the middle. Boxes that were
    not bounded stay white."""
    name = next(iter(bounds.ranges)) if quantity is None else quantity
    values = bounds[name]
    if isinstance(output, bool) or output not in range(values.shape[1]):
        raise InputError(f"output: expected a number below {values.shape[1]}, got {output!r}")
    if end not in {"lower", "upper", "width"}:
        raise InputError(f"end: expected 'lower', 'upper' or 'width', got {end!r}")
    ax, low, high = axes_or_new(ax), values[:, output, 0], values[:, output, 1]
    ends, known = np.stack([bounds.lower, bounds.upper], axis=1), np.isfinite(low + high)
    if ends.shape[2] == 1:
        left = ends[known, 0, 0]
        width = ends[known, 1, 0] - left
        ax.bar(left, (high - low)[known], width, low[known], align="edge", color=LIGHT)
        ax.set(xlabel="feature 0", ylabel=name)
        return ax
    whole = np.stack([bounds.lower.min(axis=0), bounds.upper.max(axis=0)])
    rows, (first, second) = _section(ends, whole, features, at)
    rows = rows[known[rows]]
    shown = {"lower": low, "upper": high, "width": high - low}[end][rows]
    corners = _corners(ends[rows][:, :, [first, second]])
    collections = optional("matplotlib.collections", "plot")
    drawn = collections.PolyCollection(corners, array=shown, cmap="viridis", edgecolors="face")
    ax.add_collection(drawn)
    said = end if end == "width" else f"{end} end"
    ax.figure.colorbar(drawn, ax=ax, label=f"{name}: {said} of the range")
    ax.set(xlim=whole[:, first], ylim=whole[:, second])
    ax.set(xlabel=f"feature {first}", ylabel=f"feature {second}")
    return ax


def _section(
    ends: np.ndarray, whole: np.ndarray, features: Any, at: Any
) -> tuple[np.ndarray, list[int]]:
    """Rows of the boxes (R, 2, d) that hold the point `at` but for two features, and these."""
    d = whole.shape[1]
    chosen = list(features)
    if len(set(chosen)) != 2 or not all(j in range(d) for j in chosen):
        raise InputError(f"features: expected two different ones below {d}, got {features!r}")
    point = whole.mean(axis=0) if at is None else finite_array("at", at, ndim=1)
    if point.shape != (d,):
        raise InputError(f"at: expected a point of {d} features, got {len(point)}")
    others = np.delete(np.arange(d), chosen)
    held = (ends[:, 0, others] <= point[others]) & (point[others] <= ends[:, 1, others])
    return np.flatnonzero(held.all(axis=1)), chosen


def _corners(ends: np.ndarray) -> np.ndarray:
    """(R, 4, 2): the corners of rectangles (R, 2, 2), one after another."""
    (x0, y0), (x1, y1) = ends[:, 0].T, ends[:, 1].T
    return np.stack([[x0, x1, x1, x0], [y0, y0, y1, y1]]).T


def _draw_cells(ax: Axes, level: LevelSet, columns: list[int]) -> None:
    """The cells of a level set in two features, over its areas."""
    ends = np.stack([level.cells.low, level.cells.high], axis=1)[:, :, columns]
    look: Any = {"facecolors": "none", "edgecolors": "#00000040", "linewidths": 0.3}
    collections = optional("matplotlib.collections", "plot")
    ax.add_collection(collections.PolyCollection(_corners(ends), **look))


def _colours(level: LevelSet) -> Mapping[Any, str]:
    """A colour for each label, and for what is undecided, None."""
    if level.name_of(level.labels[-1]) == "inside":
        return {False: OUTSIDE, True: INSIDE, None: UNDECIDED}
    palette = {label: CLASS_PALETTE[k % len(CLASS_PALETTE)] for k, label in enumerate(level.labels)}
    return {**palette, None: UNDECIDED}


def _said(level: LevelSet, label: Any) -> str:
    if label is None:
        return "undecided"
    name = level.name_of(label)
    return name if name.startswith("class") else f"proved {name}"


def _number(names: Sequence[Any], given: Any, free: Sequence[int]) -> int:
    """The number of a feature that moves, from its name or number."""
    known = {**{j: j for j in free}, **{names[j]: j for j in free}}
    if isinstance(given, bool) or given not in known:
        raise InputError(f"features: expected some of {list(known)}, got {given!r}")
    return known[given]
