"""The picture of probabilities.md: `python docs/make_probability_picture.py`."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import gpcert

X = np.random.default_rng(0).uniform(-5.0, 5.0, (100, 2))
y = 3.0 + 0.1 * (X[:, 0] - X[:, 1]) ** 2 - np.abs(X.sum(axis=1)) / np.sqrt(2.0)
kernel = ConstantKernel(10.0) * RBF(2.0)
model = GaussianProcessRegressor(kernel, alpha=1e-6, optimizer=None, normalize_y=True).fit(X, y)
found = gpcert.failure_probability(model, [norm(0, 1), norm(0, 1)], threshold=0.0, paving=True)
figure = Figure(figsize=(7.0, 5.2), layout="constrained")
found.plot(figure.subplots())
figure.savefig(Path(__file__).parent / "pictures" / "probability.png", dpi=100)
