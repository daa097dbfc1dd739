"""Results of experiments: what is written is read again, and what is wrong is refused."""

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.study.experiments.results import (
    Environment,
    ExperimentResult,
    Finding,
    ResultFigure,
    ResultTable,
    read_all,
)

ENVIRONMENT = Environment(
    gpcert="1",
    python="3.11",
    numpy="2",
    scipy="1",
    sklearn="1",
    machine="x86_64",
    cpu="a cpu",
    cores=2,
    data={"digits": "0" * 64},
    random_state=1,
    date="2026-01-01",
)


def a_result(**changes) -> ExperimentResult:
    table = ResultTable(
        "radii",
        "Radii",
        ("data", "radius", "n", "proved"),
        (("digits", 0.1, 3, True), ('a "quoted", text', math.inf, 0, False), ("x", None, 1, None)),
    )
    made = ExperimentResult(
        experiment="a-name",
        title="A title",
        scale="quick",
        command="gpcert reproduce a-name --quick",
        settings={"radii": [0.1, 0.2], "nested": {"a": None}},
        environment=ENVIRONMENT,
        seconds=1.5,
        tables=(table,),
        figures=(ResultFigure("curve", "A curve", ("radii",)),),
        findings=(Finding("it rises", "by 5", "by 3 (2 to 4)", "no", "bootstrap"),),
        notes=("one note",),
    )
    return replace(made, **changes)


def test_what_was_written_is_read_again(tmp_path):
    result = a_result()
    result.write(tmp_path / "a-name")
    assert ExperimentResult.read(tmp_path / "a-name") == result
    assert gpcert.load(tmp_path / "a-name" / "result.json") == result
    assert read_all(tmp_path) == {tmp_path / "a-name": result}
    assert read_all(tmp_path / "a-name") == {tmp_path / "a-name": result}
    assert sorted(p.name for p in (tmp_path / "a-name").iterdir()) == ["radii.csv", "result.json"]


def test_a_csv_file_has_exact_floats_and_names_infinities():
    lines = a_result().tables[0].to_csv().splitlines()
    assert lines == [
        "data,radius,n,proved",
        "digits,0.1,3,true",
        '"a ""quoted"", text",inf,0,false',
        "x,,1,",
    ]


def test_numpy_numbers_become_plain_ones():
    table = ResultTable.of("t", "", [{"a": np.float64(0.1), "b": np.int64(2), "c": np.bool_(True)}])
    assert [type(value) for value in table.rows[0]] == [float, int, bool]
    assert table.records() == [{"a": 0.1, "b": 2, "c": True}]
    assert list(table.to_frame().columns) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: ResultTable("t", "", ("a",), ((math.nan,),)), "finite"),
        (lambda: ResultTable("t", "", ("a",), ((cast(Any, object()),),)), "text, a number"),
        (lambda: ResultTable("t", "", ("a", "a"), ()), "different columns"),
        (lambda: ResultTable("t", "", ("a", "b"), ((1,),)), "2 cells"),
        (lambda: ResultTable("../t", "", ("a",), ()), "lower-case"),
        (lambda: ResultTable.of("t", "", []), "expected records"),
        (lambda: ResultTable.of("t", "", [{"a": 1}, {"b": 1}]), "expected"),
        (lambda: a_result().table("other"), "radii"),
        (lambda: a_result().tables[0].column("other"), "radius"),
        (lambda: Finding("", "", "", "perhaps"), "unclear"),
        (lambda: ResultFigure("A b", "", ()), "lower-case"),
        (lambda: a_result(figures=(ResultFigure("f", "", ("other",)),)), "other"),
        (lambda: a_result(tables=a_result().tables * 2), "once"),
        (lambda: a_result(scale="huge"), "quick"),
        (lambda: a_result(experiment="A/b"), "lower-case"),
        (lambda: a_result(settings={"a": object()}).to_json(), "files cannot hold"),
    ],
)
def test_what_is_wrong_is_refused(make, word):
    with pytest.raises(InputError, match=word):
        make()


def test_a_folder_without_results_and_a_broken_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="gpcert reproduce"):
        read_all(tmp_path)
    a_result().write(tmp_path)
    path = tmp_path / "result.json"
    path.write_text(path.read_text().replace('"agrees": "no"', '"agrees": "maybe"'))
    with pytest.raises(InputError, match="agrees"):
        read_all(tmp_path)
