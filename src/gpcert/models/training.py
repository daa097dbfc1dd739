"""What both estimators share: from a kernel and an inference method to the trained model.

The trainable parameters of any kernel are one vector, with contracted gradients in them:

    L(theta) = sum_ij W_ij k_theta(x_i, y_j)   has the gradient   LogParameters.gradient(X, Y, W).

Positive parameters (variances, length-scales, periods, weights, ...) enter by their logarithm;
frequencies and tilts, which have a sign, as they are. Orders, degrees, dimensions, centres and
phases are no parameters, and a weight or variance of exactly 0 stays 0. Kernels are trees: a sum
hands W to its parts, a product W times the values of the other factors; `kernel_gradients` has a
rule for every leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gpcert import kernels as k
from gpcert.errors import InputError
from gpcert.kernels import Kernel, SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.models.hyperparameters import Epoch, Search, Trace, kernel_at_data_scale, maximise
from gpcert.models.inference import EvidenceGradient, Fit
from gpcert.models.kernel_gradients import Pairs, rule_of
from gpcert.numerics.arrays import finite_array, whole_number
from gpcert.utils.processes import quiet


@dataclass(frozen=True, eq=False)
class LogParameters:
    """A kernel and its trainable parameters in the order of its tree.

    `entries` of the vector: the name, the value there, and whether that is a logarithm.

    >>> parameters = LogParameters.of(k.SquaredExponential([1.0, 1.0], variance=2.0))
    >>> parameters.names
    ('variance', 'length_scale[0]', 'length_scale[1]')
    >>> float(parameters.rebuild([0.0, 0.0, 0.0]).variance)
    1.0
    """

    kernel: Kernel
    entries: tuple[tuple[str, float, bool], ...]

    @staticmethod
    def of(kernel: Kernel) -> LogParameters:
        """Read the parameters of a kernel."""
        return LogParameters(kernel, tuple(_parameters(kernel, "")))

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each entry: the path in the tree and the field."""
        return tuple(name for name, _, _ in self.entries)

    @property
    def values(self) -> np.ndarray:
        """The vector at this kernel."""
        return np.array([value for _, value, _ in self.entries], dtype=np.float64)

    @property
    def logarithmic(self) -> np.ndarray:
        """True for entries that are logarithms."""
        return np.array([logarithmic for _, _, logarithmic in self.entries], dtype=bool)

    def rebuild(self, vector: Any) -> Kernel:
        """The kernel with other parameters; every other field is as it was."""
        vector = np.asarray(vector, dtype=np.float64)
        if vector.shape != (len(self.entries),):
            raise InputError(
                f"vector: expected {len(self.entries)} parameters, got shape {vector.shape}"
            )
        return _rebuilt(self.kernel, iter(vector.tolist()))

    def gradient(
        self, X: np.ndarray, Y: np.ndarray, W: np.ndarray, values: Any = None
    ) -> np.ndarray:
        """`sum_ij W_ij dk(x_i, y_j) / dtheta`, W (n, p).

        `values`: `kernel.value(X, Y)`, where it is known already.
        """
        return self._contracted(Pairs(X, Y, (self.kernel, values)), W)

    def training_gradient(self, X: np.ndarray, W: np.ndarray, values: Any = None) -> np.ndarray:
        """The same for `kernel.training_covariance(X)`, which has white noise too; W (n, n)."""
        return self._contracted(Pairs(X, X, (self.kernel, values), observed=True), W)

    def diagonal_gradient(self, X: np.ndarray, w: np.ndarray) -> np.ndarray:
        """`sum_i w_i dk(x_i, x_i) / dtheta`, w (n,)."""
        return self._contracted(Pairs(X, X, single=True), w)

    def _contracted(self, pairs: Pairs, W: np.ndarray) -> np.ndarray:
        return np.array(list(_contractions(self.kernel, pairs, W)), dtype=np.float64)


def _field_scales(kernel: Any) -> list[tuple[str, bool]]:
    """The fields that are trained, those of the parts apart, and whether by their logarithm."""
    if kernel.parts:
        return [(field, True) for field in kernel.parameters]
    rule = rule_of(kernel)
    return [(field, field in rule.logarithmic) for field in rule.fields]


def _entries(kernel: Any) -> Iterator[tuple[str, tuple[int, ...], float, bool]]:
    """Field, index, value and whether by its logarithm, of every number of its own that is trained:
    one that must be positive and is 0 stays 0."""
    for field, logarithmic in _field_scales(kernel):
        for index, value in np.ndenumerate(np.asarray(getattr(kernel, field), dtype=np.float64)):
            if not logarithmic or value > 0.0:
                yield field, index, float(value), logarithmic


def _parameters(kernel: Any, path: str) -> Iterator[tuple[str, float, bool]]:
    """Name, entry of the vector and whether that is a logarithm."""
    for field, index, value, logarithmic in _entries(kernel):
        place = f"[{', '.join(map(str, index))}]" if index else ""
        trained = float(np.log(value)) if logarithmic else value
        yield f"{path}{field}{place}", trained, logarithmic
    for i, part in enumerate(kernel.parts):
        inner = f"{i + 1}." if kernel.several else ""
        yield from _parameters(part, path + inner)


def _rebuilt(kernel: Any, vector: Iterator[float]) -> Any:
    fields = [field for field, _ in _field_scales(kernel)]
    changes = {field: np.array(getattr(kernel, field), dtype=np.float64) for field in fields}
    for field, index, _, logarithmic in _entries(kernel):
        trained = next(vector)
        changes[field][index] = np.exp(trained) if logarithmic else trained
    plain = {name: value if value.ndim else float(value) for name, value in changes.items()}
    parts = tuple(_rebuilt(part, vector) for part in kernel.parts)
    return replace(kernel.with_parts(parts), **plain)


def _contractions(kernel: Any, pairs: Pairs, W: np.ndarray) -> Iterator[float]:
    """In the order of `_parameters`; a part sees W times what its kernel makes of it."""
    weights = [W] * len(kernel.parts)
    if type(kernel) is k.Scale:
        if kernel.factor > 0.0:
            yield float(kernel.factor * np.vdot(W, pairs.covariances(kernel.kernel)))
        weights = [kernel.factor * W]
    elif type(kernel) is k.Product:
        # every factor sees the others (no division: factors may vanish)
        values = [pairs.covariances(part) for part in kernel.parts]
        others = [values[:i] + values[i + 1 :] for i in range(len(values))]
        weights = [reduce(np.multiply, each, W) for each in others]
    elif type(kernel) is k.ActiveDimensions:
        pairs = pairs.columns(kernel.dimensions)
    elif type(kernel) is not k.Sum:
        derivatives = rule_of(kernel).derivatives(kernel, pairs, W)
        for field, index, _, _ in _entries(kernel):
            yield float(
                np.broadcast_to(derivatives[field], np.shape(getattr(kernel, field)))[index]
            )
    for part, V in zip(kernel.parts, weights, strict=True):
        yield from _contractions(part, pairs, V)


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
