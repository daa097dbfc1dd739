"""The optional pieces of the engine, and how each is switched off: an attribute is replaced.

Without a piece every bound is still valid, wider or slower: what stands in knows nothing.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np


class Piece(NamedTuple):
    """`place` is `module:attribute` below gpcert, or several of them, `off` makes its stand-in of
    what is there; problems that carry one of the words `on` may feel it. `fresh`: it is asked when
    a model is seen first, so that another one is made."""

    name: str
    place: str
    off: Callable[[Any], Any]
    on: str
    fresh: bool = False

    @property
    def owners(self) -> list[tuple[Any, str]]:
        """What holds the attributes, and their names."""
        paths = [
            f"gpcert.{place}".replace(":", ".").rpartition(".") for place in self.place.split()
        ]
        return [(pkgutil.resolve_name(path), name) for path, _, name in paths]

    @contextmanager
    def switched_off(self) -> Iterator[None]:
        """The engine without the piece."""
        with ExitStack() as stack:
            for holder, name in self.owners:
                stack.enter_context(patch.object(holder, name, self.off(getattr(holder, name))))
            yield


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda there: value


def _answer(value: Any) -> Callable[[Any], Any]:
    """A function that always answers the same."""
    return lambda there: lambda *args, **options: value


def _resting(start: str, but: str = "-") -> Callable[[Any], Any]:
    """A portfolio that never wants the bounds whose names begin so, but for one."""

    def off(wants: Any) -> Any:
        return lambda self, key: (
            (key[1] == but or not key[1].startswith(start)) and wants(self, key)
        )

    return off


def _infinite(sign: float) -> Callable[[Any], Any]:
    """(B,) infinite, for methods whose first argument is an expansion."""
    return lambda there: lambda self, expansion, *args: np.full(len(expansion.K), sign * math.inf)


def _higher_terms(kept: Callable[[int], bool]) -> Callable[[Any], Any]:
    def off(there: Any) -> Any:
        def higher_terms(self: Any, coefficients: Any, scaled: Any, *rest: Any) -> Any:
            return there(self, coefficients, scaled, *rest) if kept(scaled.shape[1]) else None

        return higher_terms

    return off


def _no_pairs(there: Any) -> Any:
    """Comparisons say nothing."""

    def range_(self: Any, c: int) -> Any:
        zero = np.zeros(len(self.latent.cells.lower))
        return zero, zero + 1.0

    return range_


def _far(there: Any) -> Any:
    """(B,) infinite, for functions whose first argument begins with a batch or holds a value."""
    return lambda first, *rest: np.full(len(getattr(first, "value", first)), math.inf)


def _no_derivatives(there: Any) -> Any:
    return lambda derivatives, second, pointwise, pairs: there(False, second, pointwise, pairs)


def _no_squares(there: Any) -> Any:
    return lambda derivatives, second, pointwise, pairs: there(False, False, pointwise, False)


PORTFOLIO = "enclosures.evaluation:Portfolio.wants"
SCALAR = "enclosures.goals.goal:"
LOCAL = "enclosures.local_posterior:"
CLASSES = "enclosures.classes."
NODES = "kernels.nodes."

LOCAL_SE = "kernels.expansions.squared_exponential:LocalSquaredExponential."
TABLE = "kernels.expansions.squared_exponential_table:SquaredExponentialTable."
FEATURES = 12
"""Up to here the third moments are formed, beyond a Gram matrix."""

POINTWISE = "pointwise variance"

PIECES = (
    # the mean
    Piece(
        "paper's lines",
        f"{LOCAL}LocalPosterior.lines_mean",
        _infinite(-1.0),
        "mean latent committee svm",
    ),
    Piece(
        "sub-boxes, mean",
        f"{SCALAR}_refined",
        lambda there: lambda evaluation, name, model, q, level: q,
        "mean svm",
    ),
    Piece(
        "degree 3 in sub-boxes",
        "enclosures.polynomials:CubicTerm.of",
        _answer(None),
        "mean latent",
    ),
    Piece(
        "spectral norm of degree 3",
        "kernels.expansions.exponentials:spectral_norm",
        lambda there: lambda matrix: np.full(len(matrix), math.inf),
        "many",
    ),
    Piece(
        "metric of the box", "kernels.expansions.exponentials:WORTHWHILE", _constant(0.0), "many"
    ),
    Piece("point by point, mean", PORTFOLIO, _resting("pointwise", POINTWISE), "mean latent"),
    Piece(
        "degree 3, few features",
        f"{TABLE}higher_terms",
        _higher_terms(lambda f: f > FEATURES),
        "se",
    ),
    Piece(
        "degrees 3-6 by Gram matrix",
        f"{TABLE}higher_terms",
        _higher_terms(lambda f: f <= FEATURES),
        "many",
    ),
    Piece(
        "orders 0 and 1 of the SE",
        f"{LOCAL_SE}remainder",
        _infinite(1.0),
        "wide",
    ),
    Piece("norms of slices", f"{TABLE}slice_norm", _answer(None), "slice"),
    Piece(
        "tensors of degree 3 and 4",
        f"{NODES}radial_batch:MAX_TENSOR_FEATURES {NODES}radial_bins:MAX_TENSOR_FEATURES",
        _constant(0),
        "rough",
    ),
    Piece("bins of distances", f"{NODES}radial_batch:serves", _answer(False), "rough"),
    Piece(
        "cells in a ball",
        "enclosures.polynomials:_ball_improvement",
        lambda there: lambda geometry, gradient, hessian, lower: lower,
        "ball",
    ),
    Piece("points with a weight alone", f"{LOCAL}FEW", _constant(0.0), "svm"),
    Piece("first order by itself", f"{LOCAL}LocalPosterior.linear_models", _answer(None), "svm"),
    # the variance
    Piece("second square", f"{LOCAL}MAX_SECOND_FEATURES", _constant(0), "latent"),
    Piece(
        "covariance of derivatives",
        f"{LOCAL}VarianceOptions",
        _no_derivatives,
        "latent classes committee",
    ),
    Piece("both of these", f"{LOCAL}VarianceOptions", _no_squares, "latent"),
    Piece("point by point, variance", PORTFOLIO, _resting(POINTWISE), "latent"),
    Piece(
        "own function beyond degree 2",
        f"{NODES}radial_batch:RadialBatch.diagonal_second_order_remainder",
        _answer(None),
        "rough",
    ),
    Piece(
        "one product with S",
        "enclosures.precision:ACCEPTABLE_ERROR",
        _constant(-1.0),
        "latent",
    ),
    # functions of both
    Piece("sub-boxes, probability", PORTFOLIO, _resting("inner line"), "latent committee"),
    Piece(
        "line along the level curve",
        f"{SCALAR}_Joint._level_slope",
        lambda there: lambda self, d: np.zeros(len(d)),
        "latent committee",
    ),
    Piece("further lines", f"{SCALAR}_Joint._further_lines", _answer([]), "latent committee"),
    # several classes
    Piece("ranges of the classes", PORTFOLIO, _resting("ranges"), "classes"),
    Piece("comparisons of pairs", f"{CLASSES}pairs:PairBounds.range", _no_pairs, "classes"),
    Piece(
        "rivals of a class together",
        "likelihoods.multinomial_probit:MultinomialProbit.joint_range",
        _answer(None),
        "probit",
    ),
    Piece("pieces of the covariance", PORTFOLIO, _resting("pieces"), "classes"),
    Piece("leader of two classes", PORTFOLIO, _resting("leader"), "classes"),
    Piece("faces of boxes", f"{CLASSES}leading:MAX_CLASSES", _constant(0), "classes"),
    Piece(
        "split scores of classes",
        f"{CLASSES}bounds:ClassBounds.split_scores",
        lambda there: lambda self: self.latent.split_scores(),
        "classes",
    ),
    Piece("shapes of variances", f"{CLASSES}latent:MAX_SHAPES", _constant(0), "classes"),
    Piece(
        "the links' own smoothness", f"{CLASSES}taylor_bound:_link_bounds", _answer(None), "classes"
    ),
    Piece(
        "rest by orthogonality",
        " ".join(f"{CLASSES}{f}:orthogonal_rest" for f in ("bounds", "taylor_bound")),
        _far,
        "classes",
    ),
    # many coupled classes
    Piece(
        "nearest independent law",
        f"{CLASSES}reference:nearest_variances",
        lambda there: lambda V: np.ones((len(V), V.shape[1] + 1)),
        "coupled",
    ),
    Piece("bends together", f"{CLASSES}reference:joint_bends", _answer(None), "classes"),
    Piece(
        "pieces of many classes",
        f"{CLASSES}bounds:ClassBounds._scales",
        _constant(property(lambda self: False)),
        "many_classes",
    ),
    Piece("longest image", f"{CLASSES}metric:longest_image", _far, "many_classes"),
    Piece(
        "excess of a coupling",
        "model.unit_form:coupling_excess",
        _answer(math.inf),
        "coupled",
        True,
    ),
    Piece("pairs together", f"{LOCAL}PairUnits", _constant(type(None)), "coupled"),
    Piece("probability plane", PORTFOLIO, _resting("sum of probabilities"), "committee"),
    Piece("resting of bounds", PORTFOLIO, _answer(True), "mean latent committee"),
)
