"""Linear features z = W x + b in front of a kernel, as PCA computes them, and cells seen through
them; of inputs that may first go through increasing functions, one each, z = W T(x) + b.

The stored float64 numbers W and b *are* the map: bounds are proved for it in real arithmetic.
Kernels and enclosures see the features z; the image of a cell is described there by a float
centre c^, near W c + b, and displacements `e = W d + r` from it, d a displacement of the cell and
`|r_i| <= offset_i` what rounding makes of W c + b. A box around the images is only what remainders
are bounded by: linear and quadratic functions of e are minimised over d itself.

The indicators of an input that holds categories stand behind the inputs. Where a region keeps that
input they are constants; where it frees it, cells hold sets of categories, and become cells of a
`OneHot` region in which the map is linear. T maps boxes to boxes: cells go through it first,
rounded outwards.

Proofs: docs/mathematics.md, statements 13.7, 13.8, 18.5 and 18.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpcert.errors import InputError
from gpcert.functions import Affine, Curve
from gpcert.inputs.tabular import checked_levels, codes_of, listed
from gpcert.numerics.arrays import (
    Array,
    Backend,
    Inputs,
    PerCell,
    PerCellAndFeature,
    PerFeature,
    PerVector,
    Vectors,
    finite_array,
    namespace,
    to_numpy,
)
from gpcert.numerics.rounding import TINY, U, down, gamma, nonnegative, root, up
from gpcert.numerics.spectral import largest_eigenvalue
from gpcert.regions.base import Region
from gpcert.regions.cells import Cells, box_maximum, widths_as_units
from gpcert.regions.one_hot import OneHot
from gpcert.regions.shapes import Box

Block = tuple[int, tuple[Any, ...], np.ndarray]
"""An input that holds categories, their labels, and their columns of a matrix."""

STEPS = 20
"""Steps towards good weights of `|V y|^2 <= largest sum_j weights_j y_j^2`."""


@dataclass(frozen=True, eq=False)
class LinearMap:
    """`z = matrix (x, i) + shift`: matrix W (q, d + K), shift b (q,), 0 by default.

    `levels` are the labels of the inputs that hold categories, by the inputs' numbers: i, of length
    K, has an indicator of each, input by input in growing order, 1 where x_j is that category and 0
    where it is not; their columns of W come last. Categories are the numbers that are their labels
    or, where these are text, 0, 1, ... in their order. Without levels i has no length.

    `curves`, by the inputs' numbers, are increasing functions T_j (`gpcert.functions.Curve`) that
    these go through first: T_j(x_j) stands for x_j above.

    >>> LinearMap([[1.0, 1.0]], [0.5])(np.array([[1.0, 2.0]])).tolist()
    [[3.5]]
    >>> coloured = LinearMap([[1.0, 0.0, 5.0, 7.0]], levels={1: ("blue", "red")})
    >>> coloured(np.array([[0.5, 1.0]])).tolist()
    [[7.5]]
    """

    matrix: Any
    shift: Any = None
    levels: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    curves: Mapping[int, Curve] = field(default_factory=dict)

    def __post_init__(self) -> None:
        matrix = finite_array("matrix of a linear map", self.matrix, ndim=2)
        shift = np.zeros(len(matrix)) if self.shift is None else self.shift
        shift = finite_array("shift of a linear map", shift, ndim=1)
        levels = checked_levels(self.levels)
        d = matrix.shape[1] - sum(map(len, levels.values()))
        if matrix.size == 0 or len(shift) != len(matrix) or d <= max(levels, default=0):
            raise InputError(
                "linear map: expected a matrix (q, d) and a shift (q,), q, d >= 1, with a column "
                f"more for each level, got {matrix.shape}, {shift.shape} and the levels {levels}"
            )
        for name, value in (("matrix", matrix), ("shift", shift)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "levels", levels)
        curves = {int(j): curve for j, curve in sorted(self.curves.items()) if curve.steps}
        if not set(curves) <= set(range(d)) - set(levels):
            raise InputError(
                f"curves: expected numbers of inputs 0 to {d - 1} without categories, got "
                f"{sorted(curves)}"
            )
        object.__setattr__(self, "curves", curves)

    @staticmethod
    def of_blocks(
        matrix: Annotated[np.ndarray, "q d"],
        shift: Annotated[np.ndarray, "q"],
        blocks: Iterable[Block],
        curves: Mapping[int, Curve] | None = None,
    ) -> LinearMap:
        """From the columns (q, d) of the inputs, and those of levels in any order."""
        levels: dict[int, tuple[Any, ...]] = {}
        columns: dict[int, np.ndarray] = {}
        for j, labels, part in blocks:
            if levels.setdefault(j, labels) != labels:
                raise InputError(f"feature {j}: expected one set of categories, got two")
            columns[j] = columns[j] + part if j in columns else part
        order = sorted(levels)
        parts = [matrix, *(columns[j] for j in order)]
        ordered = {j: levels[j] for j in order}
        return LinearMap(np.concatenate(parts, axis=1), shift, ordered, curves or {})

    @staticmethod
    def stacked(maps: Sequence[LinearMap]) -> LinearMap:
        """The features of maps of the same inputs, one after another."""
        ends = np.cumsum([0, *(len(each.matrix) for each in maps)])
        blocks, curves = [], {}
        for first, each in zip(ends, maps, strict=False):
            for j in np.flatnonzero(np.any(each.slopes != 0, axis=0)).tolist():
                curve = each.curves.get(j, Curve())
                if curves.setdefault(j, curve) != curve:
                    raise InputError(
                        f"feature {j}: expected one function of it, got two; leave one of them out"
                    )
            for j, labels, part in each.blocks:
                wide = np.zeros((ends[-1], part.shape[1]))
                wide[first : first + len(part)] = part
                blocks.append((j, labels, wide))
        matrix = np.concatenate([each.slopes for each in maps])
        return LinearMap.of_blocks(matrix, np.concatenate([m.shift for m in maps]), blocks, curves)

    @cached_property
    def inputs(self) -> int:
        """d."""
        return self.matrix.shape[1] - sum(map(len, self.levels.values()))

    @property
    def slopes(self) -> Annotated[np.ndarray, "q d"]:
        """(q, d) the columns of W that belong to x."""
        return self.matrix[:, : self.inputs]

    def sees(self, features: Annotated[np.ndarray, "q"]) -> PerFeature:
        """(d,) whether some of these features depend on each input; `features` is a mask (q,)."""
        seen = np.any(self.slopes[features], axis=0)
        for j, _, part in self.blocks:
            seen[j] |= bool(np.any(part[features]))
        return seen

    @property
    def blocks(self) -> list[Block]:
        """The inputs that hold categories, their labels and their columns of W (q, labels)."""
        first, blocks = self.inputs, []
        for j, labels in self.levels.items():
            blocks.append((j, labels, self.matrix[:, first : first + len(labels)]))
            first += len(labels)
        return blocks

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Features (n, q) of X (n, d), in plain floating point."""
        return self.indicated(self.curved(X)) @ self.matrix.T + self.shift

    def curved(self, X: Inputs) -> Inputs:
        """T(x), (n, d), in plain floating point."""
        if not self.curves:
            return X
        through = np.array(X)
        for j, curve in self.curves.items():
            through[:, j] = curve(through[:, j])
        return through

    def gradient(self, X: Inputs, by_features: np.ndarray) -> Annotated[np.ndarray, "n d"]:
        """Gradients (n, d) in the inputs X from those in the features (n, q), about."""
        by_inputs = by_features @ self.slopes
        for j, curve in self.curves.items():
            by_inputs[:, j] *= curve.slope(X[:, j])
        return by_inputs

    def indicated(self, X: Inputs) -> np.ndarray:
        """(n, d + K): X with the indicators behind it."""
        parts = [X]
        for j, labels in self.levels.items():
            parts.append((X[:, j, None] == codes_of(labels)).astype(np.float64))
            if not np.all(np.any(parts[-1], axis=1)):
                raise InputError(
                    f"feature {j}: expected one of the categories {listed(labels)}, got another"
                )
        return np.concatenate(parts, axis=1) if self.levels else X

    def extended(self, region: Region) -> tuple[Region, list[FreeCategory]]:
        """The box of the region and of its indicators, where T is defined, and the inputs whose
        category changes in it: those must be categories everywhere in the region."""
        for j, curve in self.curves.items():
            curve.check(region.lower[j : j + 1], region.upper[j : j + 1], f"region: feature {j}")
        if not self.levels:
            return region, []
        lower, upper, free, first = [region.lower], [region.upper], [], self.inputs
        for j, labels in self.levels.items():
            codes, values = codes_of(labels), region.values_of(j)
            if values is None or not np.all(np.isin(values, codes)):
                raise InputError(
                    f"region: expected feature {j} to be one of the categories {listed(labels)} "
                    "everywhere, got a region that moves it between them; keep it fixed, or free "
                    "it by radius={feature: 'any'} or a gpcert.regions.Discrete with values="
                )
            may = np.isin(codes, values)
            lower.append(np.where(may.sum() == 1, may, 0.0))
            upper.append(1.0 * may)
            if may.sum() > 1:
                place = int(np.searchsorted(region.free, j))
                free.append(FreeCategory(j, place, first + np.flatnonzero(may), codes[may]))
            first += len(codes)
        ends = np.concatenate(lower), np.concatenate(upper)
        for category in free:  # only its indicators depend on it
            j = category.feature
            if not np.any(self.matrix[:, j]):
                ends[0][j] = ends[1][j] = region.center[j]
        return Box(*ends), free

    def then(self, after: LinearMap) -> LinearMap:
        """This map and another after it, its numbers rounded: they define the new map."""
        if after.curves:
            return self._curved_by(after.curves).then(replace(after, curves={}))
        W = after.slopes
        blocks = [(j, labels, W @ part) for j, labels, part in self.blocks]
        blocks += [(self._passed(j), labels, part) for j, labels, part in after.blocks]
        shift = W @ self.shift + after.shift
        return LinearMap.of_blocks(W @ self.slopes, shift, blocks, self.curves)

    def _curved_by(self, curves: Mapping[int, Curve]) -> LinearMap:
        """This map, its features then through functions: each of one input, and alone of it."""
        matrix, shift, joined = self.matrix.copy(), self.shift.copy(), dict(self.curves)
        for k, curve in curves.items():
            used = np.flatnonzero(matrix[k])
            j = int(used[0]) if len(used) else 0
            factor = float(matrix[k, j])
            alone = len(used) == 1 and np.count_nonzero(matrix[:, j]) == 1 and j < self.inputs
            if not alone or factor <= 0.0:
                raise InputError(
                    "curves: expected a function of a feature that is one input, scaled, and of no "
                    "other feature; put the step with functions of single features before those "
                    "that mix or reverse them"
                )
            affine = Affine(-float(shift[k]) / factor, 1.0 / factor)
            plain = factor == 1.0 and shift[k] == 0.0
            inner = joined.get(j, Curve())
            joined[j] = (inner if plain else inner.then(affine)).then(*curve.steps)
            matrix[k, j], shift[k] = 1.0, 0.0
        return LinearMap(matrix, shift, self.levels, joined)

    def _passed(self, feature: int) -> int:
        """The input that is this feature, unchanged."""
        used = np.flatnonzero(self.matrix[feature])
        same = len(used) == 1 and self.matrix[feature, used[0]] == 1.0 and not self.shift[feature]
        if not same or used[0] >= self.inputs:
            raise InputError(
                f"categories: expected an input as it is, got feature {feature} of a linear map"
            )
        return int(used[0])

    @cached_property
    def inverse(self) -> Annotated[np.ndarray, "d q"]:
        """(d, q): about a right inverse of W; for points to try, never for a bound."""
        return np.linalg.pinv(self.matrix)

    def preimage(self, Z: np.ndarray) -> Inputs:
        """Inputs (n, d) whose features are about Z (n, q), as far as there are any."""
        inputs = (Z - self.shift) @ self.inverse.T
        X, first = self.uncurved(inputs[:, : self.inputs].copy()), self.inputs
        for j, labels in self.levels.items():  # the likeliest category
            codes = codes_of(labels)
            X[:, j] = codes[np.argmax(inputs[:, first : first + len(codes)], axis=1)]
            first += len(codes)
        return X

    def uncurved(self, Y: np.ndarray) -> Annotated[np.ndarray, "n d"]:
        """Inputs about which T is Y (n, d), in place; where to look."""
        for j, curve in self.curves.items():
            Y[:, j] = np.nan_to_num(curve.inverse(Y[:, j]))
        return Y


