"""Level sets: leaves with the claim that each of them makes, and the volumes that follow."""

import numpy as np
import pytest

pytest.importorskip("flint")
import gpcert
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MeanOnly, Probit
from gpcert.model.committee import Committee
from gpcert.regions import Discrete
from tests.check.check_cases import BAD_FILE, CHECKED, NOT_COVERED, REFUTED, verdict
from tests.check.forgeries import opened, written

SQUARE = gpcert.Box([0.0, 0.0], [1.0, 1.0])
BALL = gpcert.Ball([0.5, 0.5], 0.4, norm=2)


def fitted(seed=0, outputs=1, **options):
    rng = np.random.default_rng(seed)
    points, kernel = rng.uniform(size=(15, 2)), SquaredExponential(0.4)
    K = kernel.value(points, points) + 0.01 * np.eye(15)
    weights = np.linalg.solve(K, rng.normal(size=(15, outputs))).T
    if options.get("likelihood") is None or options["likelihood"].has_variance:
        options["training_noise"] = 0.01
    return gpcert.Posterior(kernel, points, weights, **options)


def asked(name):
    two = [("a", ">=", 0.2), ("b", "<=", 0.9, {"quantity": "ucb"})]
    labels = ("no", "yes")
    votes = Committee((fitted(0, 3, likelihood=MeanOnly()),), ("a", "b", "c"), "pair_votes")
    return {
        "mean": lambda: (fitted(), SQUARE, 0.2),
        "polytope": lambda: (fitted(), gpcert.Polytope(SQUARE, ([1.0, 1.0], "<=", 1.0)), 0.2),
        "ball": lambda: (fitted(), BALL, 0.2),
        "conditions": lambda: ({"a": fitted(), "b": fitted(1)}, SQUARE, two),
        "two_classes": lambda: (fitted(likelihood=Probit(), classes=labels), BALL, None),
        "classes": lambda: (votes, SQUARE, None),
    }[name]()


NAMES = ("mean", "polytope", "ball", "conditions", "two_classes", "classes")


def saved(name, path, **options):
    level = gpcert.level_set(*asked(name), tol=0.3, proof=True, **options)
    level.save(path)
    return level


@pytest.mark.parametrize("name", NAMES)
def test_level_sets_are_accepted(name, tmp_path):
    path = tmp_path / "set.cert"
    level = saved(name, path)
    assert level.converged
    assert verdict(path) == CHECKED
    header, arrays = opened(path)
    assert len(arrays["signs"]) == np.sum(arrays["axes"] == -1) > 1
    assert set(arrays["signs"].tolist()) != {-1}
    shares = {each["label"]: each["share"] for each in header["answer"]["shares"]}
    for label, ends in shares.items():
        known = level.shares[level.labels[-1] if label is True else label]
        assert ends == [known.lower, known.upper]


@pytest.mark.parametrize("name", NAMES)
def test_false_level_sets_are_rejected(name, tmp_path):
    path = tmp_path / "set.cert"
    saved(name, path)
    header, arrays = opened(path)

    def forged(**changed):
        answer = {"shares": [{**header["answer"]["shares"][0], **changed}]}
        written(path, {**header, "answer": answer}, arrays)
        return verdict(path, "--splits", "50")

    lower, upper = header["answer"]["shares"][0]["share"]
    assert forged(share=[upper, 1.0]) == REFUTED
    assert forged(share=[lower, 0.5 * lower]) == REFUTED
    assert forged(share=[1.001 * lower + 1e-9, upper]) == REFUTED
    assert forged(label="other") == BAD_FILE
    signs = arrays["signs"]
    for k in np.random.default_rng(0).permutation(len(signs))[:4].tolist():
        other, sign = signs.copy(), int(signs[k])
        other[k] = (1 - sign) % 2  # of an undecided leaf anything is too much
        written(path, header, arrays | {"signs": other})
        code = verdict(path, "--splits", "50")
        if sign == -1 and code == CHECKED:  # one that holds no point of the region
            assert name in ("ball", "polytope", "two_classes")
        elif code == CHECKED:
            pytest.fail(f"leaf {k} of {len(signs)}: {sign} became {other[k]}")
    for wrong in (signs[:-1], signs + 9, None):
        changed = {n: a for n, a in arrays.items() if n != "signs"}
        written(path, header, changed if wrong is None else changed | {"signs": wrong})
        assert verdict(path) == BAD_FILE


def test_another_question_is_rejected(tmp_path):
    path = tmp_path / "set.cert"
    saved("two_classes", path)
    header, arrays = opened(path)
    for change in ({"label": "no"}, {"region": {**header["question"]["region"], "radius": 0.8}}):
        written(path, {**header, "question": {**header["question"], **change}}, arrays)
        assert verdict(path, "--splits", "50") == REFUTED
    region = {"kind": "union", "parts": [header["question"]["region"]]}
    written(path, {**header, "question": {**header["question"], "region": region}}, arrays)
    assert verdict(path) == NOT_COVERED


def test_planes_are_left_out_of_proofs_alone():
    model = fitted()
    with_planes = gpcert.level_set(model, SQUARE, 0.2, tol=0.15)
    whole = gpcert.level_set(model, SQUARE, 0.2, tol=0.15, proof=True)
    assert whole.converged
    assert whole.proof is not None
    assert with_planes.proof is None
    assert whole.boxes > with_planes.boxes
    assert whole.share.lower <= with_planes.share.upper
    assert with_planes.share.lower <= whole.share.upper


def test_what_is_not_covered_is_refused_before_the_search(tmp_path):
    with pytest.raises(InputError, match="proof=True"):
        gpcert.level_set(fitted(), SQUARE, 0.2, tol=0.5).save(tmp_path / "no.cert")
    with pytest.raises(InputError, match="proof"):
        gpcert.level_set(fitted(), SQUARE, 0.2, quantity="log_ei", best_f=0.0, tol=0.5, proof=True)


def test_categories_are_checked(tmp_path):
    rng, path = np.random.default_rng(1), tmp_path / "x.cert"
    points = np.eye(4)[rng.integers(3, size=12)]
    points[:, 3] = rng.uniform(size=12)
    model = gpcert.Posterior(SquaredExponential(1.0), points, rng.normal(size=12))
    region = gpcert.OneHot(gpcert.Box([0.0] * 4, [1.0] * 4), [[0, 1, 2]])
    bounds = gpcert.prediction_range(model, region, quantity="mean", tol=0.01, proof=True)
    bounds.save(path)
    assert verdict(path) == CHECKED
    header, arrays = opened(path)
    between = bounds.argmin.copy()
    between[:3] = 1.0 / 3.0
    header["answer"]["ends"][0]["point"] = between.tolist()
    written(path, header, arrays)
    assert verdict(path) == REFUTED
    whole = Discrete(gpcert.Box([0.0] * 4, [1.0] * 4), integers=[3])
    mixed = gpcert.OneHot(whole, [[0, 1, 2]])
    gpcert.maximize(model, mixed, tol=0.01, proof=True).save(path)
    assert verdict(path) == CHECKED
    header, arrays = opened(path)
    for groups in ([[0, 1], [1, 2]], [[0, 9]], [[]]):
        header["question"]["region"]["groups"] = groups
        written(path, header, arrays)
        assert verdict(path) == BAD_FILE
