"""Which of two classes is the likelier over a cell, without an integral over all classes: softmax.

For latent values f let `u = f_c - f_k` have mean mu and variance D, and for the other classes `h_j
= f_j - (f_c + f_k) / 2`, `Delta_j = cov(h_j, u) = (D_jk - D_jc) / 2`. Swapping c and k takes u to
-u, and only the Delta_j tell the law of f from the swapped one: with mu > 0,

    pi_c > pi_k   where   mu > Delta_j for all j.

So a decision is one of a latent mean and of covariances, which are small where the classes are
alike, and its bound is nearly as sharp as that of two classes.

Positive lower bounds of latent functions over a box come from smaller and smaller faces of it.
Where a slope of a function has one sign on the cell, it is positive on the cell if it is on one of
its faces. That is smaller, has a centre of its own, and on it the function is monotone in more
features: a few rounds lead to a face on which a quadratic model leaves next to nothing.

The covariance of a class with a difference of two others is one function over cells:

    Delta_j = cov(f_j - (f_c + f_k) / 2, f_c - f_k) = (D_jk - D_jc) / 2,

D the variances of differences: the priors cancel, and what is left is a quadratic form of kernel
values, `k(x, Z) W k(Z, x)`, small where each variance may be anything between 0 and the prior's. Of
kernels whose forms are not known nothing is said.

Proofs: docs/mathematics.md, statements 5.11, 6.8 and 10.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from gpcert.enclosures.classes.outputs import LatentOutputs, pair_model
from gpcert.enclosures.classes.pairs import PairBounds
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.local_posterior import LocalPosterior
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.kernels.expansions.base import Expansion, FormFunction, LocalKernel, QuadraticForms
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import EXP_ULPS, TINY, down, gamma, nonnegative, up, up_float
from gpcert.regions import Cells

ROUNDS = 12
"""Faces of faces that are looked at; mostly three or four do."""


def has_faces(latent: LatentOutputs) -> bool:
    """Whether faces are looked for: of one box, for functions of one squared exponential."""
    evaluation = latent.evaluation
    return (
        latent.together
        and len(latent.cells) == 1
        and latent.cells.is_box
        and latent.geometry.is_plain
        and isinstance(evaluation.local.kernel, QuadraticForms)
        and evaluation.local.trend is None
    )


def least_on_faces(
    latent: LatentOutputs, function: FormFunction, bound: Callable[[LatentOutputs], Array]
) -> PerCell:
    """A positive lower bound (1,) of the function over the one cell, or some number <= 0.

    `bound` gives certified lower bounds of it over cells. With omega the weight about a cell's
    centre and x' the point of the face below x, `omega f(x) >= omega f(x')`, so that f(x) is at
    least `f(x') exp(-rho2 / 2)`, if that is positive.
    """
    xp = namespace(latent.cells.lower)
    least, factor = bound(latent), xp.ones_like(latent.geometry.rho2)
    for _ in range(ROUNDS):
        if bool(least[0] > 0):
            break
        local, expansion = latent.evaluation.local, latent.evaluation.expansion
        assert isinstance(local.kernel, QuadraticForms)
        signs = local.kernel.monotone_signs(expansion, function)
        if not bool(xp.any(signs != 0)):
            break
        factor = down(factor * xp.exp(-0.5 * latent.geometry.rho2), EXP_ULPS + 8)
        latent = face_of(latent, signs)
        least = bound(latent)
    return xp.where(least > 0, down(least * factor, 2), least)


def face_of(latent: LatentOutputs, signs: Annotated[Array, "f"]) -> LatentOutputs:
    """The cell's lower end where a sign (f,) is positive, the upper one where it is negative."""
    xp, cells = namespace(signs), latent.cells
    lower = xp.where((signs < 0)[None], cells.upper, cells.lower)
    upper = xp.where((signs > 0)[None], cells.lower, cells.upper)
    evaluation = latent.evaluation
    face = Cells(cells.region, lower, upper, choice=cells.choice)
    return LatentOutputs(Evaluation(evaluation.members, face, portfolio=evaluation.portfolio))


MAX_POINTS, MAX_PRODUCTS = 1024, 2.0e8
"""Up to so many points the forms are made: four products of matrices (N, N) per cell. Of several
cells only up to so many times N^3."""


def form_norm(unit: UnitForm, W: Annotated[np.ndarray, "N N"]) -> float:
    """Upper bound of `sqrt(trace(W K W K))`, K the kernel at the points; infinite where that is no
    float."""
    K, errors = unit.gram
    N = len(K)
    with np.errstate(over="ignore", invalid="ignore"):
        X, size = W @ K, np.abs(W) @ (np.abs(K) + errors + TINY)
        off = gamma(2 * N + 8) * size + np.abs(W) @ (errors + TINY)
        square = np.sum(X * X.T)
        lost = np.sum(off * size.T) * 2.0 + gamma(N * N + 8) * np.sum(size * size.T)
        total = up_float(float(square + up_float(float(lost), 2 * N + 16)), 4)
    return up_float(math.sqrt(max(total, 0.0)), 2) if math.isfinite(total) else math.inf


def form_enclosures(
    kernel: LocalKernel,
    expansion: Expansion,
    W: Annotated[Array, "N N"],
    norm: float,
) -> tuple[QuadraticLowerModel, QuadraticLowerModel]:
    """Of `k W k` and of minus it, weighted by `omega^2`; see `QuadraticForms`."""
    assert isinstance(kernel, QuadraticForms)
    coefficients, error = kernel.form_polynomial(expansion, W, norm)
    geometry, rate = expansion.geometry, 2.0 * kernel.weight_rate
    negative = tuple(-each for each in coefficients)
    below = QuadraticLowerModel.of(geometry, coefficients, error, rate)
    return below, QuadraticLowerModel.of(geometry, negative, error, rate)


Terms = dict[int, float]
"""Outputs and coefficients of their variances."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """`low <= Delta <= high` (B,) on each cell; `-Delta` is at least minus `constant` (B,) and a
    function, `-k W k` with W (N, N), that is enclosed by `negative`."""

    negative: QuadraticLowerModel
    constant: Array
    low: Array
    high: Array
    W: Array


def covariance_of(pairs: PairBounds, pair: tuple[int, int], j: int) -> Covariance | None:
    """Delta_j of the pair (c, k); None where it is not known as a form."""
    (c, k), layout = pair, pairs.layout
    terms: Terms = {}
    for sign, first in ((0.5, k), (-0.5, c)):
        for output, factor in layout.covariance(first, j, j):
            terms[output] = terms.get(output, 0.0) + sign * factor
    return pairs.latent.once((layout, "covariance", c, k, j), lambda: _covariance(pairs, terms))


def _covariance(pairs: PairBounds, terms: Terms) -> Covariance | None:
    latent, layout = pairs.latent, pairs.layout
    if not latent.together or layout.rounding > 0:
        return None
    local, expansion = latent.evaluation.local, latent.evaluation.expansion
    kernel = local.kernel
    if not isinstance(kernel, QuadraticForms) or local.precisions is None:
        return None
    cells, N = expansion.K.shape
    if N > MAX_POINTS or (cells > 1 and cells * N**3 > MAX_PRODUCTS):
        return None
    xp = namespace(expansion.K)
    W, norm, off = latent.once(
        (layout, "form", tuple(sorted(terms.items()))), lambda: _form(local, terms)
    )
    if not math.isfinite(off):
        return None
    W = xp.asarray(W, device=expansion.K.device)
    below, above = form_enclosures(kernel, expansion, W, norm)
    # Delta = constant + k W k, up to: entries of W, variances cut at 0, semi-definite covariances
    units = {o: local.variance_units(o) for o in terms}
    prior = {o: units[o].factor * kernel.variance + units[o].shift for o in terms}
    constant = sum(c * prior[o] for o, c in terms.items())
    slack = gamma(8) * sum(abs(c) * prior[o] for o, c in terms.items())
    slack = slack + sum(abs(c) * latent.dip(o) for o, c in terms.items()) + 2.0 * pairs.raised
    slack = up_float(off + slack, 16)
    least, most = below.minimum().lower, -above.minimum().lower
    low, high = down(least + constant - slack, 4), up(most + constant + slack, 4)
    size = gamma(4) * (abs(least) + abs(most) + abs(constant))
    return Covariance(above, up(constant + slack + 0.0 * least, 2), low - size, high + size, W)


def _form(local: LocalPosterior, terms: Terms) -> tuple[np.ndarray, float, float]:
    """`W = -sum_o c_o factor_o S_o` (N, N), the form's norm, and what W's rounding is worth: with
    `|| |A| ||_2 <= size`, S is off by at most gamma size^2 in norm, and `|k(x)|^2 <= N s^4`; and
    what the factors are away from the training noise (`UnitForm.distances`)."""
    unit = local.unit
    N = len(unit.points)
    W = np.zeros((N, N))
    off = apart = 0.0
    for output, c in terms.items():
        index = output if unit.precision_count > 1 else 0
        factor = local.variance_units(output).factor
        W -= (c * factor) * unit.precisions[index]
        A, C = unit.factors_of(index)
        size, other = unit.factor_sizes[index]
        rounding = gamma(len(A) + len(C) + 2 * len(terms) + 16)
        off += abs(c * factor) * rounding * (size * size + other * other)
        apart += abs(c * factor) * unit.distances[index]
    W = 0.5 * (W + W.T)
    off = 1.01 * (off * N * local.kernel.variance**2 + apart * local.kernel.variance)
    key = tuple(sorted(terms.items()))
    if key not in unit.form_norms:
        unit.form_norms[key] = form_norm(unit, W)
    return W, unit.form_norms[key], off


MAX_CLASSES = 4
"""Up to so many faces are looked at: of ten digits they took a third more time for no gain."""

MIDDLE = 0.34
"""At most Phi(1) - Phi(0)."""


class Leader:
    """Class c against class k on a batch of cells."""

    def __init__(self, pairs: PairBounds, c: int, k: int) -> None:
        self.pairs, self.c, self.k = pairs, c, k
        self.latent, self.layout = pairs.latent, pairs.layout
        self.others = [j for j in range(pairs.layout.classes) if j not in (c, k)]

    def lower(self) -> PerCell:
        """(B,): a positive lower bound of `pi_c - pi_k`, or minus infinity."""
        c, k, latent = self.c, self.k, self.latent
        xp = namespace(latent.cells.lower)
        mu = self.ahead_by_faces(k)
        nothing = xp.full_like(mu, -math.inf)
        possible = mu > 0
        for j in self.others:  # a class that may be ahead of c decides otherwise: not worth it
            possible = possible & (self.ahead_by_faces(j) > 0)
        if not bool(xp.any(possible)):
            return nothing
        changes = [covariance_of(self.pairs, (c, k), j) for j in self.others]
        known = [change for change in changes if change is not None]
        if len(known) < len(changes):
            return nothing
        means = [self._most_of(j) for j in self.others]
        spreads = [self._spread(j) for j in self.others]
        q = mu
        for j, change in zip(self.others, known, strict=True):
            q = xp.minimum(q, self._less_by_faces(mu, change, j))
        proved = (mu > 0) & (q > 0)
        one = xp.ones_like(mu)
        mu, q = xp.where(proved, mu, one), xp.where(proved, q, one)
        lead = least_lead(mu, q, self.pairs.variance(c, k)[1], means, spreads)
        return xp.where(proved & (lead > 0), lead, nothing)

    def _mean_sum(
        self, first: int, second: int, factor: float = 1.0
    ) -> tuple[QuadraticLowerModel, Array]:
        """A model of `factor (mu_second - mu_first)` without its offset, and that offset."""
        return pair_model(self.latent, self.layout, (first, second), factor=factor)

    def ahead_of(self, k: int) -> PerCell:
        """Certified lower bound (B,) of the mean of `f_c - f_k`."""
        key = (self.layout, "ahead", self.c, k)
        return self.latent.once(key, lambda: self._least(*self._mean_sum(k, self.c)))

    @property
    def _by_faces(self) -> bool:
        """Whether faces are looked at: not of many classes, where the shares are what is loose."""
        return self.layout.classes <= MAX_CLASSES and has_faces(self.latent)

    def _on(self, latent: LatentOutputs) -> Leader:
        """The same classes on other cells."""
        return Leader(PairBounds(latent, self.layout, self.pairs.likelihood), self.c, self.k)

    def _mean_function(self, *terms: tuple[int, int, float]) -> FormFunction:
        """The sum of `factor (mu_second - mu_first)` over terms (first, second, factor)."""
        latent = self.latent
        local = latent.evaluation.local
        weights = sizes = namespace(local.weights[0]).zeros_like(local.weights[0])
        constant = 0.0
        for first, second, factor in terms:
            for j, c in self.layout.pair(first, second):
                units = latent.mean_units(j)
                part = (factor * c * units.factor) * local.weights[j]
                weights, sizes = weights + part, sizes + abs(part)
                constant = constant + abs(factor * c * units.shift)
        return FormFunction(weights, sizes, constant=up_float(float(constant), 16))

    def ahead_by_faces(self, k: int) -> PerCell:
        """`ahead_of`, or what its faces say where that is not positive."""
        ahead = self.ahead_of(k)
        if bool(ahead[0] > 0) or not self._by_faces:
            return ahead
        key = (self.layout, "ahead by faces", self.c, k)
        function = self._mean_function((k, self.c, 1.0))
        return self.latent.once(
            key,
            lambda: least_on_faces(
                self.latent, function, lambda latent: self._on(latent).ahead_of(k)
            ),
        )

    def _less_by_faces(self, mu: Array, change: Covariance, j: int) -> Array:
        """`_less`, or what its faces say where that is not positive; for positive mu alone."""
        least = self._less(mu, change)
        if bool(least[0] > 0) or not bool(mu[0] > 0) or not self._by_faces:
            return least
        mean = self._mean_function((self.k, self.c, 1.0))
        constant = up_float(mean.constant + abs(float(change.constant[0])), 4)
        function = replace(mean, W=change.W, constant=constant)

        def bound(latent: LatentOutputs) -> Array:
            leader = self._on(latent)
            there = covariance_of(leader.pairs, (self.c, self.k), j)
            assert there is not None, "known on larger cells"
            return leader._less(leader.ahead_of(self.k), there)

        return least_on_faces(self.latent, function, bound)

    @staticmethod
    def _least(model: QuadraticLowerModel, constant: Array) -> Array:
        """Certified lower bound (B,) of the model's function and a constant."""
        least = model.minimum().lower
        return down(least + constant - gamma(4) * (abs(least) + abs(constant)), 2)

    def _less(self, mu: Array, change: Covariance) -> Array:
        """Certified lower bound (B,) of `mu - Delta` on cells where mu, at least the number given,
        is positive."""
        model, constant = self._mean_sum(self.k, self.c)
        # an offset belongs to the mean, which is what is positive
        whole = model.shifted(constant).heavier(change.negative.rate, nonnegative(mu))
        return self._least(whole + change.negative, -change.constant)

    def _spread(self, j: int) -> Array:
        """Upper bound (B,) of the variance of h_j, `(D_jc + D_jk) / 2 - D_ck / 4`."""
        most = self.pairs.variance(self.c, j)[1] + self.pairs.variance(self.k, j)[1]
        least = self.pairs.variance(self.c, self.k)[0]
        return nonnegative(up(0.5 * most - 0.25 * least + gamma(8) * most, 4))

    def _most_of(self, j: int) -> Array:
        """Upper bound (B,) of the mean of h_j."""
        (model, constant), (other, offset) = (self._mean_sum(j, i, 0.5) for i in (self.c, self.k))
        size = abs(constant) + abs(offset)  # offsets may cancel
        return -self._least(model + other, constant + offset - gamma(8) * size)


def least_lead(
    mu: Array, q: Array, D: Array, means: Sequence[Array], variances: Sequence[Array]
) -> PerCell:
    """A lower bound (B,) of `pi_c - pi_k` for `mu - Delta_j >= q > 0`, mu > 0, D a bound of the
    variance of u, `means` and `variances` bounds m_j, H_j of those of h_j (Statement 10.15):

        0.34 tanh(mu/2) (1 - exp(-2 mu q / D)) / (1 + sum_j exp(m_j + sqrt H_j + H_j / 2) / 2).

    Exponents are below 710 and carry four roundings each, so that 4096 roundings cover all.
    """
    xp = namespace(mu)
    weight = xp.ones_like(mu)
    for mean, H in zip(means, variances, strict=True):
        weight = weight + 0.5 * xp.exp(mean + xp.sqrt(H) + 0.5 * H)
    gain = -xp.expm1(-2.0 * mu * q / xp.maximum(D, xp.full_like(mu, TINY)))
    return down(MIDDLE * xp.tanh(0.5 * mu) * gain / weight * (1.0 - gamma(4096)), 4)
