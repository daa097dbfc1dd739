"""`bound_boxes`: ranges over many boxes hold, whatever they are of and however they are stored."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
import gpcert.api.boxes as boxes_module
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.search.box_family import BoxFamily
from gpcert.testing.effort import THOROUGH, examples

QUANTITIES = ("mean", "variance", "std", "band")

REFERENCE_ERROR = 1e-9
"""Of plain predictions, with which the ranges are compared."""


def _model(kernel, seed=0, n=30, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    K = kernel.value(X, X) + 0.01 * np.eye(n)
    weights = np.linalg.solve(K, np.sin(3 * X[:, 0]) + X[:, -1] ** 2)
    factor = np.linalg.inv(np.linalg.cholesky(K))
    return gpcert.Posterior(kernel, X, weights, factor)


SMOOTH = _model(SquaredExponential([0.5, 0.8], variance=1.3))
ROUGH = _model(Matern([0.6, 0.4], nu=2.5), seed=1)
ONE = np.empty((1, 1, 2))


def _grid(count, low=-1.0, high=1.0):
    edges = np.linspace(low, high, count + 1)
    a, b = np.meshgrid(edges[:-1], edges[:-1], indexing="ij")
    corner = np.stack([a.ravel(), b.ravel()], axis=1)
    return corner, corner + (edges[1] - edges[0])


def _inside(low, high, n=40):
    """(R, n, d) points of the boxes, corners and middles among them."""
    u = np.random.default_rng(5).random((len(low), n, low.shape[1]))
    u[:, :8] = np.round(2 * u[:, :8]) / 2
    return np.clip(low[:, None] + (high - low)[:, None] * u, low[:, None], high[:, None])


def _values(model, X, quantity, beta=2.0):
    """Least and largest value at points (R, n, d), (R,) each."""
    mean, variance = (v.reshape(X.shape[:2]) for v in model.predict(X.reshape(-1, X.shape[2])))
    std = np.sqrt(np.maximum(variance, 0.0))
    below, above = {
        "mean": (mean, mean),
        "variance": (variance, variance),
        "std": (std, std),
        "band": (mean - beta * std, mean + beta * std),
    }[quantity]
    return below.min(axis=1), above.max(axis=1)


def _assert_holds(bounds, models, low, high, beta=2.0):
    X = _inside(low, high)
    for name in bounds.ranges:
        for o, model in enumerate(models):
            least, largest = _values(model, X, name, beta)
            assert np.all(bounds[name][:, o, 0] <= least + REFERENCE_ERROR)
            assert np.all(bounds[name][:, o, 1] >= largest - REFERENCE_ERROR)


@pytest.mark.parametrize("model", [SMOOTH, ROUGH], ids=["smooth", "rough"])
def test_ranges_hold_and_are_tight_on_small_boxes(model):
    low, high = (ends[:: 1 if THOROUGH else 3] for ends in _grid(30))
    bounds = gpcert.bound_boxes(model, low, high, quantity=QUANTITIES)
    _assert_holds(bounds, [model], low, high)
    least, largest = _values(model, _inside(low, high, 200), "mean")
    width = bounds["mean"][:, 0, 1] - bounds["mean"][:, 0, 0]
    assert np.median(width / (largest - least)) < 1.1
    assert bounds.complete
    assert bounds.converged
    assert bounds.boxes >= len(low)


@given(st.data())
@settings(max_examples=examples(10), deadline=None)
def test_ranges_hold_on_boxes_of_any_size(data):
    """Degenerate, huge, far away, and on training points."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    model = data.draw(st.sampled_from([SMOOTH, ROUGH]))
    R = 12
    middle = rng.uniform(-1.5, 1.5, (R, 2)) * 10.0 ** rng.integers(-3, 3, (R, 1))
    middle[:3] = model.points[rng.integers(0, len(model.points), 3)]
    half = 10.0 ** rng.uniform(-9, 2, (R, 2)) * rng.integers(0, 2, (R, 2))
    low, high = middle - half, middle + half
    quantity = data.draw(st.sampled_from(QUANTITIES))
    tol = data.draw(st.sampled_from([None, 0.1]))
    bounds = gpcert.bound_boxes(model, low, high, quantity=quantity, tol=tol, budget=2.0)
    _assert_holds(bounds, [model], low, high)


