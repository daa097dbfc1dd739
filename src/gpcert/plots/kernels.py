"""A kernel in one dimension, with the engine's bounds of it over an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.enclosures.mean import MeanEnclosure, mean_enclosure
from gpcert.errors import InputError
from gpcert.kernels import Kernel
from gpcert.numerics.arrays import Backend, finite_array, to_numpy
from gpcert.numerics.rounding import up_float
from gpcert.paper.lines import Affine, affine_relaxation, check_lines
from gpcert.plots.axes import ACCENT, DARK, LIGHT, axes_or_new, titled
from gpcert.regions import Box, Cells
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.utils.optional_imports import Axes

GRID = 241
"""Number of points of the interval at which curves are evaluated."""

MARGIN = 0.3
"""Margin on both sides in which only the kernel is drawn, as a fraction of the width."""


@dataclass(frozen=True, eq=False)
class KernelLines:
    """k(., z) at the points x (n,), and proved lower and upper curves.

    `under` and `over` are the paper's: affine in the kernel's carriers phi, so they need not be
    straight in x; infinite for a kernel without lines. `taylor_under` and `taylor_over` are the
    second-order enclosure of the function k(., z); infinite if there is none. The curves are
    certified for the whole interval; their values at x are computed in plain floating point, up to
    a few roundings.
    """

    x: np.ndarray
    value: np.ndarray
    under: np.ndarray
    over: np.ndarray
    taylor_under: np.ndarray
    taylor_over: np.ndarray


def kernel_lines(kernel: Kernel, interval: Any, point: Any, count: int = GRID) -> KernelLines:
    """The curves of k(., point) over `interval = (low, high)` at `count` points.

    The interval is that of the first input; other inputs are fixed at those of `point`.

    >>> from gpcert.kernels import SquaredExponential
    >>> lines = kernel_lines(SquaredExponential(1.0), (0.5, 1.5), 0.0, count=5)
    >>> bool(np.all(lines.under < lines.value)), bool(np.all(lines.value[1:-1] < lines.over[1:-1]))
    (True, True)
    """
    ends = finite_array("interval", interval, ndim=1)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise InputError(f"interval: expected two numbers, low < high, got {interval!r}")
    z = np.atleast_1d(finite_array("point", point))
    if z.ndim != 1:
        raise InputError(f"point: expected a number or one per feature, got {point!r}")
    kernel.check_dimension(len(z))
    region = Box([ends[0], *z[1:]], [ends[1], *z[1:]])
    x = np.linspace(ends[0], ends[1], count)
    places = np.concatenate([x[:, None], np.tile(z[1:], (count, 1))], axis=1)
    return KernelLines(
        x,
        kernel.value(places, z[None, :])[:, 0],
        *_paper_curves(kernel, region, z, x),
        *_taylor_curves(kernel, region, z, x),
    )


def _paper_curves(
    kernel: Kernel, region: Box, z: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lines of the whole interval, evaluated at x with the carriers of the cells {x}.

    The minimum of `slope phi` over a cell that is one point is its value there.
    """
    if check_lines(kernel, z[None, :]) is not None:
        return np.full_like(x, -np.inf), np.full_like(x, np.inf)
    frame = Frame.of(region, kernel.typical_lengths(len(z)), Backend())
    node = kernel.node(z[None, :], frame)
    whole = affine_relaxation(node.at(ScaledCells.in_frame(region.root(), frame)))
    single = Cells(region, x[:, None], x[:, None])
    there = affine_relaxation(node.at(ScaledCells.in_frame(single, frame)))

    def values(sign: float, line: Affine, local: Affine) -> np.ndarray:
        total = np.full(len(x), sign * float(line.intercept[0, 0]))
        for (_, slope), (carrier, _) in zip(line.slopes, local.slopes, strict=True):
            coefficients = np.full((len(x), 1), sign * float(slope[0, 0]))
            total = total + to_numpy(carrier.minimum(coefficients))
        return sign * total

    return values(1.0, whole.under, there.under), values(-1.0, whole.over, there.over)


def _taylor_curves(
    kernel: Kernel, region: Box, z: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The engine's enclosure of the "mean" k(., z), one point of weight 1 and norm sqrt k(z, z)."""
    square, error = kernel.gram_with_error(z[None, :])
    norm = up_float(float(np.sqrt(square[0, 0] + error[0, 0])), 4)
    local = kernel.localize(z[None, :], region, Backend())
    expansion = local.expand(region.root())
    enclosure: MeanEnclosure = mean_enclosure(local, expansion, np.ones(1), norm, pointwise=True)
    center = float(region.root().center[0, 0])
    d = (x - center) * float(local.inverse_length[0])
    weight = np.exp(-local.weight_rate * d * d)

    def curve(model: Any) -> np.ndarray:
        quadratic = model.value[0] + model.gradient[0, 0] * d + 0.5 * model.matrix[0, 0, 0] * d * d
        error = float(model.error[0])
        # the weight may underflow: 0 times infinity is not a number
        return weight * (quadratic - error) if np.isfinite(error) else np.full_like(x, -np.inf)

    return curve(enclosure.below), -curve(enclosure.above)


def plot_kernel_lines(
    kernel: Kernel, interval: Any, point: Any, ax: Axes | None = None, *, legend: bool = True
) -> Axes:
    """Draw k(., point), the paper's lines under and over it on the interval and its Taylor band.

    See `kernel_lines`. Black: the kernel; dashed: the paper's lines; the light band with dotted
    edges: the second-order enclosure, of any degree. A dot marks the point z.
    """
    lines = kernel_lines(kernel, interval, point)
    ax = axes_or_new(ax)
    z = np.atleast_1d(np.asarray(point, dtype=np.float64))
    low, high = lines.x[0], lines.x[-1]
    margin = MARGIN * (high - low)
    wide = np.linspace(low - margin, high + margin, GRID)
    places = np.concatenate([wide[:, None], np.tile(z[1:], (GRID, 1))], axis=1)
    ax.plot(wide, kernel.value(places, z[None, :])[:, 0], color="#999999", linewidth=1.0)
    taylor = (lines.taylor_under, lines.taylor_over)
    if np.all(np.isfinite(taylor)):
        ax.fill_between(lines.x, *taylor, color=LIGHT, alpha=0.5, linewidth=0)
        for rim, label in zip(taylor, ("second-order Taylor enclosure", None), strict=True):
            ax.plot(lines.x, rim, color=DARK, linestyle=":", linewidth=1.4, label=label)
    ax.plot(lines.x, lines.value, color="#222222", linewidth=1.8, label="kernel k(x, z)")
    for line, label in ((lines.under, "paper's lines under and over"), (lines.over, None)):
        if np.all(np.isfinite(line)):
            ax.plot(lines.x, line, color=ACCENT, linestyle="--", linewidth=1.4, label=label)
    for end in (low, high):
        ax.axvline(end, color="#BBBBBB", linewidth=0.8, zorder=0)
    if wide[0] <= z[0] <= wide[-1]:
        height = float(kernel.value(z[None, :], z[None, :])[0, 0])
        ax.plot([z[0]], [height], color="#222222", marker="o", markersize=4, linestyle="none")
    ax.set_xlim(wide[0], wide[-1])
    size = float(np.abs(lines.value).max())
    if np.ptp(ax.get_ylim()) < 1e-6 * size:  # constant: do not scale the axis to rounding errors
        ax.set_ylim(float(lines.value[0]) - size, float(lines.value[0]) + size)
    return titled(ax, "x", "", legend)
