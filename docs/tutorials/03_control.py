"""
A learned pendulum: bounds over cells, a safe set, slopes
=========================================================

A controller is designed on a model that was learned from data. What does the model say about every
state of a cell, from which states does the system stay safe whatever happens within the model's
uncertainty, and how fast can its predictions change?
"""

# %%
# The model
# ---------
# Angle and speed of a pendulum, and a torque; two Gaussian processes predict by how much both
# states change in a tenth of a second.

import matplotlib.pyplot as plt
import numpy as np

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.models import GPRegressor

rng = np.random.default_rng(0)
Z = rng.uniform([-1.0, -2.0, -3.0], [1.0, 2.0, 3.0], (80, 3))
acceleration = 2.0 * np.sin(Z[:, 0]) - 0.2 * Z[:, 1] + Z[:, 2]
noise = 1e-4 * rng.normal(size=(2, len(Z)))
angle = GPRegressor(SquaredExponential([1.0, 2.0, 4.0])).fit(Z, 0.1 * Z[:, 1] + noise[0])
speed = GPRegressor(SquaredExponential([1.0, 2.0, 4.0])).fit(Z, 0.1 * acceleration + noise[1])

# %%
# Bounds over many cells
# ----------------------
# What the change of the speed can be in each of 900 cells, without a torque: an interval that holds
# mean plus and minus two standard deviations at every state of the cell.

edges = np.linspace(-1.0, 1.0, 31)
left, below = (each.ravel() for each in np.meshgrid(edges[:-1], 2.0 * edges[:-1]))
width = edges[1] - edges[0]
low = np.stack([left, below, np.zeros_like(left)], axis=1)
high = np.stack([left + width, below + 2.0 * width, np.zeros_like(left)], axis=1)
bounds = gpcert.bound_boxes(speed, low, high, quantity="band", beta=2.0)
print(bounds)

# %%
# How wide the intervals are:

bounds.plot(end="width")
plt.show()

# %%
# A safe set
# ----------
# The largest set of cells in which a torque keeps the state, whatever happens within the band. Of
# the torques -2, 0 and 2 one is chosen for every cell.

safe = gpcert.invariant_set(
    [angle, speed], [(-0.6, 0.6), (-1.5, 1.5)], "delta", inputs=[-2.0, 0.0, 2.0], cells=1500
)
print(safe)
print("torque at (0.1, 0):", safe.input_at([0.1, 0.0]))

# %%

safe.plot()
plt.show()

# %%
# Slopes
# ------
# How much the predicted change of the speed changes with each input, everywhere in the region, with
# proved ends; and whether a larger torque always means more speed.

region = [(-0.6, 0.6), (-1.5, 1.5), (-2.0, 2.0)]
slopes = gpcert.slope_ranges(speed, region)
print(slopes)

# %%

slopes.plot()
plt.show()

# %%

print(gpcert.certify_monotone(speed, region, {2: "+"}))

# %%
# A Lipschitz constant, proved, beside the largest slope that some state attains. Methods of safe
# learning take it as given.

print(gpcert.lipschitz(speed, region))
