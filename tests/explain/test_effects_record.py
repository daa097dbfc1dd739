"""The record of effects: files, tables, text, pictures, shap."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from gpcert import explain
from gpcert.errors import InputError, MissingExtraError


@pytest.fixture(scope="module")
def found(binary):
    return explain.effects(binary, np.random.default_rng(0).uniform(-1, 1, (2, 4)), 0.3)


def test_files_keep_every_number(found, tmp_path):
    path = tmp_path / "effects.json"
    found.save(path)
    again = explain.Effects.load(path)
    assert np.array_equal(again.lower, found.lower)
    assert np.array_equal(again.X, found.X)
    assert again.outputs == found.outputs
    assert again.reason is found.reason
    path.write_text(path.read_text().replace('"effects"', '"reason"', 1))
    with pytest.raises(InputError, match="expected a effects"):
        explain.Effects.load(path)


def test_frame_has_a_row_per_point_output_and_feature(found):
    frame = found.to_frame()
    assert len(frame) == 16
    assert (frame["lower"] <= frame["upper"]).all()
    assert list(frame["feature"][:4]) == ["x0", "x1", "x2", "x3"]


def test_text_is_short(found):
    assert "2 points" in repr(found)
    assert len(str(found).splitlines()) <= 11
    assert "width <= 0.1235" in repr(replace(found, upper=found.lower + 0.12344))


def test_ranking_is_by_size(found):
    size = np.abs(found.values[0, 1])
    assert np.all(np.diff(size[found.ranking()]) <= 0)


def test_pictures(found, image_model):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots(1, 2)
    assert found.plot(axes[0], point=1) is axes[0]
    pixels = explain.effects(image_model, np.full(9, 0.5), 0.2, domain=(0, 1))
    assert pixels.heat_map((3, 3), axes[1]) is axes[1]
    with pytest.raises(InputError, match="pixels"):
        pixels.heat_map((2, 3), axes[1])
    pyplot.close(figure)


def test_unknown_outputs_and_features_are_named(found):
    with pytest.raises(InputError, match="'yes'"):
        found.plot(output="maybe")
    with pytest.raises(InputError, match="feature"):
        found.interval("age")


def test_shap_gets_values_bounds_and_names(found, monkeypatch):
    stub = ModuleType("shap")

    class Recorded:
        def __init__(self, **fields):
            self.__dict__.update(fields)

    stub.Explanation = Recorded
    monkeypatch.setitem(sys.modules, "shap", stub)
    explanation = found.to_shap()
    assert np.array_equal(explanation.lower_bounds, found.lower[:, 1])
    assert np.array_equal(explanation.upper_bounds, found.upper[:, 1])
    assert np.array_equal(explanation.data, found.X)
    assert explanation.feature_names == ["x0", "x1", "x2", "x3"]


def test_shap_itself_accepts_them(found):
    shap = pytest.importorskip("shap")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    explanation = found.to_shap()
    assert isinstance(explanation, shap.Explanation)
    assert explanation.values.shape == (2, 4)
    for draw, part in ((shap.plots.bar, explanation), (shap.plots.waterfall, explanation[0])):
        figure = pyplot.figure()
        draw(part, show=False)
        names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert any("x0" in name for name in names)
        pyplot.close(figure)


def test_without_shap_the_extra_is_named(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingExtraError, match=r"gpcert\[explain\]"):
        found.to_shap()
