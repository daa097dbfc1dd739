"""Claims of kind B: about what float64 gives, too."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flint")
from flint import ctx

import gpcert
from gpcert.certificates.proof import MAGIC
from gpcert.errors import InputError
from gpcert.kernels import Constant, Matern, RationalQuadratic, SquaredExponential
from gpcert.model.float64 import band_error, evaluation_error, variance_error
from gpcert_check.container import unpack
from gpcert_check.questions import certificates
from tests.check.check_cases import CHECKED, NOT_COVERED, REFUTED, verdict
from tests.check.forgeries import opened, written

KERNELS = [
    SquaredExponential([0.7, 1.0], 2.0),
    Matern(1.0, 2.5) * SquaredExponential(2.0) + Constant(0.5),
    0.3 * RationalQuadratic(1.0, 2.0),
]


def model_of(kernel, seed=0):
    rng = np.random.default_rng(seed)
    points, weights = rng.uniform(-2, 2, (20, 2)), rng.normal(size=20)
    return gpcert.Posterior(kernel, points, weights, offset=[0.3], scale=[2.0])


def regression(kernel, noise, factored, seed=0):
    """A posterior with a variance, by the noise of its points or by its factor alone."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2, 2, (15, 2))
    K = kernel.value(points, points) + noise * np.eye(15)
    how = {"training_noise": noise}
    if factored:
        how = {"factor": np.linalg.inv(np.linalg.cholesky(K)), "noise": 0.01}
    weights = np.linalg.solve(K, rng.normal(size=15))
    return gpcert.Posterior(kernel, points, weights, offset=0.3, scale=2.0, **how)


def in_any_order(model, x, rng):
    """V in float64: kernel values by differences or by squares, sums in a random order."""
    A, order = model.factors_of(0)[0], rng.permutation(len(model.points))
    k = model.kernel.value(x[None], model.points)[0] * (1 + rng.choice([0, 1, -1], 15) * 2.0**-52)
    parts = np.array([np.cumsum((row * k)[order])[-1] for row in A])
    v = model.kernel.diagonal(x[None])[0] - np.cumsum((parts**2)[rng.permutation(len(A))])[-1]
    return model.scale[0] ** 2 * max(v, 0.0) + model.noise[0]


def exact_variance(model, x):
    """V in balls of 256 bits."""
    box = gpcert.Box(x, x)
    proof = gpcert.prediction_range(model, box, quantity="variance", tol=1.0, proof=True).proof
    with ctx.workprec(256):
        certificate = next(certificates(*unpack(proof.to_bytes())))
        ctx.prec = 256
        low, high = certificate._at(x.tolist(), 0).each[0].variance_range(0)
        return low, high


@pytest.mark.parametrize("noise", [0.1, 1e-4, 1e-8])
@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_variances_in_float64_lie_within_their_error(kernel, factored, noise):
    model, rng = regression(kernel, noise, factored), np.random.default_rng(1)
    low, high = np.array([0.2, -0.1]), np.array([0.4, 0.1])
    error, spread = variance_error(model, 0, low, high), band_error(model, 0, low, high)
    assert error < 1e-6  # it says something
    for x in rng.uniform(low, high, (4, 2)):
        least, most = exact_variance(model, x)
        values = [in_any_order(model, x, rng) for _ in range(5)] + [model.predict(x[None])[1][0, 0]]
        for value in values:
            assert least - error <= value
            assert value <= most + error
            assert least.sqrt() - spread <= np.sqrt(value)
            assert np.sqrt(value) <= most.sqrt() + spread


def test_a_factor_of_another_noise_counts():
    """The variance by the factor is far from that by the noise, and both are meant."""
    exact = regression(KERNELS[0], 0.1, False)
    K = exact.kernel.value(exact.points, exact.points) + 0.1001 * np.eye(15)
    factor = np.linalg.inv(np.linalg.cholesky(K))
    model = gpcert.Posterior(
        exact.kernel, exact.points, exact.weights, factor=factor, training_noise=0.1
    )
    x = np.array([0.3, 0.0])
    error = variance_error(model, 0, x, x)
    least, most = exact_variance(model, x)
    value = model.predict(x[None])[1][0, 0]
    assert value > most + 1e-6
    assert least - error <= value <= most + error


@pytest.mark.parametrize("quantity", ["variance", "std", "lcb", "band"])
@pytest.mark.parametrize("factored", [False, True])
def test_claims_about_variances_in_float64_are_checked(quantity, factored, tmp_path):
    model, path = regression(KERNELS[1], 1e-3, factored), tmp_path / "x.cert"
    how = {"quantity": quantity, "tol": 1e-2}
    wide = gpcert.prediction_range(model, [0.3, 0.0], 0.1, **how, proof="B")
    plain = gpcert.prediction_range(model, [0.3, 0.0], 0.1, **how)
    assert wide.minimum.lower < plain.minimum.lower
    wide.save(path)
    assert verdict(path) == CHECKED
    header, arrays = opened(path)
    for k, end in enumerate(header["answer"]["ends"]):
        claimed = end["upper"]  # what is true in real arithmetic alone
        end["upper"] = (plain.minimum.upper, -plain.maximum.lower)[k]
        if quantity == "variance":  # known better than to its error in float64
            low, high = exact_variance(model, np.array(end["point"]))
            end["upper"] = float(high) if k == 0 else -float(low)
        written(path, header, arrays)
        assert verdict(path) == NOT_COVERED, k
        end["upper"] = claimed
    level = plain.minimum.lower - 1e-2
    asked = {"quantity": "std" if quantity == "band" else quantity, "threshold": level}
    found = gpcert.certify(model, [0.3, 0.0], 0.1, **asked, proof="B")
    found.save(path)
    assert verdict(path) == CHECKED


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
        lambda: gpcert.prediction_range(model, x, 0.1, quantity="log_ei", best_f=0.0, proof="B"),
        lambda: gpcert.certify(model, x, 0.1, threshold=0.0, proof="b"),
    ):
        with pytest.raises(InputError, match="proof"):
            call()
