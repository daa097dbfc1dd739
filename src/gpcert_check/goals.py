"""What is claimed of a goal on a cell, as a quadratic function that must not be negative.

Every goal G of a latent mean mu and a variance V is compared with a level T: G >= T is rewritten
as `sign mu - level(V) >= 0`, the level's square root is replaced by a line in V on the safe side,
and mean and variance by their Taylor polynomials, the remainders taken at their largest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from flint import arb, arb_mat

from gpcert_check.balls import dot, power, root, square, total
from gpcert_check.cell import Cell
from gpcert_check.forms import Quadratic
from gpcert_check.jets import Expansion
from gpcert_check.links import LINKS, mean_for
from gpcert_check.posterior import Posterior, column_rows
from gpcert_check.stationary import SquaredExponential
from gpcert_check.verdicts import BadFile, NotCovered

KINDS = ("mean", "variance", "std", "band", "probability")
NO_VARIANCE = ("mean_only", "sign_only")


@dataclass(frozen=True)
class Goal:
    """`kind` of an output, times `sign`; a band is `sign mean - beta std`."""

    kind: str
    output: int
    sign: int
    beta: arb = field(default_factory=arb)
    member: int = 0
    """Of several posteriors that decide together."""

    @property
    def negative(self) -> Goal:
        """Minus this one."""
        return replace(self, sign=-self.sign, beta=-self.beta)

    @property
    def by_mean(self) -> bool:
        """Whether it depends on the mean."""
        return self.kind not in ("variance", "std")

    @property
    def by_variance(self) -> bool:
        """Whether it depends on the variance."""
        return self.kind != "mean" and not (self.kind == "band" and self.beta == 0)


def read_goal(record: dict[str, Any], model: Posterior) -> Goal:
    """The goal of a header."""
    try:
        kind, output, sign = record["quantity"], record["output"], record["sign"]
        beta = arb(float(record.get("beta") or 0.0))
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"goal: expected quantity, output and sign ({error!r})") from error
    if kind not in KINDS:
        raise NotCovered(f"the quantity {kind!r}; covered are {', '.join(KINDS)}")
    if sign not in (1, -1) or not isinstance(output, int) or not 0 <= output < model.outputs:
        raise BadFile(f"goal: expected a sign and an output of the model, got {record!r}")
    return checked(Goal(kind, output, sign, beta), model)


def checked(goal: Goal, model: Posterior) -> Goal:
    """The goal, if the model has what it is made of."""
    likelihood = model.likelihood[0]
    if goal.by_variance and likelihood in NO_VARIANCE:
        raise BadFile("goal: the model has no variance")
    if goal.kind == "probability" and likelihood not in LINKS:
        raise NotCovered(f"probabilities of the likelihood {likelihood!r}")
    return goal


@dataclass
class Bounds:
    """The bounds of one cell: expansions and forms are shared by all goals."""

    model: Posterior
    cell: Cell
    degree: int = 2
    cache: dict[Any, Any] = field(default_factory=dict)

    def expansion(self, degree: int) -> Expansion:
        """The kernel's jets at the centre."""
        if ("jets", 2) in self.cache:
            degree = 2
        return self._once(("jets", degree), lambda: self.model.kernel.expansion(self.cell, degree))

    def _once(self, key: Any, make: Any) -> Any:
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]

    def proved(self, goal: Goal, level: arb) -> bool:
        """Whether goal >= level is proved on the cell."""
        return self.margin(goal, level) >= 0

    def margin(self, goal: Goal, level: arb) -> arb:
        """A number that is not negative only where goal >= level on the cell."""
        if goal.kind == "mean":
            return self.mean_margin(goal, Quadratic.constant(level, len(self.cell.widths)))
        if goal.kind in ("variance", "std"):
            return self.variance_margin(goal, level)
        beta, extra = goal.beta, arb(0)
        if goal.kind == "probability":
            probability = level * goal.sign
            if probability <= 0 or probability >= 1:  # 0 < F < 1
                return arb(goal.sign if probability <= 0 else -goal.sign)
            if self.model.likelihood[0] != "probit":
                return self._link_margin(goal, probability)
            # F(mu, V) = Phi(mu / sqrt(1 + V)) >= p where mu >= z sqrt(1 + V), Phi(z) = p
            z = arb(2).sqrt() * (2 * probability - 1).erfinv()
            level, beta, extra = arb(0), z * goal.sign, arb(1)
        if beta == 0:
            return self.mean_margin(goal, Quadratic.constant(level, len(self.cell.widths)))
        return self.mean_margin(goal, self.root_line(goal.output, beta, extra).shifted(level))

    def _link_margin(self, goal: Goal, probability: arb) -> arb:
        """Of `sign F >= sign probability`: F grows with the mean, which is compared with that at
        which F reaches the level for every variance of the cell."""
        link, sign, ends = self.model.likelihood[0], goal.sign, self.variance_range(goal.output)
        if not any(width > 0 for width in self.cell.widths):  # a point
            mean, variance = self._center_mean(goal.output), ends[0].union(ends[1])
            return sign * (LINKS[link](mean, variance) - probability)
        level = self._once(
            ("mean", goal.output, sign, probability.str(40)),
            lambda: mean_for(link, probability, *ends, sign),
        )
        if level is None:
            return arb(-1)
        return self.mean_margin(goal, Quadratic.constant(sign * level, len(self.cell.widths)))

    def value(self, goal: Goal) -> float:
        """About a mean or a probability at the centre; nothing rests on it."""
        value = self._center_mean(goal.output)
        if goal.kind == "probability":
            low, high = self.variance_range(goal.output)
            value = LINKS[self.model.likelihood[0]](value, (low + high) / 2)
        return float(goal.sign * value.mid())

    def _center_mean(self, c: int) -> arb:
        """The mean at the centre."""
        model = self.model
        jets = self.expansion(min(self.degree, model.kernel.degree))
        mean = dot(model.weights[c], jets.jet.value)
        if model.has_trend:
            mean += dot(model.slope[c], self.cell.z)
        return model.offset[c] + model.scale[c] * mean

    # the mean

    def mean_margin(self, goal: Goal, level: Quadratic) -> arb:
        """Least value of `sign mu - level` on the cell.

        Of a squared exponential, `exp(y)`, y = |d|^2 / 2 in its length-scales, times it: the
        products of `exp(y) phi` with monomials are orthogonal. Of rough kernels point by point,
        else by the lengths of the kernel's Taylor terms.
        """
        model, c, kernel = self.model, goal.output, self.model.kernel
        sign, scale, t = goal.sign, model.scale[c], model.weights[c]
        rest = level.times(arb(-1)).shifted(sign * model.offset[c])
        if model.has_trend:
            rest = rest.plus(self._trend(c).times(sign * scale))
        if kernel.degree < 2:
            chords = self._once(("chords", c), lambda: kernel.chords(self.cell, t))
            if chords and chords.below.is_finite() and chords.above.is_finite():
                least = chords.known.times(sign * scale).plus(rest).minimum(self.cell)
                return least - scale * (chords.below if sign > 0 else chords.above)
        degree, f = min(self.degree, kernel.degree), len(self.cell.widths)
        jets = self.expansion(degree)
        slopes = jets.gradient(t) if degree > 0 else [arb(0)] * f
        matrix = jets.hessian(t) if degree > 1 else arb_mat(f, f)
        known = Quadratic(dot(t, jets.jet.value), slopes, matrix)
        if isinstance(kernel, SquaredExponential):
            return self._weighted(kernel, known, rest, sign * scale, model.norms[c], degree)
        remainder = scale * model.norms[c] * kernel.lengths(self.cell, degree).rest
        return known.times(sign * scale).plus(rest).minimum(self.cell) - remainder

    def _trend(self, c: int) -> Quadratic:
        """`slope.z`."""
        z, slope = self.cell.z, self.model.slope[c]
        along = (arb_mat(1, len(slope), slope) * self.model.frame.slopes).entries()
        return Quadratic(dot(slope, z), along, arb_mat(len(along), len(along)))

    def _weighted(
        self,
        kernel: SquaredExponential,
        known: Quadratic,
        rest: Quadratic,
        factor: arb,
        norm: arb,
        degree: int,
    ) -> arb:
        """Least value of `exp(y) (factor g + rest)`.

        `exp(y) g = sum_a w_a s d^a / sqrt(a!)` with `sum w_a^2 = norm^2`; what lies beyond the
        degree n is at most `s (norm^2 - sum_(|a| <= n) w_a^2)^(1/2) (sum_(m > n) rho^2m/m!)^(1/2)`.
        Of `exp(y) rest`: `exp(y) >= 1 + y`, `exp(y) <= 1 + y (exp(Y) - 1) / Y` for y <= Y.
        """
        cell = self.cell
        rho = cell.reach(kernel.weights, kernel.dims).upper()
        most = square(rho) / 2
        steep = most.exp()
        metric, variance = kernel.metric, kernel.variance
        form = known
        if degree > 1:
            form = Quadratic(known.value, known.slopes, known.matrix + metric * known.value)
        energy = square(known.value) / variance
        if cell.frame.plain and degree > 0:
            energy += self._energy(kernel, form, degree) / variance
        left = root(square(norm) - energy.lower().nonnegative_part())
        parts = [power(rho, 2 * m) / arb.fac_ui(m) for m in range(degree + 1, degree + 5)]
        parts[-1] *= square(rho).exp()  # (n + 4 + k)! >= (n + 4)! k!
        tail = root(variance) * left * root(total(parts))
        # exp(y) (a + u(d)) with |u| <= size: a exp(y) from below, and u + [-1, 1] size (exp(Y) - 1)
        a = rest.value
        chord = (steep - 1) / most if most > 0 else arb(1)
        by = arb(1) if a >= 0 else chord if a <= 0 else chord.union(arb(1))
        varying = Quadratic(arb(0), rest.slopes, rest.matrix)
        constant = varying.matrix == arb_mat(*[len(cell.widths)] * 2) and all(
            s == 0 for s in rest.slopes
        )
        change = arb(0) if constant else varying.size(cell) * (steep - 1)
        bent = Quadratic(a, [arb(0)] * len(cell.widths), metric * (a * by))
        whole = form.times(factor).plus(bent).plus(varying)
        return whole.minimum(cell) - abs(factor) * tail - change

    def _energy(self, kernel: SquaredExponential, form: Quadratic, degree: int) -> arb:
        """`variance sum_(0 < |a| <= n) w_a^2` over the free features."""
        place = dict(zip(kernel.dims, kernel.weights, strict=True))
        lengths = [1 / root(place[j]) if j in place else arb(0) for j in self.cell.frame.free]
        energy = total(square(s * v) for s, v in zip(form.slopes, lengths, strict=True))
        if degree > 1:
            f, entries = len(lengths), form.matrix.entries()
            pairs = ((i, j) for i in range(f) for j in range(f))
            energy += (
                total(square(entries[i * f + j] * lengths[i] * lengths[j]) for i, j in pairs) / 2
            )
        return energy

    # the variance

    def variance_forms(self, output: int) -> tuple[Quadratic, Quadratic]:
        """Quadratics below and above v on the cell (the former below `max(v, 0)` too).

        With psi the Taylor polynomial of phi and |phi - psi| <= R: `v = <phi, P phi>` differs from
        `<psi, P psi>` by at most `2 |P psi| R + most R^2` upwards and `2 |P psi| R + least R^2`
        downwards, and `2 a b <= e a^2 + b^2 / e` for every e > 0.
        """
        return self._once(("variance", output), lambda: self._variance_forms(output))

    def _variance_forms(self, output: int) -> tuple[Quadratic, Quadratic]:
        model, f = self.model, len(self.cell.widths)
        degree = min(1, model.kernel.degree)
        jets, precision = self.expansion(degree), model.precision(output)
        prior = model.kernel.gram(self.cell.z)
        rows = jets.gradient_rows() if degree else arb_mat(len(model.points), f)
        if not degree:
            whole = prior[0, 0]
            prior = arb_mat(1 + f, 1 + f)
            prior[0, 0] = whole
        columns = column_rows(jets.jet.value, rows)
        lower, upper, length = map(_form, precision.forms(columns, prior))
        rest = model.kernel.lengths(self.cell, degree).rest.upper()
        size = root(length.value.upper()).upper()
        if not rest > 0:
            return lower, upper
        e = rest / (size + rest)  # in (0, 1]
        slack = square(rest) / e
        below = lower.plus(length.times(-e)).shifted(-slack - precision.least * square(rest))
        above = upper.plus(length.times(e)).shifted(slack + precision.most * square(rest))
        return below, above

    def total(self, form: Quadratic, output: int, extra: arb) -> Quadratic:
        """`scale^2 v + noise + extra`."""
        scale, noise = self.model.scale[output], self.model.noise[output]
        return form.times(square(scale)).shifted(noise + extra)

    def variance_margin(self, goal: Goal, level: arb) -> arb:
        """Of `sign V >= level` or `sign sqrt(V) >= level`."""
        noise, bound = self.model.noise[goal.output], goal.sign * level
        if bound < 0:
            return arb(goal.sign)  # V >= 0
        if goal.kind == "std":
            bound = square(bound)
        below, above = self.variance_forms(goal.output)
        if goal.sign > 0:
            if bound <= noise:
                return noise - bound
            return self.total(below, goal.output, -bound).minimum(self.cell)
        margin = self.total(above, goal.output, -bound).times(arb(-1)).minimum(self.cell)
        return margin.min(bound - noise)

    def variance_range(self, output: int) -> tuple[arb, arb]:
        """Numbers below and above V on the cell."""
        return self._once(("range", output), lambda: self._variance_range(output))

    def _variance_range(self, output: int) -> tuple[arb, arb]:
        below, above = (self.total(v, output, arb(0)) for v in self.variance_forms(output))
        low = below.minimum(self.cell).max(self.model.noise[output]).lower().nonnegative_part()
        return low, (-above.times(arb(-1)).minimum(self.cell)).max(low).upper()

    def root_line(self, output: int, beta: arb, extra: arb) -> Quadratic:
        """A quadratic above `beta sqrt(V + extra)` on the cell.

        beta > 0: the root lies below its tangents, `sqrt(W) <= (W / r + r) / 2`. beta < 0: on
        [a^2, b^2] it lies above its chord, `sqrt(W) >= a + (W - a^2) / (a + b)`.
        """
        return self._once(
            ("root", output, beta.str(40), extra.str(20)),
            lambda: self._root_line(output, beta, extra),
        )

    def _root_line(self, output: int, beta: arb, extra: arb) -> Quadratic:
        below, above = self.variance_forms(output)
        base = self.model.noise[output] + extra
        high = self.total(above, output, extra)
        deficit = (base - high.minimum(self.cell)).nonnegative_part().upper()
        high = high.shifted(deficit)  # max(v, 0) is below it too
        if not (beta > 0 or beta < 0):
            raise NotCovered("a probability too near to 1/2 to tell on which side it is")
        if beta > 0:
            r = root(high.value).mid()
            if not r > 0:
                r = arb(2.0**-200)
            return high.times(1 / r).shifted(r).times(beta / 2)
        low = self.total(below, output, extra)
        a, b = (root(v + extra) for v in self.variance_range(output))
        a2 = square(a)
        if not a + b > 0:
            return Quadratic.constant(arb(0), len(self.cell.widths))
        return low.shifted(-a2).times(1 / (a + b)).shifted(a).times(beta)


def _form(matrix: arb_mat) -> Quadratic:
    """`(1, d)^T matrix (1, d)` as a quadratic."""
    f = matrix.nrows() - 1
    inner = (
        arb_mat([[matrix[1 + i, 1 + j] for j in range(f)] for i in range(f)])
        if f
        else arb_mat(0, 0)
    )
    slopes = [2 * matrix[0, 1 + j] for j in range(f)]
    return Quadratic(matrix[0, 0], slopes, inner * arb(2))
