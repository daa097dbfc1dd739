"""The whole HTML page: everything in one file, which loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path

from gpcert.experiments.results import ExperimentResult
from gpcert.report.html_parts import claims_html, experiment_html
from gpcert.report.wording import agreement_counts, claims, time_taken

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
"""The browser itself refuses whatever would need a network."""


def html_page(results: Mapping[Path, ExperimentResult], title: str) -> str:
    """The page of results in their folders, in the order given."""
    rows = claims(results.values())
    contents = "".join(
        f'<li><a href="#{result.experiment}">{escape(result.title)}</a></li>'
        for result in results.values()
    )
    sections = "".join(experiment_html(result, folder) for folder, result in results.items())
    seconds = sum(result.seconds for result in results.values())
    compared = (
        f"<h2 id='claims'>The paper's claims beside our numbers</h2>"
        f"<p>{agreement_counts(results.values())}.</p>{claims_html(rows)}"
        if rows
        else ""
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>{len(results)} experiments, {time_taken(seconds)} of computing. Every figure names the command
that made it and links the numbers it shows; tables sort by a click on a heading, and exact
values appear under the pointer.</p>
<nav aria-label="contents"><ol>{contents}</ol></nav>
</header>
<main>
{compared}
{sections}</main>
<script>
{_asset("page.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return (files("gpcert.report") / name).read_text(encoding="utf-8")
