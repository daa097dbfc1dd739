"""What GPyTorch's and BoTorch's models have alike: kernels, means, predictions; how to read them.

A model is never altered and never read where it lies: it is copied to the CPU, in float64 and in
evaluation mode, without the caches that predictions leave behind. The copy holds the same raw
parameters, so the function certified is the float64 function of them; a float32 model's own
predictions differ from it by what float32 loses, which is measured (`Conversion.native`).

Kernels whose parametrisation differs from ours:

    PeriodicKernel   exp(-2 sum_j sin^2(pi d_j / p_j) / l_j)       our l_j is the root of theirs,
    CosineKernel     cos(pi |d| / p)                               one feature only: see below,
    SpectralMixture  prod_j sum_q w_q exp(-2 (pi s_qj d_j)^2) cos(2 pi m_qj d_j), a product over
                     features of mixtures,
    LinearKernel     sum_j v_j x_j y_j,     PolynomialKernel  (x.y + offset)^power.

A kernel selects its `active_dims` when it is called; `ScaleKernel` takes over those of the kernel
inside and calls its formula without selecting again.

>>> k, _ = TREE.convert(gk.ScaleKernel(gk.RBFKernel(ard_num_dims=2)).double(), 2)
>>> k.name, k.length_scale.round(4).tolist()
('squared_exponential', [0.6931, 0.6931])
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from gpcert import kernels as ours
from gpcert.adapters import kernel_tree as tree
from gpcert.adapters.adapter import Conversion, LibraryPrediction, in_blocks, unsupported
from gpcert.adapters.canonical import PriorMean
from gpcert.adapters.conversion_cache import CACHES
from gpcert.errors import ModelWarning, UnsupportedModelError
from gpcert.inputs.tabular import spread_of
from gpcert.kernels import Kernel
from gpcert.kernels.algebra import product_of, scaled_by
from gpcert.model.committee import Model
from gpcert.numerics.arrays import finite_array
from gpcert.utils.optional_imports import library
from gpcert.utils.processes import LOCK, quiet

torch: Any = library("torch")
gpytorch: Any = library("gpytorch")
gk: Any = gpytorch.kernels

ANY_SIZE = 10**9

COMPUTED = ("__call__", "forward")
"""The methods that compute a kernel or a mean."""


def without_caches(model: Any) -> Any:
    """A deep copy of the model as it is, less its caches, in evaluation mode."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        for name in CACHES:
            cache = vars(module).get(name)
            if cache is not None:
                memo[id(cache)] = {} if isinstance(cache, dict) else None
    return deepcopy(model, memo).eval()


def read_only_copy(model: Any) -> Any:
    """The copy that is read: on the CPU, in float64 and evaluation mode.

    Training mode comes in between because BoTorch transforms its training inputs on the way to
    evaluation mode: so they are transformed in float64.
    """
    if model.training:
        warnings.warn(
            f"{type(model).__name__} is in training mode; certified is what it predicts after "
            "model.eval(). Call model.eval() once it is trained",
            ModelWarning,
            stacklevel=2,
        )
    with quiet():  # BoTorch's advice on scaling, given before
        copied = without_caches(model)
        # a model of Monte Carlo draws forgets them in training mode
        copied = copied if hasattr(model, "load_mcmc_samples") else copied.train()
        return copied.to(device="cpu", dtype=torch.float64).eval()


@contextmanager
def exact_solves() -> Iterator[None]:
    """The library computes with Cholesky factors whatever the size, and without gradients."""
    settings = gpytorch.settings
    with (
        LOCK,  # most of these belong to the whole process
        torch.no_grad(),
        settings.fast_computations(False, False, False),
        settings.max_cholesky_size(ANY_SIZE),
        settings.fast_pred_var(False),
        settings.skip_posterior_variances(False),
    ):
        yield


KNOWN_PARTS = (
    gpytorch.means.Mean,
    gpytorch.kernels.Kernel,
    gpytorch.likelihoods.Likelihood,
    gpytorch.variational.VariationalStrategy,
    gpytorch.variational.UnwhitenedVariationalStrategy,
    gpytorch.variational.IndependentMultitaskVariationalStrategy,
    gpytorch.variational.LMCVariationalStrategy,
)
"""Parts that a conversion reads; others must have no parameters."""

