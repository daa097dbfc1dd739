"""Exact Gaussian process regression in scikit-learn's manner."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from gpcert.errors import InputError
from gpcert.inputs.tabular import spread_of
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_parts import known_noise
from gpcert.models import training
from gpcert.models.inference import Fit, exact
from gpcert.models.training import Covariances, Trainable
from gpcert.numerics.arrays import finite_array


class GPRegressor(MultiOutputMixin, RegressorMixin, Trainable):
    """Gaussian process regression, `y = g(x) + e`, `g ~ GP(0, k)`, `e ~ N(0, noise)`.

    The kernel's parameters and the noise maximise the evidence `log p(y | X)` (Rasmussen &
    Williams 2006, Alg. 2.1 and eq. 5.9). Several targets share kernel and noise. The fitted model
    goes straight into `gpcert.certify`.

    Parameters
    ----------
    kernel : a kernel of `gpcert.kernels`, whose parameters are where training starts; default a
        `SquaredExponential` with one length-scale per feature, all 1, and variance 1 (with
        `max_epochs=0`: at the scale of the data, see `scaled_start`).
    noise : variance of the noise, where training starts; 0 stays 0.
    max_epochs : evaluations of evidence and gradient in a run; 0 keeps all parameters as given.
    n_restarts : further runs, from parameters drawn about those at the scale of the data.
    scaled_start : train a second time from parameters at the scale of the data (length-scales of
        `sqrt(d)` standard deviations of their features, the kernel's variance the mean square of
        the targets, the noise a tenth of it), and keep the run of the largest evidence. A run
        costs `max_epochs` evaluations at most, so this doubles the cost.
    optimizer : "l-bfgs-b", or "cg": conjugate gradients, as in GPML.
    parameter_bounds : (low, high) of every positive parameter of the kernel (frequencies and other
        parameters with a sign: between -high and high), or "fixed".
    noise_bounds : (low, high) of the noise, or "fixed".
    normalize_y : subtract the mean of each target and divide by its standard deviation; both, and
        the noise's unit, are then part of the model.
    random_state : seed of the restarts.
    verbose : a progress bar, where standard error is a terminal.

    Attributes
    ----------
    kernel_, noise_ : trained kernel and noise variance (in units of the normalised targets).
    posterior_ : `gpcert.Posterior`, what is predicted and certified.
    evidence_ : log marginal likelihood (of the normalised targets, summed over targets).
    trace_ : every evaluation of the evidence; see `gpcert.plots.plot_training`.
    fit_ : what inference returned.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    >>> import numpy as np
    >>> X = np.linspace(0.0, 6.0, 25)[:, None]
    >>> model = GPRegressor(noise=0.01).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 1e-2)
    True
    """

    noise_: float

    def __init__(
        self,
        kernel: Any = None,
        *,
        noise: float = 0.1,
        max_epochs: int = 100,
        n_restarts: int = 0,
        scaled_start: bool = True,
        optimizer: str = "l-bfgs-b",
        parameter_bounds: Any = (1e-5, 1e5),
        noise_bounds: Any = (1e-8, 1e5),
        normalize_y: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.max_epochs = max_epochs
        self.n_restarts = n_restarts
        self.scaled_start = scaled_start
        self.optimizer = optimizer
        self.parameter_bounds = parameter_bounds
        self.noise_bounds = noise_bounds
        self.normalize_y = normalize_y
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> GPRegressor:
        """Train on inputs X (N, d) and targets y (N,) or (N, m)."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        offset, scale = self._units(targets)
        targets = ((targets - offset) / scale).T

        def infer(covariances: Covariances, noise: float | None, start: Any, final: bool) -> Fit:
            assert noise is not None
            return exact(covariances.square, targets, noise)

        noise = float(finite_array("noise", self.noise, ndim=0))
        if noise < 0.0:
            raise InputError(f"noise: expected a number >= 0, got {self.noise!r}")
        random = training.checked_random(self.random_state)
        kernel = training.starting_kernel(self.kernel, X)
        size = float(np.mean(targets**2))  # the prior's mean is 0
        trained = self._train(X, None, kernel, infer, random, noise, self.noise_bounds, size)
        assert trained is not None
        self.noise_ = trained
        white = training.white_noise(self.kernel_, X)
        self.posterior_ = Posterior(
            kernel=self.kernel_,
            points=X,
            weights=self.fit_.weights,
            factor=self.fit_.factor,
            offset=offset,
            scale=scale,
            noise=scale**2 * white,
            training_noise=known_noise(len(X), self.fit_.noise, self.fit_.jitter, white),
            feature_names=self.__dict__.get("feature_names_in_"),
            spread=spread_of(X),
        )
        self._single_target = np.ndim(y) == 1
        return self

    def _units(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not training.checked_flag("normalize_y", self.normalize_y):
            return np.zeros(targets.shape[1]), np.ones(targets.shape[1])
        spread = targets.std(axis=0)
        # a target that never varies has no unit of its own (its rounding is none either)
        varies = spread > 10 * np.finfo(float).eps * np.abs(targets).max(axis=0)
        return targets.mean(axis=0), np.where(varies, spread, 1.0)

    def predict(
        self, X: Any, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Mean at X (n, d), shaped as y was; with `return_std` also the standard deviation.

        As in scikit-learn, the deviation has the noise of a White part of the kernel, but not
        `noise_`: add that to its square for an observation (y not normalised).
        """
        X = self._checked(X)
        mean, variance = self.posterior_.predict(X)
        deviation = np.sqrt(variance)
        if self._single_target:
            mean, deviation = mean[:, 0], deviation[:, 0]
        return (mean, deviation) if return_std else mean
