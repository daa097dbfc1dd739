"""The picture of a training trace shows every evaluation, the best so far and the failures."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.models.hyperparameters import Epoch, Trace
from gpcert.plots.curves import plot_training

Figure = pytest.importorskip("matplotlib.figure").Figure


@pytest.fixture
def ax():
    return Figure(figsize=(3, 2)).add_subplot()


def trace_of(*runs):
    flat = [(run, value) for run, values in enumerate(runs) for value in values]
    evaluations = [Epoch(i + 1, run, value, np.zeros(1)) for i, (run, value) in enumerate(flat)]
    return Trace(("variance",), (True,), tuple(evaluations))


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_draws_evaluations_and_the_best_so_far(ax):
    assert plot_training(ax, trace_of([-5.0, -3.0, -4.0, -1.0])) is ax
    np.testing.assert_allclose(
        ax.collections[0].get_offsets(), [[1, -5], [2, -3], [3, -4], [4, -1]]
    )
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [-5, -3, -3, -1])
    assert labels(ax) == ["evaluation", "best so far"]
    assert "epochs" in ax.get_xlabel()


def test_failures_and_restarts_are_marked(ax):
    plot_training(ax, trace_of([-np.inf, 7.0, 8.0], [6.0, -np.inf]))
    assert "inference failed" in labels(ax)
    np.testing.assert_allclose(ax.collections[1].get_offsets(), [[1, 6], [5, 6]])
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [2, 3, 4, 5])
    assert [line.get_xdata()[0] for line in ax.lines[1:]] == [3.5]


def test_a_trace_of_failures_only_is_drawn(ax):
    plot_training(ax, trace_of([-np.inf, -np.inf]))
    assert len(ax.collections[1].get_offsets()) == 2


def test_an_empty_trace_is_refused(ax):
    with pytest.raises(InputError, match="at least one evaluation"):
        plot_training(ax, trace_of([]))
