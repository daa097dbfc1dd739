"""Targets with kernels of their own: every answer about one is that of its posterior alone."""

import dataclasses

import numpy as np
import pytest

import gpcert
from gpcert.adapters.canonical import join_outputs
from gpcert.errors import InputError
from gpcert.explain import effects
from gpcert.kernels import Matern, Periodic, RationalQuadratic, SquaredExponential
from gpcert.likelihoods import Probit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.regions import Ball
from gpcert.testing.effort import THOROUGH, crossed, examples, variants

KERNELS = (
    SquaredExponential([0.4, 1.1], 1.7),
    Matern(0.9, 1.5),
    RationalQuadratic(0.6, 1.3) + Periodic(1.4, 2.0),
)


def member(kernel, seed, N=9, **options):
    random = np.random.default_rng(seed)
    Z = random.uniform(-1.0, 1.0, (N, 2))
    L = np.linalg.cholesky(kernel.value(Z, Z) + 0.1 * np.eye(N))
    weights = np.linalg.solve(L.T, np.linalg.solve(L, random.normal(size=N)))
    options = {"offset": random.normal(), "scale": random.uniform(0.5, 2.0)} | options
    return Posterior(kernel, Z, weights, np.linalg.inv(L), **options)


MEMBERS = tuple(member(kernel, seed, N=6 + seed) for seed, kernel in enumerate(KERNELS))
MODEL = gpcert.SeparateOutputs(MEMBERS)
X = np.array([0.2, -0.3])
REGION = Ball(X, 0.15)
CORNERS = X + 0.15 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
SAMPLES = np.concatenate([CORNERS, REGION.sample(2000, 0)])


@crossed({"quantity": ["mean", "variance", "std", "band"], "method": ["taylor", "both"]}, quick=2)
def test_a_range_is_that_of_the_posterior_alone(quantity, method):
    how = {
        "quantity": quantity,
        "method": method,
        "budget": gpcert.Budget(boxes=examples(20, quick=6)),
    }
    how |= {"beta": 2.0} if quantity == "band" else {}
    found = gpcert.prediction_ranges(MODEL, REGION, **how)
    mean, variance = MODEL.predict(SAMPLES)
    std = np.sqrt(variance)
    low = {"mean": mean, "variance": variance, "std": std, "band": mean - 2.0 * std}[quantity]
    high = {"mean": mean, "variance": variance, "std": std, "band": mean + 2.0 * std}[quantity]
    for c, own in enumerate(found):
        assert own.minimum.lower <= low[:, c].min()
        assert high[:, c].max() <= own.maximum.upper
    one = gpcert.prediction_range(MODEL, REGION, output=1, **how)
    alone = gpcert.prediction_range(MEMBERS[1], REGION, **how)
    assert (one.minimum, one.maximum) == (alone.minimum, alone.maximum)


@variants("norm", [2.0, 1.0, np.inf], 1)
def test_deviations_of_all_targets_together(norm):
    moved = np.linalg.norm(MODEL.mean(SAMPLES) - MODEL.mean(X[None]), ord=norm, axis=1).max()
    how = {"output_norm": norm, "budget": gpcert.Budget(boxes=3000)}
    cert = gpcert.certify(MODEL, X, region=REGION, delta=1.05 * moved, **how)
    assert cert.status.name == "ROBUST"
    cert = gpcert.certify(MODEL, X, region=REGION, delta=0.98 * moved, **how)
    assert cert.status.name == "NOT_ROBUST"
    apart = (MODEL.mean(cert.counterexample[None]) - MODEL.mean(X[None]))[0]
    assert np.linalg.norm(apart, ord=norm) > 0.98 * moved * (1 - 1e-9)
    how |= {"rtol": 0.01 if THOROUGH else 0.5}
    radius = gpcert.certified_radius(MODEL, X, delta=0.98 * moved, max_radius=0.3, **how)
    assert 0.0 < radius.lower < 0.15


