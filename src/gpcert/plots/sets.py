"""Level sets: areas in two features, profiles along one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.certificates.level_sets import LevelSet
from gpcert.errors import InputError
from gpcert.numerics.arrays import finite_array
from gpcert.plots.axes import axes_or_new, legend_above
from gpcert.plots.style import ACCENT, CLASS_PALETTE, DARK
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
    states = level.decided(grid)
    colours = _colours(level)
    image = np.zeros(len(grid))
    for k, label in enumerate(colours):
        image[np.array([each is label or each == label for each in states])] = k
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


def _draw_cells(ax: Axes, level: LevelSet, columns: list[int]) -> None:
    collections = optional("matplotlib.collections", "plot")
    low, high = level.cells.low[:, columns], level.cells.high[:, columns]
    corners = np.stack(
        [low, np.stack([high[:, 0], low[:, 1]], 1), high, np.stack([low[:, 0], high[:, 1]], 1)], 1
    )
    look: Any = {"facecolors": "none", "edgecolors": "#00000040", "linewidths": 0.3}
    ax.add_collection(collections.PolyCollection(corners, **look))


def _colours(level: LevelSet) -> Mapping[Any, str]:
    """A colour for each label, and for what is undecided, None."""
    if True in level.labels:
        return {True: INSIDE, False: OUTSIDE, None: UNDECIDED}
    palette = {label: CLASS_PALETTE[k % len(CLASS_PALETTE)] for k, label in enumerate(level.labels)}
    return {**palette, None: UNDECIDED}


def _said(level: LevelSet, label: Any) -> str:
    if label is None:
        return "undecided"
    if True in level.labels:
        return "proved inside" if label else "proved outside"
    return f"class {label}"


def _number(names: Sequence[Any], given: Any, free: Sequence[int]) -> int:
    """The number of a feature that moves, from its name or number."""
    known = {**{j: j for j in free}, **{names[j]: j for j in free}}
    if isinstance(given, bool) or given not in known:
        raise InputError(f"features: expected some of {list(known)}, got {given!r}")
    return known[given]
