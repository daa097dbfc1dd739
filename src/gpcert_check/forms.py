"""Quadratic functions of the distance d from a cell's centre, and their least value on the cell.

Floating point only chooses a point and a shift; the bound is proved for whichever they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flint import arb, arb_mat

from gpcert_check.balls import dot, square, total
from gpcert_check.cell import Cell

DESCENTS = 30
POWERS = 40


@dataclass
class Quadratic:
    """`value + slopes.d + d^T matrix d / 2`."""

    value: arb
    slopes: list[arb]
    matrix: arb_mat

    @staticmethod
    def constant(value: arb, free: int) -> Quadratic:
        """A number."""
        return Quadratic(value, [arb(0)] * free, arb_mat(free, free))

    def plus(self, other: Quadratic) -> Quadratic:
        """The sum."""
        slopes = [a + b for a, b in zip(self.slopes, other.slopes, strict=True)]
        return Quadratic(self.value + other.value, slopes, self.matrix + other.matrix)

    def times(self, factor: arb) -> Quadratic:
        """A multiple."""
        slopes = [factor * a for a in self.slopes]
        return Quadratic(factor * self.value, slopes, self.matrix * factor)

    def shifted(self, by: arb) -> Quadratic:
        """A number added."""
        return Quadratic(self.value + by, self.slopes, self.matrix)

    def size(self, cell: Cell) -> arb:
        """Upper bound of `|slopes.d + d^T matrix d / 2|` on the cell."""
        linear = cell.linear_minimum(self.slopes).min(
            cell.linear_minimum([-a for a in self.slopes])
        )
        f, entries, w = len(cell.widths), self.matrix.entries(), cell.widths
        bent = total(w[i] * dot(map(abs, entries[i * f : i * f + f]), w) for i in range(f))
        return bent / 2 - linear

    def minimum(self, cell: Cell, wanted: bool = True) -> arb:
        """Lower bound over the cell; where the simple one is not above 0 and more is wanted, the
        better of two.

        Simple: all off-diagonal terms in absolute value. Better: with y = d / w, a shift t <= 0 and
        M = matrix - t I in y, proved positive semi-definite, `y^T M y >= 2 p^T M y - p^T M p` for
        every p, so the form is at least `value - p^T M p / 2 + min (slopes + M p).y + t |y|^2 / 2`.
        """
        f, w = len(cell.widths), cell.widths
        entries = self.matrix.entries()
        H = [[entries[i * f + j] * w[i] * w[j] for j in range(f)] for i in range(f)]
        apart = total(abs(H[i][j]) for i in range(f) for j in range(f) if i != j)
        apart += total((-H[i][i]).nonnegative_part() for i in range(f))
        simple = self.value + cell.linear_minimum(self.slopes) - apart / 2
        if simple > 0 or not wanted or f == 0:
            return simple
        shift = _shift(H)
        M = [[H[i][j] - shift if i == j else H[i][j] for j in range(f)] for i in range(f)]
        if not positive_definite(M):
            return simple
        b = [float(s.mid() * v.mid()) for s, v in zip(self.slopes, w, strict=True)]
        p = list(map(arb, _descend([[float(v.mid()) for v in row] for row in M], b)))
        Mp = (arb_mat(M) * arb_mat(f, 1, p)).entries()
        # (M p).y = (M p / w).d; a width of 0 leaves y = 0
        slopes = [
            s + (v / width if width > 0 else 0)
            for s, v, width in zip(self.slopes, Mp, w, strict=True)
        ]
        bound = self.value - dot(p, Mp) / 2 + cell.linear_minimum(slopes) + shift * _most(cell) / 2
        return simple.max(bound)


def _most(cell: Cell) -> arb:
    """Upper bound of `sum (d_j / w_j)^2` on the cell."""
    if not cell.frame.region.round or not cell.frame.plain:
        return arb(len(cell.widths))
    weights = [1 / square(w) if w > 0 else arb(0) for w in cell.widths]
    return square(cell.reach(weights, cell.frame.free))


def _shift(H: list[list[arb]]) -> arb:
    """A number a little below the least eigenvalue of H, and not above 0: by power iteration."""
    f = len(H)
    A = [[float(v.mid()) for v in row] for row in H]
    size = max(sum(map(abs, row)) for row in A)
    if not (size > 0 and math.isfinite(size)):
        return arb(0)
    v = [1.0 + 0.37 * math.sin(3.1 * i + 1) for i in range(f)]
    top = 0.0
    for _ in range(POWERS if f > 1 else 1):
        u = [size * x - sum(map(float.__mul__, row, v)) for row, x in zip(A, v, strict=True)]
        norm = math.sqrt(sum(x * x for x in u))
        if norm == 0:
            break
        top = norm / math.sqrt(sum(x * x for x in v))
        v = [x / norm for x in u]
    least = size - top  # from above: power iteration underestimates top
    slack = 1e-9 * size + 0.05 * abs(min(least, 0.0)) + (0.01 * size if f > 2 else 0.0)
    return arb(min(least - slack, 0.0)) if f > 1 else arb(min(A[0][0] - 1e-9 * size, 0.0))


def positive_definite(matrix: list[list[arb]]) -> bool:
    """Whether Cholesky's algorithm in ball arithmetic proves it."""
    f = len(matrix)
    rows: list[list[arb]] = []
    for i in range(f):
        row: list[arb] = []
        for j in range(i):
            other = rows[j]
            row.append((matrix[i][j] - dot(row, other[:j])) / other[j])
        pivot = matrix[i][i] - dot(row, row)
        if not pivot > 0:
            return False
        row.append(pivot.sqrt())
        rows.append(row)
    return True


def _descend(M: list[list[float]], b: list[float]) -> list[float]:
    """About the minimiser of `b.y + y^T M y / 2` over [-1, 1]^f, by coordinates."""
    f = len(b)
    y = [0.0] * f
    for _ in range(DESCENTS):
        moved = 0.0
        for j in range(f):
            row = M[j]
            if row[j] <= 0:
                continue
            slope = b[j] + sum(map(float.__mul__, row, y))
            new = min(1.0, max(-1.0, y[j] - slope / row[j]))
            moved = max(moved, abs(new - y[j]))
            y[j] = new
        if moved < 1e-6:
            break
    return y
