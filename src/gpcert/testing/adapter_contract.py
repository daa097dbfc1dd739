"""The contract of an adapter: a new one inherits its tests from here.

    class TestMine(AdapterContract):
        adapter = my_adapter                      # the module
        models: ClassVar = {"plain": lambda: MyModel().fit(X, y)}
        refused: ClassVar = {"odd kernel": (lambda: MyModel(kernel="odd").fit(X, y), "odd")}
        not_ready: ClassVar = {"unfitted": (MyModel, "fit")}

`models` are fitted models that are taken; `refused` are models with the words (a regular
expression) that the refusal must say: it names the part and says what to do; `not_ready` are
unfitted ones and ones in training mode, with the words of the message, or None where the adapter
switches them itself. Needs pytest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.adapters.adapter import Conversion, LibraryPrediction, check_adapter
from gpcert.adapters.measure import check_agreement, probe_points
from gpcert.adapters.registry import as_posterior
from gpcert.adapters.registry import convert as registered
from gpcert.certificates import Status
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.likelihoods import ClassLikelihood
from gpcert.model.committee import Committee, Model
from gpcert.regions import Ball
from gpcert.search import Budget
from gpcert.testing.effort import examples
from gpcert.utils.option_names import QuantityName

Build = Callable[[], Any]

SAMPLES = examples(10_000, quick=2_000)
"""Points of a region at which the library is asked."""

BOXES = 20
"""Boxes of the search for a verdict."""

RANGE_BOXES = examples(BOXES, quick=3)
"""Boxes of the search for a range: bounds hold whenever it ends."""


class AdapterContract:
    """Inherit, give `adapter`, `models`, `refused` and `not_ready`; pytest collects the rest."""

    adapter: ClassVar[Any]
    models: ClassVar[Mapping[str, Build]]
    refused: ClassVar[Mapping[str, tuple[Build, str]]] = {}
    not_ready: ClassVar[Mapping[str, tuple[Build, str | None]]] = {}

    tolerance: ClassVar[float] = 1e-8
    """Largest relative difference of the predictions of float64 models."""

    radius: ClassVar[float] = 0.05
    """Radius of the regions, as a part of the width of the model's points in every feature."""

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """One test per model."""
        every = {"taken": self.models, "refusal": self.refused, "unready": self.not_ready}
        for argument, cases in every.items():
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, list(cases.values()), ids=list(cases))

    def test_it_is_an_adapter_with_a_table(self) -> None:
        """The four names are there, and the table names every model."""
        adapter = check_adapter(self.adapter, "adapter")
        assert adapter.LIBRARY
        for row in adapter.SUPPORTED:
            assert row.model, row
            assert row.likelihood, row
            assert row.kernels, row

    def test_it_leaves_other_models_alone(self) -> None:
        """`accepts` says no to what is not its own."""
        for other in (None, 3.0, object(), self):
            assert not self.adapter.accepts(other)

    def test_predictions_agree(self, taken: Build) -> None:
        """The posterior predicts what the library predicts, at random points."""
        model = taken()
        conversion = _converted(self.adapter, model)
        X = probe_points(conversion.posterior)
        measured = check_agreement(conversion.posterior, conversion.predict, X, self.tolerance)
        said = (measured.mean, measured.variance, measured.probability, measured.decisions)
        said += (measured.response,)
        assert any(part is not None for part in said), "the library was asked for nothing"
        # through the registry, as a user calls it
        assert as_posterior(model).fingerprint == conversion.posterior.fingerprint
        assert registered(model).posterior.fingerprint == conversion.posterior.fingerprint

    def test_certified_ranges_contain_the_predictions(self, taken: Build) -> None:
        """Ranges over a region contain what the library says at points of it."""
        conversion = _converted(self.adapter, taken())
        posterior = conversion.posterior
        region, X = self._region(posterior)
        library = _asked(conversion, X)
        compared = 0
        for quantity, values in _quantities(posterior, library).items():
            width = np.abs(values).max(0)
            for index, label in _outputs(posterior, quantity, values.shape[1]):
                bounds = gpcert.prediction_range(
                    posterior,
                    region,
                    quantity=quantity,
                    output=label,
                    budget=Budget(boxes=RANGE_BOXES),
                )
                means, slack = values[:, index], self.tolerance * float(width[index])
                # the library rounds; what is certified does not
                assert bounds.minimum.lower - slack <= means.min(), (bounds, means.min())
                assert means.max() <= bounds.maximum.upper + slack, (bounds, means.max())
                compared += 1
        assert compared or library.decision is not None

    def test_verdicts_are_what_predict_returns(self, taken: Build) -> None:
        """A proved decision is the library's at points of the region; a counter-example is none."""
        conversion = _converted(self.adapter, taken())
        posterior = conversion.posterior
        region, X = self._region(posterior)
        if _asked(conversion, X[:1]).decision is None:
            pytest.skip("no decisions are reported")
        labels = posterior.labels
        cert = gpcert.certify(posterior, region.center, region=region, budget=Budget(boxes=BOXES))
        decided = _asked(conversion, X).decision
        assert decided is not None
        if cert.status is Status.ROBUST:
            assert {labels[index] for index in decided} == {cert.decision}
        elif cert.status is Status.NOT_ROBUST:
            at = _asked(conversion, np.asarray(cert.counterexample)[None]).decision
            assert at is not None
            assert labels[at[0]] != cert.decision

    def test_unsupported_parts_are_refused_by_name(self, refusal: tuple[Build, str]) -> None:
        """The message names the part and says what to do."""
        build, message = refusal
        with pytest.raises(UnsupportedModelError, match=message):
            self.adapter.to_posterior(build())

    def test_models_that_are_not_ready(self, unready: tuple[Build, str | None]) -> None:
        """Unfitted or training models are refused with a clear message, or switched."""
        build, message = unready
        model = build()
        assert self.adapter.accepts(model)
        if message is None:
            conversion = _converted(self.adapter, model)
            check_agreement(conversion.posterior, conversion.predict, tolerance=self.tolerance)
            return
        with pytest.raises((InputError, UnsupportedModelError), match=message):
            self.adapter.to_posterior(model)

    def _region(self, model: Model) -> tuple[Ball, np.ndarray]:
        """A box about one of the model's points, and points of it."""
        random, Z = np.random.default_rng(1), model.places
        width = np.ptp(Z, axis=0)
        radius = self.radius * np.where(width > 0, width, 1.0)
        radius[list(model.levels)] = 0.0  # a region keeps categories
        center = Z[len(Z) // 2]
        region = Ball(center, radius)
        X = center + radius * random.uniform(-1.0, 1.0, size=(SAMPLES, model.dim))
        X[: SAMPLES // 10] = center + radius * np.sign(X[: SAMPLES // 10] - center)
        return region, X


def _converted(adapter: Any, model: Any) -> Conversion:
    assert adapter.accepts(model)
    return adapter.to_posterior(model)


def _asked(conversion: Conversion, X: np.ndarray) -> LibraryPrediction:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return conversion.predict(X)


def _quantities(model: Model, library: LibraryPrediction) -> dict[QuantityName, np.ndarray]:
    """What the library reports and a range can be asked of, each (n, outputs)."""
    predictions: dict[QuantityName, np.ndarray] = {}
    if library.classes is not None:
        predictions["probability"] = library.classes
    if isinstance(model, Committee):
        return predictions
    if library.probability is not None:
        predictions["probability"] = library.probability[:, None]
    parts: dict[QuantityName, Any] = {"mean": library.mean, "variance": library.variance}
    parts["response"] = library.response
    predictions.update({name: part for name, part in parts.items() if part is not None})
    return predictions


def _outputs(model: Model, quantity: str, count: int) -> list[tuple[int, Any]]:
    """Columns and the labels by which a range is asked for."""
    if isinstance(model, Committee):
        return list(enumerate(model.classes))
    if isinstance(model.likelihood, ClassLikelihood):
        mixed = model.likelihood.mixes and quantity != "probability"
        return list(enumerate(range(count) if mixed else model.labels))
    if model.likelihood.classifies:
        return [(0, None if quantity != "probability" else model.labels[1])]
    return [(index, index) for index in range(count)]