class FreeCategory(NamedTuple):
    """An input whose category changes in a region: its number, its place among the region's free
    features, and the numbers (k,) of the indicators behind the inputs of its categories there."""

    feature: int
    place: int
    columns: np.ndarray
    codes: np.ndarray

    def indicators(self, cells: Cells) -> Iterator[tuple[int, tuple[PerCell, ...]]]:
        """Of each column: lower and upper ends, centre, half-width and offset (B,) over the cells.

        The centre is that of the cells' own centre where that is a category, else the mean of those
        in the cell.
        """
        xp = namespace(cells.lower)
        low, high, middle = (end[:, self.place] for end in (cells.lower, cells.upper, cells.center))
        one = xp.ones_like(low)
        may = [xp.where((low <= code) & (code <= high), one, 0.0 * one) for code in self.codes]
        at = [xp.where(middle == code, one, 0.0 * one) for code in self.codes]
        count, chosen = sum(may), sum(at)
        mean = 1.0 / xp.maximum(count, one)
        for j, allowed, here in zip(self.columns.tolist(), may, at, strict=True):
            lower = xp.where(count == 1.0, allowed, 0.0 * one)
            center = xp.where(chosen > 0.0, here, allowed * mean)
            half = xp.maximum(allowed - center, center - lower) * (1.0 + 4.0 * U)
            yield j, (lower, allowed, center, half, 0.0 * one)


