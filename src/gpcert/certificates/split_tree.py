"""Boxes of a search as a tree of cuts, in two arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import numpy as np

LEAF = -1
NOTHING = -1
"""In the tree the sign of a leaf of which nothing is claimed."""

MERGED = 64
"""Subtrees of up to so many leaves are tried as one box."""

Proved = Callable[[np.ndarray, np.ndarray, int], bool]
"""Whether a box is proved, of leaves with this sign."""

Corners = Annotated[np.ndarray, "n f"]


def split_tree(
    leaves: tuple[Corners, Corners] | None,
    root: np.ndarray,
    proved: Proved | None = None,
    signs: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays `axes` and `cuts` of a tree over boxes, in preorder, and its leaves' signs.

    A box that no cut divides into whole leaves becomes one leaf, and so does one that is `proved`:
    the checker splits leaves further where it must. Leaves of different signs are never joined,
    those of one sign below 0 always: nothing is claimed of them.
    """
    axes, cuts, kinds = [], [], []
    low, high = (root[:1], root[1:]) if leaves is None else leaves
    signs = np.zeros(len(low), dtype="<i4") if signs is None else signs
    waiting = [(np.arange(len(low)), root[0], root[1])]
    while waiting:
        rows, first, last = waiting.pop()
        cut = None
        sign, alike = int(signs[rows[0]]), np.ptp(signs[rows]) == 0
        joined = len(rows) == 1 or (alike and sign < 0)
        small = alike and len(rows) <= MERGED
        if not joined and not (small and proved is not None and proved(first, last, sign)):
            cut = _cut(low[rows], high[rows], first, last)
        if cut is None:
            axes.append(LEAF)
            kinds.append(max(sign, NOTHING) if alike else NOTHING)
            continue
        axis, at, middle = cut
        axes.append(axis if middle else -2 - axis)
        if not middle:
            cuts.append(at)
        below = high[rows, axis] <= at
        inner, outer = last.copy(), first.copy()
        inner[axis] = outer[axis] = at
        waiting += [(rows[~below], outer, last), (rows[below], first, inner)]
    return np.array(axes, "<i4"), np.array(cuts, "<f8"), np.array(kinds, "<i4")


def boxes_of(
    axes: np.ndarray, cuts: np.ndarray, root: np.ndarray, most: int
) -> Iterator[tuple[list[float], list[float]]]:
    """The first leaves of a tree, for drawing; nothing rests on them."""
    waiting, used = [(root[0].tolist(), root[1].tolist())], 0
    for axis in axes.tolist():
        if not waiting or most == 0:
            return
        low, high = waiting.pop()
        if axis == LEAF:
            most -= 1
            yield low, high
            continue
        j = axis if axis >= 0 else -2 - axis
        cut = 0.5 * low[j] + 0.5 * high[j] if axis >= 0 else float(cuts[used])
        used += axis < 0
        waiting.append(([*low[:j], cut, *low[j + 1 :]], high))
        waiting.append((low, [*high[:j], cut, *high[j + 1 :]]))


def _cut(
    low: np.ndarray, high: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[int, float, bool] | None:
    """An axis and a number that divide boxes into two sets of whole boxes, and whether it is the
    middle of the box around them."""
    middle = 0.5 * first + 0.5 * last
    below, above = high <= middle, low >= middle
    good = np.all(below | above, axis=0) & np.any(below, axis=0) & np.any(above, axis=0)
    good &= ~np.any(below & above, axis=0)
    if good.any():
        axis = int(np.argmax(good))
        return axis, float(middle[axis]), True
    for axis in range(low.shape[1]):
        order = np.argsort(low[:, axis], kind="stable")
        starts = low[order, axis]
        ends = np.maximum.accumulate(high[order, axis])
        places = np.flatnonzero((ends[:-1] <= starts[1:]) & (starts[1:] > first[axis]))
        places = places[starts[places + 1] < last[axis]]
        if len(places):
            return axis, float(starts[places[len(places) // 2] + 1]), False
    return None
