"""Certify a variational GPyTorch classifier: can the label change near a point?"""

import gpytorch
import torch

import gpcert


class Classifier(gpytorch.models.ApproximateGP):
    """A sparse variational GP with a squared exponential kernel."""

    def __init__(self, inducing_points: torch.Tensor) -> None:
        q = gpytorch.variational.CholeskyVariationalDistribution(len(inducing_points))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing_points, q))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        """The prior."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


torch.manual_seed(0)
X = torch.randn(100, 2)
y = (X[:, 0] * X[:, 1] > 0).float()
model, likelihood = Classifier(X[:15]), gpytorch.likelihoods.BernoulliLikelihood()
objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(100):
    optimizer.zero_grad()
    loss = -objective(model(X), y)
    loss.backward()
    optimizer.step()
model.eval()

# the likelihood is no part of an ApproximateGP: it is given beside it
pair = (model, likelihood)
print(gpcert.certify(pair, X[0], radius=0.05))
print(gpcert.prediction_range(pair, gpcert.Ball(X[0], 0.05), tol=0.01))
print("the float32 model differs from the certified function by", gpcert.adapters.agreement(pair))
