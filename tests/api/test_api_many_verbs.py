"""Radii and ranges of many points as one table."""

import numpy as np
import pytest

import gpcert
from gpcert.api import many
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Softmax

P = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
X = np.array([[0.0], [1.0], [2.5]])


def test_radii_are_those_of_single_points():
    table = gpcert.certified_radius_many(P, X, threshold=0.0, rtol=0.05)
    for x, row in zip(X, table, strict=True):
        single = gpcert.certified_radius(P, x, threshold=0.0, rtol=0.05)
        # both bracket the same radius
        assert row.lower <= single.upper
        assert single.lower <= row.upper
        assert row.lower >= 0.95 * row.upper


def test_ranges_around_points_and_over_regions():
    around = gpcert.prediction_range_many(P, X, 0.5)
    over = gpcert.prediction_range_many(P, [gpcert.Ball(x, 0.5) for x in X])
    for x, one, other in zip(X, around, over, strict=True):
        single = gpcert.prediction_range(P, gpcert.Ball(x, 0.5))
        assert one.minimum == other.minimum
        # shared batches have other coordinates, and so other roundings
        assert one.minimum.lower == pytest.approx(single.minimum.lower, rel=1e-12)
        assert one.minimum.upper == pytest.approx(single.minimum.upper, rel=1e-12)


def test_all_classes_have_rows():
    weights = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0], [3.0]], weights, likelihood=Softmax())
    table = gpcert.prediction_range_many(model, X[:2], 0.1, tol=0.05)
    assert table.labels == (0, 0, 0, 1, 1, 1)
    assert [row.output for row in table][:3] == list(model.labels)
    one = gpcert.prediction_range_many(model, X[:2], 0.1, tol=0.05, output=1)
    assert one.labels == (0, 1)


def test_two_processes_find_the_same():
    serial = gpcert.certified_radius_many(P, X, threshold=0.0, rtol=0.05)
    parallel = gpcert.certified_radius_many(P, X, threshold=0.0, rtol=0.05, n_jobs=2)
    assert [row.lower for row in serial] == [row.lower for row in parallel]
    assert parallel.labels == (0, 1, 2)


@pytest.mark.parametrize("verb", ["radius", "range"])
def test_an_interrupt_keeps_what_is_finished(verb, monkeypatch):
    name = "radius_at" if verb == "radius" else "ranges_over"
    plain = getattr(many, name)
    calls = []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    monkeypatch.setattr(many, name, interrupted)
    for each in ("ranges_batched", "radii_batched"):
        monkeypatch.setattr(many, each, None)  # one by one
    if verb == "radius":
        table = gpcert.certified_radius_many(P, X, threshold=0.0, rtol=0.05)
    else:
        table = gpcert.prediction_range_many(P, X, 0.1)
    assert not table.complete
    assert table.labels == (0, 1)
