"""A user's own link for two classes, by discretising the latent space (the paper's Section 6.2).

For `F(mu, v) = E link(f)`, f ~ N(mu, v), the link lies between two step functions that rise at cuts
a_1 < ... < a_L. So F lies between two sums of `P(f > a_l) = Phi((mu - a_l) / sqrt v)` with weights
>= 0: every summand is bounded exactly over a segment, as for the probit. With low_l the values of
the lower step function, this is never looser than the paper's sum over intervals: with
p_l = min P(f in [a_l, a_(l+1)]) over the range, `min P(f > a_l) >= sum_(m >= l) p_m`, and summation
by parts turns `sum_l (low_l - low_(l-1)) sum_(m >= l) p_m` into the paper's `sum_m low_m p_m`.

Proofs: docs/mathematics.md, statements 8.3 and 8.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.integrals.special import (
    gaussian_integral_range,
    normal_cdf,
    normal_cdf_bounds,
    normal_pdf,
    score,
)
from gpcert.likelihoods.base import ScalarLikelihood, check_latent, check_segment
from gpcert.likelihoods.probit import least_score
from gpcert.numerics.arrays import Array, Reals, finite_array, namespace
from gpcert.numerics.rounding import U, down, gamma, given, nonnegative, up
from gpcert.utils.processes import checkpoint

Link = Callable[[np.ndarray], np.ndarray]

WIDEST = 1e6
"""Latent values beyond this are not looked at: the link is taken as between its ends and 0 or 1."""

SMALLEST_JUMP = 1e-6
"""A rise between neighbouring floats that is a jump of the link and not its slope."""

VARIANCE_PIECES = 4
"""Pieces of the range of v: on each the summands' worst cases are nearly at one variance."""

LARGEST_CHUNK = 2.0e6
"""Scores (segments x pieces x cuts) held at once."""


