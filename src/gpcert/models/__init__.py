"""Training: Gaussian process estimators in scikit-learn's manner, made to be certified."""

from gpcert.models.classifier import GPClassifier
from gpcert.models.regressor import GPRegressor

__all__ = ["GPClassifier", "GPRegressor"]
