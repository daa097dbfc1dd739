"""Models on a GPU are moved by us: GPyTorch and BoTorch. Skipped where there is no CUDA device."""

import numpy as np
import pytest

import gpcert

torch = pytest.importorskip("torch")
gpytorch = pytest.importorskip("gpytorch")
models = pytest.importorskip("botorch.models")
transforms = pytest.importorskip("botorch.models.transforms.input")

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("ignore"),
]

X = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
Y = torch.sin(4.0 * X.sum(1, keepdim=True))


class Exact(gpytorch.models.ExactGP):
    def __init__(self, X, y):
        super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, Z):
        q = gpytorch.variational.CholeskyVariationalDistribution(len(Z))
        super().__init__(gpytorch.variational.VariationalStrategy(self, Z, q))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.MaternKernel(2.5)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def exact():
    return Exact(X, Y[:, 0]).double().eval()


def variational():
    model = Variational(X[:7].clone()).double().eval()
    model(X[:2])  # the library sets q at the first call
    return model, gpytorch.likelihoods.BernoulliLikelihood()


def several():
    each = [models.SingleTaskGP(X, c * Y, input_transform=transforms.Normalize(2)) for c in (1, 2)]
    each[1].covar_module.lengthscale = 0.3
    return models.ModelListGP(*each).eval()


@pytest.mark.parametrize("build", [exact, variational, several])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_model_on_the_gpu_is_read_like_the_same_one_on_the_cpu(build, dtype):
    def parts(model):
        return model if isinstance(model, tuple) else (model,)

    model = build()
    for part in parts(model):
        part.to(dtype=getattr(torch, dtype))
    before = gpcert.as_posterior(model)
    for part in parts(model):
        part.cuda()
    tensors = [tensor for part in parts(model) for tensor in part.parameters()]
    assert all(tensor.is_cuda for tensor in tensors)
    assert gpcert.as_posterior(model).fingerprint == before.fingerprint
    measured = gpcert.adapters.agreement(model)
    assert measured.native is not None
    assert measured.native < 1e-3
    found = gpcert.prediction_range(model, gpcert.Ball(np.full(2, 0.5), 0.05), tol=0.05)
    assert found.minimum.lower <= found.maximum.upper
    assert all(tensor.is_cuda for tensor in tensors), "the user's model stays where it was"
