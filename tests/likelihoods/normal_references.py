"""Normal densities, their derivatives and integrals of them in ball arithmetic."""

import numpy as np
from flint import acb, arb

END = arb(16)
"""The references leave out what lies beyond 16 standard deviations: less than 1e-50."""

DIFFERENCES = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
"""Of three latent values from the first."""


def cdf(z):
    return (-z / acb(2).sqrt()).erfc() / 2


def density(z):
    return (-z * z / 2).exp() / (2 * acb.pi()).sqrt()


def hermite(i, u):
    return (1, u, u * u - 1, u**3 - 3 * u, u**4 - 6 * u * u + 3)[i]


def integral(function, low, high):
    if not low < high:
        return arb(0, 1e-50)
    total = acb.integral(function, low, high, rel_tol=1e-26, abs_tol=1e-26).real
    assert total.rad() < 1e-20
    return total + arb(0, 1e-50)
