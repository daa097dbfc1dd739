"""Radial kernels (squared exponential, rational quadratic, Matérn of half-integer order) and the
periodic kernel: functions of x - z whose features' lengths are moments of their spectral law."""

from __future__ import annotations

from typing import Any

from flint import arb, arb_mat, ctx

from gpcert_check.balls import TINY, dot, gamma, largest, power, root, square, total
from gpcert_check.cell import Cell, Frame
from gpcert_check.forms import Quadratic
from gpcert_check.jets import Column, Inner, Jet, column, exact, scaled_rows
from gpcert_check.kernels import Chords, Kernel, positive, prior_gram, vector
from gpcert_check.lengths import Lengths
from gpcert_check.verdicts import BadFile, NotCovered


class Radial(Kernel):
    """`k = variance f(s)`, `s = sum_j ((x_j - z_j) / l_j)^2`. Subclasses give f, f', f'' and the
    moments E u^2 and E u^4 of the spectral law along a unit vector: `-2 f'(0)`, `12 f''(0)`."""

    moments: list[arb]

    def __init__(self, config: dict[str, Any], dims: list[int]) -> None:
        self.variance, self.dims = positive(config["variance"]), dims
        lengths = vector(config["length_scale"], dims)
        if not all(length > 0 for length in lengths):
            raise BadFile("kernel: expected length-scales > 0")
        self.weights = [1 / square(length) for length in lengths]

    def profile(self, s: arb, degree: int) -> list[arb]:
        """f and its derivatives up to a degree."""
        raise NotImplementedError

    def bind(self, points: list[list[float]], frame: Frame) -> None:
        seen = exact([z[j] for j in self.dims] for z in points)
        self.squares = [dot(self.weights, map(square, row)) for row in seen.tolist()]
        rows = frame.slopes.tolist()
        self.slopes = arb_mat([rows[j] for j in self.dims])
        self.weighted = scaled_rows(self.slopes, self.weights)
        self.metric = self.slopes.transpose() * self.weighted
        self.doubled = scaled_rows(seen.transpose() * arb(2), self.weights).transpose()
        self.columns = self.doubled * self.slopes
        self.ones = arb_mat(len(points), 1, [1] * len(points))

    def distances(self, z: Column) -> Column:
        """s of all data points."""
        at = [z[j] for j in self.dims]
        size2, cross = dot(self.weights, map(square, at)), (self.doubled * column(at)).entries()
        return [size2 + other - c for other, c in zip(self.squares, cross, strict=True)]

    def slopes_at(self, z: Column) -> arb_mat:
        """Gradients of s in the free features, a row for each data point."""
        at = [z[j] for j in self.dims]
        return self.ones * (arb_mat(1, len(at), at) * self.weighted * arb(2)) - self.columns

    def jet(self, z: Column, degree: int, inner: list[Inner]) -> Jet:
        profiles, size = [self.profile(s, degree) for s in self.distances(z)], self.variance
        columns = [[size * v for v in values] for values in zip(*profiles, strict=True)]
        if degree == 0:
            return Jet(columns[0])
        inner.append(Inner(self.slopes_at(z), self.metric * arb(2)))
        number = len(inner) - 1
        second = {(number, number): columns[2]} if degree > 1 else {}
        return Jet(columns[0], {number: columns[1]}, second)

    def chords(self, cell: Cell, weights: Column) -> Chords | None:
        """f is convex: on [a, b] it is above its tangent, by as much as at a or at b at most."""
        rows, bend = self.slopes_at(cell.z), square(cell.reach(self.weights, self.dims))
        values, slopes, gaps = [], [], []
        for s, row in zip(self.distances(cell.z), rows.tolist(), strict=True):
            reach = dot(map(abs, row), cell.widths)
            value, first = self.profile(s, 1)
            ends = (s - reach).lower().nonnegative_part(), (s + reach + bend).upper()
            gaps.append(largest(self.profile(e, 0)[0] - value - first * (e - s) for e in ends))
            values.append(value)
            slopes.append(first)
        size, weighted = self.variance, [t * v for t, v in zip(weights, slopes, strict=True)]
        along = (rows.transpose() * column(weighted) * size).entries()
        known = Quadratic(
            size * dot(weights, values), along, self.metric * (2 * size * total(weighted))
        )
        parts = list(zip(weights, gaps, strict=True))
        below = total((-t).nonnegative_part() * r for t, r in parts)
        return Chords(known, size * below, size * total(t.nonnegative_part() * r for t, r in parts))

    rounds: float | arb = 40
    """Roundings of f from a computed s on."""

    def computed(self, reach: Column, points: list[Column], mapped: int) -> tuple[arb, Column]:
        """|f'| <= m_2 / 2, and s is off by at most `gamma_n (|x| + |z| + 2 max)^2`."""
        if not self.moments:
            raise NotCovered("what float64 gives of a Matérn kernel of order 1/2")
        sizes = [root(dot(self.weights, (square(z[j]) for j in self.dims))) for z in points]
        at_x = root(dot(self.weights, (square(reach[j]) for j in self.dims)))
        far = at_x + 2 * at_x.max(largest(sizes))
        bend = self.moments[0] / 2 * gamma(mapped + len(self.dims) + 24)
        errors = [bend * square(far + size) + gamma(self.rounds) for size in sizes]
        return self.variance, [self.variance * e + TINY for e in errors]

    def lengths(self, cell: Cell, degree: int) -> Lengths:
        """With rho the largest distance in the cell, and kappa(r) = f(r^2):
        `rest_0^2 = 2 kappa(0) - 2 kappa(rho)`,
        `rest_1^2 = rest_0^2 + 2 rho kappa'(rho) + m_2 rho^2`,
        `rest_2^2 = rest_0^2 + 2 rho kappa'(rho) - rho^2 kappa''(rho) + m_4 rho^4 / 4`."""
        rho, size = cell.reach(self.weights, self.dims), root(self.variance)
        with ctx.workprec(4 * ctx.prec):
            s = square(rho.upper())  # every rest increases with rho
            f = self.profile(s, degree)
            left = 2 - 2 * f[0]
            if degree > 0:
                left += 4 * s * f[1]
            if degree == 1:
                left += self.moments[0] * s
            if degree == 2:
                left += s * s * self.moments[1] / 4 - 2 * s * f[1] - 4 * s * s * f[2]
            rest = root(left)
        terms = [size]
        for j in range(degree):
            terms.append(size * root(self.moments[j]) * power(rho, j + 1) / (j + 1))
        return Lengths(terms, size * rest, size)

    def gram(self, z: Column) -> arb_mat:
        by = self.variance * self.moments[0] if self.degree else arb(0)
        return prior_gram(self.variance, self.metric * by)


