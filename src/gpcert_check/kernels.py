"""Kernels from their definitions, as files describe them: `[name, parameters]`.

Each gives jets of k(., z_i) at a point (`jets`), the lengths of its features' Taylor terms
(`lengths`), and the inner products of phi(c) and its first derivatives (`gram`).
"""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import Any, NamedTuple, cast

from flint import arb, arb_mat

from gpcert_check.balls import dot, gamma, root, square, total
from gpcert_check.cell import Cell, Frame
from gpcert_check.forms import Quadratic
from gpcert_check.jets import Column, Expansion, Inner, Jet
from gpcert_check.lengths import Lengths
from gpcert_check.verdicts import BadFile, NotCovered


class Chords(NamedTuple):
    """`sum_i t_i k(., z_i)` lies within [-below, above] of a quadratic function on a cell."""

    known: Quadratic
    below: arb
    above: arb

    def plus(self, other: Chords) -> Chords:
        """The sum."""
        ends = self.below + other.below, self.above + other.above
        return Chords(self.known.plus(other.known), *ends)


class Kernel:
    """A kernel on some of the linear features. `degree`: to which order phi has derivatives, at
    most 2."""

    degree = 2

    def bind(self, points: list[list[float]], frame: Frame) -> None:
        """Prepare for these data points and this frame."""

    def jet(self, z: Column, degree: int, inner: list[Inner]) -> Jet:
        """Jets at z; inner variables are appended to `inner`, unless the degree is 0."""
        raise NotImplementedError

    def lengths(self, cell: Cell, degree: int) -> Lengths:
        """Of the Taylor terms up to a degree, at most `self.degree`."""
        raise NotImplementedError

    def gram(self, z: Column) -> arb_mat:
        """Inner products (1 + f, 1 + f) of phi(c) and its derivatives in the free features."""
        raise NotImplementedError

    def computed(self, reach: Column, points: list[Column], mapped: int) -> tuple[arb, Column]:
        """A bound of |k|, and for each data point how far k in float64 can be from it, for features
        of absolute values `reach`, which took half of `mapped` roundings (statement 13)."""
        raise NotCovered(f"what float64 gives of a kernel of the class {type(self).__name__}")

    def chords(self, cell: Cell, weights: Column) -> Chords | None:
        """A bound point by point (statement 14), if there is one."""
        return None

    def expansion(self, cell: Cell, degree: int) -> Expansion:
        """The jets of all k(., z_i) at a cell's centre."""
        inner: list[Inner] = []
        jet = self.jet(cell.z, degree, inner)
        return Expansion(jet, inner, len(cell.center))

    def column(self, z: Column) -> Column:
        """k(z, z_i) for all data points."""
        return self.jet(z, 0, []).value


class Constant(Kernel):
    """`k = variance`."""

    def __init__(self, variance: arb) -> None:
        self.variance = variance

    def bind(self, points: list[list[float]], frame: Frame) -> None:
        self.count, self.free = len(points), len(frame.free)

    def jet(self, z: Column, degree: int, inner: list[Inner]) -> Jet:
        return Jet([self.variance] * self.count)

    def computed(self, reach: Column, points: list[Column], mapped: int) -> tuple[arb, Column]:
        return self.variance, [arb(0)] * len(points)

    def chords(self, cell: Cell, weights: Column) -> Chords | None:
        value = self.variance * total(weights)
        return Chords(Quadratic.constant(value, self.free), arb(0), arb(0))

    def lengths(self, cell: Cell, degree: int) -> Lengths:
        size = root(self.variance)
        return Lengths([size] + [arb(0)] * degree, arb(0), size)

    def gram(self, z: Column) -> arb_mat:
        return prior_gram(self.variance, arb_mat(self.free, self.free))


