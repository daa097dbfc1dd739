"""Level sets: what is proved of every leaf of the tree, and of the volumes of the leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from gpcert_check.check import Certificate, Report, Task
from gpcert_check.region import Region
from gpcert_check.tree import LEAF, leaves
from gpcert_check.verdicts import BadFile, Refuted

CORNERS = 12
"""Free features up to which a leaf is known to lie in a round region, by its corners."""


@dataclass
class Shares:
    """Volumes of leaves: `whole`, without points of the `region`, and by label `sure` of the label,
    `inside` the region as well."""

    whole: Fraction = Fraction(0)
    apart: Fraction = Fraction(0)
    sure: dict[Any, Fraction] = field(default_factory=dict)
    inside: dict[Any, Fraction] = field(default_factory=dict)


@dataclass
class SetCertificate(Certificate):
    """Every leaf has the number of one of the `cases`, or none (below 0); case k puts the leaf's
    points into the set of `labels[k]`. `shares` are claimed: (label, lower, upper), of the volume
    of the tree's root."""

    labels: list[Any] = field(default_factory=list)
    shares: list[tuple[Any, Fraction, Fraction]] = field(default_factory=list)

    def tasks(self) -> Iterator[Task]:
        signs = self.tree["signs"].values if "signs" in self.tree else [-2]
        count = self.tree["axes"].values.count(LEAF) if "axes" in self.tree else 0
        if len(signs) != count or not all(-1 <= sign < len(self.cases) for sign in signs):
            raise BadFile("tree: expected for every leaf the number of a case, or -1")
        self.counted = counted = Shares()
        for leaf, case in zip(leaves(self.tree, self.region), signs, strict=True):
            volume = prod(Fraction(b) - Fraction(a) for a, b in zip(*leaf, strict=True))
            counted.whole += volume
            if self.region.cell(*leaf) is None:
                counted.apart += volume
            elif case >= 0:
                label = self.labels[case]
                counted.sure[label] = counted.sure.get(label, Fraction(0)) + volume
                if self._holds(*leaf):
                    counted.inside[label] = counted.inside.get(label, Fraction(0)) + volume
                yield leaf, case

    def _holds(self, low: list[float], high: list[float]) -> bool:
        """Whether all of a leaf lies in the region, which is convex."""
        region, corners = self.region, list(zip(low, high, strict=True))
        for j, ends in zip(region.free, corners, strict=True):
            if Fraction(ends[0]) < region.low[j] or Fraction(ends[1]) > region.high[j]:
                return False
        if type(region) is Region and not region.round:
            return True
        point = list(region.center)
        for corner in product(*corners) if len(corners) <= CORNERS else ():
            for j, v in zip(region.free, corner, strict=True):
                point[j] = v
            if not region.contains(point):
                return False
        return len(corners) <= CORNERS

    def check(self, jobs: int, report: Report) -> tuple[int, int]:
        counts = super().check(jobs, report)
        counted, zero = self.counted, Fraction(0)
        known = counted.apart + sum(counted.sure.values(), zero)
        for label, lower, upper in self.shares:
            least = counted.inside.get(label, zero)
            most = counted.whole - known + counted.sure.get(label, zero)
            if not (lower * counted.whole <= least and most <= upper * counted.whole):
                raise Refuted(f"the leaves do not give the share of {label!r} that is claimed")
        return counts