TRANSFORMS = "botorch.models.transforms."


def mean_of(model: Any, features: int) -> PriorMean:
    """The one mean among the model's parts."""
    means = outermost(dict(model.named_children()), gpytorch.means.Mean)
    if len(means) != 1:
        raise UnsupportedModelError(
            f"model: expected one mean among its parts, got {len(means)}; keep the one that "
            "forward calls as an attribute of the model"
        )
    return _mean(means[0], features, None)


def prior_of(
    model: Any, features: int, output: int | None = None, inputs: np.ndarray | None = None
) -> Prior:
    """The mean and the kernel, found among the model's parts; of one output of a batch. Categories
    are those of the training inputs."""
    parts = dict(model.named_children())
    means, kernels = outermost(parts, gpytorch.means.Mean), outermost(parts, gk.Kernel)
    if len(means) != 1 or len(kernels) != 1:
        raise UnsupportedModelError(
            f"model: expected one mean and one kernel among its parts, got {len(means)} and "
            f"{len(kernels)} (parts: {', '.join(parts) or 'none'}); keep those that forward calls "
            "as attributes of the model, joined into one kernel"
        )
    check_parts(parts)
    kernel = kernels[0]
    if output is not None and len(kernel.batch_shape) == 1:
        kernel = kernel[output]
    mean, layout = _mean(means[0], features, output), _layout(kernel, features, inputs)
    return Prior(mean, TREE.convert(kernel, features, layout)[0], layout)


@dataclass(frozen=True, eq=False)
class Prior:
    """A mean, a kernel, and where inputs of categories go before the kernel sees them."""

    mean: PriorMean
    kernel: Kernel
    layout: tree.CategoryLayout | None = None

    def seen(self, X: np.ndarray) -> np.ndarray:
        """What the kernel sees of inputs."""
        return X if self.layout is None else self.layout.features()(X)

    def placed(self, X: np.ndarray) -> tuple[PriorMean, dict[str, Any]]:
        """The mean of what the kernel sees; other fields of a posterior trained at X."""
        if self.layout is None:
            return self.mean, {"spread": spread_of(X)}
        slope = np.zeros((len(self.mean.slope), self.layout.total))
        slope[:, : len(self.layout.plain)] = self.mean.slope[:, self.layout.plain]
        held = list(self.layout.levels)
        if np.any(self.mean.slope[:, held]):
            raise UnsupportedModelError(
                "mean: expected no slope in columns of categories, got a LinearMean with one; "
                "train with a ConstantMean"
            )
        spread = spread_of(X)
        spread[held] = 0.0  # a region keeps categories
        fields = {"features": self.layout.features(), "spread": spread}
        return PriorMean(self.mean.constant, slope), fields


CATEGORICAL = ("botorch.models.kernels.categorical", "CategoricalKernel")


def _layout(kernel: Any, d: int, X: np.ndarray | None) -> tree.CategoryLayout | None:
    """Of an expression with kernels of categories; else None."""
    blocks = {}
    for part in kernel.modules():
        if (type(part).__module__, type(part).__name__) != CATEGORICAL:
            continue
        if X is None:
            raise UnsupportedModelError(
                "CategoricalKernel: supported in exact models, whose training inputs say which "
                "categories there are"
            )
        columns = _dimensions(part, d)
        lengths = np.broadcast_to(tree.vector(part, "lengthscale"), (len(columns),))
        each = []
        for j, length in zip(
            columns, lengths, strict=True
        ):  # exp(-mean of 1 / l where they differ)
            labels = np.unique(X[:, j])
            alike = float(np.exp(-1.0 / (length * len(columns))))
            embedding = np.sqrt(1.0 - alike) * np.eye(len(labels))
            each.append(tree.CategoryBlock(j, tuple(labels.tolist()), embedding, alike))
        blocks[id(part)] = tuple(each)
    return tree.CategoryLayout(d, blocks) if blocks else None


def check_parts(parts: Mapping[str, Any]) -> None:
    """Parts that are not read must have no parameters; BoTorch's transforms its adapter reads."""
    for name, part in parts.items():
        read = isinstance(part, KNOWN_PARTS) or type(part).__module__.startswith(TRANSFORMS)
        if not read and any(True for _ in part.parameters()):
            raise UnsupportedModelError(
                f"model: its part {name!r}, a {type(part).__name__} with parameters, is not "
                "supported: inputs that a network transforms have no exact image of a region; ask "
                "about a GP on the transformed inputs"
            )


