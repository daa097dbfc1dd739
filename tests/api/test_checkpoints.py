"""Calls that go on from a file: killed, interrupted, finished; and files that cannot be used."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import gpcert
from gpcert.errors import CheckpointWarning, InputError
from gpcert.kernels import SquaredExponential
from tests.api.checkpoint_case import CUBE, asked, model, numbers

CASE = Path(__file__).with_name("checkpoint_case.py")
posix = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
LIMITED = (
    "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2);"
    "from tests.api.checkpoint_case import *;"
    "print(json.dumps(asked(gpcert.Checkpoint(sys.argv[1], 0.02))))"
)
"""Files may not grow beyond some bytes: writing fails as on a full disk."""


@pytest.fixture
def small():
    """Two points of opposite sign."""
    return gpcert.Posterior(SquaredExponential(1.0), [[0.0], [3.0]], [1.0, -1.0])


def started(path):
    return subprocess.Popen([sys.executable, str(CASE), str(path)], stdout=subprocess.PIPE)


def bounded(path):
    """Boxes that the file's search has bounded."""
    header = json.loads(np.load(path)["header"].tobytes())
    fields = [state for _, state, *_ in header["searches"]]
    return max((state["State"][6] for state in fields), default=0)


@posix
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_calls_end_with_the_bounds_of_others(tmp_path, kills):
    path, rng, known = tmp_path / "run.ckpt", np.random.default_rng(kills), 0
    for k in range(kills):
        process, begun = started(path), time.monotonic()
        while not (path.exists() and bounded(path)) and time.monotonic() < begun + 60.0:
            time.sleep(0.01)
        # the first has begun; later ones import still, or go on, at this moment
        time.sleep(rng.uniform(0.0, 1.2 if k else 0.2))
        process.send_signal((signal.SIGKILL, signal.SIGTERM)[k % 2])
        process.communicate()
        now = bounded(path)
        assert now >= known
        known = now
    assert known > 0
    uninterrupted = asked(None)
    last = started(path)
    assert json.loads(last.communicate()[0]) == uninterrupted
    found = gpcert.resume(path)
    assert numbers(found) == uninterrupted


def test_a_budget_that_ends_is_no_end(tmp_path):
    path = tmp_path / "run.ckpt"
    how = {"tol": 1e-2, "checkpoint": path}
    first = gpcert.prediction_range(model(), CUBE, **how, budget=gpcert.Budget(boxes=200))
    assert first.reason is gpcert.StopReason.BOXES
    more = gpcert.resume(path, budget=gpcert.Budget(boxes=400))
    assert more.boxes > first.boxes
    assert more.minimum.width <= first.minimum.width
    assert more.reason is gpcert.StopReason.BOXES
    last = gpcert.prediction_range(model(), CUBE, **how)
    assert last.converged
    whole = gpcert.prediction_range(model(), CUBE, tol=1e-2)
    for found in (more, last):  # whatever the budget was, the bounds hold
        assert found.minimum.lower <= whole.minimum.upper
        assert whole.minimum.lower <= found.minimum.upper


def level_set(p, **how):
    return gpcert.level_set(p, [(-1.0, 4.0)], 0.2, tol=1e-3, **how)


def probability(p, **how):
    return gpcert.failure_probability(p, [norm(0.0, scale=1.0)], -0.1, rtol=1e-6, **how)


CALLS = {
    "certify": lambda p, **how: gpcert.certify(p, [0.0], 1.4, threshold=0.0, **how).margin,
    "radius": lambda p, **how: gpcert.certified_radius(p, [0.0], threshold=0.0, **how).lower,
    "minimize": lambda p, **how: gpcert.minimize(p, [(-1.0, 4.0)], **how).value,
    "regret": lambda p, **how: gpcert.regret_bound(p, [(-1.0, 4.0)], [[0.0]], **how).bound,
    "certify_many": lambda p, **how: [
        c.margin for c in gpcert.certify_many(p, [[0.0], [1.4]], 1.4, threshold=0.0, **how)
    ],
    "slopes": lambda p, **how: [r.minimum for r in gpcert.slope_ranges(p, [(-1.0, 4.0)], **how)],
    "monotone": lambda p, **how: [
        r.summary for r in gpcert.certify_monotone(p, [(-1.0, 0.5)], {0: "+"}, **how)
    ],
    "difference": lambda p, **how: (
        gpcert.difference_range(p, [(-1.0, 1.0)], {0: 1.0}, **how).minimum
    ),
    "reason": lambda p, **how: (
        gpcert.explain.sufficient(p, [0.0], 1.0, threshold=0.0, **how).features
    ),
    "worst_case": lambda p, **how: [r.minimum for r in gpcert.worst_case(p, [[0.0]], 1.0, **how)],
    "safety": lambda p, **how: [
        r.status.name for r in gpcert.safety_curve(p, [0.0], [0.5, 1.4], threshold=0.0, **how)
    ],
    "accuracy": lambda p, **how: [
        r.lower
        for r in gpcert.certified_accuracy(
            p, [[0.0]], None, radii=[0.5], threshold=0.0, norm=2, **how
        )
    ],
    "effects": lambda p, **how: gpcert.explain.effects(p, [0.0], 1.0, **how).lower.tolist(),
    "boxes": lambda p, **how: gpcert.bound_boxes(p, [[0.0]], [[1.0]], **how)["mean"].tolist(),
    "boxes_refined": lambda p, **how: gpcert.bound_boxes(p, [[0.0]], [[1.0]], tol=1e-3, **how)[
        "mean"
    ].tolist(),
    "level_set": lambda p, **how: [*level_set(p, **how).share.__dict__.values()],
    "invariant": lambda p, **how: gpcert.invariant_set(p, [(-1.0, 1.0)], cells=50, **how).share,
    "probability": lambda p, **how: probability(p, **how).upper,
    "expectation": lambda p, **how: gpcert.expectation(p, [norm(0.0, 1.0)], **how).upper,
    "quantile": lambda p, **how: gpcert.quantile(p, [norm(0.0, 1.0)], 0.3, **how).upper,
    "lipschitz": lambda p, **how: gpcert.lipschitz(p, gpcert.Box([-1.0], [4.0]), **how).upper,
}


