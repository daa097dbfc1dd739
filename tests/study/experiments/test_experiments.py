"""Every experiment runs at its smallest, and says where its numbers come from."""

import numpy as np
import pytest

from gpcert.study.experiments import experiment_named, names, redraw
from gpcert.study.experiments.results import AGREEMENTS
from gpcert.testing.effort import variants

BEYOND = {"multiclass", "full-image", "sufficient-reasons"}
"""The paper claims nothing about the digits' accuracy, whole images, or reasons."""


LONG = {"sparse", "interpretability-images", "convergence", "scaling", "multiclass", "full-image"}
"""The longest; `scaling` also runs in tests/cli/test_cli_reproduce.py."""


@variants("name", sorted(names(), key=LONG.__contains__), quick=len(names()) - len(LONG))
def test_the_smallest_run_writes_everything_it_promises(name, smallest):
    result, output = smallest(name)
    folder = output / name
    assert result.tables
    assert result.figures
    assert result.findings or name in BEYOND
    assert {finding.agrees for finding in result.findings} <= set(AGREEMENTS)
    for table in result.tables:
        assert table.rows
        assert (folder / f"{table.name}.csv").stat().st_size > 0
    for figure in result.figures:
        picture = (folder / f"{figure.name}.svg").read_bytes()
        assert picture.startswith(b"<?xml")
        assert (folder / f"{figure.name}.png").stat().st_size > 0
        (folder / f"{figure.name}.svg").unlink()
    again = redraw(name, output)
    assert again.findings == result.findings
    assert picture == (folder / f"{result.figures[-1].name}.svg").read_bytes()


@pytest.mark.parametrize("name", names())
def test_full_runs_use_the_papers_settings_and_more_points(name):
    settings = experiment_named(name).settings_of("full")
    if name in {"robustness", "sparse", "interpretability-global"}:
        assert settings.points == (1000 if name == "robustness" else 200)
    if hasattr(settings, "patch"):
        assert settings.patch == "sift"
    if name == "robustness":
        assert (settings.train, settings.epochs, settings.radius) == (1000, (10, 40, 100), 0.1)
        assert {"synthetic2d-1000", "synthetic2d-published-1000"} < set(settings.data)
    if name == "sparse":
        assert (min(settings.train), max(settings.train), settings.radius) == (250, 7500, 0.15)
        assert settings.inducing == (100, 200, 300, 400, 500)


def test_attained_deltas_are_not_above_proved_ones(smallest):
    table = smallest("robustness")[0].table("deltas")
    proved, attained = (np.array(table.column(name)) for name in ("proved", "attained"))
    assert np.all(attained <= proved)
    assert np.all(proved - attained < 0.0021)  # both ends within the tolerance
