"""Certificates over random models, kernels and questions are accepted."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flint")
import gpcert
from gpcert.certificates.proof import model_parts, model_sha256
from gpcert.errors import InputError
from gpcert.functions import Curve, Log
from gpcert.kernels import SquaredExponential
from gpcert.regions import LinearMap
from gpcert.testing.effort import THOROUGH
from tests.check.check_cases import CHECKED, NOT_COVERED, REFUTED, random_certificate, verdict
from tests.check.exam_cases import exam_certificate
from tests.check.forgeries import opened, written

SEEDS = 10_000 if THOROUGH else 100
EXAM = 2000 if THOROUGH else 24


@pytest.mark.parametrize("block", range(10))
def test_random_certificates_are_accepted(tmp_path, block):
    path, checked = tmp_path / "random.cert", 0
    for seed in range(block, SEEDS, 10):
        cert = random_certificate(np.random.default_rng(seed))
        if cert is None:
            continue
        cert.save(path)
        assert verdict(path) == CHECKED, f"seed {seed}"
        checked += 1
    assert checked > 5


@pytest.mark.parametrize("block", range(4))
def test_certificates_of_the_exam_are_accepted(tmp_path, block):
    path = tmp_path / "exam.cert"
    for seed in range(block, EXAM, 4):
        cert = exam_certificate(np.random.default_rng(seed))
        if cert is not None:
            cert.save(path)
            assert verdict(path) == CHECKED, f"seed {seed}"


def hilly(N=40, d=2):
    rng = np.random.default_rng(3)
    points = rng.uniform(-2, 2, (N, d))
    kernel = SquaredExponential(0.8)
    K = kernel.value(points, points) + 1e-3 * np.eye(N)
    weights = np.linalg.solve(K, np.sin(3 * points).sum(1))
    return gpcert.Posterior(kernel, points, weights, training_noise=1e-3)


def test_a_tree_of_many_leaves_is_written_and_checked_by_several_processes(tmp_path):
    path, box = tmp_path / "range.cert", gpcert.Box([-1.5, -1.5], [1.5, 1.5])
    found = gpcert.prediction_range(hilly(), box, tol=0.01, proof=True)
    assert found.boxes > 20
    found.save(path)
    assert verdict(path) == CHECKED
    assert verdict(path, "--jobs", "2") == CHECKED


def test_a_refuted_decision_is_checked_at_both_points(tmp_path):
    path, model = tmp_path / "refuted.cert", hilly()
    cert = gpcert.certify(model, [0.0, 0.5], radius=1.0, threshold=0.1, proof=True)
    assert cert.status is gpcert.Status.NOT_ROBUST
    cert.save(path)
    assert verdict(path) == CHECKED


def test_radii_of_many_points_share_a_file(tmp_path):
    path, X = tmp_path / "radii.cert", np.array([[0.0, 0.5], [0.5, 0.5], [1.0, -0.5]])
    asked = {"threshold": 0.1, "rtol": 0.1, "max_radius": 1.0}
    table = gpcert.certified_radius_many(hilly(), X, **asked, proof=True)
    plain = gpcert.certified_radius_many(hilly(), X, **asked)
    assert [row.lower for row in table] == [row.lower for row in plain]
    table.save(path)
    assert verdict(path) == CHECKED
    header, arrays = opened(path)
    claimed = header["answer"]["rows"]
    assert len(claimed) == sum(row.lower > 0 for row in plain) > 1
    claimed[0]["upper"] = 0.5 * claimed[0]["lower"]
    written(path, header, arrays)
    assert verdict(path) == REFUTED


def test_without_a_proof_there_is_no_such_file(tmp_path):
    cert = gpcert.certify(hilly(), [0.0, 0.5], radius=1.0, threshold=0.1)
    with pytest.raises(InputError, match="proof=True"):
        cert.save(tmp_path / "no.cert")
    cert.save(tmp_path / "record.json")
    again = gpcert.certify(hilly(), [0.0, 0.5], radius=1.0, threshold=0.1, proof=True)
    again.save(tmp_path / "with.json")  # the record is the same, without the proof
    assert gpcert.load(tmp_path / "with.json").proof is None


def test_functions_of_inputs_are_refused_and_tell_models_apart(tmp_path):
    curves = {0: Curve((Log(),))}
    bent = replace(hilly(), features=LinearMap(np.eye(2), curves=curves))
    with pytest.raises(InputError, match=r"proof.*functions of its inputs"):
        gpcert.certify(bent, [1.0, 0.5], radius=0.1, threshold=0.0, proof=True)
    plain = replace(hilly(), features=LinearMap(np.eye(2)))
    of_both = [model_sha256(*model_parts(model, by_means=True)) for model in (bent, plain)]
    assert of_both[0] != of_both[1]
    path = tmp_path / "x.cert"
    gpcert.certify(plain, [1.0, 0.5], radius=0.01, threshold=-9.0, proof=True).save(path)
    header, arrays = opened(path)
    header["model"]["curves"] = model_parts(bent, by_means=True)[0]["curves"]
    written(path, header, arrays)
    assert header["model"]["curves"]
    assert verdict(path) == NOT_COVERED
    written(path, header, arrays, rehash=False)
    assert verdict(path) == REFUTED


def test_what_the_checker_does_not_know_is_refused_by_name():
    with pytest.raises(InputError, match=r"proof.*Deviation"):
        gpcert.certify(hilly(), [0.0, 0.5], radius=0.1, delta=0.1, proof=True)
    with pytest.raises(InputError, match=r"proof.*l_inf"):
        gpcert.certify(hilly(), [0.0, 0.5], radius=0.1, norm=3, threshold=0.0, proof=True)
