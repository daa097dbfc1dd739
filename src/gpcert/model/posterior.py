"""The one canonical object: everything before it produces it, everything after reads only it.

    g_c(x) = k(x, Z) t_c + slope_c.x,   v_c(x) = k(x, x) - |A_c k(Z, x)|^2 + |C_c k(Z, x)|^2,
    latent mean  mu_c = offset_c + scale_c g_c,
    latent variance   = scale_c^2 max(v_c, 0) + noise_c,

Z the training or inducing points; where the training noise Sigma is known,
`v_c(x) = k(x, x) - k(x, Z) (k(Z, Z) + diag Sigma_c)^-1 k(Z, x)`, and A is about a factor of that
inverse; behind linear features, W x + b stands for x. The stored float64
arrays *define* the model: a bound is proved for these formulas in real arithmetic. Factors of
S = A^T A - C^T C are stored, not S itself: exact posteriors, Laplace, EP and most sparse ones have
no C; variational ones may have an indefinite S.

Proofs: docs/mathematics.md, statements 1.1 and 1.6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.functions.means import MeanFunction, mean_from_config
from gpcert.inputs.tabular import NO_LEVELS, Levels, checked_names, read_points
from gpcert.kernels import Kernel
from gpcert.kernels.base import GradientProduct
from gpcert.likelihoods import ClassLikelihood, Gaussian, Likelihood, ScalarLikelihood
from gpcert.model import posterior_file as file
from gpcert.model import posterior_parts as parts
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import Inputs, Points, finite_array
from gpcert.numerics.rounding import on_grid, raised_power
from gpcert.numerics.triangular import Inverse
from gpcert.regions import LinearMap
from gpcert.utils.archive import fingerprint, read_arrays, write_arrays

LARGEST_BLOCK = 20_000_000
"""Numbers that `Posterior.covariances` holds at once."""


@dataclass(frozen=True, eq=False)
class Posterior(parts.Factored):
    """A Gaussian process posterior in canonical form, with the likelihood that predicts from it.

    Parameters: `kernel`; `points` Z (N, d); `weights` t (N,) or (m, N); `factor` A (r, N), or
    (m, r, N) where the outputs differ, or None for S = 0 (the prior's variance); `offset`,
    `scale`, `noise` (m,) or scalars; `likelihood`; `classes`, the labels of a classifier: two of a
    binary one with its one output, else one per output, or one per row of the likelihood's mixing
    weights; `negative_factor` C like `factor`, or None; `coupled` for outputs whose factors share
    their rows, so that the covariance of outputs c and c' is `-(A_c k).(A_c' k)`, or, where there
    is a C, `(C_c k).(C_c' k)`, the A being the outputs' own (see `covariances`). The numbers that
    coupled outputs share are stored on a common grid, so that their differences are exact (see
    `differences`). `feature_names`, one per feature, are those of the data frame that the model was
    fitted on, or None. `spread` (d,), the features' standard deviations in the training data, is
    the unit of `scale="std"` in the verbs; None where it is not known. `features`, a `LinearMap`
    z = W x + b or None, stands before the kernel: inputs x then have its d features, the points and
    the kernel have its q ones. `slope` (q,) or (m, q) is a linear trend added
    to k(x, Z) t_c: `slope_c.z`, z the q features that the kernel sees; None for none; and so is
    a `mean_function` m_c(z) (`gpcert.functions.MeanFunction`). A `factor`
    that is a `gpcert.numerics.triangular.Inverse` brings what is proved of it: `inverse`, which
    spares half a set-up, is not saved, and is let go once it was used. `training_noise` Sigma, a
    number, (N,) or (m, N), is the noise of the observations, jitter included: S is then
    (K + diag Sigma)^-1 itself, and the factor, which may be left out, only its rounded form for
    `predict`; infinite where an output has no observation at a point; None where S is known by its
    factor alone. Arrays can only be read.

    >>> from gpcert.kernels import SquaredExponential
    >>> p = Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[2.0], factor=[[0.5]])
    >>> mean, variance = p.predict([[0.0]])
    >>> float(mean[0, 0]), float(variance[0, 0])
    (2.0, 0.75)

    Of an exact process by its noise:

    >>> p = Posterior(SquaredExponential(1.0), [[0.0]], weights=[2.0], training_noise=1e-8)
    >>> round(float(p.predict([[0.0]])[1][0, 0]), 12)
    1e-08
    """

    kernel: Kernel
    points: Any
    weights: Any
    factor: Any = None
    offset: Any = 0.0
    scale: Any = 1.0
    noise: Any = 0.0
    likelihood: Likelihood = field(default_factory=Gaussian)
    classes: tuple[Any, ...] | None = None
    negative_factor: Any = None
    coupled: bool = False
    feature_names: tuple[str, ...] | None = None
    spread: Any = None
    features: LinearMap | None = None
    slope: Any = None
    training_noise: Any = None
    mean_function: MeanFunction | None = None
    inverse: Inverse | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts.check_parts(self)
        points = finite_array("points", self.points, ndim=2)
        N, d = points.shape
        if N == 0 or d == 0:
            raise InputError(f"points: expected at least one point and feature, got {points.shape}")
        self.kernel.check_dimension(d)
        if self.features is not None:
            if len(self.features.matrix) != d:
                raise InputError(
                    f"features: expected a map to the {d} features of the points, got one to "
                    f"{len(self.features.matrix)}"
                )
            d = self.features.inputs
        weights = np.atleast_2d(finite_array("weights", self.weights))
        m = len(weights)
        if m == 0 or weights.shape != (m, N):
            raise InputError(f"weights: expected shape (m, {N}) or ({N},), got {weights.shape}")
        set_field = object.__setattr__
        set_field(self, "points", points)
        set_field(self, "weights", weights)
        set_field(self, "slope", parts.checked_slope(self.slope, m, points.shape[1]))
        set_field(self, "training_noise", parts.checked_training_noise(self, m, N))
        for name, value in parts.read_factors(self, m, N).items():
            set_field(self, name, value)
        for name in ("offset", "scale", "noise"):
            set_field(self, name, parts.per_output(name, getattr(self, name), m))
        if np.any(self.scale <= 0) or np.any(self.noise < 0):
            raise InputError("expected scale > 0 and noise >= 0 for every output")
        parts.check_coupled(self)
        parts.check_mean_function(self, m)
        if self.coupled:
            joint = "negative_factor" if self.negative_factor.size else "factor"
            for name in ("weights", joint, "offset", "noise"):
                set_field(self, name, on_grid(getattr(self, name)))
            # a grid for each feature, which all outputs share
            set_field(self, "slope", np.stack([on_grid(column) for column in self.slope.T], axis=1))
        set_field(self, "classes", parts.read_classes(self))
        set_field(self, "feature_names", checked_names(self.feature_names, d))
        set_field(self, "spread", parts.checked_spread(self.spread, d))
        self._protect()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy or a pickle: NumPy forgets that its arrays can only be read."""
        vars(self).update(state)
        self._protect()

    def _protect(self) -> None:
        for name in (*file.ARRAYS, file.TREND, file.TRAINING_NOISE, "spread"):
            if getattr(self, name) is not None:
                getattr(self, name).setflags(write=False)

    @staticmethod
    def from_precision(
        kernel: Kernel, points: Any, weights: Any, precision: Any, **options: Any
    ) -> Posterior:
        """Build from a symmetric S itself, which is factored.

        The certified model is the one with the stored factors; `posterior.precisions` shows its S.
        Eigenvalues below 1e-10 of the largest in size are rounding and dropped on the negative
        side. An indefinite S is split in the metric of K_ZZ where that can be factored: the part
        that adds variance is then no larger than it must be.
        """
        Z = finite_array("points", points, ndim=2)
        positive, negative = parts.factored_precision(precision, lambda: kernel.value(Z, Z))
        return Posterior(kernel, Z, weights, positive, negative_factor=negative, **options)

    @property
    def dim(self) -> int:
        """Number of input features d."""
        return self.points.shape[1] if self.features is None else self.features.inputs

    @property
    def levels(self) -> Levels:
        """The labels of the inputs that hold categories, by their numbers: such an input must stay
        fixed in a region."""
        return NO_LEVELS if self.features is None else self.features.levels

    @property
    def places(self) -> Points:
        """(N, d): inputs at the points, about; where to look, never a part of a bound."""
        return self.points if self.features is None else self.features.preimage(self.points)

    @property
    def members(self) -> tuple[Posterior, ...]:
        """The posterior itself: a `Committee` has several."""
        return (self,)

    @property
    def classifies(self) -> bool:
        """Whether the model decides between classes."""
        return self.likelihood.classifies

    @property
    def outputs(self) -> int:
        """Number of outputs m."""
        return len(self.weights)

    def output(self, c: int) -> tuple[Posterior, int]:
        """The posterior that has output c, and its number there: itself."""
        return self, c

    def precision(self, output: int = 0) -> np.ndarray:
        """S_c = A_c^T A_c - C_c^T C_c in floating point."""
        return self.precisions[output if len(self.precisions) > 1 else 0]

    @cached_property
    def precisions(self) -> tuple[np.ndarray, ...]:
        """S = A^T A - C^T C in floating point, for every output or for all at once."""
        return tuple(np.ldexp(S, -self.unit.exponent) for S in self.unit.precisions)

    @cached_property
    def unit(self) -> UnitForm:
        """The same latent functions in units in which their numbers are about one."""
        unit = UnitForm.of(self)
        object.__setattr__(self, "inverse", None)  # the unit form has it, until it is used
        return unit

    @cached_property
    def has_trend(self) -> bool:
        """Whether any output has a slope or a mean function."""
        return self.mean_function is not None or bool(np.any(self.slope))

    def seen(self, X: Inputs) -> np.ndarray:
        """What the kernel sees of inputs X (n, d): themselves, or their linear features (n, q)."""
        return X if self.features is None else self.features(X)

    def cross(self, X: Inputs) -> np.ndarray:
        """`k(x_i, z_j)` (n, N), in plain floating point."""
        return self.kernel.value(self.seen(X), self.points)

    def cross_with_gradient(self, X: np.ndarray) -> tuple[np.ndarray, GradientProduct]:
        """The same, and gradients of sums of it in what the kernel sees."""
        return self.kernel.with_gradient(self.seen(X), self.points)

    def prior(self, X: np.ndarray) -> np.ndarray:
        """`k(x_i, x_i)` (n,)."""
        return self.kernel.diagonal(self.seen(X))

    def predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Latent mean and variance at X (n, d), each (n, m), in plain floating point."""
        X = self.check_inputs(X)
        K = self.cross(X)
        mean = self.mean_from(X, K)
        prior = self.prior(X)
        variance = np.empty_like(mean)
        for c in range(self.outputs):
            explained, added = (np.square(K @ F.T).sum(1) for F in self.factors_of(c))
            variance[:, c] = np.maximum(prior - explained + added, 0.0)
        with np.errstate(over="ignore"):  # infinite where it is; scale^2 alone would be so sooner
            return mean, self.scale * (self.scale * variance) + self.noise

    def prior_variance(self, X: Any) -> Annotated[np.ndarray, "n m"]:
        """(n, m): the variance before any data, noise included, in plain floating point."""
        prior = self.prior(self.check_inputs(X))[:, None]
        return self.scale * (self.scale * prior) + self.noise

    def mean(self, X: Any) -> Annotated[np.ndarray, "n m"]:
        """Latent mean alone at X (n, d), (n, m), in plain floating point."""
        X = self.check_inputs(X)
        return self.mean_from(X, self.cross(X))

    def mean_from(self, X: Inputs, K: np.ndarray) -> Annotated[np.ndarray, "n m"]:
        """Latent mean (n, m) at X (n, d) from `cross(X)`, in plain floating point."""
        return self.offset + self.scale * (K @ self.weights.T + self.trend_at(X))

    def trend_at(self, X: Inputs) -> Annotated[np.ndarray, "n m"] | float:
        """`slope_c.z + m_c(z)` at X (n, d), in plain floating point."""
        if not self.has_trend:
            return 0.0
        seen = self.seen(X)
        trend = seen @ self.slope.T
        return trend if self.mean_function is None else trend + self.mean_function.value(seen)

    def covariances(self, X: Any) -> Annotated[np.ndarray, "n m m"]:
        """Latent covariances of the outputs at X, (n, m, m), in plain floating point.

        Outputs that are not coupled are independent.
        """
        X = self.check_inputs(X)
        covariance = np.zeros((len(X), self.outputs, self.outputs))
        if not self.coupled:
            covariance[:, range(self.outputs), range(self.outputs)] = self.predict(X)[1]
            return covariance
        rows = max(1, LARGEST_BLOCK // max(1, self.factor[:, :, 0].size + len(self.points)))
        one = np.eye(self.outputs)
        for start in range(0, len(X), rows):
            block = slice(start, start + rows)
            K = self.cross(X[block])
            explained, added = (
                np.stack([K @ F.T for F in factor], axis=1)  # (n, m, r)
                for factor in (self.factor, self.negative_factor)
            )
            prior = self.prior(X[block])[:, None, None] * one
            known = explained @ explained.transpose(0, 2, 1)
            if self.negative_factor.size:
                known = known * one - added @ added.transpose(0, 2, 1)
            covariance[block] = prior - known
        return self.scale[:, None] * covariance * self.scale + np.diag(self.noise)

    def prediction(self, X: Any) -> Annotated[np.ndarray, "n m"]:
        """What the decision is made from, (n, m): probability of the second class, probabilities of
        all classes, or the mean; in plain floating point."""
        if isinstance(self.likelihood, ClassLikelihood):
            return self.likelihood.probabilities(self.predict(X)[0], self.covariances(X))
        assert isinstance(self.likelihood, ScalarLikelihood)
        return np.asarray(self.likelihood.value(*self.predict(X)))

    def check_has_variance(self, asked: str) -> None:
        """An `InputError` where the model is a mean alone; `asked` is what needs a variance."""
        if not self.likelihood.has_variance:
            raise InputError(
                f"{asked}: a support vector machine or kernel ridge regression is a mean without a "
                "variance, so that it has neither variances nor probabilities (those of "
                "predict_proba come from another model, fitted to its scores); ask for its mean, "
                "which is its decision_function or predict, or fit a Gaussian process"
            )

    @property
    def labels(self) -> tuple[Any, ...]:
        """A classifier's labels: `classes`, or 0, 1, ..."""
        if self.classes:
            return self.classes
        likelihood = self.likelihood
        several = isinstance(likelihood, ClassLikelihood)
        return tuple(range(len(likelihood.mixed(self.outputs)) if several else 2))

    @cached_property
    def differences(self) -> Posterior:
        """The differences `f_l - f_k`, k < l in lexicographic order, of coupled outputs."""
        from gpcert.model.differences import differences_of  # which needs this class

        return differences_of(self)

    def check_inputs(self, X: Any, name: str = "X") -> Inputs:
        """X as a finite (n, d) array, or an `InputError`.

        The columns of a data frame are put into the order of `feature_names`; where only one side
        has names, columns are taken by position (as in scikit-learn).
        """
        return read_points(name, X, self.dim, self.feature_names, self.levels)

    @cached_property
    def norms(self) -> Annotated[np.ndarray, "m"]:
        """(m,) upper bounds B_c of the RKHS norm of k(., Z) t_c: `B^2 = t^T K_ZZ t`, rounded up."""
        e, exponents = self.unit.exponent, self.unit.weight_exponents
        pairs = zip(self.unit.norms.tolist(), exponents, strict=True)
        return np.asarray([raised_power(norm, w + e // 2) for norm, w in pairs])

    @property
    def excess(self) -> float:
        """kappa >= 0 with `A K_ZZ A^T <= (1 + kappa) I`, proved; see `UnitForm.excess`."""
        return self.unit.excess

    @property
    def gain(self) -> float:
        """1 + an upper bound of the largest eigenvalue of `C K_ZZ C^T`; see `UnitForm.gain`."""
        return self.unit.gain

    def save(self, path: str | Path) -> None:
        """Write a `.npz` file that holds numbers and text only (no code), for `Posterior.load`."""
        write_arrays(path, {"format": file.FORMAT, **self.header()}, self.arrays())

    @staticmethod
    def load(path: str | Path) -> Posterior:
        """Read what `save` wrote; never executes code from the file."""
        header_and_arrays = read_arrays(
            path, {file.FORMAT: lambda header, shapes: file.check_shapes(shapes)}
        )
        return Posterior.from_arrays(*header_and_arrays, path)

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell this model from others: a hash of all that is saved but
        the spread, on which no prediction depends."""
        likelihood = [self.likelihood.name, self.likelihood.identity()]
        return fingerprint(
            {"format": file.FORMAT, **file.described(self), "likelihood": likelihood}, self.arrays()
        )

    def header(self) -> dict[str, Any]:
        """All that is not numbers, as text for JSON."""
        return {
            **file.described(self),
            "likelihood": [self.likelihood.name, self.likelihood.config()],
            "classes": file.written_labels(self.classes),
            "spread": None if self.spread is None else self.spread.tolist(),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers, by name."""
        names = (*file.ARRAYS, file.TREND) if self.has_trend else file.ARRAYS
        arrays = {name: getattr(self, name) for name in names}
        if self.training_noise is not None:
            arrays[file.TRAINING_NOISE] = self.training_noise
        if self.features is not None:
            arrays |= {"matrix": self.features.matrix, "shift": self.features.shift}
        return arrays

    @staticmethod
    def from_arrays(
        header: dict[str, Any], arrays: dict[str, np.ndarray], path: str | Path
    ) -> Posterior:
        """Inverse of `header` and `arrays`; `path` is named in errors."""
        try:
            fields: dict[str, Any] = {**file.header_fields(header), **arrays}
            if "matrix" in fields:
                parts_of_map = fields.pop("matrix"), fields.pop("shift")
                levels, curves = file.header_levels(header), file.header_curves(header)
                fields["features"] = LinearMap(*parts_of_map, levels, curves)
            described = header.get("mean_function")
            if described is not None:
                fields["mean_function"] = mean_from_config(*described)
            return Posterior(**fields)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
