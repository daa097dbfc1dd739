"""Which picture is that of which record: `Record.plot` looks here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpcert.certificates import CertificateTable, PredictionRange, Radius, RadiusTable, RangeTable
from gpcert.extras import Axes
from gpcert.plots.intervals import plot_range
from gpcert.plots.margins import plot_certificate, plot_certificates
from gpcert.plots.radii import plot_radii


def _range(ax: Axes | None, found: PredictionRange) -> Axes:
    return plot_range(ax, [found])


def _ranges(ax: Axes | None, table: RangeTable) -> Axes:
    several = len(set(table.labels)) < len(table)  # outputs of the same points
    pairs = zip(table.labels, table, strict=True)
    names = [f"{label}: {row.output}" if several else label for label, row in pairs]
    return plot_range(ax, table, labels=names)


def _certificates(ax: Axes | None, table: CertificateTable) -> Axes:
    return plot_certificates(ax, table.rows, table.labels)


def _radius(ax: Axes | None, found: Radius) -> Axes:
    return plot_radii(ax, [found], [""])


def _radii(ax: Axes | None, table: RadiusTable) -> Axes:
    return plot_radii(ax, table.rows, table.labels)


PICTURES: dict[str, Callable[..., Any]] = {
    "certificate": plot_certificate,
    "certificates": _certificates,
    "prediction_range": _range,
    "prediction_ranges": _ranges,
    "radius": _radius,
    "radii": _radii,
}
