"""Our adapters of libraries that may be missing, and of our own models: what is taken of each.

A record here is imported without its library; the module that converts, which imports it, once a
model of it is met. The names of kernels are those of that module's `TREE` (tested).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gpcert.adapters.adapter import Conversion, Supported


@dataclass(frozen=True)
class LibraryAdapter:
    """An adapter (`gpcert.adapters.adapter`) whose module `<library>_models` has `convert(model)`.

    A model is accepted if a class that it derives from is defined in the package `module` (or a
    part of it) and has one of the names `bases`, any name where there are none. `table`: model,
    likelihood and note of each row, which goes on in indented lines. `pair`: the names for a tuple
    of two parts.
    """

    LIBRARY: str
    module: str
    bases: tuple[str, ...]
    kernels: str
    table: str
    pair: tuple[str, ...] = ()

    @property
    def KERNELS(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return tuple(self.kernels.split(", "))

    @property
    def SUPPORTED(self) -> tuple[Supported, ...]:
        """The rows of the table."""
        rows = (
            " ".join(row.split()).split(" | ") for row in re.split(r"\n(?=\S)", self.table.strip())
        )
        return tuple(Supported(row[0], row[1], self.KERNELS, *row[2:]) for row in rows)

    def accepts(self, model: Any) -> bool:
        """Whether the model, or each of a pair, is, or derives from, one of the library's."""
        if not isinstance(model, tuple):
            return self._derives(model, self.bases)
        return len(model) == 2 == len(self.pair) and all(
            self._derives(part, (name,)) for part, name in zip(model, self.pair, strict=True)
        )

    def _derives(self, model: Any, bases: tuple[str, ...]) -> bool:
        return any(
            f"{base.__module__}.".startswith(f"{self.module}.")
            and (not bases or base.__name__ in bases)
            for base in type(model).__mro__
        )

    def to_posterior(self, model: Any) -> Conversion:
        """Convert the model."""
        return import_module(f"gpcert.adapters.{self.LIBRARY.lower()}_models").convert(model)


GPCERT = LibraryAdapter(
    "gpcert",
    "gpcert.models",
    (),
    "every kernel of gpcert.kernels",
    """
GPRegressor | Gaussian | exact
GPClassifier | probit, logistic, softmax | Laplace, EP, sparse EP
""",
)

_OF_GPYTORCH = (
    "RBFKernel, MaternKernel, RQKernel, PeriodicKernel, CosineKernel, LinearKernel, "
    "PolynomialKernel, SpectralMixtureKernel, ConstantKernel, ScaleKernel, "
    "AdditiveStructureKernel, ProductStructureKernel, AdditiveKernel, ProductKernel"
)

BOTORCH = LibraryAdapter(
    "BoTorch",
    "botorch.models",
    (),
    _OF_GPYTORCH,
    """
SingleTaskGP | Gaussian, known noise (train_Yvar) | inputs: Normalize, InputStandardize,
    AffineInputTransform, FilterFeatures, Warp, Log10, Round, chains of these; outcomes:
    Standardize, Log, Bilog, chains of them; also classes that derive from it, or from GPyTorchModel
    and ExactGP, and override neither posterior nor __call__
MixedSingleTaskGP | Gaussian, known noise (train_Yvar) | CategoricalKernel besides: its columns are
    categories, which a region keeps; the transforms of SingleTaskGP
EnsembleMapSaasSingleTaskGP, SaasFullyBayesianSingleTaskGP | Gaussian, known noise | a
    gpcert.Mixture of the members; the transforms of SingleTaskGP but Log and Bilog
SingleTaskVariationalGP | Gaussian, MultitaskGaussian | the transforms of SingleTaskGP
MultiTaskGP, KroneckerMultiTaskGP | Gaussian, known noise, noise of each task | tasks are outputs;
    the transforms of SingleTaskGP, StratifiedStandardize
ModelListGP | those of its models | each output its own kernel
PairwiseGP | that of comparisons | the latent utility, by Laplace's approximation
""",
)

