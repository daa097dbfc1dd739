"""`gpcert verify` and `show`: what a certificate says, and whether it holds."""

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("flint")
import gpcert
from gpcert.cli.app import app
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def files(tmp_path):
    """A certificate, its model and another one."""
    points, names = np.array([[0.0], [3.0]]), ("age",)
    model = gpcert.Posterior(
        SquaredExponential(1.0), points, weights=[1.0, -1.0], feature_names=names
    )
    other = gpcert.Posterior(SquaredExponential(1.0), points, weights=[2.0, -1.0])
    paths = [tmp_path / name for name in ("x.cert", "model.npz", "other.npz")]
    gpcert.certify(model, [0.0], radius=1.0, threshold=0.0, proof=True).save(paths[0])
    model.save(paths[1])
    other.save(paths[2])
    return paths


def test_verify_checks_the_claim_and_the_model(files):
    path, model, other = files
    assert run("verify", path).exit_code == 0
    assert run("verify", path, "--model", model).exit_code == 0
    assert run("verify", path, "--model", other).exit_code == 1


def test_show_prints_certificates_and_records(files, tmp_path):
    path, model, _ = files
    shown = run("show", path)
    assert shown.exit_code == 0
    for word in ("ROBUST", "age", "sha256", "squared_exponential", "gpcert verify"):
        assert word in shown.output
    cert = gpcert.certify(gpcert.Posterior.load(model), [0.0], radius=1.0, threshold=0.0)
    cert.save(tmp_path / "record.json")
    assert "ROBUST" in run("show", tmp_path / "record.json").output


def test_a_certificate_is_no_record(files):
    with pytest.raises(InputError, match="gpcert verify"):
        gpcert.load(files[0])
