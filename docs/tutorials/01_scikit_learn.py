"""
A medical table with scikit-learn
=================================

A classifier tells benign from malignant tumours by ten measurements of cell nuclei. Measurements
have errors. For which patients does the decision stand, whatever the errors are? What matters at
one patient?

The data come with scikit-learn: 569 patients of Wisconsin.
"""

# %%
# The model
# ---------
# A Gaussian process behind a scaler, as one would fit it anyway. gpcert takes the whole pipeline,
# so that regions are in the units of the table.

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpcert

data, target = load_breast_cancer(return_X_y=True, as_frame=True)
data = data.iloc[:, :10]
labels = np.where(target == 1, "benign", "malignant")
train, test, train_labels, test_labels = train_test_split(
    data, labels, test_size=0.3, random_state=0
)
process = GaussianProcessClassifier(4.0 * RBF(3.0), optimizer=None)
model = make_pipeline(StandardScaler(), process).fit(train, train_labels)
print(f"accuracy on {len(test)} patients: {model.score(test, test_labels):.3f}")

# %%
# One patient
# -----------
# The error of each measurement is a number per feature, by name; features that are not named are
# exact. Is the decision the same for all values within these errors?

patient = test.iloc[0]
errors = {"mean radius": 0.5, "mean texture": 1.0, "mean smoothness": 0.005, "mean area": 30.0}
certificate = gpcert.certify(model, patient, radius=errors)
print(certificate)

# %%
# The picture shows the proved margin: the bar holds every value that it takes in the region.

certificate.plot()
plt.show()

# %%
# How far can these features move, in multiples of the errors, until the decision changes?

radius = gpcert.certified_radius(model, patient, scale=errors, rtol=0.05)
print(radius)

# %%
# Certified accuracy
# ------------------
# The share of patients of the test set that are classified correctly, and whose decision is proved
# to stay within a radius, in standard deviations of the training data, for all ten features.

radii = [0.0, 0.05, 0.1, 0.2, 0.3, 0.4]
accuracy = gpcert.certified_accuracy(
    model, test, test_labels, radii=radii, scale="std", budget=30.0
)
print(accuracy)

# %%

accuracy.plot()
plt.show()

# %%
# What matters at one patient
# ---------------------------
# The effect of a feature: how much the prediction can change when this feature alone moves, with
# proved bounds.

effects = gpcert.explain.effects(model, patient, radius=0.5, scale="std")
print(effects)

# %%

effects.plot()
plt.show()

# %%
# A page for a colleague
# ----------------------
# Everything saves as JSON, without code in the file, and loads again. A table of verdicts for the
# first patients of the test set, as text and as a picture:

table = gpcert.certify_many(model, test[:8], 0.1, scale="std")
print(table)

# %%

table.plot()
plt.show()

# %%
# One self-contained HTML page of it, for somebody without gpcert: ``gpcert page verdicts.json``.

folder = Path(tempfile.mkdtemp())
table.save(folder / "verdicts.json")
command = [Path(sys.executable).with_name("gpcert"), "page", "verdicts.json"]
print(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)
