"""The explorer's page: built of every kind of model, and used in a real browser."""

import http.client
import re
import socket
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import gpcert
from gpcert.cli.app import app
from gpcert.errors import InputError
from gpcert.explorer import Explorer
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit

pytest.importorskip("panel")


def classifier(dim: int) -> gpcert.Posterior:
    rng = np.random.default_rng(0)
    points, weights = rng.uniform(size=(12, dim)), rng.normal(size=12)
    kernel, factor = SquaredExponential(np.sqrt(dim)), 0.3 * np.eye(12)
    fields = {"likelihood": Probit(), "classes": ("no", "yes")}
    return gpcert.Posterior(kernel, points=points, weights=weights, factor=factor, **fields)


ALL = """(() => {const all = []; const walk = (node) => {
    if (node.shadowRoot) walk(node.shadowRoot);
    for (const child of node.children || []) { all.push(child); walk(child); }};
    if (document.body) walk(document.body); return all; })()"""
"""All elements, also those in the shadow trees of widgets."""

TEXT = f"{ALL}.filter((e) => !e.childElementCount && e.tagName != 'STYLE')"
TEXT += ".map((e) => e.textContent).join(' ')"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int) -> None:
    """Until the server, a thread, listens."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def test_a_click_and_a_drag_ask_and_are_answered(page):
    port = free_port()
    server = Explorer(classifier(3)).serve(port, show=False, threaded=True)
    address = f"http://127.0.0.1:{port}/"
    try:
        wait_for(port)
        page.open(address, width=1200, height=1000)
        page.until(f"{TEXT}.includes('at every point') || {TEXT}.includes('refuted')")
        assert page.value("document.documentElement.scrollWidth") <= 1200
        line = f"({TEXT}.match(/gpcert.certify.*budget=10/) || [''])[0]"
        first = page.value(line)
        where = f"""(() => {{const r = {ALL}.find((e) => String(e.className).includes('bk-events'))
            .getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }})()"""
        x, y, width, height = page.value(where)
        point = x + 0.3 * width, y + 0.6 * height
        page.drag(point)
        second = page.until(f"{line} != {first!r} && {line}")
        assert "radius=" in second
        page.drag(point, (point[0] + 80, point[1] + 60))
        third = page.until(f"{line} != {second!r} && {line}")
        assert "region=gpcert.Box" in third
        # the keyboard: the handle of the radius's slider, moved by an arrow
        page.value(f"{ALL}.find((e) => String(e.className).includes('noUi-handle')).focus()")
        page.key("ArrowRight")
        fourth = page.until(f"{line} != {third!r} && {line}")
        assert "radius=" in fourth
        page.resize(700, 800)
        page.until("document.documentElement.scrollWidth <= 700")
        page.value(f"{ALL}.find((e) => e.textContent == 'Safety curve').click()")
        page.until(f"{TEXT}.includes('Compute the safety curve')")
        beyond = [
            event["params"]["request"]["url"]
            for event in page.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        own = (address, "data:", f"blob:{address}", "chrome")
        assert [url for url in beyond if not url.startswith(own)] == []
        assert not any(e.get("method") == "Runtime.exceptionThrown" for e in page.events)
        page.open(address, width=390, height=800)
        page.until(f"{TEXT}.includes('gpcert.certify')")
        assert page.value("document.documentElement.scrollWidth") <= 390
    finally:
        server.stop()


@pytest.mark.parametrize(("origin", "code"), [("127.0.0.1", 101), ("example.org", 403)])
def test_other_origins_are_refused(origin, code):
    port = free_port()
    server = Explorer(classifier(2)).serve(port, show=False, threaded=True)
    try:
        wait_for(port)
        first = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        first.request("GET", "/")
        token = re.search(r'"token":"([^"]+)"', first.getresponse().read().decode())[1]
        first.close()
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        upgrade |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
        upgrade |= {"Sec-WebSocket-Protocol": f"bokeh, {token}"}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/ws", headers={**upgrade, "Origin": f"http://{origin}:{port}"})
        assert connection.getresponse().status == code
    finally:
        connection.close()
        server.stop()


def regression() -> gpcert.Posterior:
    rng = np.random.default_rng(0)
    points, weights = rng.uniform(size=(5, 2)), rng.normal(size=5)
    names = ("age", "bmi")
    kernel = SquaredExponential(0.5)
    return gpcert.Posterior(kernel, points=points, weights=weights, feature_names=names)


@pytest.mark.parametrize(
    ("model", "shape"),
    [(classifier(30), None), (classifier(196), (14, 14)), (regression(), None)],
    ids=["30 features", "196 pixels", "regression"],
)
def test_a_page_without_python(tmp_path, model, shape, page):
    path = tmp_path / "page.html"
    Explorer(model, shape=shape).save(path)
    page.open(path, width=1000, height=800)
    page.until(f"{TEXT}.includes('gpcert.certify')")
    assert not any(e.get("method") == "Runtime.exceptionThrown" for e in page.events)
    requests = [e for e in page.events if e.get("method") == "Network.requestWillBeSent"]
    urls = [event["params"]["request"]["url"] for event in requests]
    assert all(url.startswith(("file:", "data:", "blob:")) for url in urls)


def test_a_model_of_one_feature_has_no_map():
    with pytest.raises(InputError, match="two features"):
        Explorer(classifier(1))


def test_the_command_writes_a_page_of_a_regression(tmp_path):
    model = regression()
    model.save(tmp_path / "model.npz")
    (tmp_path / "rows.csv").write_text("bmi,age\n0.1,0.2\n0.3,0.9\n")
    options = ["--data", str(tmp_path / "rows.csv"), "--features", "bmi,age"]
    written = str(tmp_path / "p.html")
    command = ["explore", str(tmp_path / "model.npz"), *options, "--html", written]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "p.html").read_text()
    assert "threshold=" in text
    assert "bmi" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": ["x0"]}, "expected two"),
        ({"features": ["x0", "colour"]}, "expected two of x0"),
        ({"shape": (3, 3)}, "expected 2 pixels"),
        ({"X": [[0.0, 0.0]], "y": [1, 2]}, "a label for each"),
        ({"X": [[0.0, 0.0]], "ids": ["a", "b"]}, "one for each"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        Explorer(classifier(2), **options)