@pytest.mark.parametrize("quantity", ["mean", "std"])
def test_refinement_agrees_with_one_search_per_box(quantity):
    low, high = (ends[: examples(9, quick=4)] for ends in _grid(3))
    bounds = gpcert.bound_boxes(SMOOTH, low, high, quantity=quantity, tol=1e-3)
    assert bounds.converged
    for row, (a, b) in enumerate(zip(low, high, strict=True)):
        own = gpcert.prediction_range(SMOOTH, gpcert.Box(a, b), quantity=quantity, tol=1e-3)
        below, above = bounds[quantity][row, 0]
        # each brackets the same minimum and maximum to within the tolerance
        assert own.minimum.lower - 1e-3 <= below <= own.minimum.upper
        assert own.maximum.lower <= above <= own.maximum.upper + 1e-3


def test_models_with_kernels_of_their_own_stand_side_by_side():
    low, high = _grid(8)
    both = gpcert.bound_boxes([SMOOTH, ROUGH], low, high, quantity=("mean", "std"))
    assert both.outputs == {"mean": (0, 0), "std": (0, 0)}
    _assert_holds(both, [SMOOTH, ROUGH], low, high)
    for o, model in enumerate((SMOOTH, ROUGH)):
        alone = gpcert.bound_boxes(model, low, high, quantity=("mean", "std"))
        np.testing.assert_array_equal(both["mean"][:, [o]], alone["mean"])


def test_probabilities_of_two_classes_are_each_others_rest(classifier):
    low, high = _grid(6, -1.5, 1.5)
    bounds = gpcert.bound_boxes(classifier, low, high, quantity="probability")
    assert bounds.outputs["probability"] == ("no", "yes")
    X = _inside(low, high)
    p = classifier.predict_proba(X.reshape(-1, 2)).reshape(*X.shape[:2], 2)
    assert np.all(bounds["probability"][..., 0] <= p.min(axis=1) + 1e-9)
    assert np.all(bounds["probability"][..., 1] >= p.max(axis=1) - 1e-9)
    no, yes = bounds["probability"][:, 0], bounds["probability"][:, 1]
    np.testing.assert_allclose(no, 1.0 - yes[:, ::-1], atol=1e-15)
    assert np.all(no[:, 0] <= 1.0 - yes[:, 1])
    assert np.all(no[:, 1] >= 1.0 - yes[:, 0])


def test_blocks_streams_and_processes_give_the_same_numbers(monkeypatch, tmp_path):
    monkeypatch.setattr(boxes_module, "BLOCK", 50)
    low, high = _grid(12)
    whole = gpcert.bound_boxes(SMOOTH, low, high, quantity=("mean", "std"))
    paths = {"mean": tmp_path / "mean.npy", "std": np.empty((144, 1, 2))}
    stored = gpcert.bound_boxes(SMOOTH, low, high, quantity=("mean", "std"), out=paths)
    np.testing.assert_array_equal(np.load(paths["mean"]), whole["mean"])
    np.testing.assert_array_equal(paths["std"], whole["std"])
    assert stored["std"] is paths["std"]
    split = gpcert.bound_boxes(SMOOTH, low, high, quantity=("mean", "std"), n_jobs=2)
    np.testing.assert_array_equal(split["std"], whole["std"])
    first = gpcert.bound_boxes(SMOOTH, low[:50], high[:50], quantity=("mean", "std"))
    np.testing.assert_allclose(first["mean"], whole["mean"][:50], atol=1e-12)


KILLED = """
import time
import numpy as np
import gpcert, gpcert.api.boxes as boxes
from gpcert.certificates.boxes import BoxFile
boxes.BLOCK = 20
write = BoxFile.write
def slowly(self, *args):
    write(self, *args)
    print("block", flush=True)
    time.sleep(0.3)
BoxFile.write = slowly
model = gpcert.Posterior.load({model!r})
low, high = np.load({low!r}), np.load({high!r})
gpcert.bound_boxes(model, low, high, out={out!r})
"""


