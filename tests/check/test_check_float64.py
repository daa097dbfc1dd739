"""Claims of kind B: about what float64 gives, too."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flint")
import gpcert
from gpcert.certificates.proof import MAGIC
from gpcert.errors import InputError
from gpcert.kernels import Constant, Matern, RationalQuadratic, SquaredExponential
from gpcert.model.float64 import evaluation_error
from tests.check.check_cases import CHECKED, NOT_COVERED, REFUTED, verdict

KERNELS = [
    SquaredExponential([0.7, 1.0], 2.0),
    Matern(1.0, 2.5) * SquaredExponential(2.0) + Constant(0.5),
    0.3 * RationalQuadratic(1.0, 2.0),
]


def model_of(kernel, seed=0):
    rng = np.random.default_rng(seed)
    points, weights = rng.uniform(-2, 2, (20, 2)), rng.normal(size=20)
    return gpcert.Posterior(kernel, points, weights, offset=[0.3], scale=[2.0])


def with_claim(path, kind):
    """The file with another kind of claim."""
    content = path.read_bytes()
    start = len(MAGIC) + 8
    end = start + int.from_bytes(content[len(MAGIC) : start], "little")
    header = {**json.loads(content[start:end]), "claim": kind}
    text = json.dumps(header).encode()
    path.write_bytes(MAGIC + len(text).to_bytes(8, "little") + text + content[end:])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_claims_about_float64_are_checked(kernel, tmp_path):
    model, path = model_of(kernel), tmp_path / "x.cert"
    for radius in (0.02, 1.5):
        found = gpcert.certify(model, [0.3, 0.0], radius, threshold=0.0, proof="B")
        assert found.status in ("ROBUST", "NOT_ROBUST")
        found.save(path)
        assert verdict(path) == CHECKED
    asked = {"quantity": "mean", "tol": 1e-2}
    wide = gpcert.prediction_range(model, [0.3, 0.0], 0.5, **asked, proof="B")
    plain = gpcert.prediction_range(model, [0.3, 0.0], 0.5, **asked)
    assert wide.minimum.lower < plain.minimum.lower
    assert wide.minimum.upper > plain.minimum.upper
    wide.save(path)
    assert verdict(path) == CHECKED
    with_claim(path, "A")
    assert verdict(path) == CHECKED  # the weaker claim
    with_claim(path, "C")
    assert verdict(path) == NOT_COVERED


def test_what_holds_in_real_arithmetic_only(tmp_path):
    """A level nearer to the least mean than float64 can tell it."""
    model, path = model_of(KERNELS[0]), tmp_path / "x.cert"
    box = gpcert.Box([0.3, 0.0], [0.3, 0.0])
    error = evaluation_error(model, 0, box.lower, box.upper)
    value = gpcert.prediction_range(model, box, quantity="mean", tol=0.0).minimum.lower
    level = value - 0.5 * error
    real = gpcert.certify(model, [0.3, 0.0], region=box, threshold=level, proof=True)
    assert real.status == "ROBUST"
    real.save(path)
    assert verdict(path) == CHECKED
    with_claim(path, "B")
    assert verdict(path) == NOT_COVERED  # neither proved nor refuted
    assert (
        gpcert.certify(model, [0.3, 0.0], region=box, threshold=level, proof="B").status
        == "UNKNOWN"
    )
    below = replace(real.proof, question=real.proof.question, claim="B")
    below.save(path)
    assert verdict(path) == NOT_COVERED
    below.question["level"] = [str(part) for part in (value + 2 * error).as_integer_ratio()]
    below.save(path)
    assert verdict(path) == REFUTED


def test_counterexamples_within_the_error_refute_nothing(tmp_path):
    model, path = model_of(KERNELS[0]), tmp_path / "x.cert"
    x, other = np.array([0.3, 0.0]), np.array([1.0, 0.5])
    region = gpcert.Box(np.minimum(x, other), np.maximum(x, other))
    error = evaluation_error(model, 0, region.lower, region.upper)
    ends = [
        gpcert.prediction_range(model, gpcert.Box(p, p), quantity="mean", tol=0.0).minimum
        for p in (x, other)
    ]
    sign = 1.0 if ends[0].lower > ends[1].upper else -1.0
    level = ends[1].upper + sign * 0.5 * error  # the point's value is that far on the other side
    found = gpcert.certify(model, x, region=region, threshold=level, proof=True)
    assert found.status == "NOT_ROBUST"
    found.proof.answer["counterexample"] = other.tolist()
    found.proof.save(path)
    assert verdict(path) == CHECKED
    with_claim(path, "B")
    assert verdict(path) == NOT_COVERED


def test_what_has_no_such_claims():
    model = model_of(KERNELS[0])
    x, level = [0.3, 0.0], {"threshold": 0.0, "proof": "B"}
    for call in (
        lambda: gpcert.certify_many(model, [x], 0.1, **level),
        lambda: gpcert.certified_radius(model, x, **level),
        lambda: gpcert.maximize(model, [(-1, 1)] * 2, proof="B"),
        lambda: gpcert.prediction_range(model, x, 0.1, quantity="std", proof="B"),
        lambda: gpcert.certify(model, x, 0.1, threshold=0.0, proof="b"),
    ):
        with pytest.raises(InputError, match="proof"):
            call()
