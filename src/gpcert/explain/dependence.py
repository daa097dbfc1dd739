"""Which features a model looks at, read off its kernels."""

from __future__ import annotations

import numpy as np

from gpcert.committee import Model
from gpcert.kernels import ActiveDimensions, Constant, Kernel, White

__all__ = ["features_seen"]


def features_seen(model: Model) -> np.ndarray:
    """(d,) mask: False where no kernel of the model depends on the feature.

    A prediction is a function of kernel values and of k(x, x), so it cannot change there at all.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import SquaredExponential
    >>> kernel = ActiveDimensions(SquaredExponential(1.0), (0, 2))
    >>> features_seen(Posterior(kernel, [[0.0, 0.0, 0.0]], [1.0])).tolist()
    [True, False, True]
    """
    masks = [_seen(member.kernel, model.dim) for member in model.members]
    return np.any(masks, axis=0)


def _seen(kernel: Kernel, d: int) -> np.ndarray:
    if isinstance(kernel, ActiveDimensions):
        dimensions = np.asarray(kernel.dimensions)
        mask = np.zeros(d, dtype=bool)
        mask[dimensions] = _seen(kernel.kernel, len(dimensions))
        return mask
    if isinstance(kernel, Constant | White):
        return np.zeros(d, dtype=bool)
    parts = [
        each
        for part in vars(kernel).values()
        for each in (part if isinstance(part, tuple | list) else (part,))
        if isinstance(each, Kernel)
    ]
    if not parts:
        return np.ones(d, dtype=bool)
    return np.any([_seen(part, d) for part in parts], axis=0)
