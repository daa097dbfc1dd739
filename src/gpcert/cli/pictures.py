"""Pictures of results, as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console

from gpcert.cli.terminal import option, say
from gpcert.errors import InputError
from gpcert.extras import Axes, optional
from gpcert.plots.axes import new_figure

KINDS = {".png", ".svg", ".pdf"}
PIXELS_AN_INCH = 130
WIDTH, HEIGHT = 6.4, 4.4


@dataclass(frozen=True)
class Picture:
    """A file for the picture."""

    plot: Annotated[Path | None, option("draw the result here, a .png, .svg or .pdf file")] = None

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

    def draw(self, draw: Callable[[Axes], Any], place: Console) -> None:
        """Draw on a figure of its own, and say where it is."""
        if self.plot is not None:
            figure = new_figure(WIDTH, HEIGHT)
            draw(figure.subplots())
            figure.savefig(self.plot, dpi=PIXELS_AN_INCH)
            say(f"written: {self.plot}", place)


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
