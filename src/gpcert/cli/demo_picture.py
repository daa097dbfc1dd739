"""The demo's picture: certified boxes in the plane, digits beside their counter-examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpcert.certificates import Radius
from gpcert.cli.demo_study import Study
from gpcert.cli.terminal import above, below
from gpcert.plots import plot_decision_regions, plot_image_counterexample
from gpcert.plots.axes import new_figure

IMAGE_SHAPE = (8, 8)
PIXELS_AN_INCH = 110


def draw(
    path: Path, plane: Study, digits: Study, images: Sequence[int], found: Sequence[Radius]
) -> None:
    """Write the picture as PNG."""
    shown = [(k, r) for k, r in zip(images, found, strict=True) if r.counterexample is not None]
    figure = new_figure(12.0, 5.4)
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.35, 1.0), wspace=0.03)
    left, right = halves
    _draw_plane(left, plane)
    if shown:
        _draw_digits(right, digits, shown)
    figure.savefig(path, dpi=PIXELS_AN_INCH)


def _draw_plane(figure: Any, plane: Study) -> None:
    ax = figure.add_subplot()
    data = plane.data
    plot_decision_regions(ax, plane.posterior, plane.certificates, X=data.X_test, y=data.y_test)
    sizes = " and ".join(f"{radius:g}" for radius in plane.radii)
    ax.set_title(
        f"{data.name}: is the decision the same in the whole box?\n"
        f"(boxes of radius {sizes} around test points)"
    )


def _draw_digits(figure: Any, digits: Study, shown: Sequence[tuple[int, Radius]]) -> None:
    grid = figure.subplots(len(shown), 3, squeeze=False)
    first, second = digits.posterior.classes or (0, 1)
    for axes, (index, found) in zip(grid, shown, strict=True):
        other = second if found.decision == first else first
        plot_image_counterexample(
            list(axes),
            digits.data.X_test[index],
            found.counterexample,
            IMAGE_SHAPE,
            labels=(found.decision, other),
        )
        axes[0].set_ylabel(
            f"proved to {below(found.lower)}\nrefuted at {above(found.upper)}", fontsize="small"
        )
    grid[-1, 2].set_xlabel("purple: more ink\norange: less", fontsize="small")
    figure.suptitle(
        "Digits, all 64 pixels free:\nhow far until the decision changes?", fontsize="large"
    )
