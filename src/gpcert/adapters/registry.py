"""Which adapters there are, the table of what they take, and the one that converts a model.

An adapter is looked for by the top-level package of the model's class and of its base classes (a
user's subclass of a library's model lives in the user's own module). Those registered by the user
come first, then ours, then entry points of other packages; the first that `accepts` the model
converts it. See `gpcert.adapters.adapter` for what an adapter is.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any

from gpcert.adapters.adapter import Adapter, Conversion, Supported, check_adapter
from gpcert.adapters.conversion_cache import ConversionCache
from gpcert.adapters.libraries import LibraryAdapter
from gpcert.adapters.measure import Agreement, measured
from gpcert.errors import InputError, ModelWarning, UnsupportedModelError
from gpcert.model.committee import AnyModel, Model
from gpcert.utils.optional_imports import optional

GROUP = "gpcert.adapters"
"""The group of entry points; the name of each is the top-level package of the models."""


BUILT_IN = (
    # first: our estimators derive from scikit-learn's base classes
    ("gpcert", "libraries:GPCERT"),
    ("sklearn", "sklearn"),
    ("sklearn", "sklearn_wrappers"),
    ("sklearn", "sklearn_ensembles"),
    # before GPyTorch's, whose classes its models derive from
    ("botorch", "libraries:BOTORCH"),
    ("gpytorch", "libraries:GPYTORCH"),
    ("gpflow", "libraries:GPFLOW"),
    ("GPy", "libraries:GPY"),
    ("gpjax", "libraries:GPJAX"),
    ("tinygp", "libraries:TINYGP"),
)
"""Packages of models, and our modules (or records of one), imported once a model is met."""

REGISTERED: list[tuple[str, Adapter]] = []
"""Adapters that the user registered, with their packages, the latest first."""

NATIVE_TOLERANCE = 1e-3
"""A model's own predictions that are farther from the certified ones, relatively, are warned of:
float32 alone explains less than that."""

CONVERSIONS = ConversionCache()
"""The conversions of this process."""


def register(package: str, adapter: Any) -> Any:
    """Let models of a package be converted by this adapter; it comes before our own.

    `package` is the top-level package in which the models' classes (or their bases) are defined,
    `adapter` a module or object as `gpcert.adapters.adapter` describes. Returns the adapter.
    """
    if not isinstance(package, str) or not package.isidentifier():
        raise InputError(
            "register: expected the name of a top-level package such as 'gpytorch', got "
            f"{package!r}"
        )
    entry = (package, check_adapter(adapter, "register"))
    REGISTERED[:] = [entry, *(each for each in REGISTERED if each[1] is not adapter)]
    return adapter


def as_posterior(model: Any) -> Model:
    """Convert a fitted model to the `Posterior` whose predictions are certified.

    `gpcert.adapters.supported()` lists what is taken. A classifier of more than two classes that
    decides by several binary ones becomes a `Committee`; a `Posterior` or `Committee` passes
    through. The result predicts in the units of the user (scalers of a pipeline are folded in), and
    is compared with the library's own predictions at sample points: a model that the formulas of
    `Posterior` do not reproduce is refused, never approximated. The comparison proves nothing; it
    catches conversions of models that are not what they seem.

    The conversion is kept while the model lives and has not changed in any part; see
    `gpcert.adapters.conversion_cache`. Names of the features that the model was fitted with
    (`feature_names_in_`) become `Posterior.feature_names`.

    Raises `UnsupportedModelError` (the message names the part) or `InputError` (not fitted, NaN).

    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.linspace(0.0, 1.0, 5)[:, None]
    >>> model = GaussianProcessRegressor(RBF(0.5), optimizer=None).fit(X, np.sin(X[:, 0]))
    >>> posterior = as_posterior(model)
    >>> mean, variance = posterior.predict([[0.3]])
    >>> bool(abs(mean[0, 0] - model.predict([[0.3]])[0]) < 1e-9)
    True
    """
    if isinstance(model, AnyModel):
        passed: Any = model
        return passed
    return CONVERSIONS.posterior(model, _compared)


def _compared(model: Any) -> Model:
    """The converted model, once its predictions were compared with the library's."""
    conversion = convert(model)
    distance = measured(conversion).native
    if distance is not None and not distance <= NATIVE_TOLERANCE:
        warnings.warn(
            "certified is the exact GP of the model's parameters, in float64; what the model "
            "itself returns (in float32, by iterative solves, on a GPU or by an inexact formula) "
            f"differs from it by up to {distance:.2g}, relative, at sample points. "
            "gpcert.adapters.agreement(model) measures it; model.double() and direct solves bring "
            "both together where precision is the reason",
            ModelWarning,
            stacklevel=2,
        )
    return conversion.posterior


def agreement(model: Any) -> Agreement:
    """How far the library's own predictions are from the certified posterior, at sample points.

    The certificate speaks of the posterior; the library evaluates the same formulas in another
    order, so its numbers differ by rounding: this is the measured difference, for reports.

    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> model = GaussianProcessRegressor(alpha=0.1, optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> found = agreement(model)
    >>> found.points, found.mean < 1e-12, found.variance < 1e-12
    (200, True, True)
    """
    if isinstance(model, AnyModel):
        return Agreement(points=0, mean=0.0, variance=0.0)
    return measured(convert(model))


