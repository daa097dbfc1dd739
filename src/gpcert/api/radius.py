"""`certified_radius`: how far one may go from x before the decision changes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Unpack

from gpcert.adapters import as_posterior
from gpcert.api.certify import certify_region
from gpcert.api.options import RadiusOptions, read_proof, read_x, verb
from gpcert.api.radius_question import RadiusQuestion
from gpcert.api.radius_search import radius_at
from gpcert.certificates import Radius
from gpcert.certificates.proof_questions import radius_proof


@verb
def certified_radius(
    model: Any,
    x: Any,
    *,
    max_radius: float | None = None,
    rtol: float = 0.01,
    proof: bool = False,
    **options: Unpack[RadiusOptions],
) -> Radius:
    """Bracket the largest radius at which the decision at x is robust.

    `lower`: proved robust up to here. `upper`: a counter-example lies at this distance. The search
    ends when `lower >= (1 - rtol) upper` (relative: a radius has no scale of its own, so it is not
    called `tol`) or with the budget, 60 seconds by default. `max_radius` (by
    default the farthest corner of `domain`, else 16 times the spread of the points) is where it
    gives up looking for a counter-example; if all of it is proved, `lower` is that radius and
    `upper` is infinite. If the decision at x itself cannot be proved, `lower` is 0 and the reason
    `UNDECIDED_AT_X`. `proof=True` searches the ball of `lower` once more, and `save("name.cert")`
    writes what `gpcert-check` checks. Other parameters as in `certify`. `progress` shows the
    bracket so far. Ctrl-C returns it, with `StopReason.INTERRUPTED`; a second one is raised.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> rad = gpcert.certified_radius(p, [0.0], threshold=0.0)
    >>> 1.48 < rad.lower <= 1.5 <= rad.upper < 1.51
    True
    """
    start = time.perf_counter()
    posterior = as_posterior(model)
    point = read_x(posterior, x, "use certified_radius_many")
    question = RadiusQuestion.read(options, posterior, max_radius, rtol)
    radius = radius_at(posterior, point, question, None, start, options.get("progress"))
    if not read_proof(proof) or not radius.lower > 0:
        return radius
    # its last search was one of many, of which most found out what is not true
    ball = question.shape.ball(point, radius.lower)
    settings = replace(question.settings, proof=True)
    held = certify_region(posterior, point, ball, question.options, settings)
    return replace(radius, proof=radius_proof(radius, held, question.shape))
