"""Forged certificates are rejected: whatever makes a claim false, and files that are none."""

import json
import zlib

import numpy as np
import pytest

pytest.importorskip("flint")
import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.testing.effort import THOROUGH
from gpcert_check import container
from tests.check.changed import broken_files, changed
from tests.check.check_cases import (
    BAD_FILE,
    CHECKED,
    NOT_COVERED,
    REFUTED,
    random_certificate,
    verdict,
)
from tests.check.forgeries import forgeries, opened, written

SEEDS = 1000 if THOROUGH else 12
FALSE = {REFUTED, NOT_COVERED}
REJECTED = {*FALSE, BAD_FILE}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_makes_a_claim_false_is_rejected(tmp_path, seed):
    rng = np.random.default_rng(1000 + seed)
    path, certificate = tmp_path / "x.cert", random_certificate(rng)
    if certificate is None:
        return
    certificate.save(path)
    content, parts = path.read_bytes(), opened(path)
    forged = [*forgeries(*parts, certificate, rng), *changed(*parts, rng)]
    assert len(forged) > 2
    for what, header, arrays in forged:
        written(path, header, arrays, rehash=what != "hash")
        assert verdict(path, "--splits", "300") in REJECTED, what
    for what, broken in broken_files(content, rng):
        path.write_bytes(broken)
        assert verdict(path) == BAD_FILE, what


def decided():
    """A classifier with a decision that changes between its two points."""
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0], [3.0]], weights=[1.0, -1.0])
    return model, {"threshold": 0.0, "proof": True}


@pytest.fixture
def robust(tmp_path):
    """A file that claims a decision, which is proved."""
    model, options = decided()
    path = tmp_path / "robust.cert"
    gpcert.certify(model, [0.0], radius=1.0, **options).save(path)
    assert verdict(path) == CHECKED
    return path


@pytest.fixture
def refuted(tmp_path):
    """A file with a counter-example."""
    model, options = decided()
    path = tmp_path / "refuted.cert"
    gpcert.certify(model, [0.0], radius=2.0, **options).save(path)
    assert verdict(path) == CHECKED
    return path


def forged(path, change, rehash=True):
    header, arrays = opened(path)
    change(header, arrays)
    written(path, header, arrays, rehash)
    return verdict(path, "--splits", "2000")


def test_another_region_threshold_or_side_is_refuted(robust):
    def larger(header, arrays):
        header["question"]["region"]["radius"] = 2.0

    def larger_with_its_root(header, arrays):
        header["question"]["region"]["radius"] = 2.0
        arrays["root"] = np.array([[-2.0], [2.0]])

    def level(header, arrays):
        header["question"]["level"] = ["9", "10"]

    def side(header, arrays):
        header["question"]["goal"]["sign"] = -1

    before = robust.read_bytes()
    for change in (larger, larger_with_its_root, level, side):
        robust.write_bytes(before)
        assert forged(robust, change) == REFUTED


def test_a_moved_counterexample_is_refuted(refuted):
    before = refuted.read_bytes()
    for place in (1.0, 2.5):  # decided as x is; outside the region
        refuted.write_bytes(before)

        def change(header, arrays, place=place):
            header["answer"]["counterexample"] = [place]

        assert forged(refuted, change) == REFUTED


def test_a_changed_model_is_refuted_by_its_hash_or_by_the_claim(robust):
    def weight(header, arrays):
        arrays["model_weights"][0, 0] = -1.0

    def point(header, arrays):
        arrays["model_points"][0, 0] = 9.0

    def length(header, arrays):
        header["model"]["kernel"][1]["length_scale"] = 0.1

    def kind(header, arrays):
        header["model"]["kernel"] = ["constant", {"variance": 0.0}]

    before = robust.read_bytes()
    for change in (weight, point, length, kind):
        robust.write_bytes(before)
        assert forged(robust, change, rehash=False) == REFUTED
        robust.write_bytes(before)
        assert forged(robust, change) in FALSE


def test_a_tree_without_a_leaf_does_not_cover(tmp_path):
    path = tmp_path / "tree.cert"
    rng = np.random.default_rng(1)
    model = gpcert.Posterior(SquaredExponential(0.3), rng.random((30, 1)), rng.normal(size=30))
    gpcert.prediction_range(model, gpcert.Box([0.0], [1.0]), tol=1e-3, proof=True).save(path)

    def removed(header, arrays):
        arrays["axes"] = np.array([0, -1], dtype="<i4")

    def grown(header, arrays):
        arrays["axes"] = np.array([-1, -1], dtype="<i4")

    def outside(header, arrays):
        arrays["axes"], arrays["cuts"] = np.array([-2, -1, -1], dtype="<i4"), np.array([2.0])

    def smaller(header, arrays):
        arrays["root"] = np.array([[0.0], [0.5]])

    before = path.read_bytes()
    expected = {removed: REFUTED, grown: BAD_FILE, outside: BAD_FILE, smaller: REFUTED}
    for change, code in expected.items():
        path.write_bytes(before)
        assert forged(path, change) == code


def test_files_that_are_none_are_named_so(robust, tmp_path):
    content, path = robust.read_bytes(), tmp_path / "bad.cert"
    rng = np.random.default_rng(0)
    for size in (0, 5, 20, 60, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        assert verdict(path) == BAD_FILE
    for _ in range(60):  # a flipped byte: never an error of Python's own
        broken = bytearray(content)
        broken[rng.integers(len(broken))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(broken))
        assert verdict(path) in {CHECKED, REFUTED, NOT_COVERED, BAD_FILE}
    path.write_bytes(b"PK\x03\x04" + content)
    assert verdict(path) == BAD_FILE
    assert verdict(tmp_path / "missing.cert") == BAD_FILE


def test_dishonest_sizes_take_no_memory(robust):
    header, _ = opened(robust)
    text = dict(header, arrays=[["model_points", "f8", [10**6, 10**6]]])
    packed = json.dumps(text).encode()
    start = container.MAGIC + len(packed).to_bytes(8, "little") + packed
    robust.write_bytes(start + zlib.compress(b"\0" * 1000))
    assert verdict(robust) == BAD_FILE
    packed = json.dumps(dict(header, answer="[" * 100_000)).encode()
    robust.write_bytes(container.MAGIC + len(packed).to_bytes(8, "little") + packed)
    assert verdict(robust) == BAD_FILE


def test_what_is_not_known_is_not_covered(robust):
    def kernel(header, arrays):
        header["model"]["kernel"] = ["cosine", {"frequency": 1.0, "variance": 1.0}]

    def quantity(header, arrays):
        header["question"]["goal"]["quantity"] = "share"

    def claim(header, arrays):
        header["claim"] = "C"

    def level(header, arrays):
        header["question"]["level"] = ["1", "0"]

    before = robust.read_bytes()
    assert forged(robust, level) == BAD_FILE
    for change in (kernel, quantity, claim):
        robust.write_bytes(before)
        assert forged(robust, change) == NOT_COVERED
