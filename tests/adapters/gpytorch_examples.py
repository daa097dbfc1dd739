"""GPyTorch models of the tests; whoever imports them is skipped where the library is missing."""

import pytest

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
    """A batch of kernels, one per output, as the library's tutorial makes it."""

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
