"""Where training starts: a kernel in the units of the data.

The evidence has several maxima, and which one L-BFGS-B reaches depends on where it starts. A kernel
with parameters of 1 fits data of unit spread in few dimensions; `kernel_at_data_scale` fits any.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpcert import kernels as k
from gpcert.kernels import Kernel
from gpcert.models.kernel_gradients import rule_of

SIZES = ("variance", "variances", "weights")
"""Fields of elementary kernels that the covariance is proportional to."""

MOST_INPUTS = 500
"""Inputs over which the mean of k(x, x) is taken."""


def kernel_at_data_scale(kernel: Kernel, X: np.ndarray, variance: float | None = None) -> Kernel:
    """The kernel with length-scales of `sqrt(d)` standard deviations of the features it sees.

    A typical pair of points then has a covariance near `exp(-1) k(x, x)`, whatever the units and
    the dimension, and the evidence has a slope to follow. One length-scale for all features gets
    their root mean square; a feature that never varies counts as of spread 1; kernels without
    length-scales in units of the inputs stay as they are. `variance`: what the mean of k(x, x) over
    the inputs is scaled to (None: it stays).

    >>> X = np.array([[0.0, 0.0], [2.0, 20.0]])
    >>> kernel_at_data_scale(k.SquaredExponential([1.0, 1.0]), X).length_scale.round(3).tolist()
    [1.414, 14.142]
    """
    scaled = _with_length_scales(kernel, X)
    if variance is None:
        return scaled
    mean = float(np.mean(np.diag(scaled.training_covariance(X[:MOST_INPUTS]))))
    usable = np.isfinite(mean) and mean > 0.0 and variance > 0.0
    return _times(scaled, variance / mean) if usable else scaled


def _with_length_scales(kernel: Any, X: np.ndarray) -> Any:
    if kernel.parts:
        inputs = X[:, kernel.dimensions] if type(kernel) is k.ActiveDimensions else X
        return kernel.with_parts(tuple(_with_length_scales(part, inputs) for part in kernel.parts))
    if not kernel.radial:
        return kernel
    spread = X.std(axis=0)
    lengths = np.sqrt(X.shape[1]) * np.where(spread > 0.0, spread, 1.0)
    if np.ndim(kernel.length_scale) == 0:
        return replace(kernel, length_scale=float(np.sqrt(np.mean(lengths**2))))
    return replace(kernel, length_scale=lengths)


def _times(kernel: Any, factor: float) -> Any:
    """`factor` times the kernel, with the same parameters in the same places."""
    if type(kernel) is k.Scale:
        return replace(kernel, factor=kernel.factor * factor)
    if kernel.parts:
        every = type(kernel) is k.Sum
        parts = (_times(p, factor) if every or i == 0 else p for i, p in enumerate(kernel.parts))
        return kernel.with_parts(tuple(parts))
    if type(kernel) is k.Polynomial:  # a power of the sum of its terms
        return kernel
    names = [name for name in rule_of(kernel).fields if name in SIZES]
    values = {name: np.asarray(getattr(kernel, name)) * factor for name in names}
    changes = {name: value if value.ndim else float(value) for name, value in values.items()}
    return replace(kernel, **changes)
