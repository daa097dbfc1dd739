"""A GPJax classifier with a Bernoulli likelihood: is its decision the same around a point?"""

import gpjax as gpx
import jax
import jax.numpy as jnp
import numpy as np

import gpcert

jax.config.update("jax_enable_x64", True)

random = np.random.default_rng(0)
X = random.uniform(-2.0, 2.0, size=(30, 2))
y = (X[:, :1] + X[:, 1:] ** 2 > 0.5).astype(float)
data = gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray(y))
prior = gpx.gps.Prior(kernel=gpx.kernels.RBF(), mean_function=gpx.mean_functions.Zero())
# the latent vector is what gpx.fit optimises; here the labels stand for a trained one
latent = jnp.asarray(2.0 * y - 1.0)
model = gpx.gps.NonConjugateModel(prior, gpx.likelihoods.Bernoulli(), latent=latent)

posterior = model.condition(data)
print(gpcert.certify(posterior, X[0], 0.05))
print(gpcert.prediction_range(posterior, gpcert.Ball(X[0], 0.05)))