class _Form(NamedTuple):
    """Of `|V y|^2`, V (q, f): bounds of |V^T V| (f, f); pairs of weights (f,) and the factor with
    which their sum of squares bounds it; and a bound of |V r|."""

    products: Array
    diagonals: tuple[tuple[Array, float], ...]
    offset: float


@dataclass(frozen=True, eq=False)
class Image:
    """A linear map on a region: where the features of its points lie.

    `unit` (f,) are powers of two near the region's widths, and `scaled` (q, f) is W in them,
    d = unit y; `base` (q,) is what the fixed features and b add up to; `offset` (q,) bounds
    `|W x + b - c^|` for the computed c^ of every x of the region, and what underflows in `scaled`.
    `region` is a box that holds all images and all c^. With functions of single inputs (`curves`)
    or categories that change (`freed`) d is a displacement of what they make of a cell, and
    `between` holds what they make of the region (Statements 18.5, 18.6): its free feature i is that
    of the region at `places[i]`, through `curves[i]` if there is one; an indicator where it is -1.
    """

    region: Box
    matrix: Array
    scaled: Array
    unit: Array
    base: Array
    offset: Array
    backend: Backend
    inverse: np.ndarray
    curves: Mapping[int, Curve]
    freed: tuple[FreeCategory, ...]
    places: np.ndarray
    between: Region
    forms: dict[bytes, _Form | None] = field(default_factory=dict)

    @staticmethod
    def of(
        features: LinearMap, region: Region, unit: Annotated[np.ndarray, "f"], backend: Backend
    ) -> Image:
        """Bind a map to a region whose widths are about `unit` (f,), powers of two."""
        own_place = {int(j): i for i, j in enumerate(region.free)}
        region, freed = features.extended(region)
        W, lost = features.matrix, np.zeros(region.dim)
        if features.curves:
            region, lost = _through(features.curves, region)
        if freed:
            region = OneHot(region, [category.columns for category in freed])
        if features.curves or freed:
            unit = widths_as_units(region)
        free, fixed = region.free, region.fixed
        farthest = np.maximum(np.abs(region.lower), np.abs(region.upper))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            base = W[:, fixed] @ region.center[fixed] + features.shift
            size = np.abs(W) @ farthest + np.abs(features.shift)
            # W c + b: a sum of d + 1 products in two parts; TINY: underflow, of `scaled` too
            offset = np.asarray(up(gamma(W.shape[1] + 4) * size, W.shape[1] + 4))
            offset = offset + (W.shape[1] + 1) * TINY
            held = np.abs(W[:, fixed]) @ lost[fixed]
            offset = offset + np.asarray(up(held, W.shape[1] + 4))
            scaled = W[:, free] * unit
            center = W[:, free] @ region.center[free] + base
            widths = np.maximum(region.upper - region.center, region.center - region.lower)
            reach = np.abs(scaled) @ (widths[free] * (1.0 + 4.0 * U) / unit)
            reach = np.asarray(up(reach + 3.0 * offset, W.shape[1] + 4))
            ends = np.asarray(down(center - reach, 2)), np.asarray(up(center + reach, 2))
        if not (np.all(np.isfinite(ends)) and np.all(np.isfinite(scaled))):
            raise InputError(
                "linear map: the features W x + b leave float64 on this region; expected features "
                "below 1e300: rescale the inputs, or take a smaller region"
            )
        arrays = (W[:, free], scaled, unit, base, offset)
        matrix, scaled, unit, base, offset = (backend.asarray(array) for array in arrays)
        inverse, place = features.inverse[free], {int(j): i for i, j in enumerate(free)}
        curves = {place[j]: curve for j, curve in features.curves.items() if j in place}
        places = np.array([own_place.get(int(j), -1) for j in free], dtype=int)
        columns = [
            category._replace(columns=np.searchsorted(free, category.columns)) for category in freed
        ]
        about = (backend, inverse, curves, tuple(columns), places, region)
        return Image(Box(*ends), matrix, scaled, unit, base, offset, *about)

    def curved(self, source: Cells) -> Cells:
        """What the functions of single inputs make of cells of the region, and the indicators of
        the categories in them (Statements 18.5, 18.6)."""
        if not self.curves and not self.freed:
            return source
        xp = namespace(source.lower)
        parts = (source.lower, source.upper, source.center, source.half, 0.0 * source.half)
        columns = [[part[:, j] for j in self.places.tolist()] for part in parts]
        ends = (self.between.lower, self.between.upper)
        low, high = (end[self.between.free].tolist() for end in ends)
        for j, curve in self.curves.items():
            lower, upper = curve.ends(columns[0][j], columns[1][j])
            below, above = curve.ends(columns[2][j], columns[2][j])
            center = (0.5 * below + 0.5 * above).clip(low[j], high[j])
            half = xp.maximum(upper - center, center - lower) * (1.0 + 4.0 * U)
            offset = up(xp.maximum(above - center, center - below), 1)
            for column, part in zip(columns, (lower, upper, center, half, offset), strict=True):
                column[j] = part
        for category in self.freed:
            for j, part in category.indicators(source):
                for column, values in zip(columns, part, strict=True):
                    column[j] = values
        lower, upper, center, half, offset = (xp.stack(column, axis=1) for column in columns)
        cells = CurvedCells(self.between, lower, upper, self, source, offset)
        vars(cells).update(center=center, half=nonnegative(half))
        return cells

    def cells(self, source: Cells) -> ImageCells:
        """The images of cells of the region."""
        source = self.curved(source)
        center = source.center @ self.matrix.T + self.base
        half = source.half / self.unit
        half = up(half @ abs(self.scaled).T + self.offset, half.shape[1] + 4)
        images = ImageCells(self.region, center - half, center + half, self, source)
        vars(images).update(center=center, half=half)
        return images

    def form(self, weights: Annotated[Array, "q"], unit: Annotated[Array, "q"]) -> _Form | None:
        """`sum_i weights_i (e_i / unit_i)^2` as a form of y; None where it leaves float64."""
        w, u = to_numpy(weights), to_numpy(unit)
        key = w.tobytes() + u.tobytes()
        if key not in self.forms:
            self.forms[key] = self._form(w, u)
        return self.forms[key]

    def _form(self, w: np.ndarray, u: np.ndarray) -> _Form | None:
        q, f = self.scaled.shape
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            row = np.sqrt(w) / u  # one rounding: the units are powers of two
            V = row[:, None] * to_numpy(self.scaled)
            offset = float(up(root(np.sum((row * to_numpy(self.offset)) ** 2)), q + 8))
            size = np.abs(V).T @ np.abs(V)
            products = np.asarray(up(np.abs(V.T @ V) + gamma(q + 8) * size + TINY, q + 8))
            if not (np.all(np.isfinite(products)) and np.isfinite(offset)):
                return None
        weights = [np.ones(f), _diagonal(V)] if f else []
        diagonals = tuple((self.backend.asarray(D), _largest(V, D)) for D in weights)
        return _Form(self.backend.asarray(products), diagonals, offset)


