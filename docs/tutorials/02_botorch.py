"""
A BoTorch run that stops by proof
=================================

Bayesian optimisation ends when the budget ends, or when nothing has happened for a while. With
bounds that are proved it ends when nothing can happen any more: no point of the domain can be
better than the best one by more than it is worth, by the model. Afterwards the same model says how
exactly the best settings must be kept.

Branin's function of two variables, whose least value is 0.398 at three places.
"""

# %%
# The run
# -------
# A `SingleTaskGP` with BoTorch's defaults is fitted to the evaluations. The next point is the
# maximum of the upper confidence bound, which `gpcert.botorch.optimize_acqf` finds with a proof: a
# local search can miss it. `regret_bound` is the proved maximum of the upper confidence bound less
# the best lower confidence bound of the points that were evaluated. If the function lies between
# its confidence bounds no point is better by more.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

import gpcert
from gpcert.botorch import optimize_acqf

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)


def objective(points: torch.Tensor) -> torch.Tensor:
    """Minus Branin's function on the unit square."""
    x, y = 15.0 * points[..., 0] - 5.0, 15.0 * points[..., 1]
    parabola = y - 5.1 / (4.0 * np.pi**2) * x**2 + 5.0 / np.pi * x - 6.0
    return -(parabola**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * torch.cos(x) + 10.0)


def fitted(X: torch.Tensor, Y: torch.Tensor) -> SingleTaskGP:
    """BoTorch's default model."""
    model = SingleTaskGP(X, Y[:, None], torch.full_like(Y[:, None], 1e-4))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


SQUARE, WANTED, BETA = torch.tensor([[0.0, 0.0], [1.0, 1.0]]), 1.0, 2.0
X = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(8).double()
counts, bounds, regrets = [], [], []
while True:
    Y = objective(X)
    model = fitted(X, Y)
    left = gpcert.regret_bound(model, SQUARE, beta=BETA, tol=0.1, progress=False)
    counts.append(len(X))
    bounds.append(left.bound)
    regrets.append(float(-0.397887 - Y.max()))
    if left.bound <= WANTED or len(X) >= 40:
        break
    candidate, _ = optimize_acqf(UpperConfidenceBound(model, beta=BETA**2), SQUARE)
    X = torch.cat([X, candidate])

print(f"stopped after {len(X)} evaluations; the best value is {Y.max():.4f}")
print(left)

# %%
# Regret against evaluations
# --------------------------
# The true regret is what nobody knows in a real run. The bound is a statement about the model:
# while a model is wrong its bound may lie below the true regret. This run ends at the right moment.

figure, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
ax.semilogy(counts, bounds, "o-", label="proved bound, by the model")
ax.semilogy(counts, np.maximum(regrets, 1e-5), "s--", label="true regret")
ax.axhline(WANTED, color="black", linewidth=0.8, label="wanted")
ax.set(xlabel="evaluations", ylabel="regret")
ax.legend(fontsize="small")
plt.show()

# %%
# The recommended settings
# ------------------------
# The point with the best posterior mean, to within the tolerance, and how much better any other
# point can be.

chosen = gpcert.recommend(model, SQUARE, beta=BETA, tol=0.05, progress=False)
print(chosen)

# %%
# Tolerances around it
# --------------------
# How far may both settings move so that the predicted value stays within 2 of the best? The radius
# is proved for every point of the square around the settings.

best = gpcert.maximize(model, SQUARE, tol=0.01, progress=False)
print(best)
level = best.value - 2.0


def holds(radius: float) -> bool:
    """Whether the mean is at least the level in the whole square of this radius."""
    low, high = np.clip(best.x - radius, 0.0, 1.0), np.clip(best.x + radius, 0.0, 1.0)
    around = gpcert.minimize(model, gpcert.Box(low, high), tol=0.01, progress=False)
    return around.bound >= level


inner, outer = 0.0, 0.5
while outer - inner > 0.002:
    middle = 0.5 * (inner + outer)
    inner, outer = (middle, outer) if holds(middle) else (inner, middle)
print(f"each setting may move by {inner:.3f} (of the width of its range)")

# %%
# Every place that may be as good
# -------------------------------
# `keep="all"` returns the boxes that the search could not exclude: outside of them no point is as
# good as the returned one, by the mean. They are red in the picture; the tolerances are white.

kept = gpcert.maximize(model, SQUARE, tol=0.01, keep="all", progress=False).kept
grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 101)] * 2), axis=-1)
with torch.no_grad():
    mean = model.posterior(torch.as_tensor(grid.reshape(-1, 2))).mean.numpy().reshape(101, 101)
figure, ax = plt.subplots(figsize=(5.0, 4.2), layout="constrained")
lines = ax.contourf(grid[..., 0], grid[..., 1], np.maximum(mean, -60.0), levels=20)
figure.colorbar(lines, label="posterior mean")
for low, high in kept:
    ax.add_patch(plt.Rectangle(low, *(high - low), fill=False, edgecolor="red"))
ax.plot(*X.numpy().T, "w.", markersize=5)
low, high = best.x - inner, best.x + inner
ax.add_patch(plt.Rectangle(low, *(high - low), fill=False, edgecolor="white"))
ax.set(xlabel="first setting", ylabel="second setting", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
plt.show()