def test_a_killed_run_goes_on_where_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(boxes_module, "BLOCK", 20)
    low, high = _grid(10)
    names = {name: str(tmp_path / f"{name}.npy") for name in ("low", "high", "out")}
    names |= {"model": str(tmp_path / "model.npz")}
    np.save(names["low"], low)
    np.save(names["high"], high)
    SMOOTH.save(names["model"])
    script = KILLED.format(**names)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    done = Path(names["out"] + ".progress.json").read_text()
    assert '"done"' in done
    resumed = gpcert.bound_boxes(SMOOTH, low, high, out=names["out"])
    assert 0 < resumed.boxes <= 80  # not the blocks that were there
    assert resumed.complete
    whole = gpcert.bound_boxes(SMOOTH, low, high)
    np.testing.assert_array_equal(resumed["mean"], whole["mean"])
    again = gpcert.bound_boxes(SMOOTH, low, high, out=names["out"])
    assert (again.boxes, again.complete, again.converged) == (0, True, True)


def test_what_a_killed_run_left_of_a_block_is_not_returned(monkeypatch, tmp_path):
    monkeypatch.setattr(boxes_module, "BLOCK", 5)
    low, high = _grid(3)
    path, lines = tmp_path / "mean.npy", tmp_path / "mean.affine.npy"
    gpcert.bound_boxes(SMOOTH, low, high, affine=True, out=path)
    for each in (path, lines):  # the second block was not finished,
        noted = Path(f"{each}.progress.json")
        noted.write_text(noted.read_text().replace("[0, 1]", "[0]"))
    torn = np.lib.format.open_memmap(lines, mode="r+")
    torn[7, :, :, :-1] = 1e3  # and one of its lines has another's slope
    torn.flush()

    def interrupted(*args, **words):
        raise KeyboardInterrupt

    monkeypatch.setattr(boxes_module, "numbered_results", interrupted)
    found = gpcert.bound_boxes(SMOOTH, low, high, affine=True, out=path)
    assert found.reached == 5
    assert np.isfinite(found.affine["mean"][:5]).all()
    assert np.isinf(found.affine["mean"][5:, ..., -1]).all()
    assert np.isinf(found["mean"][5:]).all()


def test_a_file_of_another_call_is_not_touched(monkeypatch, tmp_path):
    low, high = _grid(4)
    path = tmp_path / "mean.npy"
    gpcert.bound_boxes(SMOOTH, low, high, out=path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="is not of a call with this model"):
        gpcert.bound_boxes(ROUGH, low, high, out=path)
    with pytest.raises(InputError, match="is not of a call with this model"):
        gpcert.bound_boxes(SMOOTH, low, high, tol=0.1, out=path)
    # a version may mend bounds of an earlier one
    monkeypatch.setattr(boxes_module, "package_version", lambda: "another")
    with pytest.raises(InputError, match="by this version"):
        gpcert.bound_boxes(SMOOTH, low, high, out=path)
    assert path.read_bytes() == before


def test_a_budget_leaves_bounds_that_hold():
    low, high = _grid(examples(40, quick=20))
    seconds = 1.0 if THOROUGH else 0.3
    start = time.perf_counter()
    bounds = gpcert.bound_boxes(SMOOTH, low, high, quantity=QUANTITIES, tol=1e-9, budget=seconds)
    assert time.perf_counter() - start < 10.0
    assert not bounds.converged
    _assert_holds(bounds, [SMOOTH], low, high)
    none = gpcert.bound_boxes(SMOOTH, low, high, budget=1e-9)
    assert none.reached == 0
    assert not none.complete
    assert np.all(none["mean"] == [-np.inf, np.inf])
    with pytest.raises(InputError, match="go on with the same call"):
        none.save_imdp("nowhere")


@pytest.mark.parametrize("affine", [False, True])
def test_boxes_that_a_search_did_not_reach_are_not_counted(affine, monkeypatch):
    monkeypatch.setattr(BoxFamily, "batch_size", 3)
    low, high = _grid(4)
    words = {"tol": 1e-3, "affine": affine}
    bounds = gpcert.bound_boxes(SMOOTH, low, high, budget=gpcert.Budget(boxes=5), **words)
    assert np.isfinite(bounds["mean"]).all(axis=(1, 2)).sum() == bounds.reached == 6
    assert not bounds.complete
    assert gpcert.bound_boxes(SMOOTH, low, high, **words).complete