@dataclass(frozen=True)
class Discretised(ScalarLikelihood):
    """Probability of the second class for a link of the user's own.

    Assumed of `link` (nothing else): it maps arrays of float64 elementwise, does not decrease, has
    values in [0, 1], and each is within `link_ulps` units of 2^-53 of the true one. `inverse` (its
    inverse function) only helps to place the cuts; without it they are found by bisection. `pieces`
    is the paper's M: enclosures are about 1/M wide, so a search's `tol` must be larger.

    The link need not be symmetric: decisions compare the probability, not the sign of the mean.
    Cannot be saved: a function is code.

    >>> from scipy.special import expit
    >>> like = Discretised(expit, pieces=200)
    >>> low, high = like.enclose(np.array([1.0]), np.array([2.0]))
    >>> bool(low[0] <= 0.6750567023 <= high[0]), bool(high[0] - low[0] < 0.006)
    (True, True)
    """

    link: Link
    inverse: Link | None = None
    pieces: int = 512
    link_ulps: float = 16.0

    name: ClassVar[str] = "discretised"
    classifies: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("link", "inverse"):
            function = getattr(self, name)
            if not callable(function) and (name == "link" or function is not None):
                raise InputError(f"{name}: expected a function of an array, got {function!r}")
        whole = isinstance(self.pieces, int | np.integer) and not isinstance(self.pieces, bool)
        if not (whole and 2 <= self.pieces <= 100_000):
            raise InputError(f"pieces: expected a whole number from 2 to 1e5, got {self.pieces!r}")
        ulps = float(finite_array("link_ulps", self.link_ulps, ndim=0))
        if not 0 <= ulps <= 1e9:
            raise InputError(f"link_ulps: expected a number from 0 to 1e9, got {self.link_ulps!r}")
        object.__setattr__(self, "pieces", int(self.pieces))
        object.__setattr__(self, "link_ulps", ulps)
        _ = self._steps  # a link that falls or leaves [0, 1] is refused here

    @cached_property
    def cuts(self) -> Annotated[np.ndarray, "M"]:
        """(L,) the paper's partition `b_l = link^-1(link(a_l) + 1/M)`, distinct and increasing."""
        levels = np.arange(1, self.pieces) / self.pieces
        if self.inverse is not None:
            with np.errstate(all="ignore"):
                places = _called("inverse", self.inverse, levels)
        else:
            places = self._bisected(levels)
        places = places[np.isfinite(places) & (np.abs(places) <= WIDEST)]
        cuts = np.unique(places)
        return cuts if len(cuts) else np.zeros(1)

    def _bisected(self, levels: np.ndarray) -> np.ndarray:
        low, high = np.full(len(levels), -WIDEST), np.full(len(levels), WIDEST)
        for _ in range(100):
            middle = 0.5 * (low + high)
            above = self._values(middle) >= levels
            high, low = np.where(above, middle, high), np.where(above, low, middle)
        # both sides of a jump: the step function above then jumps with the link
        jumps = self._values(high) - self._values(low) > SMALLEST_JUMP
        return np.concatenate([high, low[jumps]])

    def _values(self, f: np.ndarray) -> np.ndarray:
        values = _called("link", self.link, f)
        if values.shape != f.shape or not np.all((values >= 0.0) & (values <= 1.0)):
            raise InputError(
                "link: expected a function that maps an array to values in [0, 1] of the same "
                f"shape, got values from {np.min(values):.3g} to {np.max(values):.3g}"
            )
        return values

    @cached_property
    def _steps(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Rises (L,) of the step functions below and above the link, and the latter's first value.

        Gaps of floats round by U of them; the sums count that.
        """
        values = self._values(self.cuts)
        error = 2.0 * (self.link_ulps + 1.0) * U
        if np.any(np.diff(values) < -error):
            at = int(np.argmin(np.diff(values)))
            raise InputError(
                "link: expected a function that does not decrease, but it falls from "
                f"{values[at]:.6g} to {values[at + 1]:.6g} between {self.cuts[at]:.6g} and "
                f"{self.cuts[at + 1]:.6g}"
            )
        low = np.maximum.accumulate(np.maximum(values - error, 0.0))
        high = np.minimum.accumulate(np.minimum(values + error, 1.0)[::-1])[::-1]
        rises_low = np.diff(low, prepend=0.0)
        rises_high = np.diff(high, append=1.0)
        return rises_low, rises_high, float(high[0])

    def value(self, mu: Reals, v: Reals) -> Reals:
        """The mean of both step functions, in plain floating point: off by at most 1/(2 M)."""
        below, above, first = self._steps
        z = self._scores(mu, v)
        xp = namespace(z)
        weights = xp.asarray(0.5 * (below + above), device=z.device)
        return 0.5 * first + normal_cdf(z) @ weights

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Derivatives of that mean; v is raised to the cuts' spacing, below which it has jumps."""
        below, above, _ = self._steps
        spacing = float(np.median(np.diff(self.cuts))) if len(self.cuts) > 1 else 1.0
        xp = namespace(mu, v)
        mu, v = xp.broadcast_arrays(mu, v)
        v = v + spacing**2
        z = self._scores(mu, v)
        weights = xp.asarray(0.5 * (below + above), device=z.device)
        density = normal_pdf(xp.clip(z, -35.0, 35.0))
        by_mu = (density @ weights) / xp.sqrt(v)
        return by_mu, -((density * z) @ weights) / (2.0 * v)

    def _scores(self, mu: Array, v: Array) -> Array:
        xp = namespace(mu, v)
        mu, v = xp.broadcast_arrays(mu, v)
        cuts = xp.asarray(self.cuts, device=mu.device)
        tiny = xp.full_like(v, np.finfo(np.float64).tiny)
        root = xp.sqrt(xp.maximum(v, tiny))[..., None]
        return xp.clip((mu[..., None] - cuts) / root, -1e8, 1e8)

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """The step functions' expectations at one mean and variance."""
        mu, v = check_latent(mu, v)
        line = (mu, namespace(mu).zeros_like(mu), v, v)
        return self._bound(1.0, *line), self._bound(-1.0, *line)

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """On each piece of the range of v, the sum of the summands' exact minima on the line."""
        return self._bound(1.0, *check_segment(alpha, beta, v_low, v_high))

    def line_maximum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The same for the step function above; `link` need not be symmetric."""
        return self._bound(-1.0, *check_segment(alpha, beta, v_low, v_high))

    def interval_sum(self, mu: tuple[Reals, Reals], v: tuple[Reals, Reals]) -> tuple[Reals, Reals]:
        """The paper's own bound over ranges of mu and v: Lemma "Gaussian" on every interval.

        `sum_l link(a_l) min P(a_l < f < b_l)` and `sum_l link(b_l) max P(...)`, the outermost
        intervals bounded by what lies beyond the cuts. Kept as a reference: see the module.
        """
        xp = namespace(*mu)
        cuts = self.cuts
        below, above, first = self._steps
        low, high = np.cumsum(below), np.append(first, first + np.cumsum(above))
        low, high = np.maximum(low * (1.0 - gamma(2 * len(cuts))), 0.0), np.minimum(high, 1.0)
        left, right = (xp.asarray(part, device=mu[0].device) for part in (cuts[:-1], cuts[1:]))
        means = (mu[0][..., None], mu[1][..., None])
        spread = (v[0][..., None], v[1][..., None])
        least, most = gaussian_integral_range(left, right, means, spread)
        last, before = float(cuts[-1]), float(cuts[0])
        total_low = least @ xp.asarray(low[:-1], device=least.device)
        total_low = total_low + low[-1] * _least_above(mu[0], v, last)
        total_high = most @ xp.asarray(high[1:-1], device=most.device)
        total_high = total_high + high[0] * (1.0 - _least_above(mu[0], v, before))
        total_high = total_high + (1.0 - _least_above(-mu[1], v, -last))
        slack = gamma(4 * len(cuts) + 16)
        # the sum of greatest integrals may exceed 1 by far: its rounding is relative to it
        total_high = total_high * (1.0 + slack)
        return nonnegative(total_low - slack), xp.clip(total_high + slack, 0.0, 1.0)

    def _bound(self, side: float, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        """From below (side = 1), or from above: `P(f > a) = 1 - P(-f >= -a)`, minima of the
        reflected line, summed. In chunks."""
        xp, (below, above, _) = namespace(alpha), self._steps
        rises = below if side > 0 else above
        line = (side * alpha, side * beta, v_low, v_high)
        flat = [xp.reshape(part, (-1,)) for part in line]
        rows = max(1, int(LARGEST_CHUNK / (VARIANCE_PIECES * len(rises))))
        starts = range(0, flat[0].shape[0], rows)
        parts = [self._chunk(rises, [part[i : i + rows] for part in flat], side) for i in starts]
        total = xp.reshape(xp.concat(parts, axis=0) if parts else flat[0], alpha.shape)
        slack = gamma(2 * len(rises) + 16)
        # the first value and all rises add up to 1, so 1 - sum_l rise_l P(-f > -a_l) is above
        return nonnegative(total - slack) if side > 0 else xp.clip(1.0 - total + slack, 0.0, 1.0)

    def _chunk(self, rises: np.ndarray, line: list[Array], side: float) -> Array:
        """Least over the pieces of `sum_l rise_l min P(side f > side a_l)`."""
        checkpoint()
        xp = namespace(line[0])
        alpha, beta, v_low, v_high = (part[:, None, None] for part in line)
        cuts = xp.asarray(side * self.cuts, device=alpha.device)[None, None, :]
        steps = xp.asarray(np.arange(1, VARIANCE_PIECES) / VARIANCE_PIECES, device=alpha.device)
        inner = v_low + (v_high - v_low) * steps[None, :, None]
        inner = given(xp.minimum(xp.maximum(inner, v_low), v_high))  # pieces share their ends
        edges = xp.concat([v_low, inner, v_high], axis=1)
        gap = alpha - cuts
        ends = (edges[:, :-1, :], edges[:, 1:, :])
        least = least_score(down(gap, 1), up(gap, 1), beta + xp.zeros_like(gap), *ends)
        total = normal_cdf_bounds(least)[0] @ xp.asarray(rises, device=alpha.device)
        return xp.min(total, axis=1)

    def config(self) -> dict[str, Any]:
        """Refused: a function cannot be written to a file of numbers."""
        raise InputError(
            "a posterior with a Discretised likelihood cannot be saved: its link is a function; "
            "save it with likelihood=Probit() or Logistic(), and set the link again after loading"
        )

    def identity(self) -> dict[str, Any]:
        """The step functions: all that bounds are made from."""
        below, above, first = self._steps
        parts = (self.cuts, below, above, np.asarray(first))
        return {"steps": [part.tolist() for part in parts]}


def _called(name: str, function: Link, values: np.ndarray) -> np.ndarray:
    """What a user's function makes of an array, as numbers; NaN is left to the caller."""
    try:
        return np.array(function(values), dtype=np.float64, ndmin=1)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{name}: expected a function of an array, got {function!r}, which fails: {error}"
        ) from error


def _least_above(mu: Array, v: tuple[Array, Array], cut: float) -> Array:
    """Lower bound of `P(f > cut)` for means from mu upwards and both ends of a range of v."""
    first, second = (score(down(mu - cut, 1), w)[0] for w in v)
    return normal_cdf_bounds(namespace(mu).minimum(first, second))[0]
