"""BoTorch's own call with a proof: the same candidate where BoTorch finds the optimum."""

import warnings

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")
from botorch.acquisition import analytic, qLogExpectedImprovement  # noqa: E402
from botorch.models import SingleTaskGP  # noqa: E402
from botorch.optim import optimize_acqf as theirs  # noqa: E402

from gpcert.botorch import optimize_acqf, optimize_acqf_certified  # noqa: E402

BOUNDS = torch.stack([torch.zeros(2), torch.ones(2)]).double()


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    X = torch.rand(15, 2, dtype=torch.double)
    return SingleTaskGP(X, torch.sin(6 * X[:, :1]) * X[:, 1:]).eval()


FUNCTIONS = {
    "mean": lambda model, up: analytic.PosteriorMean(model, maximize=up),
    "std": lambda model, up: analytic.PosteriorStandardDeviation(model, maximize=up),
    "ucb": lambda model, up: analytic.UpperConfidenceBound(model, beta=0.3, maximize=up),
    "ei": lambda model, up: analytic.ExpectedImprovement(model, best_f=0.3, maximize=up),
    "log_ei": lambda model, up: analytic.LogExpectedImprovement(model, best_f=0.3, maximize=up),
    "pi": lambda model, up: analytic.ProbabilityOfImprovement(model, best_f=0.4, maximize=up),
    "log_pi": lambda model, up: analytic.LogProbabilityOfImprovement(
        model, best_f=0.4, maximize=up
    ),
}


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_never_worse_than_the_best_of_local_searches(model, name, up):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BoTorch advises against plain EI
        acquisition = FUNCTIONS[name](model, up)
    X, value = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=5, raw_samples=64, tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, best = theirs(acquisition, BOUNDS, q=1, num_restarts=5, raw_samples=64)
    assert X.shape == (1, 2)
    assert X.dtype == torch.double
    assert value.shape == best.shape
    assert float(value) >= float(best) - 2e-4
    found = optimize_acqf_certified(acquisition, BOUNDS, tol=1e-4)
    sign = -1.0 if name in ("mean", "std", "ucb") and not up else 1.0
    sample = torch.rand(500, 1, 2, dtype=torch.double)
    with torch.no_grad():
        assert float(acquisition(sample).max()) <= sign * found.bound + 1e-7
    assert abs(sign * found.value - float(value)) < 1e-6


def test_beta_is_a_square(model):
    """BoTorch's UCB multiplies the standard deviation by the root of beta."""
    acquisition = analytic.UpperConfidenceBound(model, beta=4.0)
    assert optimize_acqf_certified(acquisition, BOUNDS).beta == 2.0


def test_fixed_features(model):
    acquisition = analytic.PosteriorMean(model)
    X, _ = optimize_acqf(acquisition, BOUNDS, fixed_features={1: 0.25})
    assert float(X[0, 1]) == 0.25


def test_linear_constraints(model):
    """x_0 + x_1 >= 1.5 and x_0 == x_1, in BoTorch's form."""
    mean = analytic.PosteriorMean(model)
    both = torch.tensor([0, 1])
    more = (both, torch.tensor([1.0, 1.0]).double(), 1.5)
    alike = (both, torch.tensor([1.0, -1.0]).double(), 0.0)
    X, value = optimize_acqf(
        mean, BOUNDS, inequality_constraints=[more], equality_constraints=[alike], tol=1e-4
    )
    assert float(X.sum()) >= 1.5
    assert abs(float(X[0, 0] - X[0, 1])) < 1e-12
    line = torch.linspace(0.75, 1.0, 500, dtype=torch.double)[:, None, None].expand(-1, 1, 2)
    with torch.no_grad():
        assert float(value) >= float(mean(line).max()) - 2e-4


def test_what_is_not_supported_says_what_to_do(model):
    mean = analytic.PosteriorMean(model)
    with pytest.raises(InputError, match="one candidate"):
        optimize_acqf(mean, BOUNDS, q=2)
    with pytest.raises(InputError, match="random"):
        optimize_acqf(qLogExpectedImprovement(model, best_f=0.0), BOUNDS)
    with pytest.raises(InputError, match="post_processing_func"):
        optimize_acqf(mean, BOUNDS, post_processing_func=np.round)


def test_a_budget_that_ends_says_so(model):
    acquisition = analytic.UpperConfidenceBound(model, beta=4.0)
    with pytest.warns(gpcert.errors.BudgetWarning, match="within"):
        optimize_acqf(acquisition, BOUNDS, timeout_sec=1e-3, tol=0.0)
