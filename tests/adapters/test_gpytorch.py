"""GPyTorch models: the contract of adapters, every kernel, precision, caches and refusals."""

from typing import ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters.fingerprint import fingerprint
from gpcert.adapters.libraries import GPYTORCH as adapter
from gpcert.errors import InputError, ModelWarning, UnsupportedModelError
from gpcert.testing.adapter_contract import AdapterContract

torch = pytest.importorskip("torch")
gpytorch = pytest.importorskip("gpytorch")

gk, gl, gv = gpytorch.kernels, gpytorch.likelihoods, gpytorch.variational
TWO, THREE = torch.Size([2]), torch.Size([3])


class Exact(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood, kernel, mean):
        super().__init__(X, y, likelihood)
        self.mean_module, self.covar_module = mean, kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, strategy, distribution, kernel, tasks, Z, linear=False):
        batch = torch.Size([tasks]) if tasks else torch.Size([])
        q = strategy(self, Z, distribution(Z.shape[-2], batch_shape=batch))
        super().__init__(gv.IndependentMultitaskVariationalStrategy(q, tasks) if tasks else q)
        mean = gpytorch.means.LinearMean(2, batch) if linear else None
        self.mean_module = mean or gpytorch.means.ConstantMean(batch_shape=batch)
        self.covar_module = kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def moved(model, dtype):
    """Other parameters than those that a model starts with, as if it were trained."""
    random = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data += 0.4 * torch.randn(parameter.shape, generator=random).to(parameter)
    return model.to(dtype).eval()


def exact(kernel=None, mean=None, likelihood=None, dtype=torch.float64, N=20, d=2):
    random = torch.Generator().manual_seed(0)
    X = 2.0 * torch.rand(N, d, generator=random).to(dtype)
    likelihood = likelihood or gl.GaussianLikelihood()
    kernel = kernel or gk.ScaleKernel(gk.RBFKernel(ard_num_dims=d))
    mean = mean or gpytorch.means.ConstantMean()
    return moved(Exact(X, torch.sin(3.0 * X.sum(1)), likelihood, kernel, mean), dtype)


def variational(
    strategy=gv.VariationalStrategy,
    distribution=gv.CholeskyVariationalDistribution,
    kernel=None,
    tasks=0,
    dtype=torch.float64,
    shape=(7, 2),
    linear=False,
):
    Z = 3.0 * torch.rand(*shape, generator=torch.Generator().manual_seed(2))
    kernel = kernel or gk.ScaleKernel(gk.MaternKernel(1.5))
    model = Variational(strategy, distribution, kernel, tasks, Z, linear)
    model(Z[..., :2, :] + 0.1)  # the library sets q at the first call, with noise
    if "Natural" not in distribution.__name__:
        return moved(model, dtype)
    q = model.variational_strategy._variational_distribution
    q.natural_vec.data += torch.linspace(-1.0, 1.0, 7)
    return model.to(dtype).eval()


class Tasks(Exact):
    """A batch of kernels, one an output, as the library's tutorial makes it."""

    def forward(self, x):
        found = super().forward(x)
        return gpytorch.distributions.MultitaskMultivariateNormal.from_batch_mvn(found)


def tasks(rank=0, mean=None):
    random = torch.Generator().manual_seed(0)
    X = 2.0 * torch.rand(12, 2, generator=random).double()
    y = torch.stack([torch.sin(3.0 * X.sum(1)), X[:, 0] ** 2], 1)
    kernel = gk.ScaleKernel(gk.RBFKernel(ard_num_dims=2, batch_shape=TWO), batch_shape=TWO)
    mean = mean or gpytorch.means.ConstantMean(batch_shape=TWO)
    likelihood = gl.MultitaskGaussianLikelihood(num_tasks=2, rank=rank)
    return moved(Tasks(X, y, likelihood, kernel, mean), torch.float64)


def batch():
    random = torch.Generator().manual_seed(0)
    X = 2.0 * torch.rand(2, 12, 2, generator=random).double()
    likelihood = gl.GaussianLikelihood(batch_shape=TWO)
    kernel = gk.MaternKernel(2.5, batch_shape=TWO)
    mean = gpytorch.means.ConstantMean(batch_shape=TWO)
    return moved(Exact(X, torch.sin(X.sum(2)), likelihood, kernel, mean), torch.float64)


def softmax(tasks=3, **options):
    return variational(tasks=tasks, **options), gl.SoftmaxLikelihood(
        num_classes=tasks, mixing_weights=False
    )


def mixed(classes, features, **options):
    """More or fewer latent functions than classes."""
    likelihood = gl.SoftmaxLikelihood(num_features=features, num_classes=classes).double()
    random = torch.Generator().manual_seed(3)
    likelihood.mixing_weights.data = 2.0 * torch.randn(classes, features, generator=random).double()
    return variational(tasks=features, **options), likelihood


def labelled():
    model = variational()
    model.likelihood = gl.BernoulliLikelihood()
    return model


