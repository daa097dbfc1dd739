"""Many boxes and many points on a cluster of Dask's, chosen by the user with joblib."""

import joblib
import numpy as np
import pytest

import gpcert
import gpcert.api.boxes as boxes
import gpcert.api.many as many
import gpcert.api.running as parallel
from gpcert.kernels import SquaredExponential
from gpcert.search import Budget
from gpcert.testing.effort import THOROUGH

distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
MODEL = gpcert.Posterior(
    SquaredExponential([0.5, 0.7]), RNG.uniform(-1, 1, (20, 2)), RNG.normal(size=20)
)
X = RNG.uniform(-1, 1, (12, 2))


def _answers():
    low = np.repeat(X, 3, axis=0)
    bounds = gpcert.bound_boxes(MODEL, low, low + 0.05)
    table = gpcert.certify_many(MODEL, X, 0.3, threshold=0.1, budget=Budget(seconds=None, boxes=9))
    return bounds["mean"], [(c.status, c.margin, c.boxes) for c in table]


def test_pieces_run_on_a_cluster_and_the_model_travels_once(monkeypatch):
    monkeypatch.setattr(boxes, "BLOCK", 6)
    monkeypatch.setattr(many, "POINTS_PER_BATCH", 3)
    monkeypatch.setattr(parallel, "START_SECONDS", -1.0)  # all but two pieces leave this process
    here = _answers()
    with (
        distributed.LocalCluster(
            n_workers=1 + THOROUGH, threads_per_worker=2 - THOROUGH, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        sent, scatter = [], client.scatter

        def counted(data, **options):
            sent.append(data)
            return scatter(data, **options)

        monkeypatch.setattr(client, "scatter", counted)
        there = _answers()
        loaded = client.run(lambda: "gpcert.api.boxes" in __import__("sys").modules)
        assert any(loaded.values())  # the workers did it
    np.testing.assert_array_equal(there[0], here[0])
    assert there[1] == here[1]
    models = [data for data in sent if isinstance(data, parallel.Common)]
    assert 1 <= len(models) <= 3  # one for each run of pieces, not one for each piece
    assert all(len(data.values) == 1 for data in models)
