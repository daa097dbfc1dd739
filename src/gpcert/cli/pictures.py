"""Pictures of results, as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gpcert.errors import InputError
from gpcert.extras import optional
from gpcert.plots.axes import new_figure

KINDS = {".png", ".svg", ".pdf"}
PIXELS_AN_INCH = 130
WIDTH, HEIGHT = 6.4, 4.4


@dataclass(frozen=True)
class Picture:
    """A file for the picture."""

    plot: Annotated[
        Path | None, typer.Option(help="draw the result here, a .png, .svg or .pdf file")
    ] = None

    def check(self) -> None:
        """Find out before the work that the picture cannot be written."""
        if self.plot is None:
            return
        if self.plot.suffix.lower() not in KINDS:
            raise InputError(
                f"--plot: expected a file that ends in {', '.join(sorted(KINDS))}, got "
                f"{str(self.plot)!r}"
            )
        if not self.plot.absolute().parent.is_dir():
            raise InputError(f"--plot: expected an existing folder, got {str(self.plot.parent)!r}")
        optional("matplotlib", "--plot")

    def draw(self, result: Any) -> None:
        """Draw what was found."""
        if self.plot is None or not len(result):
            return
        figure = new_figure(WIDTH, HEIGHT)
        result.plot(figure.subplots())
        figure.savefig(self.plot, dpi=PIXELS_AN_INCH)


def radii_of(text: str) -> list[float]:
    """Numbers between commas, or `first:last:count`.

    >>> radii_of("0.1,0.2"), radii_of("0:1:3")
    ([0.1, 0.2], [0.0, 0.5, 1.0])
    """
    try:
        if ":" in text:
            first, last, count = text.split(":")
            low, high, steps = float(first), float(last), int(count)
            if steps < 2:
                raise ValueError
            return [low + (high - low) * k / (steps - 1) for k in range(steps)]
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            "--radii: expected numbers as in 0.1,0.2 or first:last:count as in 0:0.5:11, got "
            f"{text!r}"
        ) from error
