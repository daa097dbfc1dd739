"""Pieces of an experiment on a cluster of Dask's, chosen by the user with joblib."""

import sys

import joblib
import pytest

from gpcert.study.experiments import reproduce

distributed = pytest.importorskip("distributed")


@pytest.mark.slow  # tests/api/test_cluster.py has the quick one
def test_pieces_run_on_a_dask_cluster_as_they_run_here(tmp_path):
    here = reproduce("robustness", scale="smallest", output=tmp_path / "here")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        assert joblib.effective_n_jobs(None) == 2
        there = reproduce("robustness", scale="smallest", output=tmp_path / "there", n_jobs=None)
        loaded = client.run(lambda: "gpcert.study.experiments.robustness" in sys.modules)
        assert any(loaded.values())  # the workers did it
    assert there.tables == here.tables