GPYTORCH = LibraryAdapter(
    "GPyTorch",
    "gpytorch",
    ("GP",),
    _OF_GPYTORCH,
    """
ExactGP | GaussianLikelihood, FixedNoiseGaussianLikelihood | ConstantMean, LinearMean or ZeroMean;
    float64 Cholesky at any size; CosineKernel on one feature; several independent outputs (a batch
    of kernels) with MultitaskGaussianLikelihood; tasks as outputs: IndexKernel on a second input,
    MultitaskKernel or LCMKernel with MultitaskMean; InducingPointKernel
IndependentModelList | those of its ExactGPs
ApproximateGP | none (latent), Gaussian, FixedNoiseGaussian, MultitaskGaussian, StudentT, Laplace,
    Bernoulli, Softmax with or without mixing weights | whitened or not; Cholesky, mean-field, delta
    and natural distributions; several
    outputs by IndependentMultitaskVariationalStrategy, with one kernel for all or their own, or by
    LMCVariationalStrategy;
    Softmax is the exact expectation, which the likelihood estimates by sampling
""",
    pair=("ApproximateGP", "Module"),
)

GPFLOW = LibraryAdapter(
    "GPflow",
    "gpflow",
    ("GPModel",),
    "SquaredExponential, Matern12, Matern32, Matern52, Exponential, RationalQuadratic, Periodic, "
    "Cosine, Linear, Polynomial, Constant, White, Sum, Product",
    """
GPR, SGPR | Gaussian | Constant, Linear, Polynomial or Zero mean function, sums of these; several
    outputs
VGP, SVGP | Gaussian, Bernoulli (inv_probit: 0.998 Phi + 0.001), Softmax | whitened or not, diagonal
    or full q; one kernel for all latent functions, in an SVGP also their own (SeparateIndependent,
    SharedIndependent, LinearCoregionalization, with shared or separate inducing points); Coregion
    in sums of products with its column kept or freed; Softmax is the exact expectation,
    which predict_y estimates by sampling; float32 models too
""",
)

GPY = LibraryAdapter(
    "GPy",
    "GPy",
    ("GP",),
    "RBF, ExpQuad, Exponential, OU, Matern32, Matern52, RatQuad, StdPeriodic, Cosine, Linear, "
    "Poly, Brownian, Bias, White, Add, Prod",
    """
GPRegression, GPHeteroscedasticRegression | Gaussian, HeteroscedasticGaussian | mean functions
    Constant, Linear and sums of these; normalizer; several outputs; Cosine on one feature; also
    GPVariationalGaussianApproximation, and GPy.core.GP with StudentT or Poisson
GPCoregionalizedRegression, SparseGPCoregionalizedRegression | Gaussian of each task | Coregionalize
    in sums of products (ICM, LCM): the column of the task stays a column, which a region keeps
SparseGPRegression | Gaussian | at its inducing inputs
GPClassification, SparseGPClassification | Bernoulli (probit) | EP, Laplace; also GPy.core.GP and
    SparseGP with these likelihoods
""",
)

GPJAX = LibraryAdapter(
    "GPJax",
    "gpjax",
    ("Posterior", "JointModel"),
    "RBF, Matern12, Matern32, Matern52, RationalQuadratic, Periodic, Linear, Polynomial, "
    "Constant, SumKernel, ProductKernel",
    """
ExactPosterior | Gaussian | model.condition(data), GPJax 1.0 or newer; Constant or Zero mean
    function
LatentPosterior | Bernoulli (inv_probit: 0.998 Phi + 0.001) | the same of a NonConjugateModel, at
    its latent vector
SparsePosterior | Gaussian, Bernoulli | family.condition(data) of a VariationalGaussian,
    WhitenedVariationalGaussian or DualVariationalGaussian
CollapsedPosterior | Gaussian | the same of a CollapsedVariationalGaussian
""",
)

TINYGP = LibraryAdapter(
    "tinygp",
    "tinygp",
    ("GaussianProcess",),
    "ExpSquared, Exp, Matern32, Matern52, RationalQuadratic, ExpSineSquared, Cosine, DotProduct, "
    "Polynomial, Constant, Linear, Cholesky, Subspace, Sum, Product",
    """
GaussianProcess | Gaussian | the conditioned one, gp.condition(y).gp; constant mean;
    distance=L2Distance() for several features of Matern32, Matern52, RationalQuadratic; transforms
    feature by feature
""",
)