def convert(model: Any) -> Conversion:
    """The conversion by the first adapter that accepts the model; nothing is compared yet.

    Adapters of models that hold other models (pipelines, searches) call it for those.
    """
    # a pair of a model and its likelihood is known by its parts
    parts = model if isinstance(model, tuple) else (model,)
    packages = {base.__module__.partition(".")[0] for part in parts for base in type(part).__mro__}
    for adapter in _candidates(packages):
        if adapter.accepts(model):
            return adapter.to_posterior(model)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    if any("Acquisition" in base.__name__ for base in type(model).__mro__):
        raise UnsupportedModelError(
            f"model: {kind} is an acquisition function, not a model: pass its model, mostly "
            "acquisition.model; mean + beta std and the like are asked of it by quantity='ucb' "
            "(or 'lcb', 'mean', 'std') and beta="
        )
    pair = _pair_of(model)
    if pair is not None:
        parts = model if isinstance(model, tuple | list) else (model,)
        raise UnsupportedModelError(
            f"model: expected a model, or a {pair} and its likelihood as the tuple (model, "
            f"likelihood), got {kind}: {', '.join(type(part).__name__ for part in parts)}"
        )
    models: dict[str, list[str]] = {}
    for library, row in supported().rows:
        models.setdefault(library, []).append(row.model)
    names = [f"{library} {', '.join(each)}" for library, each in models.items()]
    raise UnsupportedModelError(
        f"model: expected a gpcert Posterior, or a fitted {'; '.join(names)}; got {kind}. "
        "gpcert.adapters.supported() says more; else write the model's numbers as "
        "Posterior(kernel, points, weights, factor, ...), or an adapter (docs/models.md)"
    )


def _pair_of(model: Any) -> str | None:
    """The models that are passed with their likelihood, where one is among these parts, or where
    this is a likelihood alone."""
    parts = model if isinstance(model, tuple | list) else (model,)
    bases = [base for part in parts for base in type(part).__mro__]
    known = {(base.__module__.partition(".")[0], base.__name__) for base in bases}
    for adapter in built_in():
        if isinstance(adapter, LibraryAdapter) and adapter.pair:
            module, name = adapter.module, adapter.pair[0]
            if {(module, name), (module, "Likelihood")} & known:
                return f"{adapter.LIBRARY} {name}"
    return None


def _candidates(packages: set[str]) -> Iterator[Adapter]:
    """Adapters of models of these packages, each found when it is asked for: reading the entry
    points of all that is installed takes longer than most conversions."""
    yield from (adapter for package, adapter in REGISTERED if package in packages)
    yield from built_in(packages)
    yield from _declared(packages)


def built_in(packages: set[str] | None = None) -> Iterator[Adapter]:
    """Our own, each imported when it is come to."""
    for package, name in BUILT_IN:
        if packages is None or package in packages:
            yield check_adapter(resolve_name(f"gpcert.adapters.{name}"), name)


def _declared(packages: set[str] | None = None) -> list[Adapter]:
    """Those of entry points."""
    return [
        check_adapter(each.load(), f"entry point {each.value!r} of {GROUP!r}")
        for each in entry_points(group=GROUP)
        if packages is None or each.name in packages
    ]


COLUMNS = ("library", "model", "likelihood", "kernels", "note")


@dataclass(frozen=True)
class SupportTable:
    """Rows of library and `Supported`; `print` shows them, `to_frame` and `markdown` convert."""

    rows: tuple[tuple[str, Supported], ...]

    def __str__(self) -> str:
        lines = []
        for library, row in self.rows:
            lines.append(f"{library} {row.model}: {row.likelihood}")
            lines.append(f"    kernels: {', '.join(row.kernels)}")
            lines += [f"    {row.note}"] if row.note else []
        return "\n".join(lines)

    def __len__(self) -> int:
        return len(self.rows)

    def to_frame(self) -> Any:
        """A pandas data frame, one row per class of models."""
        pandas = optional("pandas", "to_frame")
        return pandas.DataFrame(self._cells(), columns=list(COLUMNS))

    def markdown(self) -> str:
        """The table as docs/models.md holds it."""
        rows = (COLUMNS, ["---"] * len(COLUMNS), *self._cells())
        return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (library, row.model, row.likelihood, ", ".join(row.kernels), row.note)
            for library, row in self.rows
        ]


def support_of(adapters: Iterable[Adapter]) -> SupportTable:
    """The table of these adapters."""
    return SupportTable(tuple((each.LIBRARY, row) for each in adapters for row in each.SUPPORTED))


def supported() -> SupportTable:
    """What `gpcert.certify` and the other verbs take: library, model, likelihood, kernels.

    Adapters of other packages (by `register` or by entry point) are in it.

    >>> table = supported()
    >>> "GaussianProcessRegressor" in str(table), list(table.to_frame().columns)[:2]
    (True, ['library', 'model'])
    """
    return support_of([*built_in(), *(adapter for _, adapter in REGISTERED), *_declared()])
