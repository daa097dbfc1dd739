"""Training: the evidence maximised over the parameter vector by L-BFGS-B (or conjugate gradients),
one record an evaluation.

An *epoch* is one evaluation of the evidence and its gradient, as the papers on robustness of
trained Gaussian processes count them: a run stops after `max_epochs` of them, or where L-BFGS-B
finds a maximum, and the best vector seen is kept. Inference may fail at extreme parameters (a
covariance that is singular to working precision): such a vector has evidence -inf and is left.

The evidence has several maxima, and which one L-BFGS-B reaches depends on where it starts. A kernel
with parameters of 1 fits data of unit spread in few dimensions; `kernel_at_data_scale` fits any.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning

from gpcert import kernels as k
from gpcert.errors import InputError
from gpcert.kernels import Kernel
from gpcert.models.kernel_gradients import rule_of

AT_BOUND = 1e-6
"""A parameter this near its bound (in the vector's own unit) is reported as ending there."""

FLAT_VALUE, FLAT_SLOPE = 2.2e-9, 1e-5
"""Where a run has found its maximum: the defaults of L-BFGS-B in SciPy."""

MAX_NAMED = 5
"""Parameters at a bound that a warning names."""

OPTIMIZERS = {"l-bfgs-b": "L-BFGS-B", "cg": "CG"}
"""Methods of `scipy.optimize.minimize` by the names that estimators take: quasi-Newton within the
bounds, and conjugate gradients (Polak and Ribiere, line searches by the conditions of Wolfe), to
which a vector outside the bounds is one where inference fails."""

FIRST_STEP = 1.0
"""Length of a run's first step, at most: a factor e in one parameter."""

TOGETHER, EACH = 1.0, 0.7
"""Standard deviations of the logarithms of a random start about the last given one: of a shift that
the entries of one field (all length-scales) share, and of each entry's own."""

FAILURES = (np.linalg.LinAlgError, ArithmeticError, ValueError)
"""What inference or a kernel may raise at extreme parameters (an InputError is a ValueError, and
SciPy raises one for infinities)."""


@dataclass(frozen=True, eq=False)
class Epoch:
    """One evaluation: number from 1 on, run (0: from the kernel as given), evidence, vector."""

    epoch: int
    run: int
    evidence: float
    vector: np.ndarray


@dataclass(frozen=True, eq=False)
class Trace:
    """Every evaluation of the evidence, in order; `gpcert.plots.plot_training` draws it.

    `vectors` are as the optimiser sees them; `parameters` in the units of the kernel.
    """

    names: tuple[str, ...]
    logarithmic: tuple[bool, ...]
    evaluations: tuple[Epoch, ...]

    def __len__(self) -> int:
        return len(self.evaluations)

    @property
    def evidence(self) -> np.ndarray:
        """(n,) evidence of each evaluation; -inf where inference failed."""
        return np.array([one.evidence for one in self.evaluations])

    @property
    def runs(self) -> np.ndarray:
        """(n,) the run of each evaluation: 0 from the kernel as given, then that from the scale of
        the data, if any, then the restarts."""
        return np.array([one.run for one in self.evaluations], dtype=int)

    @property
    def vectors(self) -> np.ndarray:
        """(n, p) vectors of the optimiser."""
        shape = (len(self.evaluations), len(self.names))
        return np.array([one.vector for one in self.evaluations]).reshape(shape)

    @property
    def parameters(self) -> np.ndarray:
        """(n, p) parameters in their own units."""
        return np.where(self.logarithmic, np.exp(self.vectors), self.vectors)


@dataclass(frozen=True, eq=False)
class Search:
    """Where to search: starts (s, p), bounds (p, 2), which entries are logarithms, and how long.

    `random` draws the starts of `n_restarts` more runs about the last of the starts;
    `report(evidence)` is called after every evaluation (a progress bar).
    """

    names: tuple[str, ...]
    starts: np.ndarray
    bounds: np.ndarray
    logarithmic: np.ndarray
    max_epochs: int
    n_restarts: int = 0
    random: Any = None
    report: Callable[[float], None] | None = None
    optimizer: str = "l-bfgs-b"


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best vector seen, what the evidence function returned with it, and the trace."""

    vector: np.ndarray
    evidence: float
    payload: Any
    trace: Trace


Evidence = Callable[[np.ndarray], tuple[float, np.ndarray, Any]]
"""From a vector to its evidence, the gradient, and anything to keep of the best one."""


def maximise(evidence: Evidence, search: Search) -> Optimum:
    """Maximise by the optimiser from each start and from `n_restarts` random vectors.

    Every run has `max_epochs` evaluations of its own, at least one. Starts that are equal within
    the bounds are one.
    """
    ledger = _Ledger(evidence, search)
    for run, start in enumerate(all_starts(search)):
        ledger.minimise_from(run, start)
    optimum = ledger.optimum()
    _warn_of_bounds(search, optimum.vector)
    return optimum


class _EpochsSpentError(Exception):
    """Ends a run of the optimiser from within."""


class _Ledger:
    """The state of a search: every evaluation, and the best."""

    def __init__(self, evidence: Evidence, search: Search) -> None:
        self.evidence, self.search = evidence, search
        self.evaluations: list[Epoch] = []
        self.best: tuple[float, np.ndarray, Any] | None = None
        self.failure: Exception | None = None
        self.run, self.spent, self.worst = 0, 0, 0.0
        self.run_best: tuple[float, np.ndarray] | None = None

    def minimise_from(self, run: int, start: np.ndarray) -> None:
        """One run. The objective is scaled so that its first step is at most `FIRST_STEP` long.

        Reason: with all variables bounded, L-BFGS-B first tries `start - gradient`, cut at the
        bounds; the gradient of an evidence is large, so that is a corner of the box, where the
        evidence is often flat, and the run would end there.
        """
        self.run, self.spent, self.run_best = run, 0, None
        try:
            value, slope = self._objective(start)
            if len(start) == 0:  # nothing to train: L-BFGS-B has no such case
                return
            scale = 1.0 / max(1.0, float(np.linalg.norm(slope)) / FIRST_STEP)

            def scaled(vector: np.ndarray) -> tuple[float, np.ndarray]:
                known = self.spent == 1 and np.array_equal(vector, start)
                f, gradient = (value, slope) if known else self._objective(vector)
                return scale * f, scale * gradient

            options = {"maxiter": self.search.max_epochs, "gtol": FLAT_SLOPE * scale}
            limits: dict[str, Any] = {}
            if self.search.optimizer == "l-bfgs-b":
                limits["bounds"] = scipy.optimize.Bounds(*self.search.bounds.T)
                options |= {"maxfun": 10 * self.search.max_epochs, "ftol": FLAT_VALUE * scale}
            method = OPTIMIZERS[self.search.optimizer]
            scipy.optimize.minimize(
                scaled, start, jac=True, method=method, options=options, **limits
            )
        except _EpochsSpentError:
            return

    def _objective(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        if self.spent >= self.search.max_epochs:
            raise _EpochsSpentError
        vector = vector.copy()  # the optimiser may use its memory again
        low, high = self.search.bounds.T
        if self.search.optimizer == "cg" and np.any((vector < low) | (vector > high)):
            return self._detour(vector)
        value, slope, payload = self._evaluate(vector)
        self.spent += 1
        self.evaluations.append(Epoch(len(self.evaluations) + 1, self.run, value, vector))
        if self.search.report is not None:
            self.search.report(value)
        if not np.isfinite(value):
            return self._detour(vector)
        self.worst = max(self.worst, -value)
        if self.run_best is None or value > self.run_best[0]:
            self.run_best = (value, vector)
        if self.best is None or value > self.best[0]:
            self.best = (value, vector, payload)
        return -value, -slope

    def _evaluate(self, vector: np.ndarray) -> tuple[float, np.ndarray, Any]:
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                value, slope, payload = self.evidence(vector)
        except FAILURES as error:
            self.failure = error
            return -np.inf, np.zeros_like(vector), None
        if not (np.isfinite(value) and np.all(np.isfinite(slope))):
            return -np.inf, np.zeros_like(vector), None
        return float(value), np.asarray(slope, dtype=np.float64), payload

    def _detour(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """A bowl above everything seen, centred where this run is best: the line search backs off,
        which an infinite value would leave without a number."""
        if self.run_best is None:
            raise _EpochsSpentError  # failed at the start of the run: nowhere to go back to
        away = vector - self.run_best[1]
        return self.worst + 1.0 + float(away @ away), 2.0 * away

    def optimum(self) -> Optimum:
        if self.best is None:
            raise InputError(
                "training: inference failed at every vector of parameters that was tried; "
                f"the last error was: {self.failure!r}; scale the inputs, start from longer "
                "length-scales or more noise, or allow n_restarts"
            )
        value, vector, payload = self.best
        names, logarithmic = self.search.names, tuple(self.search.logarithmic)
        trace = Trace(names, logarithmic, tuple(self.evaluations))
        return Optimum(vector, value, payload, trace)


def all_starts(search: Search) -> list[np.ndarray]:
    """Where the runs start: the given vectors, moved within the bounds, and the random ones."""
    low, high = search.bounds.T
    given = np.clip(search.starts, low, high)
    starts = [v for i, v in enumerate(given) if not any(np.array_equal(v, w) for w in given[:i])]
    return starts + [_random_start(search, given[-1]) for _ in range(search.n_restarts)]


def _random_start(search: Search, centre: np.ndarray) -> np.ndarray:
    """Normal about the centre: logarithms with a shift that the entries of a field share; entries
    with a sign in units of the larger of their size and 1."""
    low, high = search.bounds.T
    fields = [name.partition("[")[0] for name in search.names]
    _, field = np.unique(fields, return_inverse=True)
    count = len(centre)
    shared = search.random.standard_normal(count)[field] if count else np.zeros(0)
    each = search.random.standard_normal(count)
    logs = centre + TOGETHER * shared + EACH * each
    signed = centre + np.maximum(np.abs(centre), 1.0) * each
    return np.clip(np.where(search.logarithmic, logs, signed), low, high)


def _warn_of_bounds(search: Search, vector: np.ndarray) -> None:
    low, high = search.bounds.T
    ended = []
    for bound, near in ((low, vector <= low + AT_BOUND), (high, vector >= high - AT_BOUND)):
        for a in np.flatnonzero(near & (high > low)):
            value = np.exp(bound[a]) if search.logarithmic[a] else bound[a]
            ended.append(f"{search.names[a]} = {value:.3g}")
    if ended:
        more = f" and {len(ended) - MAX_NAMED} more" if len(ended) > MAX_NAMED else ""
        warnings.warn(
            f"parameters that ended at a bound: {', '.join(ended[:MAX_NAMED])}{more}; widen the "
            "bounds, or take it that the evidence does not depend on them",
            ConvergenceWarning,
            stacklevel=5,
        )


SIZES = ("variance", "variances", "weights")
"""Fields of elementary kernels that the covariance is proportional to."""

MOST_INPUTS = 500
"""Inputs over which the mean of k(x, x) is taken."""


def kernel_at_data_scale(kernel: Kernel, X: np.ndarray, variance: float | None = None) -> Kernel:
    """The kernel with length-scales of `sqrt(d)` standard deviations of the features it sees.

    A typical pair of points then has a covariance near `exp(-1) k(x, x)`, whatever the units and
    the dimension, and the evidence has a slope to follow. One length-scale for all features gets
    their root mean square; a feature that never varies counts as of spread 1; kernels without
    length-scales in units of the inputs stay as they are. `variance`: what the mean of k(x, x) over
    the inputs is scaled to (None: it stays).

    >>> X = np.array([[0.0, 0.0], [2.0, 20.0]])
    >>> kernel_at_data_scale(k.SquaredExponential([1.0, 1.0]), X).length_scale.round(3).tolist()
    [1.414, 14.142]
    """
    scaled = _with_length_scales(kernel, X)
    if variance is None:
        return scaled
    mean = float(np.mean(np.diag(scaled.training_covariance(X[:MOST_INPUTS]))))
    usable = np.isfinite(mean) and mean > 0.0 and variance > 0.0
    return _times(scaled, variance / mean) if usable else scaled


def _with_length_scales(kernel: Any, X: np.ndarray) -> Any:
    if kernel.parts:
        inputs = X[:, kernel.dimensions] if type(kernel) is k.ActiveDimensions else X
        return kernel.with_parts(tuple(_with_length_scales(part, inputs) for part in kernel.parts))
    if not kernel.radial:
        return kernel
    spread = X.std(axis=0)
    lengths = np.sqrt(X.shape[1]) * np.where(spread > 0.0, spread, 1.0)
    if np.ndim(kernel.length_scale) == 0:
        return replace(kernel, length_scale=float(np.sqrt(np.mean(lengths**2))))
    return replace(kernel, length_scale=lengths)


def _times(kernel: Any, factor: float) -> Any:
    """`factor` times the kernel, with the same parameters in the same places."""
    if type(kernel) is k.Scale:
        return replace(kernel, factor=kernel.factor * factor)
    if kernel.parts:
        every = type(kernel) is k.Sum
        parts = (_times(p, factor) if every or i == 0 else p for i, p in enumerate(kernel.parts))
        return kernel.with_parts(tuple(parts))
    if type(kernel) is k.Polynomial:  # a power of the sum of its terms
        return kernel
    names = [name for name in rule_of(kernel).fields if name in SIZES]
    values = {name: np.asarray(getattr(kernel, name)) * factor for name in names}
    changes = {name: value if value.ndim else float(value) for name, value in values.items()}
    return replace(kernel, **changes)
