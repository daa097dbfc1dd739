"""Gaussian process classification in scikit-learn's manner: Laplace, EP, sparse EP, softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gpcert.errors import InputError
from gpcert.inputs.tabular import spread_of
from gpcert.kernels.algebra import scaled_by
from gpcert.likelihoods import likelihood_from_config
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_parts import known_noise
from gpcert.models import training
from gpcert.models.inference import Fit, ep, laplace, softmax_laplace
from gpcert.models.inference.sparse_ep import sparse_ep
from gpcert.models.links import LINKS
from gpcert.models.training import Covariances, Infer, Trainable

INDUCING = ("random", "kmeans")

LARGEST_KMEANS = 10_000
"""Points from which on mini-batches take the place of Lloyd's iterations over all of them."""


def inducing_points(
    X: Any, count: int, kind: str = "random", random_state: Any = None
) -> np.ndarray:
    """(count, d) points for inputs X (N, d).

    "random": a subset of the rows of X, each row at most once (rows of X that are equal may both
    be chosen); "kmeans": centres of k-means clusters, which are no training points in general.

    >>> inducing_points([[0.0], [1.0], [2.0]], 2, random_state=0).shape
    (2, 1)
    """
    X = check_array(X, dtype="float64")
    if kind not in INDUCING:
        names = ", ".join(map(repr, INDUCING))
        raise InputError(f"inducing: expected one of {names}, got {kind!r}")
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not whole or not 1 <= count <= len(X):
        raise InputError(
            f"n_inducing: expected a whole number between 1 and the {len(X)} training points, "
            f"got {count!r}"
        )
    random = check_random_state(random_state)
    if kind == "random":
        return X[random.permutation(len(X))[:count]]
    # some centres may coincide where X has fewer distinct rows: the model's jitter allows for that
    options: Any = {"n_clusters": int(count), "n_init": 1, "random_state": random}
    method = (MiniBatchKMeans if len(X) > LARGEST_KMEANS else KMeans)(**options)
    return np.asarray(method.fit(X).cluster_centers_)


_ALLOWED = {
    "likelihood": ("probit", "logistic", "softmax"),
    "inference": ("laplace", "ep"),
    "sparse": (None, "fic", "dtc", "var"),
    "inducing": INDUCING,
}


@dataclass(frozen=True)
class Choices:
    """The options of `GPClassifier` that must fit together."""

    likelihood: str
    inference: str
    sparse: str | None
    inducing: str

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            value = getattr(self, name)
            if not isinstance(value, str | None) or value not in allowed:
                names = ", ".join(map(repr, allowed))
                raise InputError(f"{name}: expected one of {names}, got {value!r}")
        if self.likelihood == "softmax" and self.inference != "laplace":
            raise InputError(
                f"likelihood='softmax' is fitted by inference='laplace', got {self.inference!r}"
            )
        if self.likelihood == "softmax" and self.sparse is not None:
            raise InputError(
                f"likelihood='softmax' has no sparse approximation, got sparse={self.sparse!r}; "
                "use sparse=None"
            )
        if self.sparse is not None and self.inference != "ep":
            raise InputError(
                f"sparse={self.sparse!r} is fitted by inference='ep', got {self.inference!r}"
            )

    def infer_for(self, labels: np.ndarray) -> Infer:
        """Inference for labels 0..m-1 of one data set."""
        softmax = self.likelihood == "softmax"
        y = labels if softmax else np.where(labels == 1, 1.0, -1.0)

        def infer(covariances: Covariances, noise: float | None, start: Any, final: bool) -> Fit:
            if softmax:
                return softmax_laplace(covariances.square[None], y, start, factored=final)
            link = LINKS[self.likelihood]
            if self.sparse is not None:
                return sparse_ep(*covariances.sparse, y, link, self.sparse, start)
            method = laplace if self.inference == "laplace" else ep
            return method(covariances.square, y, link, start)

        return infer