class SquaredExponential(Radial):
    """`f = exp(-s / 2)`."""

    def __init__(self, config: dict[str, Any], dims: list[int]) -> None:
        super().__init__(config, dims)
        self.moments = [arb(1), arb(3)]

    def profile(self, s: arb, degree: int) -> list[arb]:
        value = (s / -2).exp()
        return [value, value / -2, value / 4][: degree + 1]


class RationalQuadratic(Radial):
    """`f = (1 + s / (2 alpha))^(-alpha)`."""

    def __init__(self, config: dict[str, Any], dims: list[int]) -> None:
        super().__init__(config, dims)
        self.alpha = positive(config["alpha"])
        if not self.alpha > 0:
            raise BadFile("kernel: expected alpha > 0")
        self.rounds = 40 + 2 * self.alpha
        with ctx.workprec(4 * ctx.prec):
            self.moments = [arb(1), 3 * (1 + 1 / self.alpha)]

    def profile(self, s: arb, degree: int) -> list[arb]:
        base = 1 + s / (2 * self.alpha)
        value = (-self.alpha * base.log()).exp()
        first = value / (-2 * base)
        return [value, first, first * (self.alpha + 1) / (-2 * self.alpha * base)][: degree + 1]


class Matern(Radial):
    """Of order nu = p + 1/2, with `t = sqrt(2 nu s)`: `f = M_p(t)`,
    `M_p = exp(-t) p! / (2 p)! sum_i (p + i)! / (i! (p - i)!) (2 t)^(p - i)`, and
    `dM_p / ds = -(2 p + 1) / (2 (2 p - 1)) M_(p-1)(t)`, which has the same t."""

    def __init__(self, config: dict[str, Any], dims: list[int]) -> None:
        super().__init__(config, dims)
        order = float(config["nu"]) - 0.5
        if order != int(order) or not 0 <= order <= 20:
            raise NotCovered(f"a Matérn kernel of order {config['nu']!r}")
        self.order = p = int(order)
        self.degree, self.rounds = min(p, 2), 40 + 4 * p
        with ctx.workprec(4 * ctx.prec):
            freedom = arb(2 * p + 1)
            self.moments = [freedom / (2 * p - 1)] if p > 0 else []
            if p > 1:
                self.moments.append(3 * freedom * freedom / ((2 * p - 1) * (2 * p - 3)))
            self.coefficients = [_bessel(q) for q in range(p + 1)]

    def profile(self, s: arb, degree: int) -> list[arb]:
        p = self.order
        t2 = (2 * p + 1) * s
        t = root(t2)
        decay, derivatives = arb(1), []
        for n in range(degree + 1):
            q = max(p - n, 0)
            if q > 0 and not s > 0:  # at a point of the data: the root would lose half of the bits
                value = arb(1).union(1 - t2.upper() / (2 * (2 * q - 1)))
            else:
                value = (-t).exp() * _horner(self.coefficients[q], t)
            derivatives.append(decay * value)
            if n < degree:
                decay *= arb(2 * p + 1) / (-2 * (2 * (p - n) - 1)) if n < p else -1 / (2 * t)
        return derivatives


