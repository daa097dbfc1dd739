"""A long question in a process of its own, to be interrupted: `python hunt_interrupts.py VERB`.

Prints "asked" before the call and one JSON line with the answer after it.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import gpcert
from gpcert.kernels import SquaredExponential

VERBS = (
    "certify",
    "certify_many",
    "certify_many in two processes",
    "prediction_range",
    "prediction_ranges",
    "certified_radius",
)
SECONDS = 40.0
DIM = 10
HARD_AT = 2
"""Rows of `certify_many` before the hard one; the easy ones end in milliseconds."""


def model() -> gpcert.Posterior:
    """Many bumps in ten dimensions: no range of it is found in a minute."""
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(200, DIM)), rng.normal(size=(2, 200))
    return gpcert.Posterior(SquaredExponential(1.5), points, weights)


def rows() -> np.ndarray:
    """Easy points, far from everything, about a hard one."""
    X = np.full((6, DIM), 100.0) + np.arange(6)[:, None]
    X[HARD_AT] = 0.0
    return X


def asked(verb: str) -> Callable[[], Any]:
    """A question that takes longer than anybody waits."""
    hard, x, budget = model(), np.zeros(DIM), gpcert.Budget(seconds=SECONDS)
    box = gpcert.Box(x - 2.0, x + 2.0)
    level = float(np.abs(hard.predict(box.sample(2000, 0))[0] - hard.predict(x[None])[0]).max())
    delta = {"delta": 1.35 * level, "budget": budget}  # true, but not soon proved
    if verb == "certify":
        return partial(gpcert.certify, hard, x, 2.0, **delta)
    if verb.startswith("certify_many"):
        jobs = 2 if "two" in verb else 1
        how = {"n_jobs": jobs, "progress": False, **delta}
        return partial(gpcert.certify_many, hard, rows(), 2.0, **how)
    if verb == "certified_radius":
        return partial(gpcert.certified_radius, hard, x, rtol=1e-4, max_radius=2.0, **delta)
    return partial(getattr(gpcert, verb), hard, box, tol=1e-9, budget=budget)


def facts(answer: Any) -> dict[str, Any]:
    """What the tests look at, whatever else a record holds."""
    if hasattr(answer, "certificates"):
        rows = [[c.region["center"], c.reason.name] for c in answer.certificates]
        return {"complete": answer.complete, "rows": rows}
    found = {"reason": answer.reason.name}
    if hasattr(answer, "minimum"):
        return found | {"lower": answer.minimum.lower, "upper": answer.maximum.upper}
    if hasattr(answer, "status"):
        return found | {"status": answer.status.name}
    return found | {"lower": answer.lower, "upper": answer.upper}


def main() -> None:
    """The command line."""
    verb = sys.argv[1]
    for name in gpcert.__all__:
        getattr(gpcert, name)  # not imports are to be interrupted, but the call
    question = asked(verb)
    print("asked", flush=True)
    answer = question()
    items = answer if isinstance(answer, tuple) else [answer]
    print(json.dumps([facts(item) for item in items]), flush=True)


if __name__ == "__main__":
    # a shell starts jobs in the background with interrupts ignored, and the tests may be one
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
