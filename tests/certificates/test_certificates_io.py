"""Records survive a file exactly; anything else is refused."""

import dataclasses
import json
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import gpcert
from gpcert import explain
from gpcert.certificates import Certificate, CertificateTable, Interval, PredictionRange, Radius
from gpcert.certificates.io import FORMAT
from gpcert.certificates.table import RecordTable
from gpcert.committee import Committee
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.search import StopReason

MODEL = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
AWKWARD = [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, np.nextafter(1.0, 2.0)]


def assert_same(one, two):
    assert type(one) is type(two)
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes()
        else:
            assert a == b
            assert repr(a) == repr(b)


def make_range(values, infinite=False):
    a, b, c, d, *_ = sorted(values)
    return PredictionRange(
        minimum=Interval(-np.inf if infinite else a, b),
        maximum=Interval(c, np.inf if infinite else d),
        argmin=None if infinite else np.array(values),
        argmax=np.array(values[::-1]),
        converged=not infinite,
        reason=StopReason.TIME,
        boxes=7,
        seconds=values[0],
        quantity="mean",
        output=2,
        region=gpcert.Ball([0.1] * 6, 0.3, domain=(-np.inf, 1.0), features=[0]).describe(),
    )


@pytest.mark.parametrize("infinite", [False, True])
def test_range(tmp_path, infinite):
    record = make_range(AWKWARD, infinite)
    record.save(tmp_path / "range.json")
    assert_same(record, PredictionRange.load(tmp_path / "range.json"))


@pytest.mark.parametrize("radius", [1.0, 2.0])
def test_certificate(tmp_path, radius):
    record = gpcert.certify(MODEL, [0.0], radius, threshold=0.0)
    record.save(tmp_path / "certificate.json")
    assert_same(record, Certificate.load(str(tmp_path / "certificate.json")))


@pytest.mark.parametrize("label", ["yes", 1, 2.5, True, None])
def test_labels(tmp_path, label):
    record = gpcert.certify(MODEL, [0.0], 1.0, threshold=0.0)
    record = dataclasses.replace(record, decision=label, margin=Interval(-np.inf, np.inf))
    record.save(tmp_path / "certificate.json")
    assert_same(record, Certificate.load(tmp_path / "certificate.json"))


@pytest.mark.parametrize("max_radius", [0.5, 4.0])
def test_radius(tmp_path, max_radius):
    record = gpcert.certified_radius(MODEL, [0.0], threshold=0.0, max_radius=max_radius)
    assert np.isinf(record.upper) == (max_radius == 0.5)
    record.save(tmp_path / "radius.json")
    assert_same(record, Radius.load(tmp_path / "radius.json"))


@pytest.mark.parametrize("complete", [True, False])
def test_table(tmp_path, complete):
    table = gpcert.certify_many(MODEL, [[0.0], [1.4], [3.0]], 0.5, threshold=0.0)
    table = dataclasses.replace(table, complete=complete)
    table.save(tmp_path / "table.json")
    again = CertificateTable.load(tmp_path / "table.json")
    assert again.complete is complete
    assert len(again) == 3
    for one, two in zip(table, again, strict=True):
        assert_same(one, two)
    assert again.to_frame().equals(table.to_frame())
    assert table[0].status is gpcert.Status.ROBUST
    assert table.certified_fraction == pytest.approx(2 / 3)


def test_empty_table(tmp_path):
    CertificateTable(()).save(tmp_path / "table.json")
    assert len(CertificateTable.load(tmp_path / "table.json")) == 0
    assert CertificateTable(()).certified_fraction == 0.0


def test_files_are_strict_json_with_a_version(tmp_path):
    make_range(AWKWARD, infinite=True).save(tmp_path / "range.json")

    def refuse(text):
        raise AssertionError(text)

    text = (tmp_path / "range.json").read_text()
    envelope = json.loads(text, parse_constant=refuse)
    assert envelope["format"] == FORMAT
    assert envelope["gpcert"] == gpcert.__version__


def test_numpy_scalars_are_written_as_numbers(tmp_path):
    record = gpcert.certified_radius(MODEL, [0.0], threshold=0.0, max_radius=0.5)
    numbers = {
        "lower": np.float32(0.5),
        "upper": np.float64(np.inf),
        "boxes": np.int64(3),
        "decision": np.bool_(True),
    }
    dataclasses.replace(record, **numbers).save(tmp_path / "x.json")
    again = Radius.load(tmp_path / "x.json")
    for name, value in numbers.items():
        assert getattr(again, name) == value
        assert type(getattr(again, name)) is type(value.item())


