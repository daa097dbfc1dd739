"""Curves over radius, pixels or epochs, and numbers by point and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.plots.axes import axes_or_current, legend_above, titled
from gpcert.plots.style import ACCENT, CLASS_PALETTE, DARK, LIGHT, LOOKS
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
    band between them is undecided. `label` is the prefix of names in the legend, `unit` follows
    "radius"."""
    ax = axes_or_current(ax)
    start = f"{label}: " if label else ""
    proved = LOOKS[Status.ROBUST]
    area: Any = {"color": "#BBBBBB", "alpha": 0.6, "linewidth": 0, "label": f"{start}undecided"}
    ax.fill_between(radii, certified, attacked, **area)
    look = {"color": proved.colour, "linestyle": "-", "linewidth": 3.0}
    ax.plot(radii, certified, **look, label=f"{start}proved robust")
    # thin and on top: both are visible where they agree
    above = {"color": ACCENT, "linestyle": "--", "linewidth": 1.2}
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
    label: str,
    attack: str,
    first_unsafe: float | None,
    unit: str = "",
) -> Axes:
    """Against the radius: bounds of the maximum (blue) and of the minimum (green).

    Solid lines are proved for the whole ball, dashed ones attained at a point of it; the truth lies
    between a pair of them. Between two radii they are steps: a bound for a ball holds in smaller
    ones, a value attained in it is attained in larger ones. Pink with crosses: the attack.
    Horizontal: the threshold; vertical: the first radius at which a counter-example is known.
    Infinite bounds are left out.
    """
    ax = axes_or_current(ax)
    radius = frame["radius"].to_numpy()
    lines = (
        ("maximum_upper", DARK, "-", "maximum: proved"),
        ("maximum_lower", DARK, "--", "maximum: attained"),
        ("minimum_upper", LOW, "--", "minimum: attained"),
        ("minimum_lower", LOW, "-", "minimum: proved"),
    )
    for column, colour, line, text in lines:
        values = frame[column].to_numpy(dtype=float)
        values = np.where(np.isfinite(values), values, np.nan)
        steps = "steps-pre" if line == "-" else "steps-post"
        style: Any = {"color": colour, "linestyle": line, "linewidth": 1.6, "drawstyle": steps}
        ax.plot(radius, values, **style, label=text)
    look = {"color": ATTACK, "marker": "x", "markersize": 4, "linewidth": 1.2}
    ax.plot(radius, frame["attack"], **look, label=f"attack ({attack.replace('_', ', ')})")
    for number, level in enumerate(levels):
        text = "decision" if number == 0 else None
        ax.axhline(level, color="black", linestyle=":", linewidth=1.2, label=text)
    if first_unsafe is not None:
        ax.axvline(first_unsafe, color=ACCENT, linestyle="-.", linewidth=1.2, label="first unsafe")
    return titled(ax, f"radius{unit or ' of the ball'}", label)


LINES = ((DARK, "o", "-"), (ACCENT, "s", "--"), ("#009E73", "^", "-."), ("#777777", "D", ":"))
"""Colour, marker and line of each ranking; each of them alone distinguishes rankings."""

Gaps = tuple[str, Sequence[int], np.ndarray, np.ndarray]


def plot_gaps(ax: Axes | None, rows: Sequence[Gaps]) -> Axes:
    """For each ranking the attained gap, and the band down to the proved lower bound.

    Below the dashed grey line, 0, an adversarial image is known.
    """
    ax = axes_or_current(ax)
    if not rows:
        raise InputError("rows: expected at least one ranking, got none")
    for k, (name, betas, lower, upper) in enumerate(rows):
        colour, marker, line = LINES[k % len(LINES)]
        ax.fill_between(betas, lower, upper, color=colour, alpha=0.2, linewidth=0)
        ax.plot(betas, upper, color=colour, marker=marker, linestyle=line, ms=4, label=name)
    ax.axhline(0.0, color="#777777", linestyle="--", linewidth=1.2, label="decision changes below")
    return titled(ax, "pixels that may change (β)", "smallest gap π_gap")


def plot_training(ax: Axes, trace: Trace) -> Axes:
    """A dot for each evaluation of the evidence, and a line for the best one so far.

    `trace` is `model.trace_`. Thin lines separate restarts; crosses at the bottom are parameters at
    which inference failed.
    """
    if len(trace) == 0:
        raise InputError("trace: expected at least one evaluation, got none")
    evidence, epochs = trace.evidence, np.arange(1, len(trace) + 1)
    works = np.isfinite(evidence)
    best = np.maximum.accumulate(np.where(works, evidence, -np.inf))
    known = np.isfinite(best)
    ax.scatter(epochs[works], evidence[works], color=LIGHT, s=18, label="evaluation")
    ax.step(epochs[known], best[known], where="post", color=DARK, label="best so far")
    if not np.all(works):
        floor = evidence[works].min() if np.any(works) else 0.0
        failed = epochs[~works], np.full(int((~works).sum()), floor)
        ax.scatter(*failed, color=ACCENT, marker="x", label="inference failed")
    for start in epochs[1:][np.diff(trace.runs) != 0]:
        ax.axvline(start - 0.5, color="#777777", linestyle=":", linewidth=0.8)
    return titled(ax, "epochs (evaluations of the evidence)", "log evidence")


def plot_worst_cases(ax: Axes | None, frame: DataFrame) -> Axes:
    """Thin and light: the band that contains mean +- beta std in the whole region; thick and dark:
    the proved range of the mean; the diamond is the prediction at the point."""
    ax = axes_or_current(ax)
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
    ax = axes_or_current(ax)
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
    ax = axes_or_current(ax)
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
