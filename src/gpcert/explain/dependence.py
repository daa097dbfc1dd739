"""Which features a model looks at, read off its kernels."""

from __future__ import annotations

import numpy as np

from gpcert.committee import Model
from gpcert.posterior import Posterior


def features_seen(model: Model) -> np.ndarray:
    """(d,) mask: False where no kernel and no trend of the model depends on the feature.

    A prediction is a function of kernel values, of k(x, x) and of trends, so it cannot change there
    at all. Behind linear features, an input is seen if a feature is that depends on it.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import ActiveDimensions, SquaredExponential
    >>> kernel = ActiveDimensions(SquaredExponential(1.0), (0, 2))
    >>> features_seen(Posterior(kernel, [[0.0, 0.0, 0.0]], [1.0])).tolist()
    [True, False, True]
    """
    return np.any([_seen(member) for member in model.members], axis=0)


def _seen(member: Posterior) -> np.ndarray:
    found = member.kernel.features_seen(member.points.shape[1]) | np.any(member.slope, axis=0)
    return found if member.features is None else np.any(member.features.matrix[found], axis=0)
