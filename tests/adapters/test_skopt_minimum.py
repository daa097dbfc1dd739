"""scikit-optimize's expected minimum, proved."""

import numpy as np
import pytest

from gpcert.errors import InputError

skopt = pytest.importorskip("skopt")
pytestmark = pytest.mark.filterwarnings("ignore")

from gpcert.skopt import certified_minimum, expected_minimum  # noqa: E402


def objective(x):
    return (x[0] - 0.3) ** 2 + np.sin(3 * x[1]) + np.log10(x[2]) ** 2 / 10


@pytest.fixture(scope="module")
def result():
    space = [(-2.0, 2.0), (-2.0, 2.0), skopt.space.Real(1e-3, 1e3, prior="log-uniform")]
    return skopt.gp_minimize(objective, space, n_calls=20, random_state=0)


def test_never_worse_than_local_searches(result):
    x, value = expected_minimum(result, tol=1e-4)
    theirs, least = skopt.expected_minimum(result, random_state=0)
    assert value <= least + 2e-4
    predicted = result.models[-1].predict(result.space.transform([x]))[0]
    assert abs(predicted - value) < 1e-6
    found = certified_minimum(result, tol=1e-4)
    X = np.random.default_rng(0).uniform(size=(5000, 3))
    assert result.models[-1].predict(X).min() >= found.bound - 1e-6
    assert len(x) == len(theirs)
    assert all(low <= v <= high for v, (low, high) in zip(x, result.space.bounds, strict=True))


def test_what_is_not_supported_says_so(result):
    space = [(0.0, 1.0), ["a", "b"]]
    mixed = skopt.gp_minimize(lambda x: x[0], space, n_calls=10, random_state=0)
    with pytest.raises(InputError, match="Categorical"):
        expected_minimum(mixed)
    forest = skopt.forest_minimize(objective, result.space, n_calls=11, random_state=0)
    with pytest.raises(InputError, match="Gaussian process"):
        expected_minimum(forest)