def test_infinity_has_one_spelling(tmp_path):
    record = make_range(AWKWARD, infinite=True)
    fields = record.to_dict()
    assert fields["minimum"][0] == "-inf"
    assert fields["maximum"][1] == "inf"
    assert fields["region"]["norm"] == "inf"
    assert fields["region"]["domain"][0] == ["-inf"] * 6
    gpcert.RangeTable((record,)).to_frame().to_csv(tmp_path / "x.csv")
    assert ",-inf," in (tmp_path / "x.csv").read_text()


def test_load_reads_every_kind(tmp_path):
    table = gpcert.certify_many(MODEL, [[0.0], [1.4]], 0.5, threshold=0.0)
    radius = gpcert.certified_radius(MODEL, [0.0], threshold=0.0, max_radius=0.5)
    member = dataclasses.replace(MODEL, likelihood=Probit())
    several = [
        table,
        table[0],
        make_range(AWKWARD),
        gpcert.RangeTable((make_range(AWKWARD),) * 2, labels=("a", "a")),
        radius,
        gpcert.RadiusTable((radius,), complete=False, labels=("one",)),
        MODEL,
        Committee((member, member), ("a", "b"), "one_vs_rest"),
    ]
    for each in several:
        path = tmp_path / "file"
        each.save(path)
        again = gpcert.load(path)
        assert type(again) is type(each)
        if hasattr(each, "to_dict"):
            assert again.to_dict() == each.to_dict()
        else:
            assert again.fingerprint == each.fingerprint


def test_labels_of_rows_are_kept(tmp_path):
    table = gpcert.certify_many(MODEL, [[0.0], [1.4]], 0.5, threshold=0.0)
    assert table.labels == (0, 1)
    named = dataclasses.replace(table, labels=("first", np.int64(7)))
    named.save(tmp_path / "table.json")
    again = gpcert.load(tmp_path / "table.json")
    assert again.labels == ("first", 7)
    assert list(again.to_frame()["point"]) == ["first", 7]
    with pytest.raises(InputError, match="labels"):
        dataclasses.replace(table, labels=("first",))


