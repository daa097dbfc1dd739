"""Multi-task models of GPyTorch and BoTorch: every task is an output, as the library says."""

import warnings
from typing import ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters import agreement
from gpcert.adapters.libraries import BOTORCH, GPYTORCH
from gpcert.errors import ModelWarning
from gpcert.testing.adapter_contract import AdapterContract

torch = pytest.importorskip("torch")
gpytorch = pytest.importorskip("gpytorch")
gk, gl, gm = gpytorch.kernels, gpytorch.likelihoods, gpytorch.means

RANDOM = torch.Generator().manual_seed(0)
X = 2.0 * torch.rand(24, 2, generator=RANDOM).double()
TASKS = torch.randint(0, 3, (24, 1), generator=RANDOM)
y = torch.sin(3.0 * X.sum(1)) + 0.3 * TASKS[:, 0]


def moved(model):
    """Other parameters than those that a model starts with, as if it were trained."""
    random = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data += 0.4 * torch.randn(parameter.shape, generator=random).to(parameter).abs()
    return model.double().eval()


class Hadamard(gpytorch.models.ExactGP):
    def __init__(self, likelihood=None, mean=None, kernel=None):
        super().__init__((X, TASKS), y, likelihood or gl.GaussianLikelihood())
        self.mean_module = mean or gm.ConstantMean()
        self.covar_module = kernel or gk.ScaleKernel(gk.RBFKernel(ard_num_dims=2))
        self.task_covar_module = gk.IndexKernel(num_tasks=3, rank=2)

    def forward(self, x, i):
        covariance = self.covar_module(x).mul(self.task_covar_module(i))
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), covariance)


def lcm(rank=1):
    return gk.LCMKernel([gk.RBFKernel(ard_num_dims=2), gk.MaternKernel(1.5)], 3, rank=rank)


class Mixture(gpytorch.models.ApproximateGP):
    """Three tasks that are mixtures of two latent functions."""

    def __init__(self):
        gv, two = gpytorch.variational, torch.Size([2])
        strategy = gv.VariationalStrategy(
            self, X[:7], gv.CholeskyVariationalDistribution(7, batch_shape=two)
        )
        super().__init__(gv.LMCVariationalStrategy(strategy, 3, 2, latent_dim=-1))
        self.mean_module = gm.ConstantMean(batch_shape=two)
        self.covar_module = gk.RBFKernel(batch_shape=two)
        self.variational_strategy.base_variational_strategy.variational_params_initialized.fill_(1)
        self.variational_strategy.lmc_coefficients.data.copy_(
            torch.tensor([[1.0, -0.3, 0.5], [0.2, 0.9, -0.7]])
        )

    def forward(self, x):
        parts = self.mean_module(x), self.covar_module(x)
        return gpytorch.distributions.MultivariateNormal(*parts)


class Kronecker(gpytorch.models.ExactGP):
    def __init__(self, likelihood=None, kernel=None, mean=None, whole=None):
        targets = torch.stack([y, y**2, 1.0 - y], 1)
        super().__init__(X, targets, likelihood or gl.MultitaskGaussianLikelihood(3))
        self.mean_module = gm.MultitaskMean(mean or gm.ConstantMean(), 3)
        inner = kernel or gk.RBFKernel()
        self.covar_module = whole or gk.MultitaskKernel(inner, num_tasks=3, rank=2)

    def forward(self, x):
        parts = self.mean_module(x), self.covar_module(x)
        return gpytorch.distributions.MultitaskMultivariateNormal(*parts)


class Alone(Hadamard):
    """An index kernel without one of the inputs."""

    def __init__(self):
        super().__init__()
        del self.covar_module


class TestTasksOfGPyTorch(AdapterContract):
    adapter = GPYTORCH
    models: ClassVar = {
        "hadamard": lambda: moved(Hadamard()),
        "hadamard, known noise": lambda: moved(
            Hadamard(gl.FixedNoiseGaussianLikelihood(0.01 + 0.1 * torch.rand(24).double()))
        ),
        "hadamard, linear mean": lambda: moved(Hadamard(mean=gm.LinearMean(2))),
        "kronecker": lambda: moved(Kronecker()),
        "kronecker, coupled noise": lambda: moved(
            Kronecker(gl.MultitaskGaussianLikelihood(3, rank=2), gk.MaternKernel(1.5))
        ),
        "sum of terms": lambda: moved(Kronecker(whole=lcm())),
        "sum of terms, coupled noise": lambda: moved(
            Kronecker(gl.MultitaskGaussianLikelihood(3, rank=2), whole=lcm([2, 1]))
        ),
        "mixtures": lambda: (moved(Mixture()), gl.MultitaskGaussianLikelihood(3)),
        "kronecker, linear means": lambda: moved(Kronecker(mean=gm.LinearMean(2))),
    }
    refused: ClassVar = {
        "mixtures as classes": (
            lambda: (moved(Mixture()), gl.SoftmaxLikelihood(3, 3)),
            "LMCVariationalStrategy with SoftmaxLikelihood",
        ),
        "no kernel": (lambda: moved(Alone()), "expected a kernel of the inputs beside"),
        "likelihood": (
            lambda: moved(Hadamard(gl.MultitaskGaussianLikelihood(3))),
            "likelihood of a multi-task model: MultitaskGaussianLikelihood",
        ),
    }