def _bessel(p: int) -> list[arb]:
    """Coefficients of `M_p(t) exp(t)`, that of t^p first."""
    coefficients = []
    for i in range(p + 1):
        weight = arb.fac_ui(p) * arb.fac_ui(p + i) / (arb.fac_ui(2 * p) * arb.fac_ui(i))
        coefficients.append(weight / arb.fac_ui(p - i) * 2 ** (p - i))
    return coefficients


def _horner(coefficients: list[arb], t: arb) -> arb:
    value = coefficients[0]
    for each in coefficients[1:]:
        value = value * t + each
    return value


class Periodic(Kernel):
    """`k = variance exp(sum_j b_j (cos(w_j (x_j - z_j)) - 1))`, `w = 2 pi / period`, `b = 1 / l^2`.

    Its spectral law is that of a sum of independent compound Poisson variables, whose even
    cumulants along d are `kappa_2n = sum_j b_j (w_j d_j)^2n`.
    """

    def __init__(self, config: dict[str, Any], dims: list[int]) -> None:
        self.variance, self.dims = positive(config["variance"]), dims
        periods, lengths = (vector(config[name], dims) for name in ("period", "length_scale"))
        if not all(v > 0 for v in (*periods, *lengths)):
            raise BadFile("kernel: expected periods and length-scales > 0")
        self.frequencies = [2 * arb.pi() / period for period in periods]
        self.strengths = [1 / square(length) for length in lengths]

    def bind(self, points: list[list[float]], frame: Frame) -> None:
        self.points = [[arb(z[j]) for j in self.dims] for z in points]
        rows = frame.slopes.tolist()
        self.slopes = arb_mat([rows[j] for j in self.dims])

    def jet(self, z: Column, degree: int, inner: list[Inner]) -> Jet:
        each = list(zip(self.dims, self.strengths, self.frequencies, strict=True))
        values, slopes, bends = [], [], []
        for point in self.points:
            total = arb(0)
            for (j, b, w), v in zip(each, point, strict=True):
                sine, cosine = (w * (z[j] - v)).sin_cos()
                total += b * (cosine - 1)
                slopes.append(-b * w * sine)
                bends.append(-b * w * w * cosine)
            values.append(self.variance * total.exp())
        if degree == 0:
            return Jet(values)
        shape = len(values), len(each)
        gradient = arb_mat(*shape, slopes) * self.slopes
        inner.append(Inner(gradient, None, arb_mat(*shape, bends), self.slopes))
        number = len(inner) - 1
        second = {(number, number): values} if degree > 1 else {}
        return Jet(values, {number: values}, second)

    def lengths(self, cell: Cell, degree: int) -> Lengths:
        """`E u^2 = kappa_2`, `E u^4 = 3 kappa_2^2 + kappa_4`,
        `E u^6 = 15 kappa_2^3 + 15 kappa_2 kappa_4 + kappa_6`; a Taylor term has the length
        `(E u^2j)^(1/2) / j!`, and the rest is at most that of the next one."""
        each = list(zip(self.dims, self.strengths, self.frequencies, strict=True))
        k2, k4, k6 = (total(b * power(w * cell.spans[j], n) for j, b, w in each) for n in (2, 4, 6))
        squares = [arb(1), k2, 3 * k2 * k2 + k4, 15 * k2 * (k2 * k2 + k4) + k6]
        size, factorials = root(self.variance), [1, 1, 2, 6]
        lengths = [size * root(v) / n for v, n in zip(squares, factorials, strict=True)]
        return Lengths(lengths[: degree + 1], lengths[degree + 1], size)

    def gram(self, z: Column) -> arb_mat:
        factors = [b * w * w for b, w in zip(self.strengths, self.frequencies, strict=True)]
        metric = self.slopes.transpose() * scaled_rows(self.slopes, factors)
        return prior_gram(self.variance, metric * self.variance)


STATIONARY: dict[str, Any] = {
    "squared_exponential": SquaredExponential,
    "rational_quadratic": RationalQuadratic,
    "matern": Matern,
    "periodic": Periodic,
}
