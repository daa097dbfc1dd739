"""Phi and the mean excess as real balls: Tricomi's function where the definition cancels."""

from flint import arb


def _tricomi(a: arb, x: arb) -> arb:
    """`U(a, 1/2, x^2 / 2)`."""
    return (x * x / 2).hypgeom_u(a, arb(1) / 2)


def density(z: arb) -> arb:
    """`phi(z)`."""
    return (-z * z / 2).exp() / (2 * arb.pi()).sqrt()


def log_cdf(z: arb) -> arb:
    """`log Phi(z)`; `erfc(y) = exp(-y^2) U(1/2, 1/2, y^2) / sqrt(pi)`."""
    if z > -5:
        mass = (z / arb(2).sqrt()).erfc() / 2
        return (-mass).log1p()
    return -z * z / 2 - (2 * arb.pi().sqrt()).log() + _tricomi(arb(1) / 2, -z).log()


def log_psi(z: arb) -> arb:
    """`log(phi(z) + z Phi(z))`; `psi(-x) = phi(x) U(1, 1/2, x^2 / 2) / 2`."""
    if z > -5:
        return (density(z) + z * log_cdf(z).exp()).log()
    return -z * z / 2 - (2 * arb.pi()).log() / 2 + (_tricomi(arb(1), -z) / 2).log()


def log_excess(u: arb, v: arb) -> arb:
    """`log E max(f, 0)`, f ~ N(u, v), v > 0."""
    return v.log() / 2 + log_psi(u / v.sqrt())
