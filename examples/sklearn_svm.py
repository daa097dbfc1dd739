"""A support vector machine of three classes, behind a scaler: is the decision the same nearby?

python examples/sklearn_svm.py
"""

from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gpcert

X, y = load_iris(return_X_y=True)
model = make_pipeline(StandardScaler(), SVC(C=2.0)).fit(X, y)

# radii are in the units of X (cm), and the verdict is about what model.predict returns
cert = gpcert.certify(model, X[60], radius=0.05)
print(cert.status.name, cert.decision, model.predict(X[60:61])[0])

table = gpcert.certify_many(model, X[::15], radius=0.1, budget=2.0)
print(table.to_frame()[["status", "decision", "boxes"]])

# one pair of classes by itself: the range of its decision function (0 against 1; positive: 1)
pairs = gpcert.as_posterior(model).members[0]
found = gpcert.prediction_range(pairs, gpcert.Ball(X[60], 0.05), quantity="mean", output=0)
print(found.minimum.lower, found.maximum.upper)
