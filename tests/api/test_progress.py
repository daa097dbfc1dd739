"""Progress: quiet by default where nobody looks, the bounds so far where somebody does."""

import io
import sys
import time

import numpy as np
import pytest

import gpcert
from gpcert.api.running import progress_line
from gpcert.kernels import SquaredExponential
from gpcert.regions import Box

BOX = Box([-1.0], [2.0])


@pytest.fixture
def bump():
    return gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])


CALLS = {
    "apart": lambda p, **how: gpcert.prediction_range(p, BOX, quantity="mean", **how),
    "at most": lambda p, **how: gpcert.prediction_ranges(p, BOX, quantity="mean", **how),
    "least value": lambda p, **how: gpcert.certify(p, [0.0], 0.5, threshold=0.1, **how),
    "radius between": lambda p, **how: gpcert.certified_radius(p, [0.0], threshold=0.1, **how),
    "2 of 2 points": lambda p, **how: gpcert.certify_many(
        p, [[0.0], [0.1]], 0.1, threshold=0.1, **how
    ),
}


@pytest.mark.parametrize("text", CALLS)
def test_every_verb_shows_its_bounds_when_asked(bump, capsys, text):
    CALLS[text](bump)
    assert capsys.readouterr().err == ""
    CALLS[text](bump, progress=True)
    assert text in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_a_line_only_of_what_takes_long(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for wait, seen in ((0.0, False), (0.7, True)):
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        with progress_line(None) as line:
            line.show("working")
            time.sleep(wait)
            line.show("still working")
        assert ("still working" in screen.getvalue()) == seen


def test_progress_changes_no_answer(bump):
    loud = gpcert.prediction_range(bump, BOX, quantity="mean", progress=True)
    quiet = gpcert.prediction_range(bump, BOX, quantity="mean", progress=False)
    assert (loud.minimum, loud.maximum, loud.boxes) == (quiet.minimum, quiet.maximum, quiet.boxes)
    assert np.array_equal(loud.argmin, quiet.argmin)
