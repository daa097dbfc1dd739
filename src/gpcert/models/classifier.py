"""Gaussian process classification in scikit-learn's manner: Laplace, EP, sparse EP, softmax."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gpcert.errors import InputError
from gpcert.frames import spread_of
from gpcert.models.classification import Choices, ClassInference, Latent
from gpcert.models.training import Trainable, starting_kernel, white_noise


class GPClassifier(ClassifierMixin, Trainable):
    """Gaussian process classification, `p(y | x) = link(g(x))`, `g ~ GP(0, k)`.

    The posterior of g is approximated by a Gaussian, the kernel's parameters maximise the
    approximate evidence `log p(y | X)`. The model goes straight into `gpcert.certify`.

    Parameters
    ----------
    kernel : a kernel of `gpcert.kernels`, whose parameters are where training starts; default a
        `SquaredExponential` with one length-scale a feature and variance 1.
    likelihood : "probit" or "logistic" for two classes, "softmax" for two or more.
    inference : "laplace" (Rasmussen & Williams 2006, Alg. 3.1, 5.1; softmax: 3.3) or "ep"
        (expectation propagation, Alg. 3.5, 5.2).
    sparse : None, or "fic", "dtc", "var": inducing points instead of all training points, by EP.
    n_inducing : number of inducing points, at most that of the training points.
    inducing : how they are chosen: "random" (a subset of the training points) or "kmeans".
    max_epochs : evaluations of evidence and gradient in a run; 0 keeps all parameters as given.
    n_restarts : further runs, from parameters drawn log-uniformly within their bounds.
    parameter_bounds : (low, high) of every positive parameter of the kernel (frequencies and other
        parameters with a sign: between -high and high), or "fixed".
    random_state : seed of the inducing points and the restarts.
    verbose : a progress bar, where standard error is a terminal.

    Attributes
    ----------
    classes_ : labels, sorted. n_features_in_, feature_names_in_ : as everywhere in scikit-learn.
    kernel_ : trained kernel.
    posterior_ : `gpcert.Posterior`, what is predicted and certified. With two classes and softmax
        it is that of the difference of both latent functions; with more than two classes that of
        the latent functions, one output a class, coupled.
    evidence_ : approximate log marginal likelihood.
    trace_ : every evaluation of the evidence; see `gpcert.plots.plot_training`.
    fit_ : what inference returned: its factor is the canonical form of Laplace or EP.
    inducing_points_ : (n_inducing, d), sparse models only.

    >>> import numpy as np
    >>> X = np.linspace(-1.0, 1.0, 20)[:, None]
    >>> model = GPClassifier(max_epochs=10).fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> model.predict([[-0.8], [0.8]]).tolist()
    ['no', 'yes']
    """

    classes_: np.ndarray
    inducing_points_: np.ndarray

    def __init__(
        self,
        kernel: Any = None,
        *,
        likelihood: str = "probit",
        inference: str = "laplace",
        sparse: str | None = None,
        n_inducing: int = 100,
        inducing: str = "random",
        max_epochs: int = 100,
        n_restarts: int = 0,
        parameter_bounds: Any = (1e-5, 1e5),
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.sparse = sparse
        self.n_inducing = n_inducing
        self.inducing = inducing
        self.max_epochs = max_epochs
        self.n_restarts = n_restarts
        self.parameter_bounds = parameter_bounds
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Several classes need the softmax."""
        tags = super().__sklearn_tags__()
        named = isinstance(self.likelihood, str)
        tags.classifier_tags.multi_class = named and self.likelihood == "softmax"
        return tags

    def fit(self, X: Any, y: Any) -> GPClassifier:
        """Train on inputs X (N, d) and labels y (N,), of any kind."""
        choices = Choices(self.likelihood, self.inference, self.sparse, self.inducing)
        self.__dict__.pop("inducing_points_", None)  # of an earlier fit with other options
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._check_classes()
        options = self._options()
        kernel = starting_kernel(self.kernel, X)
        Z = None
        if self.sparse is not None:
            Z = choices.inducing_points(kernel, X, self.n_inducing, options.random)
            self.inducing_points_ = Z
        method = ClassInference.of(choices, labels)
        trained = self._train(X, Z, kernel, method.infer, options)
        points, white = (X, white_noise(trained.kernel, X)) if Z is None else (Z, 0.0)
        self._set_posterior(Latent(trained.kernel, points, trained.fit, white), spread_of(X))
        return self

    def _check_classes(self) -> None:
        count = len(self.classes_)
        if count < 2:
            raise InputError(
                "y: expected labels of at least 2 classes, got only one class: "
                f"{self.classes_.tolist()[0]!r}"
            )
        if count > 2 and self.likelihood != "softmax":
            raise InputError(
                "Only binary classification is supported. The type of the target is multiclass "
                f"({count} classes) and likelihood={self.likelihood!r} is for two; use "
                "likelihood='softmax'"
            )

    def _set_posterior(self, latent: Latent, spread: np.ndarray) -> None:
        labels = self.classes_.tolist()
        if len(labels) > 2:
            found = latent.coupled_posterior(tuple(labels))
        else:
            found = latent.binary_posterior(self.likelihood, (labels[0], labels[1]))
        names = self.__dict__.get("feature_names_in_")
        self.posterior_ = replace(found, feature_names=names, spread=spread)

    def decision_function(self, X: Any) -> np.ndarray:
        """Latent mean: (n,) for two classes, positive for the second; (n, m) for more.

        For more than two classes the largest latent mean need not be the largest probability:
        `predict` goes by the probabilities.
        """
        X = self._checked(X)
        mean = self.posterior_.predict(X)[0]
        return mean[:, 0] if len(self.classes_) == 2 else mean

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, m) of the classes, averaged over the latent posterior.

        Of the likelihood of `posterior_`, the function that `gpcert.certify` bounds; more than two
        classes by a fixed rule, see `gpcert.integrals.plain_probabilities`.
        """
        X = self._checked(X)
        if len(self.classes_) == 2:
            second = self.posterior_.prediction(X)[:, 0]
            return np.stack([1.0 - second, second], axis=1)
        return self.posterior_.prediction(X)

    def predict(self, X: Any) -> np.ndarray:
        """Labels (n,): the class of the largest probability.

        With two classes that is the sign of the latent mean, by the symmetry of the links.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return self.classes_[(self.decision_function(X) > 0.0).astype(int)]
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
