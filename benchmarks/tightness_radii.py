"""Radii of three coupled classes on all 64 pixels of the digits; see results/tightness.md.

    python benchmarks/tightness_radii.py

The model is that of `tightness_classes`. The bounds were chosen on the points 450 to 454, which are
reported as such, and on 465 to 474, which are not reported.
"""

from __future__ import annotations

import numpy as np
from report import Section, command_line, merge
from tightness_classes import fitted_model, timed

import gpcert

DECISION_RADIUS, SECONDS = 0.05, 10.0

POINTS = {"new": range(455, 465), "tuned on": range(450, 455)}


def radii() -> Section:
    """Decisions at one radius and certified radii of three classes."""
    section = Section("radii", "Radii, three classes, softmax Laplace, digits, 64 pixels, N = 300")
    X, model, _ = fitted_model(3, 300)
    gpcert.certify(model, X[-1], radius=1e-3)  # what is made once per model
    for name, numbers in POINTS.items():
        quotients, seconds, decisions = [], [], []
        decided = 0
        for x in X[numbers.start : numbers.stop]:
            cert, spent = timed(
                lambda x=x: gpcert.certify(model, x, radius=DECISION_RADIUS, budget=SECONDS)
            )
            decisions.append(spent)
            decided += cert.status.name != "UNKNOWN"
            found, spent = timed(lambda x=x: gpcert.certified_radius(model, x, budget=SECONDS))
            seconds.append(spent)
            quotients.append(found.lower / found.upper)
        section.add(
            points=f"{name}, {numbers.start} to {numbers.stop - 1}",
            decided=f"{decided} of {len(numbers)}",
            most_decision_seconds=max(decisions),
            quotient=float(np.median(quotients)),
            least_quotient=min(quotients),
            most_quotient=max(quotients),
            target_quotient=0.95,
            most_seconds=max(seconds),
        )
    section.notes.append(
        f"decisions at radius {DECISION_RADIUS}, target 2 s; `quotient`: proved over attacked "
        "radius within 10 s of the clock target 0.95; "
        "CPU seconds. Of the points tuned on, 450 and 454 are short of it, with radii above 0.2: "
        "there the slopes of the third class' covariance with the difference are bounded by norms "
        "several times what samples show, and its share by 1/2 where it is about 0.05"
    )
    return section


if __name__ == "__main__":
    merge(command_line(__doc__).parse_args().results, radii(), "radii", "tightness")
