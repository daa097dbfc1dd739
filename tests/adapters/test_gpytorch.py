"""GPyTorch models: the contract of adapters, every kernel, precision, caches and refusals."""

import warnings
from typing import ClassVar

import pytest

import gpcert
from gpcert.adapters.conversion_cache import fingerprint
from gpcert.adapters.libraries import GPYTORCH as adapter
from gpcert.errors import InputError, ModelWarning, UnsupportedModelError
from gpcert.testing.adapter_contract import AdapterContract
from tests.adapters.gpytorch_examples import (
    THREE,
    TWO,
    Calling,
    Deep,
    Exact,
    Stretched,
    Variational,
    batch,
    exact,
    gk,
    gl,
    gpytorch,
    gv,
    labelled,
    like_exact,
    mixed,
    softmax,
    tasks,
    torch,
    variational,
)


class Odd(gpytorch.constraints.Positive):
    def __init__(self):
        super().__init__(transform=lambda x: x * x, inv_transform=torch.sqrt)


class Named(gk.RBFKernel):
    """The same function."""


class Squared(gk.RBFKernel):
    """Another function."""

    def forward(self, x1, x2, **options):
        return super().forward(x1, x2, **options) ** 2


def structured(name, kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # they leave GPyTorch in version 2
        return getattr(gk, f"{name}StructureKernel")(kernel, num_dims=2)


def with_attribute(kernel):
    """A model whose base kernel is an attribute besides."""
    model = exact(gk.ScaleKernel(kernel))
    model.base = kernel
    return model


def sparse(kernel=None, **options):
    likelihood = options.pop("likelihood", None) or gl.GaussianLikelihood()
    kernel = gk.ScaleKernel(gk.RBFKernel(ard_num_dims=2)) if kernel is None else kernel
    inducing = torch.rand(6, 2, generator=torch.Generator().manual_seed(3))
    kernel = gk.InducingPointKernel(kernel, inducing, likelihood)
    return exact(kernel, likelihood=likelihood, **options)


class TestGPyTorch(AdapterContract):
    adapter = adapter
    models: ClassVar = {
        "inducing points": sparse,
        "inducing points, linear mean": lambda: sparse(
            gk.MaternKernel(2.5), mean=gpytorch.means.LinearMean(2)
        ),
        "exact": exact,
        "fixed noise": lambda: exact(
            likelihood=gl.FixedNoiseGaussianLikelihood(0.01 + 0.1 * torch.rand(20)),
            mean=gpytorch.means.ZeroMean(),
        ),
        "linear mean": lambda: exact(mean=gpytorch.means.LinearMean(2)),
        "linear means of their own": lambda: tasks(mean=gpytorch.means.LinearMean(2, TWO)),
        "kernel inside another": lambda: with_attribute(gk.RBFKernel(ard_num_dims=2)),
        "kernel of a user": lambda: exact(Named()),
        "sum over features": lambda: exact(structured("Additive", gk.RBFKernel())),
        "product over features": lambda: exact(
            gk.ScaleKernel(structured("Product", gk.MaternKernel(1.5)))
        ),
        "several targets, one likelihood": lambda: (
            variational(kernel=gk.RBFKernel(), tasks=2),
            gl.MultitaskGaussianLikelihood(2),
        ),
        "heavy tails": lambda: (variational(), gl.StudentTLikelihood()),
        "latent": variational,
        "kernels of their own": tasks,
        "batch": batch,
        "list": lambda: gpytorch.models.IndependentModelList(
            exact(), exact(gk.MaternKernel(1.5), N=12)
        ).eval(),
        "latent functions of their own": lambda: variational(
            kernel=gk.RBFKernel(batch_shape=THREE), tasks=3
        ),
        "probit": lambda: (variational(), gl.BernoulliLikelihood()),
        "probit, linear mean": lambda: (variational(linear=True), gl.BernoulliLikelihood()),
        "softmax": lambda: softmax(
            kernel=gk.ScaleKernel(gk.RBFKernel(), batch_shape=THREE), shape=(3, 7, 2)
        ),
        "softmax, kernels of their own": lambda: softmax(kernel=gk.RBFKernel(batch_shape=THREE)),
        "softmax, mixed": lambda: mixed(4, 3),
        "softmax, mixed, kernels of their own": lambda: mixed(
            3, 2, kernel=gk.MaternKernel(2.5, batch_shape=TWO)
        ),
    }
    refused: ClassVar = {
        "kernel": (lambda: exact(gk.ArcKernel(gk.RBFKernel())), "ArcKernel.*RBFKernel.*Fit"),
        "subclass": (lambda: exact(gk.PiecewisePolynomialKernel()), "PiecewisePolynomialKernel"),
        "grid": (
            lambda: exact(gk.GridInterpolationKernel(gk.RBFKernel(), grid_size=8, num_dims=2)),
            "GridInterpolationKernel.*fit with that one, or an InducingPointKernel",
        ),
        "cosine": (lambda: exact(gk.CosineKernel()), "CosineKernel on 2.*positive definite"),
        "kernel of a user": (lambda: exact(Squared()), "Squared is not supported.*RBFKernel"),
        "power": (lambda: exact(gk.PolynomialKernel(power=13)), "PolynomialKernel.*1 to 12"),
        "mean": (
            lambda: exact(mean=gpytorch.means.LinearMeanGrad(2)),
            "LinearMeanGrad.*LinearMean.*less the mean",
        ),
        "likelihood": (lambda: (variational(), gl.BetaLikelihood()), "BetaLikelihood.*Bernoulli"),
        "features": (
            lambda: (variational(tasks=3), gl.SoftmaxLikelihood(num_features=2, num_classes=3)),
            "expected 3 features.*got 2",
        ),
        "classes": (
            lambda: (variational(tasks=3), gl.SoftmaxLikelihood(None, 4, mixing_weights=False)),
            "expected 3 features.*got 4",
        ),
        "coupled noise": (lambda: tasks(rank=1), "rank=0"),
        "list of others": (
            lambda: gpytorch.models.IndependentModelList(exact(), labelled()).eval(),
            "IndependentModelList: Variational",
        ),
        "network": (lambda: like_exact(Deep), "'network', a Linear with parameters"),
        "call": (lambda: like_exact(Calling), "Calling overrides __call__ of ExactGP"),
    }
    not_ready: ClassVar = {
        "no data": (
            lambda: Exact(None, None, gl.GaussianLikelihood(), gk.RBFKernel(), None).eval(),
            "set_train_data",
        ),
        "untrained": (
            lambda: Variational(
                gv.VariationalStrategy,
                gv.CholeskyVariationalDistribution,
                gk.RBFKernel(),
                0,
                torch.zeros(2, 2),
            ).eval(),
            "never set.*train the model",
        ),
    }


def test_the_table_names_the_kernels_of_the_code():
    from gpcert.adapters.gpytorch_prior import TREE

    assert TREE.names == adapter.KERNELS


LINEAR = {
    "float32": lambda: exact(mean=gpytorch.means.LinearMean(2), dtype=torch.float32),
    "without a bias": lambda: exact(mean=gpytorch.means.LinearMean(2, bias=False)),
    "not whitened": lambda: variational(gv.UnwhitenedVariationalStrategy, linear=True),
    "of every class": lambda: softmax(linear=True),
    "of every class, kernels up to a factor": lambda: softmax(
        linear=True, kernel=gk.ScaleKernel(gk.RBFKernel(), batch_shape=THREE), shape=(3, 7, 2)
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_means_are_the_librarys(name):
    model = LINEAR[name]()
    measured = gpcert.adapters.agreement(model)
    assert max(measured.mean, measured.variance) < 1e-8
    assert gpcert.as_posterior(model).members[0].has_trend


KERNELS = {
    "matern 1/2": lambda: gk.MaternKernel(0.5),
    "matern 5/2": lambda: gk.ScaleKernel(gk.MaternKernel(2.5, ard_num_dims=2)),
    "rational quadratic": lambda: gk.RQKernel(ard_num_dims=2),
    "periodic": gk.PeriodicKernel,
    "periodic, a period a feature": lambda: gk.PeriodicKernel(ard_num_dims=2),
    "linear": lambda: gk.LinearKernel(ard_num_dims=2) + gk.ConstantKernel(),
    "polynomial": lambda: gk.PolynomialKernel(power=3),
    "spectral mixture": lambda: gk.SpectralMixtureKernel(num_mixtures=3, ard_num_dims=2),
    "cosine": lambda: gk.CosineKernel(active_dims=(1,)) * gk.RBFKernel(),
    "active features": lambda: gk.ScaleKernel(
        gk.RBFKernel(active_dims=(1,)) + gk.LinearKernel(active_dims=(0,))
    ),
    "nested": lambda: gk.ScaleKernel(
        gk.ScaleKernel(gk.RBFKernel(active_dims=(1,))) + gk.RQKernel() * gk.MaternKernel(1.5)
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_the_librarys(name):
    measured = gpcert.adapters.agreement(exact(KERNELS[name]()))
    assert max(measured.mean, measured.variance) < 1e-8
    assert measured.native is None


DISTRIBUTIONS = (
    gv.CholeskyVariationalDistribution,
    gv.MeanFieldVariationalDistribution,
    gv.DeltaVariationalDistribution,
    gv.NaturalVariationalDistribution,
)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("strategy", [gv.VariationalStrategy, gv.UnwhitenedVariationalStrategy])
def test_every_variational_distribution(strategy, distribution):
    measured = gpcert.adapters.agreement(
        (variational(strategy, distribution), gl.BernoulliLikelihood())
    )
    assert max(measured.mean, measured.variance, measured.probability) < 1e-8


def test_the_precision_of_a_variational_model_may_be_indefinite():
    posterior = gpcert.as_posterior(variational())
    assert posterior.negative_factor.size
    assert posterior.noise[0] == pytest.approx(1e-6)  # jitter in k(x, x)


@pytest.mark.parametrize("build", [exact, variational], ids=["exact", "variational"])
def test_float32_is_the_float64_function_of_the_same_parameters(build):
    measured = gpcert.adapters.agreement(build(dtype=torch.float32))
    assert max(measured.mean, measured.variance) < 1e-8
    assert 1e-9 < measured.native < 1e-3


@pytest.mark.filterwarnings("ignore:CG terminated")
def test_where_the_library_solves_iteratively_the_exact_gp_is_certified_and_said_so():
    model = exact(N=150)
    assert gpcert.adapters.agreement(model).native is None
    model.likelihood.noise = 1e-3
    settings = gpytorch.settings  # BoTorch, once imported, sets others for the whole process
    with settings.fast_computations(), settings.max_cholesky_size(100):
        measured = gpcert.adapters.agreement(model)
        assert max(measured.mean, measured.variance) < 1e-8
        assert measured.native > 1e-3
        with pytest.warns(ModelWarning, match="iterative solves"):
            gpcert.as_posterior(model)


def test_a_native_difference_is_warned_of(monkeypatch):
    monkeypatch.setattr("gpcert.adapters.registry.NATIVE_TOLERANCE", 1e-12)
    with pytest.warns(ModelWarning, match=r"exact GP.*model\.double\(\)"):
        gpcert.as_posterior(exact(dtype=torch.float32))


def test_a_model_in_training_mode_is_switched_and_said_so():
    model = exact()
    expected = gpcert.as_posterior(model).fingerprint
    model.train()
    with pytest.warns(ModelWarning, match=r"training mode.*model\.eval\(\)"):
        assert gpcert.as_posterior(model).fingerprint == expected
    assert model.training


def test_a_forward_that_does_more_than_its_parts_is_refused():
    with pytest.raises(UnsupportedModelError, match="differ"):
        gpcert.as_posterior(like_exact(Stretched))


def test_errors_about_a_model_without_its_likelihood_name_the_pair():
    """A stranger's first call: a classifier's model without its likelihood is a regression."""
    model, likelihood = variational(), gl.BernoulliLikelihood()
    x = [0.5, 0.5]
    wrong = {
        "certify": lambda: gpcert.certify(model, x, 0.1),
        "radius": lambda: gpcert.certified_radius(model, x),
        "many": lambda: gpcert.certify_many(model, [x], 0.1),
        "weights": lambda: gpcert.certify(model, x, 0.1, class_weight=[1.0, 2.0]),
        "range": lambda: gpcert.prediction_range(model, x, 0.1, quantity="probability"),
        "accuracy": lambda: gpcert.certified_accuracy(model, [x], [1], [0.1]),
        "pixels": lambda: gpcert.explain.pixel_budget(model, x, radius=0.1),
        "gradient": lambda: gpcert.predict_gradient(model, [x], "probability"),
        "list": lambda: gpcert.certify([model, likelihood], x, 0.1),
        "swapped": lambda: gpcert.certify((likelihood, model), x, 0.1),
        "likelihood": lambda: gpcert.certify(likelihood, x, 0.1),
    }
    for name, call in wrong.items():
        with pytest.raises(InputError) as caught:
            call()
        assert "(model, likelihood)" in str(caught.value), name
    assert gpcert.certify((model, likelihood), x, 0.1).decision is not None
    # an exact regression has nothing to add
    with pytest.raises(InputError) as caught:
        gpcert.certify(exact(), x, 0.1)
    assert "(model, likelihood)" not in str(caught.value)


def test_nan_is_refused():
    model = exact()
    model.train_targets[0] = float("nan")
    with pytest.raises(InputError, match="train_targets"):
        gpcert.as_posterior(model)


def test_a_variational_model_is_kept_though_its_strategy_holds_it():
    model = variational()
    first = gpcert.as_posterior(model)
    assert gpcert.as_posterior(model) is first
    strategy = model.variational_strategy
    strategy._variational_distribution.variational_mean.data[3] += 1e-9
    second = gpcert.as_posterior(model)
    assert second is not first
    strategy._jitter_val = 1e-5
    assert gpcert.as_posterior(model) is not second


def test_jitter_that_is_set_for_all_models_is_noticed():
    model = variational()
    before = gpcert.as_posterior(model)
    with gpytorch.settings.variational_cholesky_jitter(double_value=1e-2):
        within = gpcert.as_posterior(model)
    assert (before.noise.item(), within.noise.item()) == (1e-6, 1e-2)
    assert gpcert.as_posterior(model).noise.item() == 1e-6


def test_the_model_is_left_as_it_was_and_the_conversion_kept():
    model = exact(dtype=torch.float32)
    before = fingerprint(model)
    first = gpcert.as_posterior(model)
    assert model.prediction_strategy is None
    assert before == fingerprint(model)
    model(torch.zeros(1, 2))  # fills the library's caches
    assert gpcert.as_posterior(model) is first
    model.covar_module.base_kernel.raw_lengthscale.data[0, 0] += 1e-6
    assert gpcert.as_posterior(model) is not first
    assert fingerprint(exact(gk.ScaleKernel(gk.RBFKernel(lengthscale_constraint=Odd())))) is None
