"""The picture of a kernel's lines is on the right sides, and the docs show every kernel."""

import importlib.util
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.kernels import (
    KERNELS,
    Constant,
    Linear,
    Matern,
    Periodic,
    SquaredExponential,
    Sum,
    kernel_from_config,
)
from gpcert.plots.axes import ACCENT, DARK
from gpcert.plots.kernels import kernel_lines, plot_kernel_lines
from gpcert.testing.effort import crossed
from gpcert.testing.kernel_references import partner_configs

Figure = pytest.importorskip("matplotlib.figure").Figure

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "kernels.md").read_text(encoding="utf-8")

ROUNDINGS = 1e-13
"""Relative to the kernel's size: curves and kernel are evaluated in plain floating point."""

LARGEST_PICTURE = 60_000


def load_pictures():
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "make_kernel_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PICTURES = load_pictures()


@pytest.fixture
def ax():
    return Figure(figsize=(3, 2)).add_subplot()


def check_sides(lines):
    size = np.abs(lines.value).max() + np.abs(lines.over).max()
    slack = ROUNDINGS * size
    assert np.all(lines.under <= lines.value + slack)
    assert np.all(lines.over >= lines.value - slack)
    assert np.all(lines.taylor_under <= lines.value + slack)
    assert np.all(lines.taylor_over >= lines.value - slack)
    assert np.all(np.isfinite([lines.under, lines.over]))


@crossed(
    {
        "name": sorted(KERNELS),
        "interval": [(-0.7, 0.9), (0.3, 0.5), (1.0, 4.0), (0.4, 0.4 + 1e-6)],
        "point": [0.4, -1.3],
    }
)
def test_curves_are_on_their_sides(name, interval, point):
    kernel = kernel_from_config(name, partner_configs(1)[name])
    check_sides(kernel_lines(kernel, interval, point, count=501))


@pytest.mark.parametrize("name", ["matern", "product", "active_dimensions", "generalised_spectral"])
def test_other_inputs_are_held_at_the_points_own(name):
    kernel = kernel_from_config(name, partner_configs(2)[name])
    check_sides(kernel_lines(kernel, (-0.5, 0.8), (0.1, 0.6)))


def test_the_panels_of_the_docs_are_on_their_sides():
    for panels in PICTURES.PANELS.values():
        for panel in panels:
            check_sides(kernel_lines(panel.kernel, panel.interval, panel.point))


def test_curves_close_in_on_the_kernel_as_the_interval_shrinks():
    for kernel, order in ((Matern(1.0, 2.5), 3.0), (Periodic(3.0, 1.0), 3.0)):
        gaps = []
        for half in (1e-1, 1e-2):
            lines = kernel_lines(kernel, (0.7 - half, 0.7 + half), 0.0)
            gaps.append([np.max(lines.over - lines.under)])
            gaps[-1].append(np.max(lines.taylor_over - lines.taylor_under))
        lines_rate, taylor_rate = np.log10(np.divide(gaps[0], gaps[1]))
        assert lines_rate > 1.9
        assert taylor_rate > order - 0.2


def test_draws_what_it_computes(ax):
    kernel = SquaredExponential(1.0)
    assert plot_kernel_lines(kernel, (0.2, 1.8), 0.0, ax) is ax
    lines = kernel_lines(kernel, (0.2, 1.8), 0.0)
    drawn = {
        colour: [line.get_ydata() for line in ax.lines if line.get_color() == colour]
        for colour in (ACCENT, DARK)
    }
    np.testing.assert_array_equal(drawn[ACCENT], [lines.under, lines.over])
    np.testing.assert_array_equal(drawn[DARK], [lines.taylor_under, lines.taylor_over])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [
        "second-order Taylor enclosure",
        "kernel k(x, z)",
        "paper's lines under and over",
    ]
    ax.figure.canvas.draw()


def test_a_band_that_says_nothing_is_left_out(ax):
    plot_kernel_lines(SquaredExponential(1e-3), (-2.0, 2.0), 0.0, ax, legend=False)
    assert all(line.get_color() != DARK for line in ax.lines)
    assert ax.get_legend() is None
    ax.figure.canvas.draw()


def test_a_flat_kernel_gets_an_axis_of_its_own_size(ax):
    plot_kernel_lines(Constant(2.0), (0.0, 1.0), 0.5, ax)
    assert np.ptp(ax.get_ylim()) == pytest.approx(4.0)


def test_without_axes_it_draws_in_a_new_figure():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = pyplot.figure().add_subplot()
    drawn = plot_kernel_lines(Sum([Linear(1.0), SquaredExponential(1.0)]), (0.0, 1.0), 0.5)
    assert drawn is not axes
    assert not axes.has_data()
    assert type(drawn.figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"
    pyplot.close("all")


@pytest.mark.parametrize("interval", [(1.0, 0.0), (0.0, 0.0), (0.0, 1.0, 2.0), (0.0, np.inf)])
def test_bad_intervals_are_refused(interval):
    with pytest.raises(InputError, match="interval"):
        kernel_lines(SquaredExponential(1.0), interval, 0.0)


def test_points_must_fit_the_kernel():
    with pytest.raises(InputError):
        kernel_lines(SquaredExponential([1.0, 2.0]), (0.0, 1.0), 0.0)
    with pytest.raises(InputError, match="point"):
        kernel_lines(SquaredExponential(1.0), (0.0, 1.0), [[0.0]])


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_every_kernel_has_a_panel(name):
    shown = {type(panel.kernel) for panels in PICTURES.PANELS.values() for panel in panels}
    assert KERNELS[name] in shown, f"no panel of docs/make_kernel_pictures.py shows {name!r}"


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_every_kernel_has_a_section(name):
    heading = re.compile(rf"^### .*`{KERNELS[name].__name__}`", re.MULTILINE)
    assert heading.search(PAGE), f"no section of docs/kernels.md is about {name!r}"


def test_every_picture_is_on_the_page_and_small():
    linked = re.findall(r"\]\((pictures/kernels/\w+\.png)\)", PAGE)
    assert {Path(path).stem for path in linked} == {*PICTURES.PANELS, "remainders"}
    for path in linked:
        data = (DOCS / path).read_bytes()
        assert len(data) < LARGEST_PICTURE
        width, height = struct.unpack(">II", data[16:24])
        assert width >= 600
        assert height >= 200


@pytest.mark.slow
def test_the_command_writes_every_picture(tmp_path):
    PICTURES.main(tmp_path)
    assert {p.stem for p in tmp_path.iterdir()} == {*PICTURES.PANELS, "remainders"}
    assert all(p.stat().st_size < LARGEST_PICTURE for p in tmp_path.iterdir())