class GPClassifier(ClassifierMixin, Trainable):
    """Gaussian process classification, `p(y | x) = link(g(x))`, `g ~ GP(0, k)`.

    The posterior of g is approximated by a Gaussian, the kernel's parameters maximise the
    approximate evidence `log p(y | X)`. The model goes straight into `gpcert.certify`.

    Parameters
    ----------
    kernel : a kernel of `gpcert.kernels`, whose parameters are where training starts; default a
        `SquaredExponential` with one length-scale per feature, all 1, and variance 1 (with
        `max_epochs=0`: at the scale of the data, see `scaled_start`).
    likelihood : "probit" or "logistic" for two classes, "softmax" for two or more.
    inference : "laplace" (Rasmussen & Williams 2006, Alg. 3.1, 5.1; softmax: 3.3) or "ep"
        (expectation propagation, Alg. 3.5, 5.2).
    sparse : None, or "fic", "dtc", "var": inducing points instead of all training points, by EP.
    n_inducing : number of inducing points, at most that of the training points.
    inducing : how they are chosen: "random" (a subset of the training points) or "kmeans".
    max_epochs : evaluations of evidence and gradient in a run; 0 keeps all parameters as given.
    n_restarts : further runs, from parameters drawn about those at the scale of the data.
    scaled_start : train a second time from parameters at the scale of the data (length-scales of
        `sqrt(d)` standard deviations of their features), and keep the run of the largest
        evidence. A run costs `max_epochs` evaluations at most, so this doubles the cost.
    optimizer : "l-bfgs-b", or "cg": conjugate gradients, as in GPML.
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
        scaled_start: bool = True,
        optimizer: str = "l-bfgs-b",
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
        self.scaled_start = scaled_start
        self.optimizer = optimizer
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
        random = training.checked_random(self.random_state)
        kernel = training.starting_kernel(self.kernel, X)
        Z = None
        if self.sparse is not None:
            if kernel.has_white_noise:
                raise InputError(
                    "kernel: expected no White part in a sparse model, whose inducing points carry "
                    "no noise; leave it out"
                )
            Z = inducing_points(X, self.n_inducing, self.inducing, random)
            self.inducing_points_ = Z
        self._train(X, Z, kernel, choices.infer_for(labels), random)
        self.posterior_ = self._posterior(X, Z)
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

    def _posterior(self, X: np.ndarray, Z: np.ndarray | None) -> Posterior:
        """The latent functions of several classes, their covariances included; of two classes the
        one whose sign is the second class.

        Softmax with two classes: `p_2 = sigma(f_2 - f_1)`, and the difference of both functions is
        a Gaussian process with kernel 2k, `t = (t_2 - t_1) / 2` and `A = (A_2 - A_1) / 2`: then
        `2k t = k (t_2 - t_1)`, `|A 2k|^2 = k^T (S_22 - S_21 - S_12 + S_11) k`, `S_ab = A_a^T A_b`.
        """
        kernel, fit, likelihood = self.kernel_, self.fit_, self.likelihood
        weights, factor = fit.weights, fit.factor
        noise = training.white_noise(kernel, X) if Z is None else 0.0
        several = len(self.classes_) > 2
        if likelihood == "softmax" and not several:
            assert factor is not None
            kernel, likelihood, noise = scaled_by(kernel, 2.0), "logistic", 2.0 * noise
            weights, factor = (weights[1] - weights[0]) / 2.0, (factor[1] - factor[0]) / 2.0
        return Posterior(
            kernel=kernel,
            points=X if Z is None else Z,
            weights=weights,
            factor=factor,
            negative_factor=fit.coupling,
            noise=noise,
            training_noise=None
            if fit.noise is None
            else known_noise(len(X), fit.noise, fit.jitter, noise),
            likelihood=likelihood_from_config(likelihood),
            classes=tuple(self.classes_.tolist()),
            coupled=several,
            feature_names=self.__dict__.get("feature_names_in_"),
            spread=spread_of(X),
        )

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
        probabilities = self.posterior_.prediction(X)
        if len(self.classes_) > 2:
            return probabilities
        return np.hstack([1.0 - probabilities, probabilities])

    def predict(self, X: Any) -> np.ndarray:
        """Labels (n,): the class of the largest probability.

        With two classes that is the sign of the latent mean, by the symmetry of the links.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return self.classes_[(self.decision_function(X) > 0.0).astype(int)]
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
