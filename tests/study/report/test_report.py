"""Pages of results: what they hold, what they refuse."""

import re

import pytest
from typer.testing import CliRunner

from gpcert.cli.app import app
from gpcert.errors import InputError
from gpcert.study.report import write_report
from tests.study.report.report_cases import NASTY, write_results


def test_a_page_has_every_figure_table_claim_and_command(tmp_path):
    results = write_results(tmp_path)
    path = write_report(tmp_path)
    assert path == tmp_path / "report.html"
    page = path.read_text(encoding="utf-8")
    for result in results:
        assert page.count(result.command) == 1 + len(result.figures)
        for figure in result.figures:
            assert f'id="{result.experiment}-{figure.name}"' in page
        for table in result.tables:
            whole = f'download="{result.experiment}-{table.name}.csv"' in page
            assert whole or f"{result.experiment}/{table.name}.csv" in page
    assert (
        "Claims of the paper: 1 agree, 1 do not agree, 1 are unclear; beyond the paper: 1 unclear"
        in page
    )
    assert page.count("data:image/svg+xml") == 3
    assert NASTY not in page
    assert page.count("<script>") == 1
    assert "The first 40 of 250 rows" in page
    # nothing is loaded: no address but those within the page and its data
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert addresses
    assert all(each.startswith(("data:", "#")) for each in addresses)
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_a_markdown_page_links_files_that_exist(tmp_path):
    write_results(tmp_path / "results")
    path = write_report(tmp_path / "results", format="markdown", output=tmp_path / "docs" / "R.md")
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) == 3 + 4 + 3  # figures, their data, tables
    assert all((path.parent / link).is_file() for link in links)
    assert "the first 30 of 250 rows" in text
    rows = [line for line in text.splitlines() if line.startswith("| it ")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [7, 7, 7, 7]
    assert "unexplained" in rows[0]


def test_large_drawings_are_shown_as_pixels(tmp_path):
    write_results(tmp_path)
    drawing = tmp_path / "radii" / "b.svg"
    drawing.write_text(drawing.read_text() + " " * 500_000)
    assert write_report(tmp_path).read_text().count("data:image/png") == 1


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(InputError, match="gpcert reproduce"):
        write_report(tmp_path)
    write_results(tmp_path)
    with pytest.raises(InputError, match="markdown"):
        write_report(tmp_path, format="pdf")
    for ending in ("svg", "png"):
        (tmp_path / "radii" / f"b.{ending}").unlink()
    with pytest.raises(InputError, match="radii --redraw"):
        write_report(tmp_path)


def test_the_same_experiment_twice_is_refused(tmp_path):
    write_results(tmp_path)
    (tmp_path / "radii").rename(tmp_path / "other")
    write_results(tmp_path)
    with pytest.raises(InputError, match=r"several of.*radii"):
        write_report(tmp_path)


def test_the_command_writes_the_page(tmp_path):
    write_results(tmp_path)
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--format", "markdown"])
    assert (done.exit_code, (tmp_path / "report.md").is_file()) == (0, True)
    done = CliRunner().invoke(app, ["report", str(tmp_path / "nothing")])
    assert done.exit_code == 3
