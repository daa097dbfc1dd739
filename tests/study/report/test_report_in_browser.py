"""The page in a real browser: light, dark, narrow and printed; every part of it works."""

import pytest

from gpcert.study.report import write_report
from tests.study.report.report_cases import write_results

WIDE, PHONE = 1280, 375


@pytest.fixture(scope="module")
def report_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_results(folder)
    return write_report(folder)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_every_figure_is_there_and_nothing_overflows(page, report_path, scheme, width):
    page.open(report_path, width=width, height=800, scheme=scheme)
    page.value("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    for button in ("#radii-table-radii .tools button", "#long-table-table-long .tools button"):
        page.press(button)
    figures = page.value(
        "[...document.querySelectorAll('figure img')].map((i) => i.complete && i.naturalWidth > 9)"
    )
    assert figures == [True, True, True]
    assert page.value("document.documentElement.scrollWidth") <= width
    wide = """[...document.querySelectorAll('body *')].filter((node) => !node.closest('.scroll')
        && node.getBoundingClientRect().right > innerWidth + 1).map((node) => node.outerHTML)"""
    assert page.value(wide) == []
    ink, paper = (
        page.value(f"getComputedStyle(document.documentElement).{name}.match(/\\d+/g).map(Number)")
        for name in ("color", "backgroundColor")
    )
    assert (sum(ink) > sum(paper)) == (scheme == "dark")
    assert abs(sum(ink) - sum(paper)) > 3 * 150
    assert page.problems == []


def test_texts_of_results_are_not_run(page, report_path):
    page.open(report_path, width=WIDE, height=800, scheme="light")
    assert page.value("document.title").startswith("Adversarial robustness")
    assert page.value("document.querySelectorAll('script').length") == 1


def column(page, place: int) -> list[str]:
    """The visible cells of a column of the table of radii."""
    return page.value(
        f"""[...document.querySelectorAll('#radii-table-radii tbody tr')].filter((r) => !r.hidden)
        .map((row) => row.cells[{place}].dataset.value)"""
    )


def test_a_table_sorts_by_exact_numbers_and_filters_by_data_set(page, report_path):
    page.open(report_path, width=WIDE, height=800, scheme="light")
    heading = "#radii-table-radii th:nth-child(3)"
    page.press(f"{heading} button")
    values = [float(text) for text in column(page, 2)]
    assert values == sorted(values)
    assert len(values) == 9
    page.press(f"{heading} button")
    assert [float(text) for text in column(page, 2)] == values[::-1]
    assert page.value(f"document.querySelector('{heading}').ariaSort") == "descending"
    page.value(
        """(() => { const select = document.querySelector('#radii-table-radii .tools select');
        select.value = 'SPAM'; select.dispatchEvent(new Event('change')); })()"""
    )
    assert column(page, 0) == ["SPAM"] * 3


def test_claims_are_chosen_by_whether_they_agree(page, report_path):
    page.open(report_path, width=PHONE, height=800, scheme="light")
    page.press("#claims-radii summary")
    page.value(
        """(() => { const all = [...document.querySelectorAll('#claims-table-radii .tools select')];
        const select = all.find((each) => [...each.options].some((o) => o.value === 'unclear'));
        select.value = 'unclear'; select.dispatchEvent(new Event('change')); })()"""
    )
    shown = """[...document.querySelectorAll('#claims-table-radii tbody tr')]
        .filter((row) => row.offsetHeight > 0).map((row) => row.cells[0].dataset.value)"""
    assert page.value(shown) == ["it stays", "it turns"]


def test_a_chart_shows_the_values_under_the_pointer(page, report_path):
    page.open(report_path, width=WIDE, height=800, scheme="dark")
    page.press("#radii-table-radii .tools button")
    page.value(
        """(() => { const marks = document.querySelectorAll('.chart svg > path[fill^="#"]');
        marks[0].scrollIntoView(); const place = marks[0].getBoundingClientRect();
        document.querySelector('.chart svg').dispatchEvent(new PointerEvent('pointermove',
        {clientX: place.x + place.width / 2, clientY: place.y + place.height / 2})); })()"""
    )
    tip = page.value(
        "document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').innerText"
    )
    assert "data: Synthetic2D" in tip
    assert "epochs: 10" in tip
    assert page.problems == []


def test_the_page_prints(page, report_path):
    page.open(report_path, width=WIDE, height=800, scheme="dark")
    printed = page.print()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 10_000
