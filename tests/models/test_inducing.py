"""Inducing points: rows of X without replacement, or k-means centres."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.models import classifier
from gpcert.models.classifier import inducing_points


@pytest.fixture
def X():
    return np.random.default_rng(3).normal(size=(40, 3))


def test_random_points_are_different_rows(X):
    Z = inducing_points(X, 15, "random", 0)
    indices = [np.flatnonzero((z == X).all(axis=1)).item() for z in Z]
    assert len(set(indices)) == 15


def test_all_points_can_be_chosen(X):
    Z = inducing_points(X, 40, "random", 0)
    np.testing.assert_array_equal(np.unique(Z, axis=0), np.unique(X, axis=0))


@pytest.mark.parametrize("kind", classifier.INDUCING)
def test_the_seed_decides(X, kind):
    first, again = (inducing_points(X, 5, kind, 1) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (inducing_points(X, 5, kind, 2) != first).any()


@pytest.mark.parametrize("largest", [10, 1000])
def test_kmeans_finds_clusters(monkeypatch, largest):
    monkeypatch.setattr(classifier, "LARGEST_KMEANS", largest)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = np.repeat(centres, 20, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(60, 2))
    found = inducing_points(X, 3, "kmeans", 0)
    for centre in centres:
        assert np.abs(found - centre).max(axis=1).min() < 0.1


def test_duplicated_rows_give_enough_centres():
    assert inducing_points(np.ones((6, 2)), 4, "kmeans", 0).shape == (4, 2)


@pytest.mark.parametrize("count", [0, -1, 41, 2.5, True])
def test_bad_counts_are_refused(X, count):
    with pytest.raises(InputError, match=r"n_inducing: expected a whole number between 1 and .*40"):
        inducing_points(X, count)


def test_bad_kinds_and_inputs_are_refused(X):
    with pytest.raises(InputError, match="inducing: expected one of 'random', 'kmeans'"):
        inducing_points(X, 3, "grid")
    with pytest.raises(ValueError, match="NaN"):
        inducing_points(np.full((5, 2), np.nan), 3)