def _largest(V: np.ndarray, D: np.ndarray) -> float:
    """Upper bound of the largest eigenvalue of `D^-1/2 V^T V D^-1/2`."""
    q, f = V.shape
    scaled = V / np.sqrt(D)
    largest = largest_eigenvalue((scaled,), np.eye(f), np.zeros((f, f)))
    # every entry of `scaled` carries four roundings
    length = np.sqrt(largest) + gamma(8) * float(root(np.sum(scaled**2)))
    return float(up(float(length) ** 2, f * q + 16))


def _diagonal(V: np.ndarray) -> np.ndarray:
    """Weights D > 0 with a small `largest(D) sum D` (every D is valid): a diagonal that dominates
    V^T V, by steps along the gradient of the logarithm, whose parts are u_j^2 and D_j / sum D for
    the eigenvector u."""
    columns = np.sum(V**2, axis=0)
    D = np.maximum(columns / max(columns.max(), TINY), 1e-6) ** 0.75
    best, least = np.ones(V.shape[1]), np.inf
    for _ in range(STEPS):
        scaled = V / np.sqrt(D)
        try:
            values, vectors = np.linalg.eigh(scaled @ scaled.T)
        except np.linalg.LinAlgError:
            break
        if values[-1] * D.sum() < least:
            best, least = D, values[-1] * D.sum()
        u = vectors[:, -1] @ scaled / np.sqrt(max(values[-1], TINY))
        D = np.maximum(D * np.exp(1.5 * (u**2 - D / D.sum())), 1e-9)
        D = D / D.max()
    return best


