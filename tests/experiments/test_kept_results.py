"""docs/results says what today's rules make of the kept tables, and its report shows it."""

from pathlib import Path

import pytest

from gpcert.experiments import experiment_named
from gpcert.experiments.results import read_all
from gpcert.report.markdown import _text as escaped

PLACE = Path(__file__).parents[2] / "docs" / "results"
KEPT = {result.experiment: result for result in read_all(PLACE).values()}


@pytest.mark.parametrize("name", KEPT)
def test_findings_and_notes_follow_from_the_kept_tables(name):
    again = experiment_named(name).judged(KEPT[name])
    stale = "run python docs/make_results.py docs/results"
    assert again.findings == KEPT[name].findings, stale
    assert again.notes == KEPT[name].notes, stale
    report = (PLACE / "report.md").read_text(encoding="utf-8")
    for finding in again.findings:
        assert escaped(finding.ours) in report, stale
    for figure in KEPT[name].figures:
        assert (PLACE / name / f"{figure.name}.png").is_file()


def test_kept_results_are_of_full_runs_and_small():
    assert {result.scale for result in KEPT.values()} == {"full"}
    assert sum(path.stat().st_size for path in PLACE.rglob("*")) < 3_500_000