def outermost(parts: Mapping[str, Any], kind: type) -> list[Any]:
    """The parts of this kind that no other of them contains: a base kernel is often an attribute
    of its own."""
    chosen = [part for part in parts.values() if isinstance(part, kind)]

    def inside(part: Any) -> bool:
        return any(
            part is inner for other in chosen if other is not part for inner in other.modules()
        )

    return [part for part in chosen if not inside(part)]


MEANS = (gpytorch.means.ZeroMean, gpytorch.means.ConstantMean, gpytorch.means.LinearMean)


def _mean(mean: Any, features: int, output: int | None) -> PriorMean:
    def own(name: str, single: int) -> np.ndarray:
        """The numbers of this output, of a batch of them where they have more than `single` axes;
        none for a part that the mean does not have."""
        parameter = getattr(mean, name)
        values = finite_array(f"mean.{name}", [0.0] if parameter is None else parameter)
        return values[output] if output is not None and values.ndim > single else values

    kind = tree.computed_by(mean, MEANS, COMPUTED)
    if kind is gpytorch.means.ZeroMean:
        return PriorMean.of(1, features)
    if kind is gpytorch.means.ConstantMean:
        return PriorMean.of(1, features, own("constant", 0))
    if kind is gpytorch.means.LinearMean:  # weights (..., d, 1), bias (..., 1) or None
        return PriorMean.of(1, features, own("bias", 1), own("weights", 2).T)
    why = ", since a posterior here has a linear mean; train on the targets less the mean"
    raise unsupported("mean", mean, "ConstantMean, LinearMean, ZeroMean", why)


def task_means(mean: Any, features: int, count: int) -> list[PriorMean]:
    """One for each of so many tasks: those of a `MultitaskMean`, or the same for all."""
    if type(mean) is gpytorch.means.MultitaskMean:
        return [_mean(each, features, None) for each in mean.base_means]
    return [_mean(mean, features, None)] * count


PredictionFunction = Callable[[Any, Any], LibraryPrediction]
"""What a model predicts at points (n, d), a tensor."""


def compared(
    posterior: Model,
    model: Any,
    copy: Any,
    predictions: PredictionFunction,
    native: PredictionFunction | None = None,
    points: int = 0,
    other: bool = False,
) -> Conversion:
    """The conversion of a model that was read from a `copy`, whose predictions are `predictions`.

    Where the model itself computes otherwise (in float32, on another device, or, of so many
    `points`, by conjugate gradients, or by an `other` formula) what it returns is `native`, or
    `predictions` again, asked of a copy in its own precision and on its own device.
    """

    def predict(X: np.ndarray) -> LibraryPrediction:
        with exact_solves():
            return in_blocks(partial(predictions, copy), torch.as_tensor(X))

    def returned(X: np.ndarray) -> LibraryPrediction:
        without = without_caches(model)
        with torch.no_grad():
            return in_blocks(partial(native or predictions, without), torch.as_tensor(X).to(tensor))

    tensor = next(iter(model.parameters()), None)
    settings = gpytorch.settings
    direct = points <= settings.max_cholesky_size.value() or settings.fast_computations.solves.off()
    usual = (torch.float64, "cpu")
    same = tensor is None or (direct and (tensor.dtype, tensor.device.type) == usual)
    return Conversion(posterior, predict, native=None if same and not other else returned)


def batched(kernel: Any) -> bool:
    """Whether a kernel is several, one for each output."""
    return len(kernel.batch_shape) > 0


def _dimensions(kernel: Any, d: int) -> list[int]:
    if batched(kernel):
        raise UnsupportedModelError(
            f"{type(kernel).__name__} with batch_shape {tuple(kernel.batch_shape)} is not "
            "supported here: one kernel an output is expected"
        )
    active = kernel.active_dims
    return list(range(d)) if active is None else [int(j) for j in active.tolist()]