@pytest.mark.parametrize("label", [(1, 2), {"a": 1}, np.inf, object()])
def test_labels_that_files_cannot_hold_are_refused(tmp_path, label):
    record = gpcert.certify(MODEL, [0.0], 1.0, threshold=0.0)
    with pytest.raises(InputError, match="label"):
        dataclasses.replace(record, decision=label).save(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


GARBAGE = {
    "empty": b"",
    "text": b"hello",
    "binary": bytes(range(256)),
    "list": b"[1, 2]",
    "number": b"3",
    "other json": b'{"a": 1}',
    "other format": b'{"format": "gpcert-record-0", "record": {"kind": "certificate"}}',
    "format is a list": b'{"format": [1], "record": {"kind": "certificate"}}',
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "digits": b"1" * 10_000,
    "NaN": b'{"format": NaN}',
    "infinite": b'{"format": 1e999}',
    "name twice": b'{"format": 1, "format": 2}',
    "half a character": b'"\xc3',
    "no record": json.dumps({"format": FORMAT}).encode(),
    "record is a list": json.dumps({"format": FORMAT, "record": [1]}).encode(),
    "no kind": json.dumps({"format": FORMAT, "record": {}}).encode(),
    "no fields": json.dumps({"format": FORMAT, "record": {"kind": "certificate"}}).encode(),
    "bad status": json.dumps(
        {"format": FORMAT, "record": {"kind": "certificate", "status": "FINE"}}
    ).encode(),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused(tmp_path, name):
    path = tmp_path / "record.json"
    path.write_bytes(GARBAGE[name])
    with pytest.raises(InputError, match=r"record\.json"):
        Certificate.load(path)


def test_missing_file_and_another_kind(tmp_path):
    with pytest.raises(InputError, match="expected a JSON record"):
        Radius.load(tmp_path / "nothing.json")
    make_range(AWKWARD).save(tmp_path / "range.json")
    for kind in (Radius, Certificate, CertificateTable):
        with pytest.raises(InputError, match="got a prediction_range"):
            kind.load(tmp_path / "range.json")


def test_the_older_format_is_refused_in_words(tmp_path):
    (tmp_path / "old.json").write_text('{"format": "gpcert-record-1", "record": {}}')
    with pytest.raises(InputError, match=r"gpcert-record-1.*this version reads 'gpcert-record-2'"):
        gpcert.load(tmp_path / "old.json")


RECORDS = {
    "certificate": gpcert.certify(MODEL, [0.0], 2.0, threshold=0.0),
    "prediction_range": make_range(AWKWARD, infinite=True),
    "radius": dataclasses.replace(
        gpcert.certified_radius(MODEL, [0.0], threshold=0.0, max_radius=4.0),
        region=gpcert.Ball([0.0], 1.4).describe(),
    ),
}
RECORDS["certificates"] = CertificateTable((RECORDS["certificate"],) * 2)
RECORDS["prediction_ranges"] = gpcert.RangeTable((RECORDS["prediction_range"],))
RECORDS["radii"] = gpcert.RadiusTable((RECORDS["radius"],))
RECORDS["effects"] = explain.effects(MODEL, [[0.5], [1.0]], 0.5)
RECORDS["attribution"] = explain.Attribution(
    "slope", np.ones((2, 1)), np.ones((2, 1, 1)), (0,), ("x0",), (0, 1)
)
RECORDS["reason"] = explain.contrastive(MODEL, [0.0], 2.0, threshold=0.0)
RECORDS["reasons"] = explain.ReasonTable((RECORDS["reason"],))
RECORDS["pixel_budget"] = explain.pixel_budget(
    dataclasses.replace(MODEL, likelihood=Probit()), [0.0], [0, 1], radius=2.0, ranking="gradient"
)
RECORDS["pixel_budgets"] = explain.PixelBudgetTable((RECORDS["pixel_budget"],))

WRONG = {
    "status": ["FINE", 1, None, ["ROBUST"]],
    "reason": ["TIRED", None, {}],
    "margin": [["a", "b"], [1.0], [1.0, 0.0], [1, 2, 3], "01", {"lower": 0}, [None, 1], [True, 1]],
    "minimum": [["0", "1"], ["nan", 1.0], [0.0, "Infinity"], [10**400, "inf"]],
    "counterexample": [["1.0"], "1.0", [[1.0]], [], [1.0, 2.0], ["inf"], [None], 3],
    "x": [["1.0"], [1.0, 2.0]],
    "boxes": [-1, 1.5, "3", True, None],
    "seconds": [-1.0, "1", "inf", None],
    "converged": [1, "true", None],
    "decision": [[1], {"a": 1}],
    "rule": [1, None],
    "lower": ["0.1", -1.0, "inf", None],
    "upper": [0.0, "-inf", [1.0]],
    "norm": [0.5, "2", "-inf"],
    "region": [None, [], "ball", {"kind": "ball"}, {"kind": "torus"}, {"kind": ["ball"]}],
    "method": [1],
    "model": [None],
    "kind": ["other", None, 1],
    "complete": [1, None],
    "labels": [["a"], [[1], [2]], "ab", None, [1, 2, 3]],
    "rows": [None, {}, [1], [{}], [{"kind": "certificate"}]],
    "values": [[[1.0]], "1", [[["a"]], [["b"]]], None],
    "feature_names": [["a", "b"], "a", [1], None],
    "features": [[-1], [0.5], [7], "0"],
    "steps": [[], [1], [{}], None],
    "betas": [[-1, 0], ["a", "b"], [0]],
    "extra": [1],
}


@pytest.mark.parametrize("kind", RECORDS)
def test_wrong_fields_are_refused_by_name(tmp_path, kind):
    path = tmp_path / "record.json"
    RECORDS[kind].save(path)
    envelope = json.loads(path.read_text())
    tried = 0
    for name, values in WRONG.items():
        for value in values if name in envelope["record"] or name == "extra" else ():
            table = isinstance(RECORDS[kind], RecordTable) and len(RECORDS[kind]) == 1
            if table and name == "labels" and value == ["a"]:
                continue  # one label for one row is right
            changed = {**envelope, "record": {**envelope["record"], name: value}}
            path.write_text(json.dumps(changed))
            with pytest.raises(InputError, match=r"record\.json"):
                gpcert.load(path)
            tried += 1
    assert tried > 10


ADDED_LATER = {"scale", "beta", "nominal", "margin_at_x"}
"""Files of the same format were once written without these."""


@pytest.mark.parametrize("kind", RECORDS)
def test_missing_fields_are_refused(tmp_path, kind):
    path = tmp_path / "record.json"
    RECORDS[kind].save(path)
    envelope = json.loads(path.read_text())
    for name in envelope["record"]:
        fields = {key: value for key, value in envelope["record"].items() if key != name}
        path.write_text(json.dumps({**envelope, "record": fields}))
        if name in ADDED_LATER:
            assert getattr(gpcert.load(path), name) is None
            continue
        with pytest.raises(InputError, match=r"record\.json"):
            gpcert.load(path)


def test_reading_takes_memory_as_the_file_is_long(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    RECORDS["certificates"].save(path)
    tracemalloc.start()
    try:
        gpcert.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**21 + 2**20
    finally:
        tracemalloc.stop()
    monkeypatch.setattr("gpcert.certificates.io.LARGEST_FILE", 100)
    with pytest.raises(InputError, match="larger than 100 bytes"):
        gpcert.load(path)


@pytest.mark.parametrize("kind", RECORDS)
def test_every_kind_is_loaded_as_it_was(tmp_path, kind):
    path = tmp_path / "record.json"
    RECORDS[kind].save(path)
    again = gpcert.load(path)
    assert again.to_json() == RECORDS[kind].to_json()
    assert type(again) is type(RECORDS[kind])


def test_kinds_of_other_packages_are_imported_when_a_file_has_one(tmp_path):
    path = tmp_path / "effects.json"
    RECORDS["effects"].save(path)
    code = (
        "import sys, gpcert\n"
        "assert 'gpcert.explain' not in sys.modules\n"
        f"assert gpcert.load({str(path)!r}).lower.shape == (2, 1, 1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_intervals_survive_a_file(tmp_path):
    unknown = np.full((2, 1, 1), np.inf)
    record = dataclasses.replace(RECORDS["effects"], lower=-unknown, upper=unknown)
    record.save(tmp_path / "effects.json")
    assert np.all(np.isinf(gpcert.load(tmp_path / "effects.json").upper))


@pytest.mark.parametrize(
    ("kind", "field", "value", "message"),
    [
        ("effects", "lower", [[[9.0]], [[9.0]]], "lower <= upper"),
        ("effects", "lower", [[[1.0]], [1.0]], "unequal lengths"),
        ("effects", "lower", [[1.0], [1.0]], "shape"),
        ("effects", "labels", [0], "labels"),
        ("reason", "what", "other", "what"),
        ("reason", "steps", [1], "steps"),
        ("pixel_budget", "lower", [2.0, 2.0], "lower <= upper"),
        ("pixel_budget", "points", [[0.0, 0.0]], "dimension"),
    ],
)
def test_explanations_that_contradict_themselves_are_refused(kind, field, value, message):
    fields = {**RECORDS[kind].to_dict(), field: value}
    with pytest.raises(InputError, match=message):
        type(RECORDS[kind]).from_dict(fields)


@pytest.mark.parametrize("kind", RECORDS)
def test_every_field_is_documented(kind):
    text = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    words = set(re.findall("`([^`]+)`", text))
    assert {*RECORDS[kind].to_dict(), kind, FORMAT} - {"kind"} <= words | set(text.split('"'))


def changed_somewhere(value, rng, depth=0):
    """A JSON value in which one part is replaced by something else."""
    others = [None, True, -1, 1e308, "inf", "x", [], {}, [1.0, 2.0], {"kind": "ball"}]
    if depth and (not isinstance(value, dict | list) or not value or rng.random() < 0.1):
        return others[int(rng.integers(len(others)))]
    if isinstance(value, dict):
        key = sorted(value)[int(rng.integers(len(value)))]
        return {**value, key: changed_somewhere(value[key], rng, depth + 1)}
    place = int(rng.integers(len(value)))
    return [
        changed_somewhere(item, rng, depth + 1) if k == place else item
        for k, item in enumerate(value)
    ]


def loaded_or_refused(path):
    """The record, or None where an `InputError` names the file; anything else is raised."""
    message = ""
    try:
        return gpcert.load(path)
    except InputError as error:
        message = str(error)
    assert path.name in message
    return None


def test_changed_records_are_refused_or_load_as_records(tmp_path):
    """What loads saves the same file again: nothing is kept that the schema does not know."""
    rng = np.random.default_rng(2)
    path = tmp_path / "record.json"
    loaded = 0
    for _ in range(60):
        for record in RECORDS.values():
            envelope = changed_somewhere(json.loads(record.to_json()), rng)
            path.write_text(json.dumps(envelope))
            again = loaded_or_refused(path)
            if again is not None:
                loaded += 1
                assert type(again).from_dict(json.loads(again.to_json())["record"]) is not None
    assert loaded < 33 * len(RECORDS)


def test_flipped_bytes_are_refused_or_load(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "record.json"
    for _ in range(60):
        for record in RECORDS.values():
            data = bytearray(record.to_json().encode())
            for place in rng.integers(len(data), size=3):
                data[place] = int(rng.integers(256))
            path.write_bytes(bytes(data))
            loaded_or_refused(path)
