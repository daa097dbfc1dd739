"""`gpcert page`: answers as one HTML page, in a real page: light, dark, narrow and printed."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import gpcert
from gpcert.certificates.page import page_of
from gpcert.cli.app import app
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential

WIDE, PHONE = 1280, 375
NAMES = ("<script>alert(1)</script>", 'age" onload="x')
DRAWINGS = {"refuted": 3, "range": 3, "radius": 3, "optimum": 3, "table": 6, "reasons": 0}
CERTIFICATES = (*DRAWINGS, "sets")
"""Figures of the page of each record."""


def asked(proof):
    """Answers of every kind, of a model whose features have hostile names."""
    rng = np.random.default_rng(0)
    points, weights = rng.uniform(-2, 2, (20, 2)), rng.normal(size=20)
    model = gpcert.Posterior(SquaredExponential(0.7), points, weights, feature_names=NAMES)
    x, level = [0.0, 0.0], {"threshold": 0.0, "proof": proof}
    return {
        "refuted": gpcert.certify(model, x, 1.5, **level),
        "range": gpcert.prediction_range(model, x, 1.0, norm=2, quantity="mean", proof=proof),
        "radius": gpcert.certified_radius(model, x, **level),
        "optimum": gpcert.maximize(model, [(-1, 1), (-1, 1)], proof=proof),
        "table": gpcert.certify_many(model, points[:3], 0.4, **level),
    } | (
        {"sets": gpcert.level_set(model, [(-1, 1), (-1, 1)], 0.0, tol=0.2, proof=True)}
        if proof
        else {"reasons": gpcert.explain.sufficient(model, x, 0.1, threshold=0.0)}
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for ending in ("json", "cert"):
        for name, record in asked(ending == "cert").items():
            record.save(folder / f"{name}.{ending}")
    for path in [*folder.glob("*.json"), *folder.glob("*.cert")]:
        found = CliRunner().invoke(app, ["page", str(path), "--output", f"{path}.html"])
        assert found.exit_code == 0, found.output
    return folder


@pytest.mark.parametrize("ending", ["json", "cert"])
@pytest.mark.parametrize("name", CERTIFICATES)
def test_pages_hold_no_script_and_escape_all_text(files, name, ending):
    path = files / f"{name}.{ending}.html"
    if not path.exists():  # reasons have no proofs, level sets no record in JSON
        return
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text.lower()
    assert 'onload="x' not in text
    assert not re.search(r"https?:|src=|href=", text)
    assert "default-src 'none'; style-src 'sha256-" in text
    if ending == "json":
        assert text.count("<svg") == DRAWINGS[name]
    if ending == "cert" or name in ("refuted", "optimum"):  # the record has names
        assert "&lt;script&gt;" in text
    known = "proves every claim again" if ending == "cert" else "it holds no proof"
    assert known in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_pages_are_read_on_every_screen(page, files, scheme, width):
    for name in ("refuted.json", "range.cert", "table.json"):
        page.open(files / f"{name}.html", width=width, height=800, scheme=scheme)
        assert page.problems == []
        assert page.value("document.documentElement.scrollWidth") <= width
        wide = """[...document.querySelectorAll('body *')].filter((n) => !n.closest('.scroll')
            && n.getBoundingClientRect().right > innerWidth + 1).map((n) => n.outerHTML)"""
        assert page.value(wide) == []
        # texts of drawings stay inside, and are large enough to be read
        out = """[...document.querySelectorAll('svg text')].filter((n) => {
            const a = n.getBoundingClientRect(), b = n.closest('svg').getBoundingClientRect();
            return a.left < b.left - 1 || a.right > b.right + 1 || a.height < 8; })
            .map((n) => n.outerHTML)"""
        assert page.value(out) == []
        ink, paper = (
            page.value(
                f"getComputedStyle(document.documentElement).{part}.match(/\\d+/g).map(Number)"
            )
            for part in ("color", "backgroundColor")
        )
        assert (sum(ink) > sum(paper)) == (scheme == "dark")
        assert abs(sum(ink) - sum(paper)) > 3 * 150


def test_pages_print_in_dark_ink(page, files):
    page.open(files / "range.cert.html", width=WIDE, height=800, scheme="dark")
    page.ask("Emulation.setEmulatedMedia", media="print")
    colours = page.value("getComputedStyle(document.body).color")
    page.ask("Emulation.setEmulatedMedia", media="")
    assert colours == "rgb(0, 0, 0)"
    assert page.print().startswith(b"%PDF")


def test_the_region_shows_the_boxes_of_the_proof(files):
    text = (files / "range.cert.html").read_text(encoding="utf-8")
    count = int(re.search(r"in (\d+) boxes that are proved", text)[1])
    assert text.count('class="leaf"') == count > 1


def test_files_that_are_none(tmp_path):
    path = tmp_path / "x.cert"
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="expected a certificate"):
        page_of(path)
    model = tmp_path / "model.npz"
    gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0]).save(model)
    with pytest.raises(InputError, match="expected a certificate, a record or a table"):
        page_of(model)
