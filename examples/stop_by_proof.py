"""A Bayesian optimisation run that stops by proof: as soon as no point of the square can be better
than the best observed one by more than 0.02, by the model. Draws `stop_by_proof.png`."""

import numpy as np

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.models import GPRegressor


def objective(X: np.ndarray) -> np.ndarray:
    """Two hills; the higher one, of height 1, lies at (0.7, 0.6)."""
    hills = [((0.7, 0.6), 1.0), ((0.25, 0.3), 0.8)]
    return np.sum([h * np.exp(-30.0 * np.sum((X - c) ** 2, axis=-1)) for c, h in hills], axis=0)


SQUARE, WANTED = [(0.0, 1.0), (0.0, 1.0)], 0.02
X = np.random.default_rng(0).uniform(size=(5, 2))
counts, regrets = [], []
while True:
    y = objective(X)
    start = SquaredExponential([0.3, 0.3])
    model = GPRegressor(start, noise=1e-6, noise_bounds="fixed", normalize_y=True).fit(X, y)
    left = gpcert.regret_bound(model, SQUARE, beta=2.0, tol=0.01)
    counts.append(len(X))
    regrets.append(left.bound)
    print(f"{len(X)} evaluations: best {y.max():.3f}, regret at most {left.bound:.3f}")
    if left.bound <= WANTED or len(X) >= 40:
        break
    best = gpcert.maximize(model, SQUARE, "ucb", beta=2.0, tol=0.01)  # where to look next
    X = np.vstack([X, best.x])

print(f"stopped after {len(X)} evaluations at {X[y.argmax()].round(3).tolist()}")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install matplotlib")
else:
    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    ax = figure.subplots()
    ax.semilogy(counts, regrets, "o-", label="proved regret bound of the model")
    ax.semilogy(counts, [1.0 - objective(X[:n]).max() for n in counts], "s--", label="true regret")
    ax.axhline(WANTED, color="black", linewidth=0.8, label="wanted")
    ax.set(xlabel="evaluations", ylabel="regret")
    ax.legend(fontsize="small")
    figure.savefig("stop_by_proof.png", dpi=120)
