"""BoTorch models: the contract of adapters, transforms of inputs and outcomes, several outputs."""

import warnings
from typing import ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters.libraries import BOTORCH as adapter
from gpcert.errors import ModelWarning, UnsupportedModelError
from gpcert.testing.adapter_contract import AdapterContract

torch = pytest.importorskip("torch")
models = pytest.importorskip("botorch.models")
inputs = pytest.importorskip("botorch.models.transforms.input")
outcomes = pytest.importorskip("botorch.models.transforms.outcome")
acquisition = pytest.importorskip("botorch.acquisition")
bases = pytest.importorskip("botorch.models.gpytorch")
kernels = pytest.importorskip("gpytorch.kernels")
means = pytest.importorskip("gpytorch.means")
likelihoods = pytest.importorskip("gpytorch.likelihoods")
distributions = pytest.importorskip("gpytorch.distributions")
gpytorch = pytest.importorskip("gpytorch.models")
saas = pytest.importorskip("botorch.models.map_saas")
pairwise = pytest.importorskip("botorch.models.pairwise_gp")
botorch_kernels = pytest.importorskip("botorch.models.kernels")

# features of very different sizes, far from 0: the units must come out right
X = torch.rand(14, 2, generator=torch.Generator().manual_seed(0)).double()
X = X * torch.tensor([10.0, 0.1]) + 5.0
Y = 100.0 * torch.sin(X.sum(1, keepdim=True)) + 30.0


def compared(**options):
    """Comparisons of ten points with each other."""
    pairs = torch.combinations(torch.arange(10))[::2]
    better = (Y[pairs[:, 0], 0] > Y[pairs[:, 1], 0])[:, None]
    return pairwise.PairwiseGP(X[:10], torch.where(better, pairs, pairs.flip(1)), **options).eval()


