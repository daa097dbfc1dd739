"""What a likelihood says of itself is what its integrals do."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.likelihoods import LIKELIHOODS, ClassLikelihood

CLASSES = [kind for kind in LIKELIHOODS.values() if issubclass(kind, ClassLikelihood)]


@pytest.mark.parametrize("kind", CLASSES)
def test_moments_are_known_exactly_as_far_as_announced(kind):
    likelihood = kind()
    for m in range(2, likelihood.largest_coupled + 1):
        a, L = np.zeros((1, m - 1)), np.eye(m - 1)[None]
        found = likelihood.moments(a, L, likelihood.highest_order)
        assert found.value.shape == (1, m)
        assert len(found.derivatives) == likelihood.highest_order
        with pytest.raises(InputError):
            likelihood.moments(a, L, likelihood.highest_order + 1)
    n = likelihood.largest_coupled
    with pytest.raises(InputError):
        likelihood.moments(np.zeros((1, n)), np.eye(n)[None], 0)
