"""The Axes that a picture is drawn on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes_or_current"]


def axes_or_current(ax: Axes | None) -> Axes:
    """The Axes given, or the current one."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.gca()