def test_the_other_verbs_read_it_like_a_posterior():
    values, slopes = gpcert.predict_gradient(MODEL, SAMPLES[:3])
    for c, own in enumerate(MEMBERS):
        value, slope = gpcert.predict_gradient(own, SAMPLES[:3])
        np.testing.assert_array_equal(values[:, c], value[:, 0])
        np.testing.assert_array_equal(slopes[:, c], slope[:, 0])
    found = effects(MODEL, X, radius=0.1)
    assert np.all(found.lower <= found.upper)
    (row,) = gpcert.worst_case(MODEL, X[None], region=[REGION], output=1, tol=0.1)
    assert row.minimum.lower <= MODEL.mean(SAMPLES)[:, 1].min()
    table = gpcert.certify_many(MODEL, SAMPLES[:2], 0.01, delta=0.5)
    assert [row.status.name for row in table] == ["ROBUST"] * 2
    assert gpcert.as_posterior(MODEL) is MODEL


def test_it_is_saved_and_read_again(tmp_path):
    MODEL.save(tmp_path / "model.npz")
    for again in (gpcert.load(tmp_path / "model.npz"), gpcert.load_model(tmp_path / "model.npz")):
        assert isinstance(again, gpcert.SeparateOutputs)
        assert again.fingerprint == MODEL.fingerprint
        np.testing.assert_array_equal(again.mean(SAMPLES[:5]), MODEL.mean(SAMPLES[:5]))
    assert gpcert.SeparateOutputs(MEMBERS[::-1]).fingerprint != MODEL.fingerprint


def test_outputs_are_joined_where_one_kernel_will_do():
    alike = [dataclasses.replace(MEMBERS[0], kernel=SquaredExponential(0.4, v)) for v in (1, 2)]
    assert isinstance(join_outputs(alike), Posterior)
    joined = join_outputs(MEMBERS)
    assert isinstance(joined, gpcert.SeparateOutputs)
    assert joined.fingerprint == MODEL.fingerprint
    classes = join_outputs(MEMBERS, likelihood=Softmax(), classes=("a", "b", "c"))
    assert isinstance(classes, gpcert.SeparateOutputs)
    assert (classes.likelihood, classes.labels) == (Softmax(), ("a", "b", "c"))


def test_deviations_by_the_papers_intervals_of_each_kernel():
    for delta in (0.02, 2.0):
        certs = [
            gpcert.certify(MODEL, X, 0.1, delta=delta, method=method, variance_bound=how)
            for method, how in (("taylor", None), ("paper", "analytic"), ("both", None))
        ]
        assert len({cert.status for cert in certs}) == 1
        for one in certs:
            assert all(one.margin.lower <= other.margin.upper for other in certs)


def test_mistakes_are_named():
    with pytest.raises(InputError, match="two or more"):
        gpcert.SeparateOutputs(MEMBERS[:1])
    with pytest.raises(InputError, match="latent functions of one output"):
        gpcert.SeparateOutputs((MEMBERS[0], dataclasses.replace(MEMBERS[1], likelihood=Probit())))
    with pytest.raises(InputError, match="tuple of posteriors"):
        gpcert.SeparateOutputs(MEMBERS[0])
    one = Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    with pytest.raises(InputError, match="number of features"):
        gpcert.SeparateOutputs((MEMBERS[0], one))
    # a data frame would be read in the first one's order, and the second would see other columns
    names = (["u", "v"], ["v", "u"])
    named = [dataclasses.replace(MEMBERS[k], feature_names=own) for k, own in enumerate(names)]
    with pytest.raises(InputError, match="same names of features in the same order"):
        gpcert.SeparateOutputs(tuple(named))
    with pytest.raises(InputError, match="names of features for all or for none"):
        gpcert.SeparateOutputs((MEMBERS[1], named[0]))
    classes = gpcert.SeparateOutputs(MEMBERS, Softmax())
    with pytest.raises(InputError, match="kernels of their own use method='taylor'"):
        gpcert.certify(classes, X, 0.1, method="paper")
    with pytest.raises(InputError, match="threshold: expected output="):
        gpcert.certify(MODEL, X, 0.1, threshold=0.5)
    with pytest.raises(InputError, match="no probability"):
        gpcert.prediction_range(MODEL, REGION, quantity="probability")
