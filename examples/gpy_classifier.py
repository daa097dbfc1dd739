"""Certify a GPy classifier trained by expectation propagation."""

import GPy
import numpy as np

import gpcert

random = np.random.default_rng(0)
X = random.normal(size=(60, 2))
y = (X[:, :1] * X[:, 1:] > 0).astype(float)
model = GPy.models.GPClassification(X, y, GPy.kern.RBF(2, variance=4.0))

print(gpcert.certify(model, X[0], radius=0.05))
print(gpcert.certified_radius(model, X[0], budget=2))
