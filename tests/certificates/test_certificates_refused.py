"""What is no record, or contradicts itself, is refused by name; nothing else is raised."""

import dataclasses
import json
import tracemalloc

import numpy as np
import pytest

import gpcert
from gpcert.certificates import Certificate, CertificateTable, Radius
from gpcert.certificates.io import FORMAT
from gpcert.certificates.record import RecordTable
from gpcert.errors import InputError
from gpcert.testing.effort import examples
from tests.certificates.record_cases import AWKWARD, MODEL, RECORDS, make_range


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
    "norm_bound": [[-1.0], ["a"], [1.0, 2.0], None],
    "information": [[-1.0], [[1.0]], None],
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


def test_verdicts_that_their_bounds_do_not_bear_out_are_refused(tmp_path):
    path = tmp_path / "record.json"
    robust = gpcert.certify(MODEL, [0.0], 0.1, threshold=0.5)
    refuted = gpcert.certify(MODEL, [0.0], 9.0, threshold=0.5)
    assert (robust.status, refuted.status) == ("ROBUST", "NOT_ROBUST")
    contradictions = [
        (robust, {"margin": [0.0, 1.0]}),
        (robust, {"margin": ["-inf", 1.0]}),
        (robust, {"counterexample": [0.0]}),
        (robust, {"status": "NOT_ROBUST"}),
        (refuted, {"status": "ROBUST"}),
        (refuted, {"status": "UNKNOWN"}),
        (refuted, {"counterexample": None}),
        (refuted, {"margin": [-1.0, 0.0]}),
    ]
    for record, changed in contradictions:
        record.save(path)
        assert gpcert.load(path).status == record.status
        envelope = json.loads(path.read_text())
        path.write_text(json.dumps({**envelope, "record": {**envelope["record"], **changed}}))
        with pytest.raises(InputError, match=r"record\.json: status"):
            gpcert.load(path)


@pytest.mark.parametrize("kind", RECORDS)
def test_missing_fields_are_refused(tmp_path, kind):
    path = tmp_path / "record.json"
    RECORDS[kind].save(path)
    # files of the same format were once written without these
    later = {each.name for each in dataclasses.fields(RECORDS[kind]) if each.metadata.get("added")}
    envelope = json.loads(path.read_text())
    for name in envelope["record"]:
        fields = {key: value for key, value in envelope["record"].items() if key != name}
        path.write_text(json.dumps({**envelope, "record": fields}))
        if name in later:
            assert getattr(gpcert.load(path), name) in (None, "", (), {})
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
    loaded, rounds = 0, examples(60, quick=20)
    for _ in range(rounds):
        for record in RECORDS.values():
            envelope = changed_somewhere(json.loads(record.to_json()), rng)
            path.write_text(json.dumps(envelope))
            again = loaded_or_refused(path)
            if again is not None:
                loaded += 1
                assert type(again).from_dict(json.loads(again.to_json())["record"]) is not None
    assert loaded < 0.55 * rounds * len(RECORDS)


def test_flipped_bytes_are_refused_or_load(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "record.json"
    for _ in range(examples(60, quick=20)):
        for record in RECORDS.values():
            data = bytearray(record.to_json().encode())
            for place in rng.integers(len(data), size=3):
                data[place] = int(rng.integers(256))
            path.write_bytes(bytes(data))
            loaded_or_refused(path)