def selected(kernel: Any, columns: Sequence[int], d: int) -> Kernel:
    """A kernel of d inputs as one of some of them, which must be all that it sees."""
    seen = _dimensions(kernel, d)
    if not set(seen) <= set(columns):
        raise UnsupportedModelError(
            f"{type(kernel).__name__}: expected active_dims out of {list(columns)}, got {seen}; "
            "set those of the inputs without the task"
        )
    converted = TREE.formula(kernel, len(seen))
    inner = converted.on([list(columns).index(j) for j in seen], len(columns)).kernel
    assert inner is not None, "no kernel of the library is white noise"
    return inner


def _described(kernel: Any) -> str:
    parts = [_described(part) for part in kernel.sub_kernels()]
    return type(kernel).__name__ + (f"({', '.join(parts)})" if parts else "")


def _spectral_mixture(kernel: Any, d: int) -> Kernel:
    variances = np.atleast_1d(tree.vector(kernel, "mixture_weights"))
    shape = (len(variances), d)
    frequencies = 2.0 * np.pi * tree.vector(kernel, "mixture_means").reshape(shape)
    lengths = 0.5 / (np.pi * tree.vector(kernel, "mixture_scales").reshape(shape))
    columns = zip(np.split(frequencies, d, axis=1), np.split(lengths, d, axis=1), strict=True)
    parts = [ours.SpectralMixture(variances, *column) for column in columns]
    if d == 1:
        return parts[0]
    return product_of([ours.ActiveDimensions(part, (j,)) for j, part in enumerate(parts)])


def _scale(kernel: Any, d: int) -> tree.Converted:
    inside = TREE.formula(kernel.base_kernel, d).kernel
    assert inside is not None, "no kernel of the library is white noise"
    return tree.Converted(d, scaled_by(inside, tree.number(kernel, "outputscale")))


def _structure(join: Callable[..., tree.Converted]) -> tree.Converter:
    """Of a kernel that joins its base kernel on every single feature."""

    def converter(kernel: Any, d: int) -> tree.Converted:
        base = kernel.base_kernel
        single = TREE.formula(base, 1)
        return reduce(join, [single.on((j,), d) for j in _dimensions(base, d)])

    return converter


STRUCTURES = {
    "AdditiveStructureKernel": _structure(tree.Converted.plus),
    "ProductStructureKernel": _structure(tree.Converted.times),
}
"""Kernels that GPyTorch 2 is to be without."""


def _unscaled(kernel: Any) -> Any:
    while type(kernel) is gk.ScaleKernel:
        kernel = kernel.base_kernel
    return kernel


PARAMETERS = tree.ParameterNames("lengthscale")

TREE = tree.KernelTree(
    converters={
        gk.RBFKernel: PARAMETERS.radial(ours.SquaredExponential),
        gk.MaternKernel: lambda kernel, d: ours.Matern(
            tree.vector(kernel, "lengthscale"), float(kernel.nu)
        ),
        gk.RQKernel: PARAMETERS.radial(ours.RationalQuadratic, alpha="alpha"),
        gk.PeriodicKernel: lambda kernel, d: ours.Periodic(
            tree.vector(kernel, "period_length"), np.sqrt(tree.vector(kernel, "lengthscale"))
        ),
        gk.CosineKernel: tree.on_one_feature(
            lambda kernel, d: ours.Cosine([np.pi / tree.number(kernel, "period_length")]),
            "it is a cosine of the Euclidean distance, which for more than one feature is not "
            "positive definite, so that no Gaussian process has this covariance",
        ),
        gk.LinearKernel: tree.linear("variance"),
        gk.PolynomialKernel: lambda kernel, d: tree.polynomial(
            kernel, kernel.power, 1.0, tree.number(kernel, "offset")
        ),
        gk.SpectralMixtureKernel: _spectral_mixture,
        gk.ConstantKernel: tree.constant("constant"),
        gk.ScaleKernel: _scale,
        **{
            getattr(gk, name): converter
            for name, converter in STRUCTURES.items()
            if hasattr(gk, name)
        },
    },
    sums=gk.AdditiveKernel,
    products=gk.ProductKernel,
    parts=lambda kernel: list(kernel.kernels),
    dimensions=_dimensions,
    described=_described,
    computed=COMPUTED,
    inner=_unscaled,
    example="ScaleKernel(RBFKernel())",
)
