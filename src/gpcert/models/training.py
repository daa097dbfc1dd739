"""What both estimators share: from a kernel and an inference method to the trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gpcert.errors import InputError
from gpcert.kernels import Kernel, SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.models.hyperparameters import (
    OPTIMIZERS,
    Epoch,
    Search,
    Trace,
    kernel_at_data_scale,
    maximise,
)
from gpcert.models.inference import EvidenceGradient, Fit
from gpcert.models.log_parameters import LogParameters
from gpcert.numerics.arrays import finite_array, whole_number
from gpcert.utils.quiet import quiet

WHITE_TOLERANCE = 1e-9
"""Relative differences of white noise between inputs that are rounding."""

MAX_CHECKED = 500
"""Inputs at which white noise is compared before training (at all of them afterwards)."""

NOISE_SHARE = 0.1
"""Of the targets' mean square that the start at the scale of the data gives to the noise."""

Infer = Callable[["Covariances", float | None, Any, bool], Fit]
"""`infer(covariances, noise, start, final)`: the fit; its factor is needed where `final`."""


@dataclass(frozen=True, eq=False)
class Covariances:
    """The covariances of one kernel at the training points X and, if any, the inducing points Z."""

    kernel: Kernel
    X: np.ndarray
    Z: np.ndarray | None = None

    @cached_property
    def square(self) -> np.ndarray:
        """(N, N) covariance of the latent values at X, white noise of the kernel included."""
        return self.kernel.training_covariance(self.X)

    @cached_property
    def sparse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """K(Z, Z), K(X, Z) and the diagonal k(x, x) at X."""
        kernel, Z = self.kernel, self.Z
        assert Z is not None
        return kernel.value(Z, Z), kernel.value(self.X, Z), kernel.diagonal(self.X)

    def gradient(self, gradient: EvidenceGradient) -> np.ndarray:
        """dE / dtheta from the contractions that inference returned."""
        parameters = LogParameters.of(self.kernel)
        if gradient.square is not None:
            # classes that share a kernel: their contractions add up
            square = gradient.square.reshape(-1, *gradient.square.shape[-2:]).sum(axis=0)
            return parameters.training_gradient(self.X, square, self.square)
        Z, of = cast(Any, self.Z), cast(Any, gradient)
        K_uu, K_fu, _ = self.sparse
        total = parameters.gradient(Z, Z, of.inducing, K_uu)
        total = total + parameters.gradient(self.X, Z, of.cross, K_fu)
        return total + parameters.diagonal_gradient(self.X, of.diagonal)


@dataclass(frozen=True)
class Start:
    """A kernel and the noise variance to start from (None: no noise is trained)."""

    kernel: Kernel
    noise: float | None = None


def _search(starts: list[Start], bounds: Any, noise_bounds: Any, **options: Any) -> Search:
    """Where to search; the bounds are of the parameters themselves, and noise of exactly 0 stays 0,
    like noise whose bounds are "fixed"."""
    parameters = [LogParameters.of(start.kernel) for start in starts]
    names, logarithmic = parameters[0].names, parameters[0].logarithmic
    vectors = np.stack([each.values for each in parameters])
    lower = upper = vectors[0]
    of_noise = _interval("noise_bounds", noise_bounds)
    if (interval := _interval("parameter_bounds", bounds)) is not None:
        low, high = interval
        lower = np.where(logarithmic, np.log(low), -high)
        upper = np.where(logarithmic, np.log(high), high)
    limits = np.stack([lower, upper], axis=1)
    variances = [start.noise for start in starts if start.noise]
    if of_noise is not None and len(variances) == len(starts):
        names, logarithmic = (*names, "noise"), np.append(logarithmic, True)
        vectors = np.column_stack([vectors, np.log(variances)])
        limits = np.vstack([limits, np.log(of_noise)])
    return Search(names, vectors, limits, logarithmic, **options)


def _interval(name: str, bounds: Any) -> tuple[float, float] | None:
    """Low and high, or None for "fixed"."""
    if isinstance(bounds, str):
        if bounds != "fixed":
            raise InputError(f"{name}: expected a pair (low, high) or 'fixed', got {bounds!r}")
        return None
    pair = finite_array(name, bounds, ndim=1)
    if pair.shape != (2,) or not 0.0 < pair[0] < pair[1]:
        raise InputError(f"{name}: expected 0 < low < high, got {bounds!r}")
    return float(pair[0]), float(pair[1])


