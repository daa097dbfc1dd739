"""Results as rows of bars: ranges, certificates, radii; an image and its counter-example; and the
plot of each kind of record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gpcert.certificates import Certificate, PredictionRange, Radius, RangeTable, Status
from gpcert.certificates.text import in_unit
from gpcert.errors import InputError
from gpcert.numerics.arrays import finite_array
from gpcert.plots.axes import (
    ACCENT,
    DARK,
    LIGHT,
    LOOKS,
    PROBABILITY_COLOURS,
    axes_or_new,
    blank,
    image_shape,
    legend_above,
    name_rows,
    padded_limits,
)
from gpcert.plots.optima import plot_optimum, plot_regret
from gpcert.plots.probability import plot_failure, plot_interval, plot_sobol
from gpcert.plots.slopes import (
    plot_fairness,
    plot_lipschitz,
    plot_monotonicities,
    plot_slopes,
)
from gpcert.utils.optional_imports import Axes

HEIGHT = 0.56

MOST_ROWS = 10
"""Number of moved features in the picture of a certificate."""

MARKED: dict[str, Any] = {"s": 60, "edgecolors": "black", "linewidths": 0.7, "zorder": 3}
"""Style of attained values."""

NOMINAL: dict[str, Any] = {"marker": "D", "s": 34, "color": "white", "edgecolors": "black"}
NOMINAL |= {"linewidths": 1.1, "zorder": 4}
"""Style of the prediction at the point itself, in all plots."""


def plot_range(
    ax: Axes | None,
    ranges: Iterable[PredictionRange],
    *,
    labels: Sequence[Any] | None = None,
    threshold: float | None = None,
) -> Axes:
    """One bar per range, from the top: `[minimum.lower, maximum.upper]`, which contains all values.

    Triangles are the least and the largest known values that points of the region attain: the true
    minimum and maximum lie between them and the ends of the bar. The diamond is the prediction at
    the centre of the region. An infinite end is an arrow. `labels` name the bars; by default the
    ranges' outputs (the classes of `prediction_ranges`) if they differ, else numbers.
    """
    ax = axes_or_new(ax)
    ranges = list(ranges)
    if labels is None:
        outputs = [str(r.output) for r in ranges]
        distinct = len(set(outputs)) == len(ranges)
        labels = outputs if distinct else list(map(str, range(len(ranges))))
        if len(ranges) == 1 and ranges[0].output is None:
            labels = [""]
    _checked("ranges", ranges, labels)
    outer = np.array([[r.minimum.lower, r.maximum.upper] for r in ranges])
    inner = np.array([[r.minimum.upper, r.maximum.lower] for r in ranges])
    nominal = np.array([np.nan if r.nominal is None else r.nominal for r in ranges])
    level = np.nan if threshold is None else threshold
    low, high = padded_limits([*outer.ravel(), *inner.ravel(), *nominal, level])
    drawn, rows = np.clip(outer, low, high), np.arange(len(ranges))
    bar: Any = {"color": LIGHT, "edgecolor": DARK, "linewidth": 1.2}  # one of no width is a line
    ax.barh(rows, drawn[:, 1] - drawn[:, 0], HEIGHT, drawn[:, 0], **bar, label="proved: all values")
    carets = (("<", 4), (">", 5))  # their tips are at the value
    for side, (arrow, attained) in enumerate(carets):
        endless = ~np.isfinite(outer[:, side])
        ends = drawn[endless, side], rows[endless]
        ax.scatter(*ends, marker=arrow, color=DARK, s=80, zorder=3, clip_on=False)
        known = np.isfinite(inner[:, side])
        style: dict[str, Any] = {"s": 34, "color": DARK, "zorder": 3, "marker": attained}
        style["label"] = "attained" if side == 0 else None
        ax.scatter(inner[known, side], rows[known], **style)
    if np.isfinite(nominal).any():
        ax.scatter(nominal, rows, **NOMINAL, label="at the centre")
    if threshold is not None:
        ax.axvline(threshold, color=ACCENT, linestyle="--", linewidth=1.2, label="decision")
    ax.set_xlim(low, high)
    name_rows(ax, labels)
    quantities = {r.quantity for r in ranges}
    ax.set_xlabel(quantities.pop() if len(quantities) == 1 else "prediction")
    legend_above(ax)
    return ax


def _checked(what: str, rows: Sequence[Any], labels: Sequence[Any]) -> None:
    """An `InputError` unless there is a label for each of at least one row."""
    if not rows or len(labels) != len(rows):
        raise InputError(
            f"labels: expected one for each of 1 or more {what}, got {len(labels)} for {len(rows)}"
        )


ATTAINED_MARKERS = {Status.ROBUST: "v", Status.NOT_ROBUST: "X", Status.UNKNOWN: "v"}
"""Markers of the least attained margin."""


def plot_certificate(
    ax: Axes | None, certificate: Certificate, *, shape: tuple[int, int] | None = None
) -> Axes:
    """One row of `plot_certificates`, below the features that the counter-example moves or, for
    images of a `shape`, below x and the counter-example."""
    ax = axes_or_new(ax)
    if shape is None:
        moved = certificate.moved_features[:MOST_ROWS]
        if not moved:
            return _row(ax, certificate)
        ax.set_axis_off()
        below = 1.2 / (len(moved) + 2.4)
        _row(ax.inset_axes((0.0, 0.0, 1.0, below)), certificate)
        _moved_features(ax.inset_axes((0.0, below + 0.3, 1.0, 0.7 - below)), certificate, moved)
        return ax
    if certificate.x is None:
        raise InputError("shape: expected a certificate that holds x, got one without")
    shape = image_shape(shape, certificate.x.size)
    ax.set_axis_off()
    below = ax.inset_axes((0.0, 0.0, 1.0, 0.3))
    _row(below, certificate)
    if certificate.counterexample is None:
        blank(ax.inset_axes((0.25, 0.56, 0.5, 0.44))).imshow(
            certificate.x.reshape(shape), cmap="gray_r"
        )
        return ax
    images = [ax.inset_axes((0.34 * k, 0.56, 0.31, 0.38)) for k in range(3)]
    labels = None if certificate.decision is None else (certificate.decision, "otherwise")
    plot_image_counterexample(
        images, certificate.x, certificate.counterexample, shape, labels=labels
    )
    return ax


def _moved_features(ax: Axes, certificate: Certificate, moved: Sequence[int]) -> None:
    """One row per feature: x and the counter-example between the ends that the region allows."""
    x, other = certificate.x, certificate.counterexample
    assert x is not None
    assert other is not None
    features, rows = np.array(moved), np.arange(len(moved))
    low, high = (ends[features] for ends in certificate.allowed_values)
    start, end = ((point[features] - low) / (high - low) for point in (x, other))
    ax.barh(rows, np.ones(len(rows)), 0.5, color="#EEEEEE", edgecolor="#999999", linewidth=0.8)
    arrow: Any = {"arrowstyle": "-|>", "color": LOOKS[Status.NOT_ROBUST].colour, "linewidth": 1.6}
    for row in rows:
        ax.annotate("", (end[row], row), (start[row], row), arrowprops=arrow)
    ax.scatter(start, rows, **NOMINAL)
    mark = {"marker": "X", "color": LOOKS[Status.NOT_ROBUST].colour, **MARKED}
    ax.scatter(end, rows, **mark)
    name_rows(ax, [certificate.feature_label(j) for j in moved])
    right = ax.secondary_yaxis("right")
    right.set_yticks(rows, [f"{x[j]:.4g} → {other[j]:.4g}" for j in moved])
    right.tick_params(length=0)
    more = len(certificate.moved_features) - len(moved)
    ax.set(xlim=(-0.03, 1.03), xticks=(0.0, 1.0), xticklabels=("least allowed", "largest allowed"))
    ax.set_title(f"what moved{f' ({more} more)' if more else ''}", fontsize="medium")


def _row(ax: Axes, certificate: Certificate) -> Axes:
    decision = "" if certificate.decision is None else f", decision {certificate.decision!r}"
    return plot_certificates(ax, [certificate], [""], title=certificate.status.name + decision)


def plot_certificates(
    ax: Axes | None,
    certificates: Sequence[Certificate],
    labels: Sequence[Any],
    *,
    title: str | None = None,
) -> Axes:
    """One bar per certificate, from the top: it contains all margins of the region (proved), and is
    open on the right. A triangle is the least attained margin, a cross that of the counter-example,
    the diamond that at x. Left of the dashed line the decision is different.
    """
    ax = axes_or_new(ax)
    rows = list(certificates)
    _checked("certificates", rows, labels)
    lower = np.array([c.margin.lower for c in rows])
    upper = np.array([c.margin.upper for c in rows])
    at_x = np.array([np.nan if c.margin_at_x is None else c.margin_at_x for c in rows])
    low, high = padded_limits([0.0, *lower, *upper, *at_x])
    start = np.clip(lower, low, high)
    for status, look in LOOKS.items():
        positions = np.array([k for k, c in enumerate(rows) if c.status is status], dtype=int)
        if not positions.size:
            continue
        starts, colour = start[positions], look.colour
        ax.barh(positions, high - starts, 0.5, starts, color=colour, alpha=0.3, label=look.label)
        ax.vlines(
            starts, positions - 0.32, positions + 0.32, color=colour, linestyle=look.line, lw=2.4
        )
        known = positions[np.isfinite(upper[positions])]
        text = "counter-example" if status is Status.NOT_ROBUST else "least attained"
        ax.scatter(
            upper[known], known, marker=ATTAINED_MARKERS[status], color=colour, label=text, **MARKED
        )
    if np.isfinite(at_x).any():
        ax.scatter(at_x, np.arange(len(rows)), **NOMINAL, label="at x")
    ax.axvline(0.0, color="black", linestyle="--", linewidth=1.2, label="decision changes")
    ax.set_xlim(low, high)
    name_rows(ax, labels)
    units = {c.unit for c in rows}
    unit = f" ({units.pop()})" if len(units) == 1 and units != {""} else ""
    ax.set_xlabel(f"margin of the decision{unit}")
    legend_above(ax, title=title)
    return ax


def plot_radii(ax: Axes | None, radii: Sequence[Radius], labels: Sequence[Any]) -> Axes:
    """One row per point, from the top: green up to the proved radius, hatched where undecided, a
    cross at a known counter-example, or an arrow if there is none."""
    ax = axes_or_new(ax)
    rows = list(radii)
    _checked("radii", rows, labels)
    lower, upper = np.array([r.lower for r in rows]), np.array([r.upper for r in rows])
    _, high = padded_limits([0.0, *lower, *upper])
    rank, known = np.arange(len(rows)), np.isfinite(upper)
    end, start = np.where(known, upper, high), np.minimum(lower, high)
    proved, refuted = LOOKS[Status.ROBUST], LOOKS[Status.NOT_ROBUST]
    ax.barh(rank, start, 0.56, color=proved.colour, label=proved.label)
    bar: Any = {"facecolor": "white", "edgecolor": "#777777", "hatch": "////", "linewidth": 0.8}
    ax.barh(rank, end - start, 0.56, start, **bar, label="undecided")
    if known.any():
        mark = {"marker": "X", "color": refuted.colour, **MARKED}
        ax.scatter(upper[known], rank[known], **mark, label="counter-example")
    ends = end[~known], rank[~known]
    ax.scatter(*ends, marker=">", s=60, color="#777777", zorder=3, clip_on=False)
    ax.set_xlim(0.0, high)
    name_rows(ax, labels)
    norms = {r.norm for r in rows}
    norm = f" (l_{norms.pop():g})" if len(norms) == 1 else ""
    ax.set_xlabel(f"radius{in_unit(rows)}{norm}")
    legend_above(ax)
    return ax


def plot_image_counterexample(
    axes: Sequence[Axes],
    x: Any,
    counterexample: Any,
    shape: tuple[int, int],
    *,
    labels: tuple[Any, Any] | None = None,
) -> Sequence[Axes]:
    """Draw x, the counter-example and their difference on three Axes; returns the Axes.

    `shape` is (rows, columns) of the image; `labels` the decisions before and after, for the
    titles. Both images share one grey scale; the difference is centred at zero.
    """
    if len(axes) != 3:
        raise InputError(f"axes: expected three Axes, got {len(axes)}")
    before, after = finite_array("x", x, ndim=1), finite_array("counterexample", counterexample, 1)
    if after.size != before.size:
        raise InputError(
            f"counterexample: expected {before.size} pixels, as many as in x, got {after.size}"
        )
    shape = image_shape(shape, before.size)
    change = after - before
    top = max(float(before.max()), float(after.max()))
    bottom = min(float(before.min()), float(after.min()))
    largest = float(np.abs(change).max()) or 1.0  # equal images: any scale shows the zeros
    for ax, pixels in zip(axes[:2], (before, after), strict=True):
        ax.imshow(pixels.reshape(shape), cmap="gray_r", vmin=bottom, vmax=top)
    axes[2].imshow(change.reshape(shape), cmap=PROBABILITY_COLOURS, vmin=-largest, vmax=largest)
    titles = ["image", "counter-example", f"change (up to {largest:.3g})"]
    if labels is not None:
        titles[:2] = [f"decided {labels[0]}", f"decided {labels[1]}"]
    for ax, title in zip(axes, titles, strict=True):
        blank(ax, title)
    return axes


def _ranges(ax: Axes | None, table: RangeTable) -> Axes:
    repeated = len(set(table.labels)) < len(table)  # outputs of the same points
    pairs = zip(table.labels, table, strict=True)
    names = [f"{label}: {row.output}" if repeated else label for label, row in pairs]
    return plot_range(ax, table, labels=names)


PICTURES: dict[str, Callable[..., Any]] = {
    "certificate": plot_certificate,
    "certificates": lambda ax, table: plot_certificates(ax, table.rows, table.labels),
    "prediction_range": lambda ax, record: plot_range(ax, [record]),
    "prediction_ranges": _ranges,
    "radius": lambda ax, record: plot_radii(ax, [record], [""]),
    "optimum": plot_optimum,
    "expectation": plot_interval,
    "failure_probability": plot_failure,
    "quantile": plot_interval,
    "regret_bound": plot_regret,
    "slopes": plot_slopes,
    "sobol_indices": plot_sobol,
    "monotonicity": lambda ax, record: plot_monotonicities(ax, [record], [record.feature]),
    "monotonicities": lambda ax, table: plot_monotonicities(ax, table.rows, table.labels),
    "lipschitz": lambda ax, record: plot_lipschitz(ax, [record], [f"l_{record.norm:g}"]),
    "lipschitz_table": lambda ax, table: plot_lipschitz(ax, table.rows, table.labels),
    "fairness": lambda ax, record: plot_fairness(ax, [record], [", ".join(record.protected)]),
    "fairnesses": lambda ax, table: plot_fairness(ax, table.rows, table.labels),
    "radii": lambda ax, table: plot_radii(ax, table.rows, table.labels),
}
"""Plots by kind of record, for `Record.plot`."""
