"""One call that takes long, run in a process of its own and interrupted from outside.

`python interrupt_case.py VERB` writes READY once the call begins, POINT once one of many is done,
and the answer as JSON.
"""

import json
import sys
from importlib import import_module

import numpy as np

import gpcert
from gpcert.kernels import SquaredExponential

BUDGET = gpcert.Budget(seconds=60.0)


def model():
    """A regression posterior of three features that no search finishes within the tolerance."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 1.0, (40, 3))
    weights = rng.normal(size=(1, 40))
    return gpcert.Posterior(SquaredExponential(0.25), points, weights)


def easy_and_hard(posterior):
    """Six points: around the first the mean comes close to the level, around the others not."""
    X = np.concatenate([np.zeros((1, 3)), 5.0 + np.arange(5)[:, None] * np.ones((1, 3))])
    return posterior, X


def interval(found):
    return [found.lower, found.upper]


def ranges(found):
    return {
        "reason": found.reason.name,
        "minimum": interval(found.minimum),
        "maximum": interval(found.maximum),
        "argmin": list(found.argmin),
    }


def hard_level(posterior):
    """A level just below the least mean over the box: neither proved nor refuted for long."""
    X = np.random.default_rng(1).uniform(-1, 1, (5_000, 3))
    return float(posterior.predict(X)[0].min()) - 0.01


def tell_of_points():
    module = import_module("gpcert.api.certify")
    original = module.numbered_results

    def told(*arguments):
        for item in original(*arguments):
            print("POINT", item[0], flush=True)
            yield item

    module.numbered_results = told


def run(verb):
    posterior = model()
    box = gpcert.Box([-1.0] * 3, [1.0] * 3)
    if verb == "range":
        return ranges(gpcert.prediction_range(posterior, box, tol=1e-9, budget=BUDGET))
    if verb == "ranges":
        return ranges(gpcert.prediction_ranges(posterior, box, tol=1e-9, budget=BUDGET)[0])
    if verb == "variance":
        how = {"quantity": "variance", "tol": 1e-9, "budget": BUDGET}
        return ranges(gpcert.prediction_range(posterior, box, **how))
    level = hard_level(posterior)
    if verb == "certify":
        found = gpcert.certify(
            posterior, np.zeros(3), region=box, threshold=level - 0.05, budget=BUDGET
        )
        return {"reason": found.reason.name, "margin": interval(found.margin)}
    if verb == "radius":
        found = gpcert.certified_radius(
            posterior, np.zeros(3), threshold=level, max_radius=1.0, tol=1e-6, budget=BUDGET
        )
        return {"reason": found.reason.name, "lower": found.lower, "upper": found.upper}
    tell_of_points()
    jobs = int(verb.removeprefix("many"))
    posterior, X = easy_and_hard(posterior)
    table = gpcert.certify_many(
        posterior, X, 1.0, threshold=level - 0.05, budget=BUDGET, n_jobs=jobs, progress=False
    )
    return {
        "complete": table.complete,
        "labels": list(table.labels),
        "statuses": [c.status.name for c in table],
        "reasons": [c.reason.name for c in table],
    }


if __name__ == "__main__":
    # imports and the model are there; from here on the call itself is interrupted
    model()
    print("READY", flush=True)
    try:
        answer = run(sys.argv[1])
    except KeyboardInterrupt:
        answer = {"raised": "KeyboardInterrupt"}
    print(json.dumps(answer), flush=True)
