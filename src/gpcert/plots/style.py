"""Colours and line styles, distinguishable for colour-blind readers and in black and white."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpcert.certificates import Status


@dataclass(frozen=True)
class Look:
    """The style of a status; the line style repeats the information of the colour."""

    colour: str
    line: Literal["-", "--", ":"]
    label: str


LOOKS = {
    Status.ROBUST: Look("#009E73", "-", "proved robust"),
    Status.NOT_ROBUST: Look("#D55E00", "--", "refuted"),
    Status.UNKNOWN: Look("#777777", ":", "undecided"),
}
"""Bluish green, vermilion and grey of Okabe and Ito (2008), *Color universal design*."""

DARK, LIGHT, ACCENT = "#0072B2", "#A6CEE3", "#D55E00"
CURVES: tuple[tuple[str, str], ...] = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v")),
    *(("#56B4E9", "P"), ("#777777", "X"), ("#000000", "*")),
)
"""Colour (Okabe and Ito) and marker of the first, second, ... curve on one Axes."""

CLASS_PALETTE = (
    *("#77AADD", "#EEDD88", "#FFAABB", "#BBCC33", "#99DDFF"),
    *("#AAAA00", "#44BB99", "#EE8866", "#DDDDDD"),
)
"""Several classes: "light" of Tol (2021), *Colour schemes*, for areas; the first ones
differ most from the colours of a status. Classes beyond the ninth share colours."""

PROBABILITY_COLOURS = "PuOr"
"""Purple to orange: diverging, and safe for red-green blindness."""
