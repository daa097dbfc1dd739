"""Certificates: the proved bound of the margin against 0, at which the decision changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.certificates import Certificate, Status
from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.plots.axes import axes_or_current, blank, legend_above, name_rows, room_around
from gpcert.plots.images import image_shape, plot_image_counterexample
from gpcert.plots.style import LOOKS, MARKED, NOMINAL

FOUND = {Status.ROBUST: "v", Status.NOT_ROBUST: "X", Status.UNKNOWN: "v"}
"""Markers of the least margin that is known to be attained."""


def plot_certificate(
    ax: Axes | None, certificate: Certificate, *, shape: tuple[int, int] | None = None
) -> Axes:
    """One row of `plot_certificates`; above it, of images of a `shape`, x and what refutes."""
    ax = axes_or_current(ax)
    if shape is None:
        return _row(ax, certificate)
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
    """One bar a certificate, from the top: margins of the region lie on it, proved; it has no end
    on the right. A triangle is the least margin that is attained, a cross that of the
    counter-example, the diamond that at x. Left of the dashed line the decision is another one.
    """
    ax = axes_or_current(ax)
    rows = list(certificates)
    if not rows or len(labels) != len(rows):
        raise InputError(f"expected 1 or more certificates with a label each, got {len(rows)}")
    lower = np.array([c.margin.lower for c in rows])
    upper = np.array([c.margin.upper for c in rows])
    at_x = np.array([np.nan if c.margin_at_x is None else c.margin_at_x for c in rows])
    low, high = room_around([0.0, *lower, *upper, *at_x])
    start = np.clip(lower, low, high)
    for status, look in LOOKS.items():
        mine = np.array([k for k, c in enumerate(rows) if c.status is status], dtype=int)
        if not mine.size:
            continue
        own, colour = start[mine], look.colour
        ax.barh(mine, high - own, 0.5, own, color=colour, alpha=0.3, label=look.label)
        ax.vlines(own, mine - 0.32, mine + 0.32, color=colour, linestyle=look.line, lw=2.4)
        known = mine[np.isfinite(upper[mine])]
        text = "counter-example" if status is Status.NOT_ROBUST else "least attained"
        ax.scatter(upper[known], known, marker=FOUND[status], color=colour, label=text, **MARKED)
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
