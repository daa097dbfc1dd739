"""The cell of width 0 at a point: what is proved there holds at the point itself."""

from __future__ import annotations

import numpy as np

from gpcert.arrays import Backend
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.local_posterior import local_model
from gpcert.regions import Ball


def evaluation_at(model: Model, x: np.ndarray, variance: bool) -> Evaluation:
    """The evaluation of that cell; `variance` says whether variances are asked of it."""
    region = Ball(x, 0.0)
    return Evaluation(local_model(model, region, Backend(), variance), region.root())