def single(targets=Y, dtype=torch.float64, inputs=X, kind=models.SingleTaskGP, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns of data that are not scaled
        return kind(inputs.to(dtype), targets.to(dtype), **options).eval()


def several(*lengths):
    each = [single(c * Y, input_transform=inputs.Normalize(2)) for c in range(1, 1 + len(lengths))]
    for model, length in zip(each, lengths, strict=True):
        model.covar_module.lengthscale = length
    return models.ModelListGP(*each).eval()


def chained(first, count):
    return outcomes.ChainedOutcomeTransform(first=first, then=outcomes.Standardize(count))


def warped(columns=(0, 1)):
    bounds = torch.stack([X.amin(0) - 0.1, X.amax(0) + 0.1])
    warp = inputs.Warp(d=2, indices=list(columns), bounds=bounds[:, list(columns)])
    model = single(input_transform=warp.double())
    warp._set_concentration(0, torch.linspace(0.6, 1.5, len(columns)))
    warp._set_concentration(1, torch.linspace(1.7, 0.5, len(columns)))
    return model


def categories(**options):
    """Two columns of numbers, two of categories."""
    random = np.random.default_rng(0)
    codes = torch.tensor(np.stack([random.integers(0, 3, 14), random.choice([2, 5], 14)], 1))
    codes[:5] = torch.tensor([[0, 2], [1, 2], [2, 5], [0, 5], [1, 5]])
    full = torch.cat([X[:, :1], codes.double(), X[:, 1:]], 1)
    model = single(
        inputs=full,
        kind=models.MixedSingleTaskGP,
        cat_dims=[1, 2],
        input_transform=inputs.Normalize(4, indices=[0, 3]),
        **options,
    )
    for name, parameter in model.covar_module.named_parameters():
        parameter.data += 0.3 * len(name) / 40.0
    return model


def variational(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = models.SingleTaskVariationalGP(X, Y, inducing_points=X[:5].clone(), **options)
    model = model.double()
    distribution = model.model.variational_strategy
    distribution = getattr(distribution, "base_variational_strategy", distribution)
    distribution.variational_params_initialized.fill_(1)
    for parameter in distribution._variational_distribution.parameters():
        parameter.data += (
            0.1 * torch.randn(parameter.shape, generator=torch.manual_seed(1)).double()
        )
    return model.eval()


class Derived(models.SingleTaskGP):
    """Predicts as its base class does."""


class Overriding(models.SingleTaskGP):
    """May predict anything."""

    def posterior(self, X, *args, **options):
        return super().posterior(X, *args, **options)


class Own(gpytorch.ExactGP, bases.GPyTorchModel):
    """A model of a user's own, as BoTorch's documentation writes one."""

    _num_outputs = 1

    def __init__(self, inputs, targets, **options):
        super().__init__(inputs, targets[:, 0], likelihoods.GaussianLikelihood())
        self.mean_module = means.ConstantMean()
        self.base_kernel = kernels.RBFKernel(ard_num_dims=2)  # an attribute besides
        self.covar_module = kernels.ScaleKernel(self.base_kernel)
        self.to(inputs)

    def forward(self, x):
        covariance = self.covar_module(x)
        return distributions.MultivariateNormal(self.mean_module(x), covariance)


class TestBoTorch(AdapterContract):
    adapter = adapter
    models: ClassVar = {
        "comparisons": compared,
        "scaled comparisons": lambda: compared(input_transform=inputs.Normalize(2)),
        "normalize": lambda: single(input_transform=inputs.Normalize(2)),
        "known noise": lambda: single(train_Yvar=0.1 + torch.rand(14, 1).double()),
        "linear mean": lambda: single(
            input_transform=inputs.Normalize(2), mean_module=means.LinearMean(2).double()
        ),
        "list": lambda: several(0.3, 0.3),
        "kernels of their own": lambda: several(0.3, 0.4),
        "derived": lambda: single(kind=Derived),
        "model of a user": lambda: single(kind=Own),
        "some features": lambda: single(
            inputs=torch.cat([X, X[:, :1] ** 2], 1),
            input_transform=inputs.ChainedInputTransform(
                scaled=inputs.Normalize(3), chosen=inputs.FilterFeatures(torch.tensor([2, 1]))
            ),
        ),
        "warped": warped,
        "warped, one feature": lambda: warped([1]),
        "logarithm": lambda: single(
            input_transform=inputs.ChainedInputTransform(
                log=inputs.Log10(indices=[0]), scaled=inputs.Normalize(2)
            )
        ),
        "whole numbers": lambda: single(input_transform=inputs.Round(integer_indices=[0])),
        "categories": categories,
        "ensemble": lambda: single(kind=saas.EnsembleMapSaasSingleTaskGP, num_taus=3),
        "variational": lambda: variational(outcome_transform=outcomes.Standardize(1)),
        "variational outputs": lambda: variational(num_outputs=2),
        "logarithms of outcomes": lambda: single(
            Y + 200.0, input_transform=inputs.Normalize(2), outcome_transform=outcomes.Log()
        ),
        "scaled logarithms": lambda: single(
            torch.cat([Y + 200.0, 500.0 - Y], 1), outcome_transform=chained(outcomes.Log(), 2)
        ),
        "two-sided logarithms": lambda: single(outcome_transform=chained(outcomes.Bilog(), 1)),
        "logarithms of a list": lambda: models.ModelListGP(
            *(single(Y + c, outcome_transform=chained(outcomes.Log(), 1)) for c in (200.0, 300.0))
        ).eval(),
        "scaled before": lambda: single(
            outcome_transform=outcomes.ChainedOutcomeTransform(
                scaled=outcomes.Standardize(1), log=outcomes.Bilog()
            )
        ),
    }
    refused: ClassVar = {
        "rounding": (
            lambda: single(input_transform=inputs.Round(integer_indices=[0], approximate=True)),
            "Round.approximate=True.*approximate=False",
        ),
        "one-hot": (
            lambda: single(input_transform=inputs.Round(categorical_features={0: 2})),
            "Round is supported without.*categorical_features",
        ),
        "comparisons": (
            lambda: compared(
                covar_module=kernels.ScaleKernel(kernels.ArcKernel(kernels.RBFKernel()))
            ),
            "ArcKernel",
        ),
        "power": (
            lambda: single(Y + 200.0, outcome_transform=outcomes.Power(0.5)),
            "outcome_transform: Power.*Standardize, .*Log",
        ),
        "means and logarithms": (
            lambda: models.ModelListGP(
                single(), single(Y + 200.0, outcome_transform=outcomes.Log())
            ).eval(),
            "ask about one model at a time",
        ),
        "derived": (lambda: single(kind=Overriding), "Overriding is not supported.*override"),
        "variational classes": (
            lambda: variational(likelihood=likelihoods.BernoulliLikelihood()),
            r"without its BernoulliLikelihood.*\(model.model, model.likelihood\)",
        ),
        "categories of a continuous kernel": (
            lambda: single(
                inputs=torch.cat([X, X[:, :1].round()], 1),
                covar_module=kernels.RBFKernel()
                * botorch_kernels.CategoricalKernel(active_dims=[2]),
            ),
            "RBFKernel: expected a kernel of inputs without categories.*active_dims",
        ),
    }


OPTIONS = {
    "no transform": {"outcome_transform": None},
    "some features": {"input_transform": inputs.Normalize(2, indices=[1])},
    "bounds": {
        "input_transform": inputs.Normalize(2, bounds=torch.tensor([[0.0, 5.0], [20.0, 6.0]]))
    },
    "chains": {
        "input_transform": inputs.ChainedInputTransform(
            first=inputs.Normalize(2), then=inputs.InputStandardize(2)
        ),
        "outcome_transform": outcomes.ChainedOutcomeTransform(
            first=outcomes.Standardize(1), then=outcomes.Standardize(1)
        ),
    },
    "linear mean": {"mean_module": means.LinearMean(2).double()},
    "linear mean of some features": {
        "input_transform": inputs.Normalize(2, indices=[1]),
        "mean_module": means.LinearMean(2, bias=False).double(),
    },
    "another kernel": {
        "input_transform": inputs.Normalize(2),
        "covar_module": kernels.ScaleKernel(kernels.MaternKernel(2.5, ard_num_dims=2)),
    },
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.filterwarnings("ignore")  # the library warns of data that are not scaled
def test_transforms_are_folded_into_the_units_of_the_user(name):
    measured = gpcert.adapters.agreement(single(**OPTIONS[name]))
    assert max(measured.mean, measured.variance) < 1e-8


def test_linear_means_of_several_outputs():
    mean = means.LinearMean(2, batch_shape=torch.Size([2])).double()
    model = single(torch.cat([Y, Y**2], 1), mean_module=mean)
    assert gpcert.as_posterior(model).slope.shape == (2, 2)
    measured = gpcert.adapters.agreement(model)
    assert max(measured.mean, measured.variance) < 1e-8


def test_several_outputs_share_their_points_or_not():
    together = gpcert.as_posterior(single(torch.cat([Y, Y**2], 1)))
    assert together.outputs == 2
    assert len(together.points) == len(X)
    apart = models.ModelListGP(single(), single(Y[:5], inputs=X[:5] + 0.01)).eval()
    assert len(gpcert.as_posterior(apart).points) == len(X) + 5


def test_outputs_with_kernels_of_their_own():
    model = single(torch.cat([Y, Y**2], 1))
    model.covar_module.lengthscale = torch.tensor([[[1.0, 2.0]], [[0.5, 3.0]]]).double()
    posterior = gpcert.as_posterior(model)
    assert isinstance(posterior, gpcert.SeparateOutputs)
    alone = gpcert.as_posterior(model.subset_output([1]).eval())
    assert alone.kernel.length_scale.tolist() == pytest.approx([0.5, 3.0])
    np.testing.assert_allclose(posterior.mean(X)[:, 1], alone.mean(X)[:, 0], rtol=1e-12)
    measured = gpcert.adapters.agreement(model)
    assert max(measured.mean, measured.variance) < 1e-8


def test_float32_and_training_mode():
    model = single(dtype=torch.float32, input_transform=inputs.Normalize(2))
    measured = gpcert.adapters.agreement(model)
    assert max(measured.mean, measured.variance) < 1e-8
    assert measured.native > 1e-9
    fresh = single(input_transform=inputs.Normalize(2))
    expected = gpcert.as_posterior(fresh).fingerprint
    fresh.train()
    with pytest.warns(ModelWarning, match="training mode"):
        assert gpcert.as_posterior(fresh).fingerprint == expected


def test_a_range_is_in_raw_units():
    model = single(input_transform=inputs.Normalize(2))
    region = gpcert.Box([6.0, 5.02], [6.5, 5.04])
    found = gpcert.prediction_range(model, region, tol=0.1)
    rows = np.random.default_rng(0).uniform(region.lower, region.upper, size=(500, 2))
    mean = model.posterior(torch.as_tensor(rows)).mean.detach().numpy()
    assert found.minimum.lower <= mean.min()
    assert mean.max() <= found.maximum.upper


def test_an_upper_confidence_bound_is_a_quantity_of_its_model():
    """BoTorch's `UpperConfidenceBound` is mean + sqrt(beta) std of the model it holds."""
    found = acquisition.UpperConfidenceBound(single(), beta=4.0)
    with pytest.raises(UnsupportedModelError, match=r"an acquisition function.*acquisition\.model"):
        gpcert.as_posterior(found)
    box = gpcert.Box(torch.tensor([[8.0, 5.01], [9.0, 5.05]]))
    bounds = gpcert.prediction_range(found.model, box, quantity="ucb", beta=2.0, tol=1.0)
    sample = torch.as_tensor(box.sample(300, 0))
    with torch.no_grad():
        values = found(sample[:, None]).numpy()
    assert bounds.minimum.lower <= values.min()
    assert values.max() <= bounds.maximum.upper
    limit = bounds.maximum.upper + 1.0
    cert = gpcert.certify(found.model, sample[0], region=box, quantity="ucb", threshold=limit)
    assert cert.robust
    assert "mean + 2 std below" in cert.rule