@pytest.mark.parametrize("name", CALLS)
def test_every_verb_of_the_search(name, small, tmp_path):
    path, call = tmp_path / "run.ckpt", CALLS[name]
    plain = call(small)
    assert call(small, checkpoint=path) == plain
    count = len(json.loads(np.load(path)["header"].tobytes())["searches"])
    assert count, "the verb's searches are in the file"
    assert call(small, checkpoint=path) == plain
    assert len(json.loads(np.load(path)["header"].tobytes())["searches"]) == count


def test_effects_of_several_parts_of_a_call(tmp_path):
    """Parts with the same ends are told apart by their features."""
    rng = np.random.default_rng(0)
    wide = gpcert.Posterior(SquaredExponential(1.0), rng.normal(size=(1000, 410)), np.ones(1000))
    path, how = tmp_path / "run.ckpt", {"tol": 1.0}
    found = gpcert.explain.effects(wide, np.zeros(410), 0.1, checkpoint=path, **how)
    plain = gpcert.explain.effects(wide, np.zeros(410), 0.1, **how)
    assert np.array_equal(found.lower, plain.lower)
    assert len(json.loads(np.load(path)["header"].tobytes())["searches"]) > 1
    with pytest.raises(InputError, match="n_jobs: expected 1 with checkpoint"):
        gpcert.explain.effects(
            wide, np.zeros(410), 0.1, checkpoint=tmp_path / "two.ckpt", n_jobs=2, **how
        )


@pytest.mark.parametrize("ask", [level_set, probability])
def test_pavings_go_on_to_the_bounds_of_others(ask, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "run.ckpt"
    points, weights = rng.uniform(-1, 4, (30, 1)), rng.normal(size=30)
    rough = gpcert.Posterior(SquaredExponential(0.1), points, weights)
    whole = ask(rough)
    for boxes in (20, 60):
        first = ask(rough, checkpoint=path, budget=gpcert.Budget(boxes=boxes))
        assert first.reason is gpcert.StopReason.BOXES
    last = gpcert.resume(path, budget=60.0)
    assert last.converged
    assert last.boxes >= first.boxes
    ends = [(r.share.lower, r.share.upper) if ask is level_set else (r.lower, r.upper)
            for r in (whole, last)]  # fmt: skip
    assert ends[0][0] <= ends[1][1]
    assert ends[1][0] <= ends[0][1]
    assert ask is probability or np.isclose(last.cells.high.max(), 4.0)


def test_sets_of_several_models(small, tmp_path):
    path, other = tmp_path / "run.ckpt", gpcert.Posterior(SquaredExponential(2.0), [[0.0]], [1.0])
    asked = [("a", ">=", 0.1), ("b", ">=", 0.5)]
    how = {"tol": 1e-3, "checkpoint": path}
    first = gpcert.level_set({"a": small, "b": other}, [(-1.0, 4.0)], asked, **how)
    again = gpcert.level_set({"a": small, "b": other}, [(-1.0, 4.0)], asked, **how)
    assert again.share == first.share
    with pytest.raises(InputError, match="got that of another"):
        gpcert.level_set({"b": small, "a": other}, [(-1.0, 4.0)], asked, **how)
    with pytest.raises(InputError, match="files hold one model"):
        gpcert.resume(path)


def test_boxes_of_several_models_and_of_files(small, tmp_path):
    path, boxes = tmp_path / "run.ckpt", ([[0.0], [1.0]], [[1.0], [2.0]])
    first = gpcert.bound_boxes([small, small], *boxes, checkpoint=path)
    again = gpcert.bound_boxes([small, small], *boxes, checkpoint=path)
    assert np.array_equal(first["mean"], again["mean"])
    with pytest.raises(InputError, match="files hold one model"):
        gpcert.resume(path)
    with pytest.raises(InputError, match="checkpoint: expected none with out="):
        gpcert.bound_boxes(small, *boxes, out=tmp_path / "a.npy", checkpoint=tmp_path / "b.ckpt")


def test_arguments_that_files_do_not_hold(small, tmp_path):
    pandas = pytest.importorskip("pandas")
    path, row = tmp_path / "run.ckpt", pandas.Series({"x": 0.0})
    named = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0], feature_names=["x"])
    found = gpcert.prediction_range(named, row, 0.5, quantity="mean", checkpoint=path)
    again = gpcert.prediction_range(named, row, 0.5, quantity="mean", checkpoint=path)
    assert again.minimum == found.minimum
    with pytest.raises(InputError, match="x: files hold no Series; call prediction_range again"):
        gpcert.resume(path)


