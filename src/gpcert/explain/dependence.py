"""Which features a model looks at, read off its kernels."""

from __future__ import annotations

import numpy as np

from gpcert.committee import Model


def features_seen(model: Model) -> np.ndarray:
    """(d,) mask: False where no kernel of the model depends on the feature.

    A prediction is a function of kernel values and of k(x, x), so it cannot change there at all.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import ActiveDimensions, SquaredExponential
    >>> kernel = ActiveDimensions(SquaredExponential(1.0), (0, 2))
    >>> features_seen(Posterior(kernel, [[0.0, 0.0, 0.0]], [1.0])).tolist()
    [True, False, True]
    """
    masks = [member.kernel.features_seen(model.dim) for member in model.members]
    return np.any(masks, axis=0)
