"""Curves over radius, pixels or epochs, and numbers by point and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.plots.axes import (
    ACCENT,
    CLASS_PALETTE,
    DARK,
    LIGHT,
    LOOKS,
    axes_or_new,
    legend_above,
    next_curve,
    titled,
)
from gpcert.utils.optional_imports import Axes, DataFrame

if TYPE_CHECKING:
    from gpcert.models.hyperparameters import Trace


def step_radii(jumps: Sequence[float], end: float) -> np.ndarray:
    """Radii up to the end between which shares that jump at some are drawn by straight lines.

    A share changes just after a proved radius, and just before a counter-example: a line between
    two jumps would be above the proved share, or below the share that is not refuted.

    >>> step_radii([0.5], 1.0).round(3).tolist()
    [0.0, 0.0, 0.5, 0.5, 0.5, 1.0, 1.0]
    """
    at = np.array([0.0, *jumps, end])
    radii = np.unique([np.nextafter(at, -np.inf), at, np.nextafter(at, np.inf)])
    return radii[(radii >= 0.0) & (radii <= end)]


def plot_accuracy(
    ax: Axes | None,
    radii: np.ndarray,
    certified: np.ndarray,
    attacked: np.ndarray,
    *,
    label: str = "",
    unit: str = "",
) -> Axes:
    """Solid: right and proved robust. Dashed: right without a known counter-example; the shaded
    band between them is undecided. `label` is the prefix of names in the legend; curves with a
    label have a colour and a marker of their own. `unit` follows "radius"."""
    ax = axes_or_new(ax)
    below: Any = {"color": LOOKS[Status.ROBUST].colour, "linestyle": "-", "linewidth": 3.0}
    above: Any = {"color": ACCENT, "linestyle": "--", "linewidth": 1.2}
    area: Any = {"color": "#BBBBBB", "alpha": 0.6, "linewidth": 0, "label": "undecided"}
    start = f"{label}: " if label else ""
    if label:
        colour, marker = next_curve(ax, lines=2)
        below |= {"color": colour, "marker": marker, "markevery": 0.1}
        above["color"] = colour
        area |= {"color": colour, "alpha": 0.25, "label": None}
    ax.fill_between(radii, certified, attacked, **area)
    ax.plot(radii, certified, **below, label=f"{start}proved robust")
    # thin and on top: both are visible where they agree
    ax.plot(radii, attacked, **above, label=f"{start}no attack known")
    ax.set_ylim(-0.02, 1.02)
    share = "share of the test points, right and robust"
    return titled(ax, f"radius{unit or ' of the balls'}", share)


LOW, ATTACK = "#009E73", "#CC79A7"
"""Bluish green and reddish purple of Okabe and Ito (2008); line styles and markers repeat them."""


def plot_safety(
    ax: Axes | None,
    frame: DataFrame,
    *,
    levels: Sequence[float],
    quantity: str,
    attack: str,
    first_unsafe: float | None,
    label: str = "",
    unit: str = "",
) -> Axes:
    """Against the radius: bounds of the maximum (blue) and of the minimum (green).

    Solid lines are proved for the whole ball, dashed ones attained at a point of it; the truth lies
    between a pair of them. Between two radii they are steps: a bound for a ball holds in smaller
    ones, a value attained in it is attained in larger ones. Pink with crosses: the attack.
    Horizontal: the threshold; vertical: the first radius at which a counter-example is known.
    Infinite bounds are left out. Curves with a `label` have a colour and a marker of their own.
    """
    ax = axes_or_new(ax)
    radius = frame["radius"].to_numpy()
    start, high, low, attacked, mark = (f"{label}, " if label else ""), DARK, LOW, ATTACK, ""
    if label:
        high, mark = next_curve(ax, lines=5)
        low = attacked = high
    lines = (
        ("maximum_upper", high, "-", "maximum: proved"),
        ("maximum_lower", high, "--", "maximum: attained"),
        ("minimum_upper", low, "--", "minimum: attained"),
        ("minimum_lower", low, "-", "minimum: proved"),
    )
    for column, colour, line, text in lines:
        values = frame[column].to_numpy(dtype=float)
        values = np.where(np.isfinite(values), values, np.nan)
        steps = "steps-pre" if line == "-" else "steps-post"
        style: Any = {"color": colour, "linestyle": line, "linewidth": 1.6, "drawstyle": steps}
        style |= {"marker": mark, "markevery": 0.2, "markersize": 5}
        ax.plot(radius, values, **style, label=f"{start}{text}")
    look = {"color": attacked, "marker": "x", "markersize": 4, "linewidth": 1.2}
    ax.plot(radius, frame["attack"], **look, label=f"{start}attack ({attack.replace('_', ', ')})")
    for number, level in enumerate(levels):
        text = "decision" if number == 0 and not label else None
        ax.axhline(level, color="black", linestyle=":", linewidth=1.2, label=text)
    if first_unsafe is not None:
        text = None if label else "first unsafe"
        ax.axvline(
            first_unsafe, color=high if label else ACCENT, linestyle="-.", lw=1.2, label=text
        )
    return titled(ax, f"radius{unit or ' of the ball'}", quantity)


DASHES = ("-", "--", "-.", ":")
"""Lines of rankings: colour, marker and line each distinguish them."""

Gaps = tuple[str, Sequence[int], np.ndarray, np.ndarray]


def plot_gaps(ax: Axes | None, rows: Sequence[Gaps]) -> Axes:
    """For each ranking the attained gap, and the band down to the proved lower bound.

    Below the dashed grey line, 0, an adversarial image is known.
    """
    ax = axes_or_new(ax)
    if not rows:
        raise InputError("rows: expected at least one ranking, got none")
    for name, betas, lower, upper in rows:
        colour, marker = next_curve(ax, lines=1)
        line = DASHES[len(ax.lines) % len(DASHES)]
        ax.fill_between(betas, lower, upper, color=colour, alpha=0.2, linewidth=0)
        ax.plot(betas, upper, color=colour, marker=marker, linestyle=line, ms=4, label=name)
    ax.axhline(0.0, color="#777777", linestyle="--", linewidth=1.2)
    return titled(
        ax, "pixels that may change (β)", "smallest gap π_gap (the decision changes below 0)"
    )


def plot_training(ax: Axes | None, trace: Trace, *, label: str = "") -> Axes:
    """A dot for each evaluation of the evidence, and a line for the best one so far.

    `label` is the prefix of names in the legend, for several trainings on one Axes. `trace` is
    `model.trace_`. Thin lines separate restarts; crosses at the bottom are parameters at which
    inference failed.
    """
    if len(trace) == 0:
        raise InputError("trace: expected at least one evaluation, got none")
    ax = axes_or_new(ax)
    colour, marker = next_curve(ax, lines=1)
    start, light = (f"{label}: ", colour) if label else ("", LIGHT)
    evidence, epochs = trace.evidence, np.arange(1, len(trace) + 1)
    works = np.isfinite(evidence)
    best = np.maximum.accumulate(np.where(works, evidence, -np.inf))
    known = np.isfinite(best)
    dots: Any = {"color": light, "alpha": 0.6 if label else 1.0, "marker": marker, "s": 18}
    ax.scatter(epochs[works], evidence[works], **dots, label=f"{start}evaluation")
    ax.step(epochs[known], best[known], where="post", color=colour, label=f"{start}best so far")
    if not np.all(works):
        floor = evidence[works].min() if np.any(works) else 0.0
        failed = epochs[~works], np.full(int((~works).sum()), floor)
        ax.scatter(*failed, color=ACCENT, marker="x", label=f"{start}inference failed")
    for first in epochs[1:][np.diff(trace.runs) != 0]:
        ax.axvline(first - 0.5, color="#777777", linestyle=":", linewidth=0.8)
    return titled(ax, "epochs (evaluations of the evidence)", "log evidence")


def plot_worst_cases(ax: Axes | None, frame: DataFrame) -> Axes:
    """Thin and light: the band that contains mean +- beta std in the whole region; thick and dark:
    the proved range of the mean; the diamond is the prediction at the point."""
    ax = axes_or_new(ax)
    order = np.argsort(frame["mean"].to_numpy(), kind="stable")
    rows = frame.iloc[order]
    rank = np.arange(len(rows))
    beta = float(frame["beta"].iloc[0]) if len(frame) else 0.0
    for low, high, colour, width, label in (
        ("band_lower", "band_upper", LIGHT, 3, f"band of {beta:g} std"),
        ("minimum_lower", "maximum_upper", DARK, 5, "range of the mean"),
    ):
        ax.vlines(rank, rows[low], rows[high], color=colour, linewidth=width, label=label)
    mark = {"marker": "D", "s": 18, "color": "white", "edgecolors": ACCENT}
    ax.scatter(rank, rows["mean"], **mark, zorder=3, label="prediction")
    return titled(ax, "points, by their prediction", "mean")


def plot_attacks(
    ax: Axes | None, before: np.ndarray, after: np.ndarray, success: np.ndarray, quantity: str
) -> Axes:
    """One vertical line per point, the points in the order of their values before the attack.

    Circles are the values before, triangles those after an attack without a change of the decision,
    crosses those with a change.
    """
    ax = axes_or_new(ax)
    order = np.argsort(before, kind="stable")
    rank = np.arange(len(order))
    start, end, won = before[order], after[order], success[order].astype(bool)
    ax.vlines(rank, start, end, color=LIGHT, linewidth=1.5, zorder=1)
    ax.scatter(rank, start, s=16, color=DARK, label="before", zorder=2)
    ax.scatter(rank[~won], end[~won], s=22, marker="v", facecolors="white", edgecolors=DARK)
    ax.scatter(rank[won], end[won], s=34, marker="x", color=ACCENT, label="decision changed")
    ax.scatter([], [], s=22, marker="v", facecolors="white", edgecolors=DARK, label="after")
    legend_above(ax, columns=3)
    return titled(ax, "points, by their value before the attack", quantity, legend=False)


HATCHES = ("", "//", "..", "xx", "--", "oo")
"""Repeat the information of the groups' colours."""