class Linear(Kernel):
    """`k = sum_j w_j (x_j - c_j) (z_j - c_j)`, w >= 0."""

    def __init__(self, weights: Column, center: Column, dims: list[int]) -> None:
        self.weights, self.center, self.dims = weights, center, dims

    def bind(self, points: list[list[float]], frame: Frame) -> None:
        each = list(zip(self.weights, self.center, self.dims, strict=True))
        rows = [[w * (arb(z[j]) - c) for w, c, j in each] for z in points]
        self.rows = arb_mat(rows)
        all_slopes = frame.slopes.tolist()
        slopes = arb_mat([all_slopes[j] for j in self.dims])
        self.slopes, self.gradient = slopes, self.rows * slopes

    def jet(self, z: Column, degree: int, inner: list[Inner]) -> Jet:
        moved = [z[j] - c for j, c in zip(self.dims, self.center, strict=True)]
        values = (self.rows * arb_mat(len(moved), 1, moved)).entries()
        if degree == 0:
            return Jet(values)
        inner.append(Inner(self.gradient))
        count, number = len(values), len(inner) - 1
        second = {(number, number): [arb(0)] * count} if degree > 1 else {}
        return Jet(values, {number: [arb(1)] * count}, second)

    def lengths(self, cell: Cell, degree: int) -> Lengths:
        moved = (square(cell.z[j] - c) for j, c in zip(self.dims, self.center, strict=True))
        size, step = root(dot(self.weights, moved)), cell.reach(self.weights, self.dims)
        if degree == 0:
            return Lengths([size], step, size + step)
        return Lengths([size, step] + [arb(0)] * (degree - 1), arb(0), size + step)

    def gram(self, z: Column) -> arb_mat:
        each = list(zip(self.weights, self.center, self.dims, strict=True))
        columns = [[z[j] - c for _, c, j in each], *self.slopes.transpose().tolist()]
        features = arb_mat(columns)
        weighted = [[w * v for (w, _, _), v in zip(each, row, strict=True)] for row in columns]
        return features * arb_mat(weighted).transpose()


def prior_gram(variance: arb, metric: arb_mat) -> arb_mat:
    """Inner products of phi and its derivatives where phi has the same length everywhere."""
    rows = [[arb(0), *row] for row in metric.tolist()]
    return arb_mat([[variance] + [arb(0)] * metric.ncols(), *rows])


class Sum(Kernel):
    """A sum of kernels."""

    def __init__(self, parts: list[Kernel]) -> None:
        self.parts, self.degree = parts, min(part.degree for part in parts)

    def bind(self, points: list[list[float]], frame: Frame) -> None:
        for part in self.parts:
            part.bind(points, frame)

    def jet(self, z: Column, degree: int, inner: list[Inner]) -> Jet:
        return reduce(self.joined, (part.jet(z, degree, inner) for part in self.parts))

    def lengths(self, cell: Cell, degree: int) -> Lengths:
        return reduce(self.joined, (part.lengths(cell, degree) for part in self.parts))

    def gram(self, z: Column) -> arb_mat:
        return reduce(self.joined_gram, (part.gram(z) for part in self.parts))

    def computed(self, reach: Column, points: list[Column], mapped: int) -> tuple[arb, Column]:
        sizes, errors = zip(*(p.computed(reach, points, mapped) for p in self.parts), strict=True)
        most = [
            self.folded([s + e for s, e in zip(sizes, each, strict=True)])
            for each in zip(*errors, strict=True)
        ]
        size, each_rounds = self.folded(list(sizes)), gamma(len(self.parts))
        return size, [m - size + each_rounds * m for m in most]

    def folded(self, values: Column) -> arb:
        """Of the parts' values."""
        return total(values)

    def chords(self, cell: Cell, weights: Column) -> Chords | None:
        parts = [part.chords(cell, weights) for part in self.parts]
        return None if None in parts else reduce(Chords.plus, cast(list[Chords], parts))

    def joined(self, a: Any, b: Any) -> Any:
        """Of two parts."""
        return a.plus(b)

    def joined_gram(self, a: arb_mat, b: arb_mat) -> arb_mat:
        """Of two parts."""
        return a + b


