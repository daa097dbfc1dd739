"""Probabilities `F(mu, V) = E link(mu + sqrt(V) t)`, t standard normal, from their definitions, and
the means at which they reach a level."""

from __future__ import annotations

from fractions import Fraction

from flint import acb, arb, ctx, fmpq

from gpcert_check.balls import total

LAMBDAS = "0.41", "0.4", "0.37", "0.44", "0.39"
COEFFICIENTS = "-1854.8214151", "3516.89893646", "221.29346712", "128.12323805", "-2010.49422654"
"""Of the link of scikit-learn's classifier; the real numbers are those of the nearest floats."""

STEPS = 30
NUDGES = 1e-12, 1e-9, 1e-6


def probit(mu: arb, variance: arb) -> arb:
    """Of the link Phi: `Phi(mu / sqrt(1 + V))`."""
    return (1 + (mu / (2 * (1 + variance)).sqrt()).erf()) / 2


def sklearn_logistic(mu: arb, variance: arb) -> arb:
    """`sum_i c_i Phi(mu / sqrt(1 / (2 L_i^2) + V))`."""
    parts = []
    for scale, weight in zip(map(float, LAMBDAS), map(float, COEFFICIENTS), strict=True):
        width = 1 / (arb(scale) * arb(scale)) + 2 * variance
        parts.append(arb(weight) * (1 + (mu / width.sqrt()).erf()) / 2)
    return total(parts)


def logistic(mu: arb, variance: arb) -> arb:
    """By an integral over [-T, T]; beyond lies at most `erfc(T / sqrt 2)`."""
    spread, reach = variance.sqrt(), arb(10)

    def density(t: acb, _: bool) -> acb:
        return (-t * t / 2).exp() / (1 + (-(acb(mu) + acb(spread) * t)).exp())

    with ctx.workprec(64):
        inside = acb.integral(density, acb(-reach), acb(reach), rel_tol=arb(2) ** -56).real
        return inside / (2 * arb.pi()).sqrt() + arb(0).union((reach / arb(2).sqrt()).erfc())


LINKS = {"probit": probit, "sklearn-logistic": sklearn_logistic, "logistic": logistic}


def mean_for(link: str, level: arb, low: arb, high: arb, side: int) -> arb | None:
    """A number m with `side F(m, V) >= side level` for all V in [low, high], near the best; F grows
    with m. None where none is found.

    Where m >= 0 F falls with V, where m <= 0 it grows: its ends are those of [low, high].
    """
    F, target = LINKS[link], float(level.mid())
    if not 0 < target < 1:
        return None
    ends = [_inverse(link, target, v.mid()) for v in (low, high)]
    start = max(ends) if side > 0 else min(ends)
    for nudge in NUDGES:
        m = arb(start + side * nudge * (1 + abs(start)))
        if all(side * (F(m, v) - level) >= 0 for v in (low, high)):
            return m
    return None


def _inverse(link: str, target: float, variance: arb) -> float:
    """About the mean where F is a level: the probit's first, then by secants."""
    z = float((arb(2).sqrt() * (2 * arb(target) - 1).erfinv()).mid())
    m = z * float(((1 if link == "probit" else 3) + variance).sqrt().mid())
    last, step = None, 1e-3 * (1 + abs(m))
    for _ in range(STEPS):
        value = float(LINKS[link](arb(m), variance).mid()) - target
        if last is not None and value != last[1]:
            step = -value * (m - last[0]) / (value - last[1])
        last, m = (m, value), m + step
        if not abs(step) > 1e-13 * (1 + abs(m)):
            break
    return m


def rational(number: Fraction) -> arb:
    """An exact rational number."""
    return arb(fmpq(number.numerator, number.denominator))