def test_no_box_is_left_out_where_the_room_for_batches_changes(monkeypatch):
    low, high = _grid(4)
    wanted = gpcert.bound_boxes(SMOOTH, low, high, affine=True)
    # a GPU has less memory left while the arrays of the last batch are there
    sizes = iter([6, 5, 4, *[3] * 100])
    monkeypatch.setattr(BoxFamily, "batch_size", property(lambda _: next(sizes)))
    found = gpcert.bound_boxes(SMOOTH, low, high, affine=True)
    assert found.complete
    assert np.all(np.isfinite(found["mean"]))
    assert np.allclose(found["mean"], wanted["mean"], atol=1e-9)
    assert np.allclose(found.affine["mean"], wanted.affine["mean"], atol=1e-9)


def test_ends_that_float64_cannot_settle_are_not_called_converged():
    """Width 0 is wanted of a mean with rounding errors: nothing is left to split."""
    low = np.array([[0.1, 0.2]])
    bounds = gpcert.bound_boxes(SMOOTH, low, low, tol=0.0)
    assert bounds.complete
    assert bounds["mean"][0, 0, 0] < bounds["mean"][0, 0, 1]
    assert not bounds.converged
    # nor where others of the same call are settled after it
    bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    both = gpcert.bound_boxes(bump, [[0.3], [9.0]], [[0.3], [9.6]], tol=1e-20)
    assert both["mean"][0, 0, 1] - both["mean"][0, 0, 0] > 1e-20
    assert not both.converged


def test_ctrl_c_returns_what_is_there(monkeypatch):
    monkeypatch.setattr(boxes_module, "BLOCK", 16)
    write = boxes_module.BoxFile.write
    calls = []

    def interrupted(self, *args):
        write(self, *args)
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(boxes_module.BoxFile, "write", interrupted)
    low, high = _grid(8)
    bounds = gpcert.bound_boxes(SMOOTH, low, high)
    assert not bounds.complete
    assert np.isfinite(bounds["mean"][:32]).all()
    assert np.isinf(bounds["mean"][32:]).all()


def test_what_is_saved_loads_again(tmp_path):
    low, high = _grid(5)
    bounds = gpcert.bound_boxes(SMOOTH, low, high, quantity=("mean", "std"), tol=0.05)
    bounds.save(tmp_path / "bounds.npz")
    again = gpcert.load(tmp_path / "bounds.npz")
    np.testing.assert_array_equal(again["std"], bounds["std"])
    assert (again.outputs, again.tol, again.models) == (bounds.outputs, 0.05, bounds.models)
    assert repr(again) == repr(bounds)
    assert "25 boxes in 2 features; mean of 1, std of 1" in repr(again)
    assert "25 of 25 boxes bounded to within 0.05; complete=True, converged=True" in repr(again)


def test_a_tolerance_that_is_not_reached_is_said(tmp_path):
    low, high = _grid(8)
    for boxes in (70, 200):
        budget = gpcert.Budget(boxes=boxes)
        bounds = gpcert.bound_boxes(SMOOTH, low, high, tol=1e-4, budget=budget)
        assert not bounds.converged
        # an attained value is inside: what is wide is not known to within the tolerance
        exact = gpcert.bound_boxes(SMOOTH, low, high, tol=1e-7)["mean"]
        slack = np.abs(bounds["mean"] - exact)[:, 0].max(axis=1)
        assert 0 <= bounds.met < 64
        assert bounds.met <= np.sum(slack <= 1e-4 + 1e-7)
        said = f"the tolerance 0.0001 was not reached for {64 - bounds.met} of 64 boxes"
        assert said in repr(bounds)
        assert said in str(bounds)
        bounds.save(tmp_path / "bounds.npz")
        assert said in repr(gpcert.load(tmp_path / "bounds.npz"))
    once = gpcert.bound_boxes(SMOOTH, low, high)
    assert once.met is None
    assert "64 of 64 boxes bounded;" in repr(once)


def test_labels_of_classes_are_saved(classifier, tmp_path):
    low, high = _grid(2)
    bounds = gpcert.bound_boxes(classifier, low, high, quantity="probability")
    bounds.save(tmp_path / "bounds.npz")
    again = gpcert.load(tmp_path / "bounds.npz")
    assert again.outputs == {"probability": ("no", "yes")}
    np.testing.assert_array_equal(again["probability"], bounds["probability"])


