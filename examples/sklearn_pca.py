"""scikit-learn: digits behind PCA. The region is in pixels, whatever the pipeline makes of them."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpcert

images, labels = load_digits(return_X_y=True)
two = np.isin(labels, [3, 8])
images, labels = images[two] / 16.0, labels[two]
gp = GaussianProcessClassifier(10.0 * RBF(10.0), optimizer=None)
model = make_pipeline(StandardScaler(), PCA(10, random_state=0), gp).fit(images[:120], labels[:120])

x = images[200]
print(gpcert.certify(model, x, radius=0.02, domain=(0, 1)).status)  # all 64 pixels
radius = gpcert.certified_radius(model, x, domain=(0, 1))
print(radius.lower, radius.upper)  # proved up to lower; a counter-example at upper