def test_another_call(small, tmp_path):
    path = tmp_path / "run.ckpt"
    gpcert.prediction_range(small, [0.0], 0.5, checkpoint=path)
    kept = path.read_bytes()
    with pytest.raises(InputError, match="got that of another"):
        gpcert.prediction_range(small, [0.0], 0.6, checkpoint=path)
    other = gpcert.Posterior(SquaredExponential(1.0), [[0.0], [3.0]], [1.0, -2.0])
    with pytest.raises(InputError, match="got that of another"):
        gpcert.prediction_range(other, [0.0], 0.5, checkpoint=path)
    assert path.read_bytes() == kept


@pytest.mark.parametrize("content", [b"", b"something else", None])
def test_files_that_are_no_checkpoint(small, tmp_path, content):
    path = tmp_path / "run.ckpt"
    if content is None:  # cut off
        gpcert.prediction_range(small, [0.0], 0.5, checkpoint=path)
        content = path.read_bytes()[:-500]
    path.write_bytes(content)
    for call in (lambda: CALLS["certify"](small, checkpoint=path), lambda: gpcert.resume(path)):
        with pytest.raises(InputError, match="expected a checkpoint of gpcert"):
            call()
    assert path.read_bytes() == content
    with pytest.raises(InputError, match="expected a checkpoint"):
        gpcert.resume(tmp_path / "none.ckpt")


def test_bytes_that_flip(small, tmp_path):
    path = tmp_path / "run.ckpt"
    CALLS["certify"](small, checkpoint=path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    plain = CALLS["certify"](small)
    for place in rng.integers(len(content), size=60).tolist():
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        try:
            assert CALLS["certify"](small, checkpoint=path) == plain
        except InputError:  # anything else is a defect
            continue


def test_names_and_intervals(small, tmp_path):
    for wrong in (3, True, gpcert.Box([0.0], [1.0])):
        with pytest.raises(InputError, match="checkpoint: expected the name of a file"):
            CALLS["certify"](small, checkpoint=wrong)
    with pytest.raises(InputError, match="checkpoint seconds: expected a number >= 0"):
        gpcert.Checkpoint("run.ckpt", -1.0)
    with pytest.raises(InputError, match="the checkpoint cannot be written"):
        CALLS["certify"](small, checkpoint=tmp_path / "none" / "run.ckpt")
    with pytest.raises(InputError, match="n_jobs: expected 1 with checkpoint"):
        CALLS["certify_many"](small, checkpoint=tmp_path / "run.ckpt", n_jobs=2)


def test_two_writers(tmp_path):
    path = tmp_path / "run.ckpt"
    process = started(path)
    try:
        while not path.exists():
            time.sleep(0.01)
        with pytest.raises(InputError, match="another call is writing this checkpoint"):
            asked(path)
    finally:
        process.kill()
        process.communicate()
    assert asked(path)["ends"], "the lock went with the process"


@posix
def test_a_full_disk(tmp_path):
    def limited(size):
        path, root = tmp_path / f"{size}.ckpt", Path(__file__).parents[2]
        how = {"capture_output": True, "text": True, "cwd": root}
        words = [sys.executable, "-c", LIMITED, path, str(size)]
        return subprocess.run(words, check=False, **how)

    found = limited(100)  # at once: nothing is computed in vain
    assert found.returncode == 1
    assert "cannot be written" in found.stderr
    assert not list(tmp_path.glob("*.part"))
    found = limited(5_000)  # later: the search goes on, and says so
    assert "the search goes on" in found.stderr
    assert CheckpointWarning.__name__ in found.stderr
    assert json.loads(found.stdout) == asked(None)
    assert not list(tmp_path.glob("*.part"))