def test_a_broken_file_is_refused(tmp_path):
    low, high = _grid(3)
    path = tmp_path / "bounds.npz"
    gpcert.bound_boxes(SMOOTH, low, high).save(path)
    arrays = dict(np.load(path))
    for name, value in {"range_mean": np.zeros((9, 2, 2)), "upper": np.zeros((8, 2))}.items():
        np.savez(path, **{**arrays, name: value})
        with pytest.raises(InputError, match="shapes"):
            gpcert.load(path)
    crossed = arrays["range_mean"][..., ::-1]
    for wrong in (crossed, np.where(crossed > 0, np.nan, arrays["range_mean"])):
        np.savez(path, **{**arrays, "range_mean": wrong})
        with pytest.raises(InputError, match=r"bounds\.npz: .*look at mean"):
            gpcert.load(path)
    text = str(arrays["header"]).replace('"reached": 9', '"reached": 10')
    np.savez(path, **{**arrays, "header": np.array(text)})
    with pytest.raises(InputError, match="look at reached"):
        gpcert.load(path)
    text = str(arrays["header"]).replace('"reached": 9', '"reached": "9"')
    np.savez(path, **{**arrays, "header": np.array(text)})
    with pytest.raises(InputError, match="reached"):
        gpcert.load(path)


def test_arrays_for_interval_mdp_tools(tmp_path):
    low, high = _grid(5)
    bounds = gpcert.bound_boxes([SMOOTH, ROUGH], low, high, quantity=("mean", "std"))
    bounds.save_imdp(tmp_path / "imdp")
    extents = np.load(tmp_path / "imdp" / "extents.npy")
    assert extents.shape == (26, 2, 2)
    np.testing.assert_array_equal(extents[:-1, :, 1], high)
    np.testing.assert_array_equal(extents[-1], [[-1.0, high.max()], [-1.0, high.max()]])
    np.testing.assert_array_equal(np.load(tmp_path / "imdp" / "mean.npy"), bounds["mean"])
    assert np.load(tmp_path / "imdp" / "std.npy").shape == (25, 2, 2)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"lower": [[0.0, np.nan]]}, "lower"),
        ({"lower": [[0.0, 2.0]]}, "row 0"),
        ({"lower": [[0.0, 0.0], [0.0, 0.0]]}, "as many boxes"),
        ({"quantity": ()}, "quantity"),
        ({"quantity": ("mean", "mean")}, "quantity"),
        ({"quantity": "median"}, "quantity"),
        ({"beta": 2.0}, "beta"),
        ({"tol": -1.0}, "tol"),
        ({"out": np.empty((1, 1, 3))}, "out"),
        ({"out": "bounds.txt"}, "npy"),
        ({"out": {"std": None}}, "out"),
        ({"quantity": ("mean", "std"), "out": dict.fromkeys(("mean", "std"), ONE)}, "of its own"),
        ({"model": []}, "model"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"seconds": 3}, "budget"),
        ({"quantity": None}, "expected one or several different ones, .*got None"),
        ({"quantity": ("mean", 3)}, "expected one or several different ones"),
        ({"out": "no such folder/mean.npy"}, "a folder that exists"),
    ],
)
def test_wrong_words_are_named(words, match):
    asked = {"model": SMOOTH, "lower": [[0.0, 0.0]], "upper": [[1.0, 1.0]]} | words
    with pytest.raises(InputError, match=match):
        gpcert.bound_boxes(**asked)


@pytest.mark.parametrize("limit", [0.0, 1e9])
def test_long_work_is_given_to_processes_without_a_try(limit, monkeypatch):
    """What is known of a box's cost decides; the numbers are the same."""
    asked = []

    def here(function, arguments, n_jobs, *, at_once):
        asked.append(at_once)
        return ((k, function(*own)) for k, own in enumerate(arguments))

    boxes = sys.modules["gpcert.api.boxes"]
    monkeypatch.setattr(boxes, "numbered_results", here)
    monkeypatch.setattr(boxes, "LONG_SECONDS", limit)
    bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    edges = np.linspace(0.0, 1.0, 5)[:, None]
    found = gpcert.bound_boxes(bump, edges[:-1], edges[1:], n_jobs=2)
    assert asked == [limit == 0.0]
    assert found.complete
