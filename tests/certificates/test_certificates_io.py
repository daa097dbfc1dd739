"""Records survive a file exactly; anything else is refused."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpcert
from gpcert.certificates import (
    Certificate,
    CertificateTable,
    Interval,
    PredictionRange,
    Radius,
    Status,
)
from gpcert.certificates.io import FORMAT
from gpcert.errors import InputError
from gpcert.likelihoods import Probit
from gpcert.model.committee import Committee
from tests.certificates.record_cases import AWKWARD, MODEL, RECORDS, make_range


def assert_same(one, two):
    assert type(one) is type(two)
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes()
        else:
            assert a == b
            assert repr(a) == repr(b)


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
    known = {"status": Status.UNKNOWN, "margin": Interval(-np.inf, np.inf)}
    record = dataclasses.replace(record, decision=label, **known)
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


@pytest.mark.parametrize("kind", RECORDS)
def test_every_kind_is_loaded_as_it_was(tmp_path, kind):
    path = tmp_path / "record.json"
    RECORDS[kind].save(path)
    again = gpcert.load(path)
    assert again.to_json() == RECORDS[kind].to_json()
    assert type(again) is type(RECORDS[kind])


@pytest.mark.slow  # tests/test_package.py asks the same of a process that answers more
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


@pytest.mark.parametrize("kind", RECORDS)
def test_every_field_is_documented(kind):
    text = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    words = set(re.findall("`([^`]+)`", text))
    assert {*RECORDS[kind].to_dict(), kind, FORMAT} - {"kind"} <= words | set(text.split('"'))