class Deep(Exact):
    """A kernel on what a network makes of the inputs."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.network = torch.nn.Linear(2, 2)

    def forward(self, x):
        return super().forward(self.network(x))


class Stretched(Exact):
    """What `forward` says is not what its parts say."""

    def forward(self, x):
        return super().forward(1.1 * x)


class Calling(Exact):
    def __call__(self, *inputs):
        return super().__call__(*inputs)


def like_exact(kind):
    model = exact()
    parts = (model.train_inputs[0], model.train_targets, model.likelihood)
    return kind(*parts, model.covar_module, model.mean_module).double().eval()


class TestGPyTorch(AdapterContract):
    adapter = adapter
    models: ClassVar = {
        "exact": exact,
        "fixed noise": lambda: exact(
            likelihood=gl.FixedNoiseGaussianLikelihood(0.01 + 0.1 * torch.rand(20)),
            mean=gpytorch.means.ZeroMean(),
        ),
        "linear mean": lambda: exact(mean=gpytorch.means.LinearMean(2)),
        "linear means of their own": lambda: tasks(mean=gpytorch.means.LinearMean(2, TWO)),
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
        "cosine": (lambda: exact(gk.CosineKernel()), "CosineKernel on 2.*positive definite"),
        "power": (lambda: exact(gk.PolynomialKernel(power=9)), "PolynomialKernel.*1 to 6"),
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
    from gpcert.adapters.gpytorch_kernels import TREE

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


def test_nan_is_refused():
    model = exact()
    model.train_targets[0] = float("nan")
    with pytest.raises(InputError, match="train_targets"):
        gpcert.as_posterior(model)


def test_the_model_is_left_as_it_was_and_the_conversion_kept():
    model = exact(dtype=torch.float32)
    before = fingerprint(model)
    first = gpcert.as_posterior(model)
    assert model.prediction_strategy is None
    assert before.same(fingerprint(model))
    model(torch.zeros(1, 2))  # fills the library's caches
    assert gpcert.as_posterior(model) is first
    model.covar_module.base_kernel.raw_lengthscale.data[0, 0] += 1e-6
    assert gpcert.as_posterior(model) is not first
    assert fingerprint(exact(gk.ScaleKernel(gk.RBFKernel(lengthscale_constraint=Odd())))) is None


class Odd(gpytorch.constraints.Positive):
    def __init__(self):
        super().__init__(transform=lambda x: x * x, inv_transform=torch.sqrt)


@pytest.mark.parametrize("own", [False, True], ids=["one kernel", "kernels of their own"])
def test_mixed_classes_are_those_that_the_likelihood_samples(own):
    """`likelihood(model(x))` averages over samples: equal up to their noise."""
    kernel = gk.RBFKernel(batch_shape=THREE) if own else None
    model, likelihood = mixed(4, 3, kernel=kernel)
    X = torch.rand(5, 2, generator=torch.Generator().manual_seed(5)).double()
    torch.manual_seed(0)
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(40_000):
        said = likelihood(model(X)).probs.mean(0).numpy()
    posterior = gpcert.as_posterior((model, likelihood))
    assert posterior.labels == (0, 1, 2, 3)
    np.testing.assert_allclose(posterior.prediction(X.numpy()), said, atol=0.01)
    region = gpcert.Ball(X[0].numpy(), 0.02)
    ranges = gpcert.prediction_ranges(posterior, region, budget=gpcert.Budget(boxes=60))
    p = posterior.prediction(region.sample(1000, 0))
    for c, found in enumerate(ranges):
        assert found.minimum.lower <= p[:, c].min() + 1e-7
        assert found.maximum.upper >= p[:, c].max() - 1e-7
        assert found.maximum.upper - found.minimum.lower < np.ptp(p[:, c]) + 0.1
    cert = gpcert.certify((model, likelihood), X[0].numpy(), 1e-3)
    assert cert.status.name == "ROBUST"
    assert cert.decision == int(np.argmax(p.mean(0)))
    latent = gpcert.prediction_range(posterior, region, quantity="mean", output=2, tol=0.1)
    mean = posterior.mean(region.sample(100, 1))[:, 2]
    assert latent.minimum.lower <= mean.min() <= mean.max() <= latent.maximum.upper


def test_mixed_and_separate_classes_are_saved_and_read_again(tmp_path):
    for kernel in (lambda: None, lambda: gk.RBFKernel(batch_shape=THREE)):
        posterior = gpcert.as_posterior(mixed(4, 3, kernel=kernel()))
        posterior.save(tmp_path / "model.npz")
        again = gpcert.load_model(tmp_path / "model.npz")
        assert type(again) is type(posterior)
        assert again.likelihood == posterior.likelihood
        assert again.fingerprint == posterior.fingerprint
        X = np.random.default_rng(0).uniform(size=(4, 2))
        np.testing.assert_array_equal(again.prediction(X), posterior.prediction(X))
        other = gpcert.as_posterior(softmax(kernel=kernel()))
        assert other.fingerprint != posterior.fingerprint


def test_classes_are_certified_by_their_labels():
    pair = softmax()
    cert = gpcert.certify(pair, [1.0, 1.0], 0.02, budget=gpcert.Budget(boxes=20))
    assert cert.decision in (0, 1, 2)
    found = gpcert.certify((variational(), gl.BernoulliLikelihood()), np.ones(2), 1e-3)
    assert found.status.name == "ROBUST"
