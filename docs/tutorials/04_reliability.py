"""
How probable is failure? A surrogate of a structure
===================================================

A beam fails where its load exceeds its capacity. A simulation is expensive, so a Gaussian process
was fitted to a hundred runs. How probable is failure when the inputs vary, how much of that is the
surrogate's own uncertainty, and where must the inputs lie for the design to be safe?
"""

# %%
# The surrogate
# -------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import gumbel_r, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import gpcert

rng = np.random.default_rng(0)
strength, load = rng.uniform(20.0, 60.0, 100), rng.uniform(2.0, 12.0, 100)
margin = 1.2 * strength**0.8 - 0.9 * load - 0.02 * load**2
X = np.stack([strength, load], axis=1)
kernel = ConstantKernel(300.0) * RBF([20.0, 6.0])
model = GaussianProcessRegressor(kernel, alpha=1e-4, normalize_y=True).fit(X, margin)

# %%
# The probability of failure
# --------------------------
# The strength is normal, the yearly maximum of the load follows Gumbel's law. Failure is a margin
# below 8. The bounds are proved for this surrogate, tails included: nothing is sampled.

laws = [norm(40.0, 4.0), gumbel_r(4.0, 0.8)]
failure = gpcert.failure_probability(model, laws, 8.0, paving=True)
print(failure)

# %%
# A hundred thousand samples, for comparison:

samples = np.stack([law.rvs(size=100_000, random_state=1) for law in laws], axis=1)
print(f"share of samples below 8: {(model.predict(samples) < 8.0).mean():.5f}")

# %%
# The region of failure, darker where the inputs are denser:

failure.plot()
plt.show()

# %%
# What the surrogate does not know
# --------------------------------
# Failure of a target drawn from the model's distribution, and of both ends of a band:

for quantity in ("prediction", "lcb", "ucb"):
    found = gpcert.failure_probability(model, laws, 8.0, quantity=quantity, rtol=0.05)
    print(f"{quantity:>10}: between {found.lower:.5f} and {found.upper:.5f}")

# %%
# The mean margin, and the margin that is exceeded in 99 % of the years:

print(gpcert.expectation(model, laws))
print(gpcert.quantile(model, laws, 0.01, tol=0.05))

# %%
# Where the design is safe
# ------------------------
# The inputs for which the margin, less two standard deviations, is at least 8; and the largest box
# of tolerances within.

domain = [(20.0, 60.0), (2.0, 12.0)]
safe = gpcert.level_set(model, domain, 8.0, quantity="lcb", beta=2.0)
print(safe)
print(safe.largest_box())

# %%

safe.plot()
plt.show()