class Trainable(BaseEstimator):
    """What both estimators do alike; their parameters are their own, as scikit-learn asks."""

    kernel_: Any
    posterior_: Posterior
    evidence_: float
    trace_: Trace
    fit_: Fit

    def _train(
        self,
        X: np.ndarray,
        Z: np.ndarray | None,
        kernel: Kernel,
        infer: Infer,
        random: np.random.RandomState,
        noise: float | None = None,
        noise_bounds: Any = "fixed",
        variance: float | None = None,
    ) -> float | None:
        """Maximise the evidence over the kernel's parameters (and the noise), fit at the best, and
        keep kernel, fit and trace; returns the trained noise. With `max_epochs=0` the parameters
        stay. `variance`: mean square of the targets, if the kernel is in their units."""
        options: Any = self
        max_epochs, n_restarts = self._counts()
        scaled_start = checked_flag("scaled_start", options.scaled_start)
        optimizer = options.optimizer
        if not isinstance(optimizer, str) or optimizer not in OPTIMIZERS:
            names = ", ".join(map(repr, OPTIMIZERS))
            raise InputError(f"optimizer: expected one of {names}, got {optimizer!r}")
        verbose, trained = checked_flag("verbose", options.verbose), Covariances(kernel, X, Z)
        if max_epochs == 0:
            fit = infer(trained, noise, None, True)
            self.trace_ = Trace((), (), (Epoch(1, 0, fit.evidence, np.zeros(0)),))
        else:
            parameters = LogParameters.of(kernel)
            given = plain_kernel(X.shape[1]) if options.kernel is None else kernel
            starts = [Start(given, noise)]
            if scaled_start:
                scaled_noise = noise and (NOISE_SHARE * variance if variance else noise)
                starts.append(Start(kernel_at_data_scale(kernel, X, variance), scaled_noise))
            search = _search(
                starts,
                options.parameter_bounds,
                noise_bounds,
                max_epochs=max_epochs,
                n_restarts=n_restarts,
                optimizer=optimizer,
                random=random,
            )
            count = len(parameters.entries)
            last: list[Any] = [None]  # inference starts where it ended before

            def model(vector: np.ndarray) -> tuple[Covariances, float | None]:
                trained_noise = float(np.exp(vector[count])) if len(vector) > count else noise
                return Covariances(parameters.rebuild(vector[:count]), X, Z), trained_noise

            def evidence(vector: np.ndarray) -> tuple[float, np.ndarray, Any]:
                covariances, trained_noise = model(vector)
                with quiet(ConvergenceWarning):  # only the last fit matters
                    fit = infer(covariances, trained_noise, last[0], False)
                last[0] = fit.start
                slope = covariances.gradient(fit.gradient)
                by_noise: Any = [fit.gradient.noise] if len(vector) > count else []
                return fit.evidence, np.append(slope, by_noise), fit.start

            with progress_bar(verbose, max_epochs * (len(starts) + n_restarts)) as report:
                optimum = maximise(evidence, replace(search, report=report))
            trained, noise = model(optimum.vector)
            fit, self.trace_ = infer(trained, noise, optimum.payload, True), optimum.trace
        self.kernel_, self.fit_, self.evidence_ = trained.kernel, fit.light(), fit.evidence
        return noise

    def _counts(self) -> list[int]:
        names = ("max_epochs", "n_restarts")
        return [whole_number(name, getattr(self, name)) for name in names]

    def _checked(self, X: Any) -> np.ndarray:
        """Inputs (n, d) of a fitted estimator."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))


def plain_kernel(d: int) -> Kernel:
    """The default: a squared exponential with one length-scale per feature, all 1."""
    return SquaredExponential(np.ones(d), variance=1.0)


def starting_kernel(kernel: Any, X: np.ndarray) -> Kernel:
    """The user's kernel, or the default at the scale of the data."""
    d = X.shape[1]
    if kernel is None:
        return kernel_at_data_scale(plain_kernel(d), X)
    if not isinstance(kernel, Kernel):
        raise InputError(
            f"kernel: expected a kernel of gpcert.kernels or None, got {type(kernel).__name__}; "
            "for a scikit-learn kernel, gpcert.adapters.sklearn_kernels.convert_kernel makes one"
        )
    kernel.check_dimension(d)
    white_noise(kernel, X[:MAX_CHECKED])  # refused before training
    return kernel


def white_noise(kernel: Kernel, X: np.ndarray) -> float:
    """Variance that a White part adds to every new observation, as in scikit-learn.

    It must be the same everywhere: a White part times a kernel that varies has no canonical form.
    """
    if not kernel.has_white_noise:
        return 0.0
    variances = np.diag(kernel.training_covariance(X)) - kernel.diagonal(X)
    if np.ptp(variances) > WHITE_TOLERANCE * np.abs(variances).max():
        raise InputError(
            "kernel: expected a White part whose noise is the same for all inputs, got variances "
            f"from {variances.min():.3g} to {variances.max():.3g}; take it out of the product"
        )
    return max(float(variances.mean()), 0.0)


def checked_flag(name: str, value: Any) -> bool:
    """True or False, or an `InputError`."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}: expected True or False, got {value!r}")
    return bool(value)


def checked_random(random_state: Any) -> np.random.RandomState:
    """The generator that a seed stands for, as in scikit-learn."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise InputError(
            "random_state: expected None, a whole number from 0 to 2^32 - 1 or a "
            f"numpy.random.RandomState, got {random_state!r}"
        ) from error


@contextmanager
def progress_bar(verbose: bool, total: int) -> Iterator[Callable[[float], None] | None]:
    """Yield `report(evidence)`, called after every evaluation; None where nothing is shown. It is
    drawn on standard error, and only where that is a terminal."""
    if not verbose or total < 1:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("best evidence {task.fields[best]:.6g}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, best=float("-inf"))

        def report(evidence: float) -> None:
            bar.update(task, advance=1, best=max(bar.tasks[task].fields["best"], evidence))

        yield report
