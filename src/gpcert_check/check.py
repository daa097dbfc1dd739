"""Checks the claims of a certificate: at points, and on the whole region by its leaves."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from flint import ctx

from gpcert_check.claims import At, Claim, Piece
from gpcert_check.container import Numbers
from gpcert_check.posterior import Posterior
from gpcert_check.region import Region
from gpcert_check.tree import Leaf, leaves, middle
from gpcert_check.verdicts import NotCovered, Refuted

DEEPEST = 60
"""Halvings of a leaf."""

CHUNK = 64
CHEAP = 20
"""Free features up to which second derivatives are taken at once."""

Report = Callable[[str], None]
Task = tuple[Leaf, int]
"""A leaf, and the number of the claims about it."""


@dataclass
class Certificate:
    """What is claimed of the points of a region and of some points of it; `statements` say it in
    words."""

    models: list[Posterior]
    region: Region
    cases: list[list[Claim]]
    """Claims about leaves; where there is one list of them, it is about all leaves."""
    points: list[At]
    statements: list[str]
    tree: dict[str, Numbers] = field(default_factory=dict)
    outside: list[At] = field(default_factory=list)
    """Points that need not lie in the region."""
    splits: int = 10**6

    def tasks(self) -> Iterator[Task]:
        """The leaves, each with the number of its claims."""
        return ((leaf, 0) for leaf in leaves(self.tree, self.region))

    def check(self, jobs: int, report: Report) -> tuple[int, int]:
        """Check all claims; returns how many leaves the tree has and how many cells were needed.

        Raises `Refuted` or `NotCovered`.
        """
        for at in self.points:
            if not self.region.contains(at.point):
                raise Refuted("a point of the certificate does not lie in the region")
        for at in self.points + self.outside:
            piece = self._at(at.point)
            if not at.claim.holds(piece):
                if at.claim.contrary.holds(piece):
                    raise Refuted(f"the claim is false at the point {at.point}")
                raise NotCovered(f"the claim at the point {at.point} is not proved")
        if not any(self.cases):
            return 0, 0
        counts = [0, 0]
        for number, cells in self._counted(self.tasks(), jobs):
            counts[0], counts[1] = counts[0] + number, counts[1] + cells
            report(f"{counts[0]} leaves, {counts[1]} cells")
            if counts[1] - counts[0] > self.splits:
                raise NotCovered(f"not proved after {counts[1]} cells; raise --splits")
        return counts[0], counts[1]

    def _at(self, point: list[float], degree: int = 2) -> Piece:
        free = [point[j] for j in self.region.free]
        return Piece(self.models, free, free, degree)

    def _counted(self, each: Iterator[Task], jobs: int) -> Iterator[tuple[int, int]]:
        chunks = iter(lambda: list(islice(each, CHUNK)), [])
        if jobs == 1:
            yield from map(self._check_leaves, chunks)
            return
        self._warm()  # once, before the processes share it
        global SHARED  # noqa: PLW0603
        SHARED = self
        with multiprocessing.get_context("fork").Pool(jobs, _set_bits, (ctx.prec,)) as pool:
            yield from pool.imap(_check_shared, chunks)

    def _warm(self) -> None:
        for goal in (g for claims in self.cases for claim in claims for g in claim.goals):
            self.models[goal.member].sharpen()
            if goal.by_variance:
                self.models[goal.member].precision(goal.output)

    def _check_leaves(self, chunk: list[Task]) -> tuple[int, int]:
        return len(chunk), sum(self.check_leaf(*task) for task in chunk)

    def check_leaf(self, leaf: Leaf, case: int = 0) -> int:
        """Prove all claims on a leaf, which is split as often as it takes; returns the cells."""
        waiting, cells = [(leaf, self.cases[case], 0)], 0
        while waiting:
            box, claims, depth = waiting.pop()
            cells += 1
            inside = self.region.cell(*box)
            if inside is None:
                continue
            piece = Piece(self.models, *inside)
            claims = [claim for claim in claims if not self.proved(claim, piece)]
            if not claims:
                continue
            self._refute(piece, claims)
            if depth == DEEPEST or cells > self.splits:
                raise NotCovered("a leaf on which the checker's bounds do not prove the claim")
            waiting += [(half, claims, depth + 1) for half in self._halves(piece)]
        return cells

    def proved(self, claim: Claim, piece: Piece) -> bool:
        """By the cheap bound, or by the better one."""
        for degree in (2,) if len(piece.low) <= CHEAP else (1, 2):
            for bounds in piece.each:
                bounds.degree = degree
            if claim.holds(piece):
                return True
        members = {goal.member for goal in claim.goals if goal.by_mean}
        sharper = [self.models[k].sharpen() for k in members]
        return any(sharper) and self.proved(claim, piece)

    def _refute(self, piece: Piece, claims: list[Claim]) -> None:
        """Look at the centre: a point where a claim fails ends the check."""
        point = list(self.region.center)
        for j, v in zip(self.region.free, piece.cell.center, strict=True):
            point[j] = v
        if not self.region.contains(point):
            return
        at = self._at(point, 0)
        if any(claim.contrary.holds(at) for claim in claims):
            raise Refuted(f"the claim is false at the point {point}")

    def _halves(self, piece: Piece) -> list[Leaf]:
        """Both halves along the axis along which the kernels' features change most."""
        cell, sizes = piece.cell, [0.0] * len(piece.low)
        for model, bounds in zip(self.models, piece.each, strict=True):
            metric = model.kernel.gram(bounds.cell.z)
            for j, w in enumerate(cell.widths):
                sizes[j] += float(metric[1 + j, 1 + j].mid() * w.mid() ** 2)
        if max(sizes) <= 0:
            sizes = [float(w.mid()) for w in cell.widths]
        j = sizes.index(max(sizes))
        low, high, cut = piece.low, piece.high, middle(piece.low[j], piece.high[j])
        if not low[j] < cut < high[j]:
            raise NotCovered("a leaf too small to be split, on which the claim is not proved")
        return [
            (low, [*high[:j], cut, *high[j + 1 :]]),
            ([*low[:j], cut, *low[j + 1 :]], high),
        ]


SHARED: Certificate | None = None
"""The certificate of a worker, which was forked with it."""


def _set_bits(bits: int) -> None:
    ctx.prec = bits


def _check_shared(chunk: list[Task]) -> tuple[int, int]:
    assert SHARED is not None
    return SHARED._check_leaves(chunk)