class Product(Sum):
    """A product of kernels: features are tensor products."""

    def folded(self, values: Column) -> arb:
        return reduce(mul, values, arb(1))

    def chords(self, cell: Cell, weights: Column) -> Chords | None:
        """Of a multiple of a kernel."""
        constants = [part for part in self.parts if isinstance(part, Constant)]
        others = [part for part in self.parts if not isinstance(part, Constant)]
        if len(others) != 1:
            return None
        factor = self.folded([part.variance for part in constants])
        return others[0].chords(cell, [factor * t for t in weights])

    def joined(self, a: Any, b: Any) -> Any:
        return a.times(b)

    def joined_gram(self, a: arb_mat, b: arb_mat) -> arb_mat:
        """Of `e_0 = a_0 (x) b_0` and the derivatives `e_j = a_j (x) b_0 + a_0 (x) b_j`."""
        gram = a * b[0, 0] + b * a[0, 0]
        for j in range(a.nrows()):
            for k in range(a.nrows()):
                gram[j, k] += a[j, 0] * b[0, k] + a[0, k] * b[j, 0]
        for j in range(1, a.nrows()):
            gram[0, j] = gram[j, 0] = a[0, 0] * b[0, j] + a[0, j] * b[0, 0]
        gram[0, 0] = a[0, 0] * b[0, 0]
        return gram


def read_kernel(described: Any, dims: list[int]) -> Kernel:
    """The kernel of a header on some of the linear features."""
    try:
        name, config = described
        return _read(name, config, dims)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadFile(f"kernel: expected [name, parameters], got {error!r}") from error


def _read(name: str, config: dict[str, Any], dims: list[int]) -> Kernel:  # noqa: PLR0911
    from gpcert_check.stationary import STATIONARY

    if name in STATIONARY:
        return STATIONARY[name](config, dims)
    if name in ("constant", "white"):  # as a function of the inputs white noise is 0
        return Constant(positive(config["variance"]) if name == "constant" else arb(0))
    if name == "linear":
        return _linear(config, dims)
    if name == "polynomial":
        degree, offset = config["degree"], positive(config["offset"])
        if not isinstance(degree, int) or not 1 <= degree <= 20:
            raise NotCovered(f"a polynomial kernel of degree {degree!r}")
        return Product([Sum([_linear(config, dims), Constant(offset)]) for _ in range(degree)])
    if name in ("sum", "product"):
        parts = [read_kernel(part, dims) for part in config["kernels"]]
        return (Sum if name == "sum" else Product)(parts)
    if name == "scale":
        parts = [Constant(positive(config["factor"])), read_kernel(config["kernel"], dims)]
        return Product(parts)
    if name == "active_dimensions":
        chosen = [dims[int(j)] for j in config["dimensions"]]
        if any(int(j) < 0 for j in config["dimensions"]):
            raise BadFile("kernel: expected dimensions >= 0")
        return read_kernel(config["kernel"], chosen)
    raise NotCovered(f"the kernel {name!r}")


def _linear(config: dict[str, Any], dims: list[int]) -> Linear:
    weights = vector(config["weights"], dims)
    if not all(w >= 0 for w in weights):
        raise BadFile("kernel: expected weights >= 0")
    return Linear(weights, vector(config.get("center", 0.0), dims), dims)


def vector(value: Any, dims: list[int]) -> Column:
    """One number for each feature, from a number or a list of them."""
    values = value if isinstance(value, list) else [value] * len(dims)
    if len(values) != len(dims):
        raise BadFile(f"kernel: expected {len(dims)} numbers, got {len(values)}")
    return [arb(float(v)) for v in values]


def positive(value: Any) -> arb:
    """A number >= 0."""
    number = arb(float(value))
    if not number >= 0:
        raise BadFile(f"kernel: expected a number >= 0, got {value!r}")
    return number
