"""docs/results says what today's rules make of the kept tables, and its report shows it; of results
that were not computed anew its README says so."""

import re
from pathlib import Path

import pytest

from gpcert.study.experiments import experiment_named, is_current
from gpcert.study.experiments.results import read_all
from gpcert.study.report import write_report
from gpcert.study.report.markdown import escaped

PLACE = Path(__file__).parents[3] / "docs" / "results"
NAMES = sorted(file.parent.name for file in PLACE.glob("*/result.json"))


@pytest.fixture(scope="module")
def kept():
    """The kept results, by the names of their experiments."""
    return {result.experiment: result for result in read_all(PLACE).values()}


@pytest.mark.parametrize("name", NAMES)
def test_findings_and_notes_follow_from_the_kept_tables(name, kept):
    if not is_current(kept[name]):
        pytest.skip("of other settings or another version, as README says")
    again = experiment_named(name).judged(kept[name])
    stale = "run python docs/make_results.py docs/results"
    assert again.findings == kept[name].findings, stale
    assert again.notes == kept[name].notes, stale
    report = (PLACE / "report.md").read_text(encoding="utf-8")
    for finding in again.findings:
        assert escaped(finding.ours) in report, stale
    for figure in kept[name].figures:
        assert (PLACE / name / f"{figure.name}.png").is_file()


def test_the_text_names_the_results_that_were_not_computed_anew(kept):
    text = (PLACE / "README.md").read_text(encoding="utf-8")
    named = re.search(r"Not computed anew in[^:]*: ([^.]*)\.", text)
    told = re.findall(r"`([a-z-]+)`", named.group(1)) if named else []
    assert sorted(told) == sorted(name for name in NAMES if not is_current(kept[name]))


def test_kept_results_are_of_full_runs_and_small(kept):
    assert sorted(kept) == NAMES
    assert {result.scale for result in kept.values()} == {"full"}
    assert sum(path.stat().st_size for path in PLACE.rglob("*")) < 8_000_000


def test_the_page_of_all_kept_results_is_small(tmp_path):
    page = write_report(PLACE, output=tmp_path / "report.html")
    assert page.stat().st_size < 2_000_000


def test_every_experiment_that_the_table_of_claims_names_is_there():
    lines = (PLACE.parent / "claims.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| ") and "`" in line]
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row[3])}
    judging = {"safety", "robustness", "sparse", "multiclass", "convergence", "scaling"}
    assert named >= judging | {"interpretability-global", "interpretability-images"}
    assert all(experiment_named(name) for name in named)
