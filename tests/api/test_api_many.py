"""`certify_many`: the same certificates, in order, in any number of processes."""

from importlib import import_module

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.search import StopReason

module = import_module("gpcert.api.many")
X = np.random.default_rng(0).uniform(-1.2, 1.2, (6, 2))


def essence(certificate):
    point = certificate.counterexample
    return (
        certificate.status,
        certificate.margin,
        None if point is None else tuple(point),
        certificate.decision,
        certificate.boxes,
        certificate.region,
    )


def nothing_at_once(model, work):
    return {}


@pytest.fixture
def apart(monkeypatch):
    """Points have searches of their own, as those have that one box does not decide."""
    monkeypatch.setattr(module, "certify_batched", nothing_at_once)


def test_same_as_one_by_one_in_any_number_of_processes(classifier, apart):
    alone = gpcert.certify_many(classifier, X, 0.3, norm=2)
    pair = gpcert.certify_many(classifier, X, 0.3, norm=2, n_jobs=2)
    assert alone.complete
    assert pair.complete
    assert len(alone) == len(pair) == len(X)
    for x, one, two in zip(X, alone, pair, strict=True):
        assert essence(one) == essence(two)
        assert essence(one) == essence(gpcert.certify(classifier, x, 0.3, norm=2))


def test_balls_are_bounded_at_once(classifier, apart, monkeypatch):
    alone = gpcert.certify_many(classifier, X, 0.3, norm=2)
    monkeypatch.undo()
    tables = [gpcert.certify_many(classifier, X, 0.3, norm=2, n_jobs=jobs) for jobs in (None, 2)]
    for found in tables:
        assert found.complete
        for one, two in zip(alone, found, strict=True):
            assert (one.status, one.decision, one.region) == (two.status, two.decision, two.region)
            assert one.margin.lower <= two.margin.upper
            assert two.margin.lower <= one.margin.upper


def test_frame(classifier):
    table = gpcert.certify_many(classifier, X, 0.3)
    frame = table.to_frame()
    assert list(frame.columns) == [
        "point",
        "status",
        "decision",
        "margin_lower",
        "margin_upper",
        "unit",
        "counterexample_distance",
        "boxes",
        "seconds",
        "reason",
    ]
    assert list(frame["point"]) == list(range(len(X)))
    assert list(frame["status"]) == [c.status.name for c in table]
    assert list(frame["decision"]) == list(classifier.predict(X))
    refuted = frame["status"] == "NOT_ROBUST"
    assert refuted.any()
    assert np.all(frame["counterexample_distance"][refuted] <= 0.3 + 1e-12)
    assert frame["counterexample_distance"][~refuted].isna().all()
    robust = table.count(gpcert.Status.ROBUST)
    assert table.certified_fraction == robust / len(X)


@pytest.mark.parametrize("finished", [0, 1, 3])
def test_interrupt_returns_the_finished_points(classifier, finished, monkeypatch, apart):
    certify_region, calls = module.certify_region, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > finished:
            raise KeyboardInterrupt
        return certify_region(*arguments)

    monkeypatch.setattr(module, "certify_region", interrupted)
    table = gpcert.certify_many(classifier, X, 0.3, norm=2)
    assert not table.complete
    assert len(table) == finished


def test_interrupt_inside_a_search_ends_the_run(classifier, monkeypatch, apart):
    searching = import_module("gpcert.api.certify")  # the package's attribute is the function
    bound, calls = searching.solve, []

    def interrupted(problem):
        calls.append(1)
        result = bound(problem)
        if len(calls) == 2:
            object.__setattr__(result, "reason", StopReason.INTERRUPTED)
        return result

    monkeypatch.setattr(searching, "solve", interrupted)
    table = gpcert.certify_many(classifier, X, 0.3, norm=2)
    assert not table.complete
    assert len(table) == 2
    assert table[1].reason is StopReason.INTERRUPTED


def test_progress_is_shown_on_request(classifier, capsys):
    gpcert.certify_many(classifier, X[:2], 0.1, progress=True)
    assert "certifying" in capsys.readouterr().err
    gpcert.certify_many(classifier, X[:2], 0.1)
    assert capsys.readouterr().err == ""


def test_no_points(classifier):
    table = gpcert.certify_many(classifier, np.empty((0, 2)), 0.1)
    assert len(table) == 0
    assert table.complete
    assert len(table.to_frame()) == 0


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([[0.0, np.nan]], {}, "X: expected finite"),
        ([0.0, 0.0], {}, "X: expected 2 dimension"),
        ([[0.0]], {}, "X: expected 2 features"),
        ([[0.0, 0.0]], {"radius": -1.0}, "radius: expected numbers >= 0"),
        ([[0.0, 0.0]], {"radius": None}, "exactly one of radius=, relative= and region="),
        ([[0.0, 0.0]], {"delta": 0.1}, "use threshold="),
        ([[0.0, 0.0]], {"domain": (1.0, 2.0)}, "inside the domain"),
    ],
)
def test_bad_inputs(classifier, rows, options, message):
    with pytest.raises(InputError, match=message):
        gpcert.certify_many(classifier, rows, **({"radius": 0.1} | options))