def _through(curves: Mapping[int, Curve], region: Region) -> tuple[Box, np.ndarray]:
    """A box that holds what the curves make of the region, which fixes and frees the same features,
    and how far (d,) the value of a fixed feature may be from the box's."""
    lower, upper = np.array(region.lower), np.array(region.upper)
    lost = np.zeros(region.dim)
    for j, curve in curves.items():
        with np.errstate(over="ignore", invalid="ignore"):
            ends = curve.ends(region.lower[j : j + 1], region.upper[j : j + 1])
        low, high = float(ends[0][0]), float(ends[1][0])
        if not (np.isfinite(low) and np.isfinite(high)):
            raise InputError(
                f"region: what the model makes of feature {j} leaves float64 on [{lower[j]:.6g}, "
                f"{upper[j]:.6g}]; take a smaller region"
            )
        if lower[j] < upper[j]:
            lower[j], upper[j] = low, max(high, np.nextafter(low, np.inf))
        else:
            lower[j] = upper[j] = 0.5 * low + 0.5 * high
            lost[j] = up(max(high - lower[j], lower[j] - low), 1)
    return Box(lower, upper), lost


@dataclass(frozen=True, eq=False)
class CurvedCells(Cells):
    """What increasing functions make of the cells `source`: boxes about their `center`, from which
    the image of a source's centre is `offset` (B, f) away at most."""

    image: Image
    source: Cells
    offset: Array

    def take(self, index: Annotated[Array, "i"]) -> CurvedCells:
        parts = (self.region, self.lower[index], self.upper[index], self.image)
        some = CurvedCells(*parts, self.source.take(index), self.offset[index])
        vars(some).update(center=self.center[index], half=self.half[index])
        return some

    def displacement(self, d: Annotated[Array, "B f"]) -> Annotated[Array, "B s"]:
        """A displacement of the source that is taken to about d: where to look."""
        place, there = to_numpy(self.source.center), to_numpy(self.center + d)
        moved, plain = np.array(place), self.image.places >= 0
        moved[:, self.image.places[plain]] += to_numpy(d)[:, plain]
        with np.errstate(all="ignore"):
            for j, curve in self.image.curves.items():
                moved[:, self.image.places[j]] = curve.inverse(there[:, j])
        for category in self.image.freed:  # the likeliest
            likeliest = np.argmax(there[:, category.columns], axis=1)
            moved[:, category.place] = category.codes[likeliest]
        moved = np.where(np.isfinite(moved), moved, place)
        step = self.placed(moved - place)
        return namespace(step).minimum(
            namespace(step).maximum(step, -self.source.half), self.source.half
        )

    def by_source(self, scores: PerCellAndFeature) -> Annotated[Array, "B s"]:
        """Scores (B, f) of the axes as those of the source's: of a category the sum of those of its
        indicators."""
        if not self.image.freed:
            return scores
        xp = namespace(scores)
        columns = [xp.zeros_like(scores[:, 0]) for _ in range(self.source.lower.shape[1])]
        for j, place in enumerate(self.image.places.tolist()):
            if place >= 0:
                columns[place] = columns[place] + scores[:, j]
        for category in self.image.freed:
            for j in category.columns.tolist():
                columns[category.place] = columns[category.place] + scores[:, j]
        return xp.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class ImageCells(Cells):
    """Images of the cells `source`; see the module. `lower` and `upper` are about its box."""

    image: Image
    source: Cells

    @property
    def is_box(self) -> bool:
        return False

    @property
    def offset(self) -> Annotated[Array, "..."]:
        """(q,) or (B, q): how far the image of a source's centre may be from `center`."""
        if not isinstance(self.source, CurvedCells):
            return self.image.offset
        moved = (self.source.offset / self.image.unit) @ abs(self.image.scaled).T
        return up(moved + self.image.offset, self.source.offset.shape[1] + 4)

    def take(self, index: Annotated[Array, "i"]) -> ImageCells:
        parts = (self.lower[index], self.upper[index], self.image, self.source.take(index))
        some = ImageCells(self.region, *parts)
        vars(some).update(center=self.center[index], half=self.half[index])
        return some

    def linear_minimum(self, g: Vectors) -> PerVector:
        """Certified lower bound of `min g.e` over each image, g (B, q) or (B, m, q).

        Statement 13.7: `g.e = (W^T g).d + g.r`, the first minimised over the cell itself; what
        underflows where W^T g leaves its units meets d (`scaled_minimum`).
        """
        xp = namespace(g)
        q = g.shape[-1]
        half = self.half[:, None, :] if g.ndim == 3 else self.half
        least = self.source.scaled_minimum(g @ self.image.scaled, 1.0 / self.image.unit)
        lost = xp.sum(abs(g) * (gamma(q + 4) * half + self.image.offset), axis=-1)
        return down(least - up(lost, q + 4), 2)

    def squared_norm_maximum(self, weights: Array, unit: Array | None = None) -> PerCell:
        """Certified upper bound (B,) of `max sum_i weights_i (e_i / unit_i)^2`: the least of the
        box's, `|y|^T |V^T V| |y|` and `largest sum_j D_j y_j^2` (Statement 13.8)."""
        xp = namespace(self.lower)
        u = xp.ones_like(self.center[0]) if unit is None else unit
        w = xp.zeros_like(u) + weights
        best = box_maximum(w, self.half / u)
        form = self.image.form(w, u)
        if form is None:
            return best
        y = self.source.half / self.image.unit
        least = up(xp.sum((y @ form.products) * y, axis=1), 2 * y.shape[1] + 4)
        for diagonal, largest in form.diagonals:
            other = largest * self.source.squared_norm_maximum(diagonal, self.image.unit)
            least = xp.minimum(least, up(other, 2))
        length = up(xp.sqrt(nonnegative(least)) + form.offset, 4)
        other = up(length**2, 2)
        return xp.where(other < best, other, best)  # an overflow to NaN improves nothing

    def split_scores(self, inverse_length: Annotated[Array, "f"]) -> Annotated[Array, "B s"]:
        """(B, f): what halving each axis of the cell takes off |e|^2, about."""
        xp = namespace(self.lower)
        scaled = inverse_length[:, None] * self.image.scaled
        scores = (self.source.half / self.image.unit) ** 2 * xp.sum(scaled**2, axis=0)
        return self.source.by_source(scores) if isinstance(self.source, CurvedCells) else scores

    def displacement(self, e: Annotated[Array, "B f"]) -> Annotated[Array, "B s"]:
        """A displacement d (B, f) of the cell with W d about e; any is valid, where to look."""
        xp = namespace(e)
        d = e @ self.image.backend.asarray(self.image.inverse).T
        d = xp.minimum(xp.maximum(d, -self.source.half), self.source.half)
        return self.source.displacement(d) if isinstance(self.source, CurvedCells) else d
