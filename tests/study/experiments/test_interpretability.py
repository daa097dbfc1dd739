"""The experiments on explanations and whole images: bounds in order, claims judged fairly."""

from fractions import Fraction

import numpy as np
import pytest

from gpcert.study.experiments import (
    full_image,
    interpretability_global,
    interpretability_images,
)
from gpcert.study.experiments.results import ResultTable


def test_bounds_in_the_tables_are_in_order(smallest):
    result, _ = smallest("full-image")
    radii, proved, open_ = full_image.accuracy_steps(result.table("points"), 0.05)
    assert np.all((proved >= 0) & (proved <= open_) & (open_ <= 1))
    for row in result.table("curves").records():
        assert 0.0 <= row["proved"] <= row["not refuted"] <= 1.0
        k = int(np.flatnonzero(radii <= row["radius"])[-1])
        assert (row["proved"], row["not refuted"]) == (proved[k], open_[k])
    result, _ = smallest("interpretability-global")
    for row in result.table("means").records():
        assert row["low"] <= row["mean"] <= row["high"]
        if row["gamma"] is not None:
            assert row["proved lower"] <= row["mean"] <= row["proved upper"]


def test_means_of_proved_effects_are_rounded_outward():
    head = {"data": "spam", "method": interpretability_global.SMALL, "gamma": 0.1, "feature": 1}
    values = (0.1, 0.2, 0.3, 1e16, -1e16)
    rows = [{**head, "value": v, "proved lower": v, "proved upper": v} for v in values]
    points = ResultTable.of("points", "", rows)
    ((_, row),) = interpretability_global.summary({"points": points})
    mean = sum(map(Fraction, values)) / len(values)
    assert Fraction(row["proved lower"]) <= mean <= Fraction(row["proved upper"])


def means_table(
    signs: dict[str, tuple[float, float]], data="synthetic2d", proved=0.1
) -> ResultTable:
    """Means of two features by method, with intervals of 0.2 about them, proved to `proved`."""
    rows = []
    for name, values in signs.items():
        lime = name in interpretability_global.LIMES
        for j, v in enumerate(values):
            row = {
                "data": data,
                "method": name,
                "feature": j + 1,
                "low": v - 0.1,
                "high": v + 0.1,
            }
            lower, upper = (None, None) if lime else (v - proved, v + proved)
            rows.append({**row, "proved lower": lower, "proved upper": upper})
    return ResultTable.of("means", "", rows)


def test_signs_are_judged_by_intervals():
    small, large = interpretability_global.SMALL, interpretability_global.LARGE
    package, scripts = interpretability_global.LIMES
    wrong, right, unsure = (-1.0, 1.0), (1.0, -1.0), (0.05, -1.0)
    table = means_table({small: wrong, large: right, package: unsure, scripts: wrong})
    found = [each.agrees for each in interpretability_global.findings({"means": table})]
    # LIME's sign wrong: package, scripts; large step right; small step as package, as scripts
    assert found == ["unclear", "yes", "yes", "unclear", "yes"]
    table = means_table({small: right, large: wrong, package: right, scripts: right})
    found = [each.agrees for each in interpretability_global.findings({"means": table})]
    assert found == ["no", "no", "no", "yes", "yes"]
    table = means_table({small: right, large: (1.0, 1.0), package: right, scripts: right}, "spam")
    assert [each.agrees for each in interpretability_global.findings({"means": table})] == ["no"]
    signs = dict.fromkeys((small, large, package, scripts), right)
    table = means_table(signs, proved=1.5)  # sure of the mean over points, not of the effects
    found = [each.agrees for each in interpretability_global.findings({"means": table})]
    assert found == ["no", "no", "unclear", "unclear", "unclear"]


def image_tables(lime_gap: float, lime_safe: int, lime_flips: int | None):
    """One image: ours flips at 2 pixels; the other rankings as given."""
    limes = interpretability_images.LIMES
    gaps = [("effects", 0.1, 0.2), *((name, lime_gap, lime_gap + 0.1) for name in limes)]
    budgets = [("effects", 1, 2), *((name, lime_safe, lime_flips) for name in limes)]
    head = {"data": "digits358", "image": 0}
    return {
        "gaps": ResultTable.of(
            "gaps",
            "",
            [{**head, "ranking": n, "beta": 1, "lower": a, "upper": b} for n, a, b in gaps],
        ),
        "budgets": ResultTable.of(
            "budgets",
            "",
            [{**head, "ranking": n, "proved up to": a, "flips at": b} for n, a, b in budgets],
        ),
    }


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (image_tables(0.3, 7, None), ["yes", "yes", "yes"]),  # proved 4 times as many
        (image_tables(0.15, 2, 4), ["unclear", "no", "yes"]),  # proved 1.5 times, at most 2
        (image_tables(0.15, 0, None), ["unclear", "unclear", "unclear"]),
        (image_tables(-0.2, 0, 1), ["no", "no", "no"]),  # LIME is better
    ],
)
def test_pixels_are_judged_by_what_is_proved(tables, expected):
    found = [each.agrees for each in interpretability_images.findings(tables)]
    assert found == expected * 2


def test_what_is_proved_of_pixels_is_rounded_down():
    found = list(interpretability_images.findings(image_tables(0.15, 22, None)))
    assert "proved at least 11.5 times" in found[1].ours


def test_pixels_are_ranked_by_size():
    assert interpretability_images.by_size(np.array([0.1, -3.0, 0.0, 2.0])) == [1, 3, 0, 2]