def plot_boxes(
    ax: Axes | None,
    values: Mapping[tuple[str, str], np.ndarray],
    groups: Sequence[str],
    settings: Sequence[str],
    *,
    label: str,
) -> Axes:
    """Settings (radii) along the axis, the groups (models) beside each other at each of them.

    Boxes are quartiles with the median, whiskers reach to the farthest value within 1.5 times the
    box's height, circles are values beyond.
    """
    ax = axes_or_new(ax)
    width = 0.8 / len(groups)
    for g, group in enumerate(groups):
        places = np.arange(len(settings)) + (g - 0.5 * (len(groups) - 1)) * width
        data = [values[group, setting] for setting in settings]
        drawn = ax.boxplot(
            data,
            positions=places,
            widths=0.8 * width,
            patch_artist=True,
            medianprops={"color": "black", "linewidth": 1.6},
            flierprops={"marker": "o", "markersize": 3, "markerfacecolor": "white"},
            manage_ticks=False,
        )
        for box in drawn["boxes"]:
            box.set(facecolor=CLASS_PALETTE[g % len(CLASS_PALETTE)], edgecolor="black")
            box.set_hatch(HATCHES[g % len(HATCHES)])
        drawn["boxes"][0].set_label(group)
    ax.set_xticks(np.arange(len(settings)), settings)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    return titled(ax, "radius of the balls", label, legend=len(groups) > 1)
