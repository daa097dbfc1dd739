"""Records survive a file exactly; anything else is refused."""

import dataclasses
import json

import numpy as np
import pytest

import gpcert
from gpcert.certificates import Certificate, CertificateTable, Interval, PredictionRange, Radius
from gpcert.certificates.io import FORMAT, read_record, write_record
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
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
    a, b, c, d, *_ = values
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
        region=gpcert.Ball([0.1, 0.2], 0.3, domain=(-np.inf, 1.0), features=[0]).describe(),
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
    record = {
        "kind": "x",
        "a": np.float64(0.1),
        "b": np.int64(3),
        "c": np.bool_(True),
        "d": np.float64(-np.inf),
    }
    write_record(tmp_path / "x.json", record)
    again = read_record(tmp_path / "x.json", "x")
    assert again == {"kind": "x", "a": 0.1, "b": 3, "c": True, "d": -np.inf}


GARBAGE = {
    "empty": b"",
    "text": b"hello",
    "binary": bytes(range(256)),
    "list": b"[1, 2]",
    "number": b"3",
    "other json": b'{"a": 1}',
    "other format": b'{"format": "gpcert-record-0", "record": {"kind": "certificate"}}',
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


@pytest.mark.parametrize("kind", ["radius", "prediction_range", "certificate", "table"])
def test_records_without_their_fields_are_refused(tmp_path, kind):
    kinds = {
        "radius": Radius,
        "prediction_range": PredictionRange,
        "certificate": Certificate,
        "table": CertificateTable,
    }
    write_record(tmp_path / "record.json", {"kind": kind})
    with pytest.raises(InputError, match=r"record\.json"):
        kinds[kind].load(tmp_path / "record.json")
