"""A tinygp regression: how far can its mean move within a box?"""

import jax
import numpy as np
import tinygp

import gpcert

jax.config.update("jax_enable_x64", True)

random = np.random.default_rng(0)
X = random.uniform(-2.0, 2.0, size=(40, 2))
y = np.sin(2.0 * X[:, 0]) + X[:, 1]
kernel = 2.0 * tinygp.transforms.Linear(np.array([1.0, 0.6]), tinygp.kernels.ExpSquared())
model = tinygp.GaussianProcess(kernel, X, diag=0.01).condition(y).gp

region = gpcert.Box([0.2, 0.2], [0.4, 0.4])
print(gpcert.prediction_range(model, region))
print(gpcert.certify(model, [0.3, 0.3], 0.1, delta=0.5).status)
