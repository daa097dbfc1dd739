"""The split tree: boxes in preorder, each a leaf or cut into two along an axis.

The root is a box that contains the region (compared exactly), and the halves of a box cover it by
construction: a tree that can be read covers the region.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gpcert_check.container import Numbers
from gpcert_check.region import Region
from gpcert_check.verdicts import BadFile, Refuted

LEAF = -1
"""In the array `axes`; j >= 0 is a cut of free feature j at the box's middle, -2 - j one at the
next number of `cuts`."""

Leaf = tuple[list[float], list[float]]


def middle(low: float, high: float) -> float:
    """Where a box is cut that has no cut of its own: rounded once at most, or twice."""
    return 0.5 * low + 0.5 * high


def leaves(arrays: dict[str, Numbers], region: Region) -> Iterator[Leaf]:
    """The leaves' ends in the free features."""
    try:
        axes, cuts = arrays["axes"].values, arrays["cuts"].values
        root = list(arrays["root"].part(0).values), list(arrays["root"].part(1).values)
    except (KeyError, IndexError) as error:
        raise BadFile(f"tree: expected axes, cuts and root ({error!r})") from error
    free = region.free
    if arrays["root"].shape != (2, len(free)):
        raise BadFile(f"tree: expected a root of the {len(free)} features that may move")
    for j, a, b in zip(free, *root, strict=True):
        if not (Fraction(a) <= region.low[j] and region.high[j] <= Fraction(b)):
            raise Refuted(f"the tree does not cover the region: feature {j}")
    waiting, used = [root], 0
    for axis in axes:
        if not waiting:
            raise BadFile("tree: more nodes than it has places")
        low, high = waiting.pop()
        if axis == LEAF:
            yield low, high
            continue
        j = axis if axis >= 0 else -2 - axis
        if j >= len(free) or (axis < 0 and used >= len(cuts)):
            raise BadFile("tree: a cut of no feature, or no number for it")
        cut = middle(low[j], high[j]) if axis >= 0 else cuts[used]
        used += axis < 0
        if not low[j] <= cut <= high[j]:
            raise BadFile("tree: a cut outside its box")
        waiting.append(([*low[:j], cut, *low[j + 1 :]], high))
        waiting.append((low, [*high[:j], cut, *high[j + 1 :]]))
    if waiting or used != len(cuts):
        raise Refuted("the tree does not cover the region: it ends before its last leaf")
