"""One call with a checkpoint, in a process of its own that is killed from outside.

`python checkpoint_case.py PATH [VERB]` writes the answer's numbers as JSON, exactly.
"""

import json
import sys

import numpy as np

import gpcert
from gpcert.kernels import SquaredExponential

DIM = 4
CUBE = gpcert.Box([0.0] * DIM, [1.0] * DIM)


def model(seed=3):
    rng = np.random.default_rng(seed)
    points, weights = rng.uniform(size=(40, DIM)), rng.normal(size=40)
    return gpcert.Posterior(SquaredExponential(0.25), points, weights)


def numbers(found):
    ends = [[found.minimum.lower, found.minimum.upper], [found.maximum.lower, found.maximum.upper]]
    return {"ends": ends, "argmin": found.argmin.tolist(), "boxes": found.boxes}


def asked(checkpoint, tol=5e-3):
    how = {"tol": tol, "budget": 100, "checkpoint": checkpoint}
    return numbers(gpcert.prediction_range(model(), CUBE, **how))


if __name__ == "__main__":
    print(json.dumps(asked(gpcert.Checkpoint(sys.argv[1], 0.05))), flush=True)
