"""The site that `make docs` built: every link leads somewhere, and a browser shows every page, wide
and narrow, light and dark, without an error and without a request to elsewhere."""

import os
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "build" / "docs"
WIDE, PHONE = 1280, 375
WHOLE = ("index.html", "start.html", "analyses.html", "generated/api/verbs.html")
"""Pages that are opened at every width, light and dark."""

pytestmark = pytest.mark.skipif(
    "GPCERT_SITE" not in os.environ, reason="run by `make docs`, after it has built the site"
)


class Page(HTMLParser):
    """Links, anchors and pictures of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors.add(given.get("id"))
        if tag in {"a", "link"} and given.get("href"):
            self.links.append(given["href"])
        if tag in {"img", "script"} and given.get("src"):
            self.links.append(given["src"])
            assert tag != "img" or given.get("alt") is not None, given


def pages():
    return sorted(path for path in SITE.glob("**/*.html") if "_static" not in path.parts)


def test_every_link_leads_to_a_page_and_a_place_of_it():
    known = {path: Page(path) for path in pages()}
    assert len(known) > 80
    broken = []
    for path, page in known.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            end = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = end.exists() and (
                end not in known or unquote(parts.fragment) in known[end].anchors
            )
            if not there:
                broken.append((str(path.relative_to(SITE)), link))
    assert not broken


def complaints(page):
    """Errors and warnings in the console, and requests to elsewhere."""
    return [
        event
        for event in page.problems
        if event["params"].get("type") not in {"log", "info", "debug"}
    ]


def opened(page, name, width, scheme, query=""):
    page.open(SITE / name, width=width, height=900, scheme=scheme, query=query)
    assert complaints(page) == []
    assert page.value("document.documentElement.scrollWidth") <= width


def test_every_page_fits_a_phone_without_an_error(page):
    for path in pages():
        opened(page, path.relative_to(SITE), PHONE, "light")
        broken = "[...document.images].filter((i) => i.complete && !i.naturalWidth).length"
        assert page.value(broken) == 0, path


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_readable_light_and_dark(page, name, scheme):
    opened(page, name, WIDE, scheme)
    ink, paper = (
        page.value(f"getComputedStyle({place}).{name}.match(/\\d+/g).map(Number)")
        for place, name in (
            ("document.querySelector('article p')", "color"),
            ("document.body", "backgroundColor"),
        )
    )
    assert (sum(ink[:3]) > sum(paper[:3])) == (scheme == "dark")
    assert abs(sum(ink[:3]) - sum(paper[:3])) > 3 * 120


def test_the_search_finds_a_verb(page):
    opened(page, "search.html", WIDE, "light", query="?q=certified_radius")
    found = "[...document.querySelectorAll('#search-results a')].map((a) => a.href)"
    until = time.monotonic() + 20.0
    while not (links := page.value(found)) and time.monotonic() < until:
        time.sleep(0.1)
    assert any("generated/api/verbs.html" in link for link in links)
