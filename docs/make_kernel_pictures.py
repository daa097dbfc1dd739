"""The pictures of docs/kernels.md: every kernel and what bounds it over an interval.

    .venv/bin/python docs/make_kernel_pictures.py [folder]

writes one PNG a family to docs/pictures/kernels (or to the folder given). Needs matplotlib, no
screen. Every class of `gpcert.kernels.KERNELS` is in some picture: tests/plots sees to it.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Cosine,
    CosinePair,
    ExponentialTilt,
    GeneralisedSpectral,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scale,
    SpectralMixture,
    SquaredExponential,
    Sum,
    White,
)
from gpcert.plots.kernels import plot_kernel_lines

FOLDER = Path(__file__).parent / "pictures" / "kernels"
DPI = 100
COLUMNS = 3

COLOURS = 48
"""Of a picture's palette: more makes the files three times as large and changes nothing to see."""


class Panel(NamedTuple):
    """One kernel over one interval, seen from the point z."""

    title: str
    kernel: Kernel
    interval: tuple[float, float]
    point: float | tuple[float, ...]


PANELS: dict[str, list[Panel]] = {
    "radial": [
        Panel("SquaredExponential", SquaredExponential(1.0), (0.2, 1.8), 0.0),
        Panel("RationalQuadratic, α = 0.7", RationalQuadratic(1.0, 0.7), (0.2, 1.8), 0.0),
        Panel("Matern 1/2", Matern(1.0, 0.5), (-0.3, 0.9), 0.0),
        Panel("Matern 3/2", Matern(1.0, 1.5), (0.2, 1.4), 0.0),
        Panel("Matern 5/2", Matern(1.0, 2.5), (0.2, 1.6), 0.0),
        Panel("Matern 9/2", Matern(1.0, 4.5), (0.2, 1.8), 0.0),
    ],
    "spectral": [
        Panel("Periodic", Periodic(3.0, 1.2), (0.3, 1.4), 0.0),
        Panel("Cosine", Cosine([1.5]), (0.2, 1.9), 0.0),
        Panel("SpectralMixture", SpectralMixture([0.7, 0.3], [[0.6], [2.0]], [[1.5], [2.5]]),
              (0.3, 1.4), 0.0),
        Panel("ExponentialTilt", ExponentialTilt([0.6]), (0.0, 2.4), 0.3),
        Panel("CosinePair", CosinePair([1.0], [1.8]), (0.2, 1.5), 0.0),
        Panel("GeneralisedSpectral", GeneralisedSpectral([0.4], [[-0.3]], [[0.8]], [[1.5]]),
              (0.2, 1.3), 0.0),
    ],
    "polynomial": [
        Panel("Linear", Linear(1.0, center=0.5), (0.0, 2.0), 1.5),
        Panel("Polynomial, degree 3", Polynomial(3, 1.0, 0.5), (0.2, 1.4), 1.0),
        Panel("Constant", Constant(0.8), (0.0, 2.0), 0.5),
        Panel("White", White(0.3), (0.0, 2.0), 0.5),
    ],
    "composed": [
        Panel("Sum: SquaredExponential + Linear",
              Sum([SquaredExponential(0.8), Linear(0.4)]), (0.2, 1.6), 0.6),
        Panel("Product: SquaredExponential · Linear",
              Product([SquaredExponential(1.0), Linear(1.0, center=-0.5)]), (0.2, 1.2), 0.6),
        Panel("Scale: 3 · (Matern 3/2 · Cosine)",
              Scale(Product([Matern(2.0, 1.5), Cosine([1.5])]), 3.0), (0.3, 1.4), 0.0),
        Panel("ActiveDimensions: RationalQuadratic of input 0",
              ActiveDimensions(RationalQuadratic(0.8, 2.0), (0,)), (0.2, 1.4), (0.0, 1.0)),
    ],
}  # fmt: skip

REMAINDERS: list[tuple[str, Kernel, str, Any]] = [
    ("SquaredExponential", SquaredExponential(1.0), "#222222", "-"),
    ("RationalQuadratic, α = 0.7", RationalQuadratic(1.0, 0.7), "#0072B2", "--"),
    ("Matern 1/2", Matern(1.0, 0.5), "#D55E00", ":"),
    ("Matern 3/2", Matern(1.0, 1.5), "#009E73", "-."),
    ("Matern 5/2", Matern(1.0, 2.5), "#CC79A7", (0, (5, 1))),
]
"""Name, kernel, colour and line style in the picture of the remainders."""


def family_picture(panels: list[Panel]) -> Figure:
    """A grid of panels with one legend for all."""
    columns = min(COLUMNS, len(panels)) if len(panels) != 4 else 2
    rows = -(-len(panels) // columns)
    width = 3.3 if columns == COLUMNS else 4.2
    figure = Figure(figsize=(width * columns, 2.5 * rows + 0.4), layout="constrained")
    for k, panel in enumerate(panels):
        ax = figure.add_subplot(rows, columns, k + 1)
        plot_kernel_lines(panel.kernel, panel.interval, panel.point, ax, legend=False)
        ax.set_title(panel.title, fontsize=10)
        ax.set_xlabel("")
        ax.locator_params(nbins=5)
        ax.tick_params(labelsize=8)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure


def remainder_picture() -> Figure:
    """R0, R1 and R2 of the radial kernels against the size of the cell, doubly logarithmic."""
    figure = Figure(figsize=(9.9, 3.2), layout="constrained")
    rho = np.logspace(-3, 0.5, 60)
    for n in range(3):
        ax = figure.add_subplot(1, 3, n + 1)
        for name, kernel, colour, style in REMAINDERS:
            size = np.asarray(kernel.derivative_bounds(rho[:, None]).remainder(n))
            if np.all(np.isfinite(size)):
                ax.loglog(rho, size, color=colour, linestyle=style, linewidth=1.6, label=name)
        ax.set_title(f"remainder of order {n}, R{n}", fontsize=10)
        ax.set_xlabel("ρ, half-width in length-scales", fontsize=9)
        ax.tick_params(labelsize=8)
        ax.grid(color="#DDDDDD", linewidth=0.6)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    return figure


def pictures() -> dict[str, Figure]:
    """All figures, by the name of their file."""
    found = {name: family_picture(panels) for name, panels in PANELS.items()}
    return {**found, "remainders": remainder_picture()}


def save(figure: Figure, path: Path) -> None:
    """Write a PNG with a small palette; no date and no version in it, so that reruns agree."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=DPI)
    image = Image.open(buffer).convert("RGB").quantize(COLOURS)
    image.info.clear()
    image.save(path, optimize=True)


def main(folder: Path = FOLDER) -> None:
    """Write them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in pictures().items():
        save(figure, folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
