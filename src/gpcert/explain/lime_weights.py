"""LIME beside our effects: the package `lime` on the same model and points."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.words import read_seed, verb
from gpcert.arrays import whole_number
from gpcert.explain.arguments import read_some
from gpcert.explain.attribution import Attribution
from gpcert.explain.names import named
from gpcert.explain.predictions import output_labels, predictions
from gpcert.extras import optional


@verb
def lime(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    n_samples: int = 5000,
    random_state: int | None = 0,
) -> Attribution:
    """LIME's weights (Ribeiro, Singh and Guestrin 2016) at one point or several.

    A ridge regression of the predictions at random points around x, near ones weighing more. The
    points are drawn from the spread of `background` (n, d), by default the model's own points, and
    features are not discretised: a weight is the slope per standard deviation of its feature.
    Nothing is proved, and the weights depend on the seed.

    Needs the package `lime` 0.2.0.1 (of 2021; it still runs with Python 3.11 and NumPy 2.4):
    `pip install 'gpcert[explain]'`.
    """
    tabular = optional("lime.lime_tabular", "LIME")
    posterior = as_posterior(model)
    points, rows = read_some(posterior, X)
    seed = read_seed(random_state)
    whole_number("n_samples", n_samples, 2)
    data = (
        posterior.places if background is None else posterior.check_inputs(background, "background")
    )
    labels = output_labels(posterior)
    regression = predictions(posterior, points[:1]).shape[1] == 1
    names = named(posterior.feature_names, posterior.dim)
    values = np.zeros((len(points), len(labels), posterior.dim))
    for k in range(len(labels)):
        explainer = tabular.LimeTabularExplainer(
            data,
            mode="regression",
            feature_names=list(names),
            discretize_continuous=False,
            random_state=seed,
        )
        for i, x in enumerate(points):
            found = explainer.explain_instance(
                x,
                lambda Z, k=k: predictions(posterior, Z)[:, k],
                num_features=posterior.dim,
                num_samples=n_samples,
            )
            for feature, weight in found.as_map()[1]:
                values[i, k, feature] = weight
        if not regression and len(labels) == 2:  # of two classes one says all
            values[:, 1] = -values[:, 0]
            break
    return Attribution("LIME weight", points, values, labels, names, rows)