def test_tasks_are_the_exact_joint_process():
    model = moved(Hadamard())
    posterior = gpcert.as_posterior(model)
    points = torch.rand(5, 2).double()
    B = model.task_covar_module._eval_covar_matrix().detach().numpy()
    numbers = TASKS[:, 0].numpy()
    K = model.covar_module(X).to_dense().detach().numpy() * B[np.ix_(numbers, numbers)]
    K += model.likelihood.noise.item() * np.eye(len(K))
    k = model.covar_module(points, X).to_dense().detach().numpy()
    m = model.mean_module.constant.item()
    for task in range(3):
        cross = k * B[task, numbers]
        mean = m + cross @ np.linalg.solve(K, y.numpy() - m)
        explained = np.sum(cross * np.linalg.solve(K, cross.T).T, axis=1)
        prior = B[task, task] * model.covar_module.outputscale.item()
        found = posterior.predict(points.numpy())
        np.testing.assert_allclose(found[0][:, task], mean, rtol=1e-9)
        np.testing.assert_allclose(found[1][:, task], prior - explained, rtol=1e-8)


botorch = pytest.importorskip("botorch.models")
inputs = pytest.importorskip("botorch.models.transforms.input")
outcomes = pytest.importorskip("botorch.models.transforms.outcome")

LABELS = torch.tensor([2, 5, 7])


def multitask(values=None, column=2, **options):
    numbers = TASKS if values is None else values[TASKS]
    full = torch.cat([X[:, :column], numbers.double(), X[:, column:]], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns of data that are not scaled
        return moved(botorch.MultiTaskGP(full, y[:, None], task_feature=column, **options))


def kronecker(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        targets = torch.stack([y, 5.0 * y**2 + 1.0], 1)
        return moved(botorch.KroneckerMultiTaskGP(X, targets, **options))


class TestTasksOfBoTorch(AdapterContract):
    adapter = BOTORCH
    models: ClassVar = {
        "tasks": multitask,
        "first column": lambda: multitask(
            column=0, input_transform=inputs.Normalize(3, indices=[1, 2])
        ),
        "labels": lambda: multitask(LABELS, output_tasks=[5, 2]),
        "stratified": lambda: multitask(
            LABELS, outcome_transform=outcomes.StratifiedStandardize(2, LABELS)
        ),
        "known noise": lambda: multitask(train_Yvar=0.1 + torch.rand(24, 1).double()),
        "linear mean": lambda: multitask(mean_module=gm.LinearMean(3).double()),
        "kernel": lambda: multitask(covar_module=gk.ScaleKernel(gk.MaternKernel(2.5))),
        "same noise for all": lambda: kronecker(
            likelihood=gl.MultitaskGaussianLikelihood(2, has_task_noise=False)
        ),
    }
    refused: ClassVar = {
        "task column": (
            lambda: multitask(
                input_transform=inputs.AffineInputTransform(
                    3, coefficient=torch.full((3,), 2.0), offset=torch.zeros(3)
                )
            ),
            "column 2, which holds the task, as it is",
        ),
        "sum": (
            lambda: summed(multitask()),
            "covar_module: expected the product of a kernel of the inputs and an IndexKernel",
        ),
    }


def summed(model):
    model.covar_module = model.covar_module + gk.RBFKernel(active_dims=[0]).double()
    return model


def test_noise_of_their_own_is_certified_exactly_and_the_library_said_to_differ():
    model = kronecker(
        input_transform=inputs.Normalize(2), outcome_transform=outcomes.Standardize(2)
    )
    measured = agreement(model)
    assert max(measured.mean, measured.variance) < 1e-8
    assert measured.native > 1e-3
    with pytest.warns(ModelWarning, match="inexact formula"):
        gpcert.as_posterior(model)
