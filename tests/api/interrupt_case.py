"""One call that takes long, run in a process of its own and interrupted from outside.

`python interrupt_case.py VERB` writes READY once the call begins, POINT once one of many is done,
and the answer as JSON.
"""

import json
import signal
import sys
from importlib import import_module

import numpy as np

import gpcert
from gpcert.attacks import attack
from gpcert.attacks.functions import plain_function
from gpcert.kernels import SquaredExponential
from gpcert.quantities import Mean

DIM = 8
BUDGET = gpcert.Budget(seconds=60.0)


def model():
    """A regression posterior of eight features: no search over all of them ends within minutes."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 1.0, (200, DIM))
    weights = rng.normal(size=(1, 200))
    factor = 0.1 * rng.normal(size=(20, 200))
    return gpcert.Posterior(SquaredExponential(0.8), points, weights, factor)


def easy_and_hard(posterior):
    """Six points: around the first the mean comes close to the level, around the others not."""
    X = np.concatenate([np.zeros((1, DIM)), 9.0 + np.arange(5)[:, None] * np.ones((1, DIM))])
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
    """A level just below the least mean that local search finds: nobody proves it soon."""
    box = gpcert.Box([-1.0] * DIM, [1.0] * DIM)
    function = plain_function(posterior, Mean(0, 1))
    x = attack(function, box, starts=10, random_state=0)
    return float(function(x[None])[0][0]) - 0.1


def tell_of_points():
    module = import_module("gpcert.api.many")
    original = module.numbered_results
    module.certify_batched = None  # one by one, as where no box is shared

    def told(*arguments):
        for item in original(*arguments):
            yield item
            print("POINT", item[0], flush=True)  # asked for the next: this one has been put away

    module.numbered_results = told


def run(verb):
    posterior = model()
    box = gpcert.Box([-1.0] * DIM, [1.0] * DIM)
    if verb in ("range", "range2"):  # in one process or in two
        how = {"tol": 0.0, "budget": BUDGET, "n_jobs": len(verb) - 4}
        return ranges(gpcert.prediction_range(posterior, box, **how))
    if verb == "ranges":
        return ranges(gpcert.prediction_ranges(posterior, box, tol=0.0, budget=BUDGET)[0])
    if verb == "variance":
        how = {"quantity": "variance", "tol": 0.0, "budget": BUDGET}
        return ranges(gpcert.prediction_range(posterior, box, **how))
    level = hard_level(posterior)
    if verb == "certify":
        found = gpcert.certify(posterior, np.zeros(DIM), region=box, threshold=level, budget=BUDGET)
        return {"reason": found.reason.name, "margin": interval(found.margin)}
    if verb == "radius":
        found = gpcert.certified_radius(
            posterior, np.zeros(DIM), threshold=level, max_radius=2.0, rtol=1e-6, budget=BUDGET
        )
        return {"reason": found.reason.name, "lower": found.lower, "upper": found.upper}
    tell_of_points()
    import_module("gpcert.api.running").LONGEST_TRY = 0.01  # the first point takes minutes
    jobs = int(verb.removeprefix("many"))
    posterior, X = easy_and_hard(posterior)
    table = gpcert.certify_many(
        posterior, X, 1.0, threshold=level, budget=BUDGET, n_jobs=jobs, progress=False
    )
    return {
        "complete": table.complete,
        "labels": list(table.labels),
        "statuses": [c.status.name for c in table],
        "reasons": [c.reason.name for c in table],
    }


if __name__ == "__main__":
    # a shell starts jobs in the background with interrupts ignored, and the tests may be one
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # an interrupt of an import leaves CPython with an exit code of its own, even where it is caught
    for name in gpcert.__all__:
        getattr(gpcert, name)
    # imports and the model are there; from here on the call itself is interrupted
    model()
    print("READY", flush=True)
    try:
        answer = run(sys.argv[1])
    except KeyboardInterrupt:
        answer = {"raised": "KeyboardInterrupt"}
    print(json.dumps(answer), flush=True)
