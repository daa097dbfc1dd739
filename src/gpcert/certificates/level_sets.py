"""Where conditions hold in a region: cells that cover it, cut by planes, with what is proved of
points, boxes and volumes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.certificates.proof import SUFFIX, Proof, missing_proof
from gpcert.certificates.text import Interval, TextTable, region_text
from gpcert.errors import InputError
from gpcert.inputs.tabular import Names, read_point, read_points
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.rounding import down, up
from gpcert.regions import Ball, Box, Region, region_from_dict
from gpcert.regions.shapes import check_norm
from gpcert.search import StopReason
from gpcert.search.cut_cells import (
    FAILS,
    HOLDS,
    INSIDE,
    OUTSIDE,
    STARTS,
    CellTree,
    CutCells,
    InnerCells,
    cell_shares,
    set_shares,
)
from gpcert.utils.archive import plain_label, read_arrays, write_arrays
from gpcert.utils.optional_imports import Axes, DataFrame, optional, package_version

FORMAT = "gpcert-level-set-1"

PLAIN = ("region", "target", "classes", "tol", "boxes", "seconds")
"""Fields that stand in the header of a file as they are."""

ARRAYS = ("low", "high", "planes", "within")


@dataclass(frozen=True, eq=False)
class LevelSet:
    """The set of a region's points where conditions hold, or the regions of classes.

    `cells` cover the box around the region. In most of them it is proved that every point is in the
    set, or that none is; near the set's edge planes say so of parts. All that is said holds for
    every real point, also of a search that was interrupted.

    Attributes
    ----------
    region : as `describe()` wrote it.
    labels : (False, True), or the labels of the classes.
    target : which of them `volume` and `contains` are about; None if a class was not named.
    meaning : the conditions as text.
    cells : low and high corners (n, f) in the free features, and planes; see `to_frame`.
    tol : the share of the volume that was to be left undecided at most; `converged` if it is.
    reason, boxes, seconds : why the search ended, boxes bounded, wall-clock time.
    models : fingerprints of the models.
    classes : whether the sets are those of several classes, each with a condition of its own.
    """

    region: dict[str, Any]
    labels: tuple[Any, ...]
    target: Any
    meaning: tuple[str, ...]
    cells: CutCells
    tol: float
    reason: StopReason
    boxes: int
    seconds: float
    models: tuple[str, ...]
    names: Names = None
    classes: bool = False
    proof: Proof | None = None

    @property
    def converged(self) -> bool:
        """Whether no more than `tol` of the volume is undecided."""
        return self.reason is StopReason.CONVERGED

    def name_of(self, label: Any) -> str:
        """What the set of a label is called: of a specification inside and outside."""
        specified = all(isinstance(each, bool) for each in self.labels)  # 0 == False, a class
        return ("inside" if label else "outside") if specified else f"class {label}"

    # ---- volumes

    @cached_property
    def shares(self) -> dict[Any, Interval]:
        """By label: proved bounds of the share of the volume of the box around the region."""
        return self._bounds_of(self.cells, self._box[:, self._free])

    def _bounds_of(self, cells: CutCells, whole: np.ndarray) -> dict[Any, Interval]:
        """Shares of the volume of a box (2, f) that the cells cover."""
        ends = (Interval(*each) for each in set_shares(cells, whole, self.classes))
        return dict(zip(self.labels, ends, strict=True))

    @property
    def share(self) -> Interval:
        """Of the set: proved bounds of its share of the volume of the box around the region."""
        return self.shares[self._target()]

    @property
    def volumes(self) -> dict[Any, Interval]:
        """By label: proved bounds of the volume, in the free features."""
        width = (self._box[1] - self._box[0])[self._free]
        whole, f = float(np.prod(width)), len(width)
        ends = float(down(whole, 2 * f)), float(up(whole, 2 * f))
        return {
            label: Interval(
                max(0.0, float(down(each.lower * ends[0], 1))), float(up(each.upper * ends[1], 1))
            )
            for label, each in self.shares.items()
        }

    @property
    def volume(self) -> Interval:
        """Proved bounds of the set's volume, in the free features."""
        return self.volumes[self._target()]

    @property
    def undecided(self) -> float:
        """An upper bound of the share of the volume of which nothing is proved."""
        if self.classes:
            known = sum(each.lower for each in self.shares.values())
            out = self.cells.take(self.cells.within == OUTSIDE)
            known += float(cell_shares(out.low, out.high, self._box[:, self._free])[0].sum())
            return max(0.0, float(up(1.0 - down(known, 8 + len(self.cells)), 2)))
        last = self.shares[self.labels[-1]]
        return float(up(last.upper - last.lower, 1))

    # ---- points

    def contains(self, x: Any, label: Any = None) -> Any:
        """Whether x is proved to be in the set (True), or not to be (False); else None.

        Of rows (n, d) an array of these. `label` says which class is meant. Points outside of the
        region are not in the set.
        """
        number, places = self.labels.index(self._target(label)), self.places(x)
        states = np.array([False, True, None], dtype=object)
        return states[np.where(places < 0, 2, places == number)]

    def decided(self, x: Any) -> Any:
        """The label of the set that x is proved to be in, or None; of rows (n, d) an array."""
        return np.array([None, *self.labels], dtype=object)[self.places(x) + 1]

    def places(self, x: Any) -> np.ndarray:
        """The number in `labels` of the set that x is proved to be in, or -1; of rows an array."""
        single = np.ndim(x) == 1 and not hasattr(x, "columns")
        X = read_points("x", [x] if single else x, len(self._box[0]), self.names)
        numbers = self._places(X)
        return numbers[0] if single else numbers

    def _places(self, X: np.ndarray) -> np.ndarray:
        """(n,) the number of the set that each point is proved to be in, or -1."""
        low, high = self._box
        numbers = np.full(len(X), -1)
        inside = np.all((low <= X) & (high >= X), axis=1)
        if not self.classes:
            numbers[~inside] = 0
        rows = np.flatnonzero(inside)
        points = X[rows][:, self._free]
        cells = self.cells.take(self._tree.find(points))
        sides = cells.sides(points)
        within = cells.within == INSIDE
        if not isinstance(self._region, Box):
            within |= np.asarray(self._region.contains(X[rows]), dtype=bool)
        if self.classes:
            holds = sides[:, :, HOLDS]
            known = within & holds.any(axis=1)
            numbers[rows[known]] = holds.argmax(axis=1)[known]
            return numbers
        fails = sides[:, :, FAILS].any(axis=1) | (cells.within == OUTSIDE)
        numbers[rows[fails]] = 0
        numbers[rows[within & sides[:, :, HOLDS].all(axis=1)]] = 1
        return numbers

    # ---- boxes and balls inside

    def largest_box(self, center: Any = None, aspect: Any = None, label: Any = None) -> Box:
        """A box that is proved to be inside the set: about a point `center` (d,), or wherever a
        large one is found; with sides in the proportions `aspect`, one for each feature that moves,
        or in any. It is grown from some points, so that a larger one may exist.
        """
        inner, free = self._inner(label), self._free
        middle = None if center is None else self._point("center", center)[free]
        shape = None if aspect is None else finite_array("aspect", aspect, ndim=1)
        if shape is not None and (shape.shape != free.shape or np.any(shape <= 0)):
            wanted = f"{len(free)} positive numbers, one for each feature that moves"
            raise InputError(f"aspect: expected {wanted}, got {aspect!r}")
        ends_of_box = inner.largest(self._starts(label), shape, middle)
        if ends_of_box is None:
            where = "anywhere" if center is None else f"about {center!r}"
            raise InputError(
                f"largest_box: no box is proved to be inside {where} ({self.summary}); expected a "
                "center in the set, or a set found with a smaller tol="
            )
        ends = np.tile(self._region.center, (2, 1))
        ends[:, free] = ends_of_box
        return Box(*ends)

    def inside_ball(self, x: Any, norm: float | str = 2, label: Any = None) -> Ball:
        """A ball around x, in the features that move, which is proved to be inside the set: all
        points nearer than what is not proved to be; `norm` is 2 or "inf"."""
        point, p = self._point("x", x), check_norm(norm)
        if p not in {2.0, math.inf}:
            raise InputError(f"norm: expected 2 or 'inf', got {norm!r}")
        if self.contains(point, label) is not True:
            raise InputError("x: expected a point that is proved to be in the set; see contains(x)")
        radius = self._inner(label).distance(point[self._free], p)
        return Ball(point, radius, norm=p, features=self._free)

    def _inner(self, label: Any) -> InnerCells:
        """The half-spaces that a point has to be in."""
        k, planes = self.labels.index(self._target(label)), self.cells.planes
        if self.classes:
            needed = planes[:, [k], HOLDS]
        elif k == 1:
            needed = planes[:, :, HOLDS]
        elif planes.shape[1] == 1:
            needed = planes[:, :, FAILS]
        else:
            raise InputError("label: expected True; boxes where some condition fails are not known")
        return InnerCells.of(self.cells, needed, self._box[:, self._free])

    def _starts(self, label: Any) -> np.ndarray:
        """Points from which boxes are grown: middles of the largest proved parts."""
        parts = self.cells.shares(self.classes)[:, self.labels.index(self._target(label))]
        share = parts * cell_shares(self.cells.low, self.cells.high, self._box[:, self._free])[0]
        best = np.argsort(-share, kind="stable")[:STARTS]
        return 0.5 * self.cells.low[best] + 0.5 * self.cells.high[best]

    def _point(self, name: str, x: Any) -> np.ndarray:
        point = read_point(name, x, len(self._box[0]), self.names)
        if np.any(point < self._box[0]) or np.any(point > self._box[1]):
            raise InputError(f"{name}: expected a point of the region, got {x!r}")
        return point

    def profile(self, feature: Any, bins: int = 100) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of a feature (bins,), the middles of equal parts of its range, and for each part
        proved lower and upper bounds of the set's share there."""
        label, free = self._target(), self._free.tolist()
        if feature not in free:
            raise InputError(f"feature: expected the number of one that moves, {free}")
        j, cells = free.index(feature), self.cells
        whole = self._box[:, self._free]
        edges = np.linspace(whole[0, j], whole[1, j], bins + 1)
        least, most = np.zeros(bins), np.zeros(bins)
        for k in range(bins):
            rows = np.flatnonzero((cells.low[:, j] < edges[k + 1]) & (cells.high[:, j] > edges[k]))
            part = cells.take(rows)
            part.low[:, j] = np.maximum(part.low[:, j], edges[k])
            part.high[:, j] = np.minimum(part.high[:, j], edges[k + 1])
            ends = np.stack([whole[0], whole[1]])
            ends[:, j] = edges[k], edges[k + 1]
            share = self._bounds_of(part, ends)[label]
            least[k], most[k] = share.lower, share.upper
        return 0.5 * edges[:-1] + 0.5 * edges[1:], least, most

    # ---- records

    @property
    def summary(self) -> str:
        """In words, what is proved."""
        said = [
            f"{label!r}: between {100 * each.lower:.4g} % and {100 * each.upper:.4g} %"
            for label, each in self.shares.items()
            if self.classes or label == self.labels[-1]
        ]
        return f"share of the box around the region, {'; '.join(said)}"

    def __repr__(self) -> str:
        told = f"{'; '.join(self.meaning)}; {self.summary}; {len(self.cells)} cells"
        return f"LevelSet({told}, converged={self.converged})"

    def __str__(self) -> str:
        return str(self.shown())

    def _repr_html_(self) -> str:
        return self.shown().html()

    def shown(self) -> TextTable:
        """What is proved as a small table."""
        rows = {"conditions": "; ".join(self.meaning)}
        for label, each in self.volumes.items():
            share = self.shares[label]
            rows[self.name_of(label)] = f"volume in [{each.lower:.6g}, {each.upper:.6g}], share in "
            rows[self.name_of(label)] += f"[{share.lower:.6g}, {share.upper:.6g}]"
        rows["region"] = region_text(self.region)
        rows["cost"] = f"{self.boxes} boxes, {self.seconds:.3g} s; {self.reason.value}"
        return TextTable("", (), list(rows.items()))

    def to_frame(self) -> DataFrame:
        """A row for each cell: its ends in every free feature; "state", the label of the set that
        all of it is in, or None; and for every label the proved part of it."""
        names = self.feature_names
        columns: dict[str, Any] = {}
        for j, feature in enumerate(self._free):
            columns[f"low {names[feature]}"] = self.cells.low[:, j]
            columns[f"high {names[feature]}"] = self.cells.high[:, j]
        parts = self.cells.shares(self.classes)
        whole = np.where((parts == 1.0).any(axis=1), parts.argmax(axis=1), -1)
        columns["state"] = np.array([None, *self.labels], dtype=object)[whole + 1]
        columns |= {f"part {label}": parts[:, k] for k, label in enumerate(self.labels)}
        return optional("pandas", "to_frame").DataFrame(columns)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the set: in two features as areas, in one as a profile; `features=` chooses them and
        `at=` the values of the others. See `gpcert.plots.plot_level_set`."""
        return import_module("gpcert.plots.sets").plot_level_set(ax, self, **options)

    def save(self, path: str | Path) -> None:
        """Write one file, `.npz` with a header, which `gpcert.load` reads; under a name that ends
        in ".cert" what `gpcert-check` checks, which `proof=True` prepares."""
        if Path(path).suffix == SUFFIX:
            if self.proof is None:
                raise missing_proof(path)
            self.proof.save(path)
            return
        header = {
            "format": FORMAT,
            "version": package_version(),
            "region": self.region,
            "labels": [plain_label(label) for label in self.labels],
            "target": plain_label(self.target),
            "meaning": list(self.meaning),
            "classes": self.classes,
            "tol": self.tol,
            "reason": self.reason.name,
            "boxes": self.boxes,
            "seconds": self.seconds,
            "models": list(self.models),
            "names": None if self.names is None else list(self.names),
        }
        write_arrays(path, header, {name: getattr(self.cells, name) for name in ARRAYS})

    @staticmethod
    def load(path: str | Path) -> LevelSet:
        """Read a file of `save`."""
        header, arrays = read_arrays(path, {FORMAT: _check})
        try:
            about: dict[str, Any] = {name: header[name] for name in PLAIN}
            about |= {name: tuple(header[name]) for name in ("labels", "meaning", "models")}
            names = None if header["names"] is None else tuple(header["names"])
            reason = StopReason[header["reason"]]
            cells = CutCells(*(arrays[name] for name in ARRAYS))
            level = LevelSet(cells=cells, reason=reason, names=names, **about)
            _ = level._tree  # cells that halvings of the region made
        except (KeyError, TypeError) as error:
            raise InputError(f"{path}: expected a file of LevelSet.save ({error})") from error
        if any(np.isnan(array).any() for array in arrays.values()):
            raise InputError(f"{path}: expected numbers, got NaN")
        return level

    # ---- the region

    @property
    def bounds(self) -> np.ndarray:
        """(2, d): the ends of the box around the region."""
        return self._box

    @property
    def center(self) -> np.ndarray:
        """A point of the region, (d,)."""
        return self._region.center

    @property
    def free(self) -> np.ndarray:
        """The numbers of the features that move."""
        return self._free

    @property
    def feature_names(self) -> tuple[Any, ...]:
        """Names of all features, or their numbers."""
        return tuple(range(len(self._box[0]))) if self.names is None else self.names

    @cached_property
    def _region(self) -> Region:
        return region_from_dict(self.region)

    @cached_property
    def _box(self) -> np.ndarray:
        """(2, d) the ends of the box around the region."""
        return np.stack([self._region.lower, self._region.upper])

    @cached_property
    def _free(self) -> np.ndarray:
        return self._region.free

    @cached_property
    def _tree(self) -> CellTree:
        return CellTree.of(self.cells.low, self.cells.high, self._box[:, self._free])

    def _target(self, label: Any = None) -> Any:
        """The label that is meant."""
        label = self.target if label is None else label
        if label is None or label not in self.labels:
            wanted = ", ".join(map(repr, self.labels))
            raise InputError(f"label: expected one of {wanted}, got {label!r}")
        return label


def _check(header: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """That the arrays of a file fit each other and the header."""
    low = shapes.get("low", ())
    if set(shapes) != set(ARRAYS) or len(low) != 2:
        raise InputError(f"expected the arrays {', '.join(ARRAYS)}, got {dict(shapes)}")
    (n, f), m = low, len(header.get("meaning", ()))
    wanted = {"low": (n, f), "high": (n, f), "planes": (n, m, 2, f + 1), "within": (n,)}
    if dict(shapes) != wanted:
        raise InputError(f"expected arrays of shapes {wanted}, got {dict(shapes)}")
    if not isinstance(header.get("region"), dict):
        raise InputError("region: expected a record of a region")
