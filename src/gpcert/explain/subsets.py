"""Subset-minimal sets for a monotone property, by deletion in blocks.

Proofs: docs/mathematics.md, statement 15.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Answer = bool | None
"""Whether the property holds; None where it was not decided."""


@dataclass
class MinimalSubset:
    """`kept`, for which the property holds; without any one of `needed` it is proved not to.

    `undecided` are the kept items for which nobody knows: kept = needed + undecided.
    """

    kept: list[int]
    needed: list[int] = field(default_factory=list)
    undecided: list[int] = field(default_factory=list)


def minimal_subset(order: Sequence[int], holds: Callable[[list[int]], Answer]) -> MinimalSubset:
    """Drop what can be dropped from `order`, for which the property is known to hold.

    `holds` must be monotone: true of a set, it is true of every larger one. Blocks are tried whole
    and halved where that fails (a dichotomic search), the first items of `order` first: put those
    first that are likeliest to be superfluous.

    Minimality: an item is kept for good when `kept - {item}` was proved not to have the property.
    The final set is a subset of that `kept`, so without the item it does not have it either.

    >>> found = minimal_subset([3, 1, 0, 2], lambda s: {0, 2} <= set(s))
    >>> sorted(found.kept), found.undecided
    ([0, 2], [])
    """
    found = MinimalSubset(list(order))
    blocks = [list(order)]
    while blocks:
        block = blocks.pop()
        if not block:
            continue
        out = set(block)
        without = [item for item in found.kept if item not in out]
        answer = holds(without)
        if answer is True:
            found.kept = without
        elif len(block) == 1:
            (found.needed if answer is False else found.undecided).append(block[0])
        else:
            middle = len(block) // 2
            blocks += [block[middle:], block[:middle]]  # the first half is taken next
    return found
