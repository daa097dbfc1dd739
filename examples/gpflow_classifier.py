"""Certify a sparse variational GPflow classifier: the number is the one that predict_y returns."""

import gpflow
import numpy as np

import gpcert

random = np.random.default_rng(0)
X = random.normal(size=(60, 2))
y = (X[:, :1] * X[:, 1:] > 0).astype(float)
model = gpflow.models.SVGP(
    gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Bernoulli(), X[:15], num_data=60
)
loss = model.training_loss_closure((X, y))
gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options={"maxiter": 20})

print(gpcert.certify(model, X[0], radius=0.05))
print(gpcert.prediction_range(model, gpcert.Ball(X[0], 0.05), tol=0.01))
